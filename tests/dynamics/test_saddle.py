"""The separatrix of the saddle: an odd curve through the origin that parts the two ends."""

import numpy as np
import pytest

from popdyn import ClosedFormRisk, Head, gradient_flow, separatrix

NEARBY = 1e-9  # of the label score; the two ends meet within 1.5e-10 of the curve, by bisection
SLOPE_ERROR = 1e-9  # measured 3e-12 at mu l = 1e-6
SAME = 1e-9  # between runs to different levels; measured 3e-12


def ends_upright(head):
    flow = gradient_flow(ClosedFormRisk(head.half_width), head, 1e10)
    return bool(flow.stop_head.scale > 0)


@pytest.mark.parametrize(("half_width", "scale"), [(1.0, 0.1), (1.0, 1.0), (1.0, 8.0), (0.3, 3.0)])
def test_starts_beside_it_end_at_different_heads(half_width, scale):
    label_score = float(separatrix(scale, half_width).label_score)
    beside = [label_score * (1 - side * NEARBY) for side in (-1, 1)]
    assert [ends_upright(Head.from_scores(x, scale, half_width)) for x in beside] == [False, True]


@pytest.mark.parametrize("half_width", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("scale", [1e-300, 1e-6])
def test_it_leaves_the_origin_along_the_eigenvector_that_descends_into_it(half_width, scale):
    a, b = 2 * half_width**3 / 15, 2 * half_width**4 / 9  # the Hessian is [[0, -a], [-a, b]]
    _, vectors = np.linalg.eigh([[0.0, -a], [-a, b]])
    wanted = vectors[0, 1] / vectors[1, 1]
    head = separatrix(scale / half_width, half_width)
    assert head.ratio == pytest.approx(wanted, rel=SLOPE_ERROR, abs=0)


def test_it_broadcasts_over_scales_in_any_order():
    scales = np.array([[3.0, 0.1], [1e-9, 3.0]])
    heads = separatrix(scales, 2.0)
    assert heads.shape == scales.shape and heads.half_width == 2.0
    np.testing.assert_array_equal(heads.scale, scales)
    alone = [float(separatrix(mu, 2.0).label_score) for mu in scales.ravel()]
    np.testing.assert_allclose(np.ravel(heads.label_score), alone, rtol=SAME)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, [1.0, -1.0]])
def test_a_scale_that_is_not_positive_is_refused(scale):
    with pytest.raises(ValueError, match="scale must be positive and finite, got"):
        separatrix(scale)
