"""One contract for every risk: shapes, derivatives, symmetries, scaling, refusals."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from popdyn import (
    ArbitraryPrecisionRisk,
    ClosedFormRisk,
    Design,
    Head,
    InfiniteContextRisk,
    ReflectedPairRisk,
    boundary_graded,
    equal_weights,
    gauss_legendre,
)


@dataclass(frozen=True)
class Kind:
    """A risk on any interval, and whether its design is symmetric."""

    make: Callable[[float], object]
    symmetric: bool = True


def wavy(half_width):
    return lambda x: (1 + 0.3 * np.cos(np.pi * x / half_width)) / (2 * half_width)


def tilted(half_width):
    return lambda x: (1 + 0.3 * x / half_width) / (2 * half_width)


THRESHOLDS = np.array([0.05, 0.4, 0.77, 0.98])

RISKS = {
    "arbitrary precision": Kind(ArbitraryPrecisionRisk),
    "closed form": Kind(ClosedFormRisk),
    "reflected pair": Kind(ReflectedPairRisk),
    "graded": Kind(lambda w: InfiniteContextRisk(Design(w), boundary_graded())),
    "plain": Kind(lambda w: InfiniteContextRisk(Design(w), gauss_legendre(900))),
    "drawn tasks": Kind(
        lambda w: InfiniteContextRisk(
            Design(w), equal_weights(w * np.concatenate((-THRESHOLDS, THRESHOLDS)))
        )
    ),
    "wavy features": Kind(
        lambda w: InfiniteContextRisk(Design(w, feature_density=wavy(w)), boundary_graded())
    ),
    "tilted": Kind(
        lambda w: InfiniteContextRisk(
            Design(w, feature_density=tilted(w), threshold_density=tilted(w)), boundary_graded()
        ),
        symmetric=False,
    ),
}
each_risk = pytest.mark.parametrize("kind", RISKS.values(), ids=RISKS)
symmetric_risk = pytest.mark.parametrize(
    "kind",
    [k for k in RISKS.values() if k.symmetric],
    ids=[n for n, k in RISKS.items() if k.symmetric],
)

SCORES = {
    "origin": (0.0, 0.0),
    "no scale": (1.5, 0.0),
    "no label score": (0.0, 2.0),
    "mild": (0.4, -0.7),
    "towards the tube": (7.5, 5.0),
    "wrong label": (-1.0, 4.0),
    "interior": (3.0, 6.0),
    "negative scale": (-4.0, -3.0),
}
each_score = pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)

# Sixth-order central differences of step 1/64: measured 1e-12 at worst where the thresholds are
# all averaged, 5e-11 for the sharper risk of a few drawn ones.
STENCIL = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / 60.0
OFFSETS = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
STEP = 1.0 / 64.0
DIFFERENCE_TOLERANCE = 2e-10


# Two evaluations of one route, relative: measured 8e-14 where the gradient of the wavy design at
# the origin is rounding alone, 3e-14 for drawn tasks, 5e-15 for all others.
ROUNDING = 2e-13


def norm(gradient):
    return np.abs(gradient).max(axis=-1)


@each_risk
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)])
def test_values_gradients_and_hessians_broadcast_over_the_head(kind, shape):
    risk = kind.make(1.0)
    head = Head.from_scores(np.full(shape, 2.0), np.full(shape, 3.0))
    assert np.shape(risk.value(head)) == shape
    assert np.shape(risk.gradient(head)) == (*shape, 2)
    assert np.shape(risk.hessian(head)) == (*shape, 2, 2)
    value, gradient = risk.value_and_gradient(head)
    assert np.shape(value) == shape
    assert np.shape(gradient) == (*shape, 2)


@each_risk
def test_many_heads_at_once_are_each_head_alone(kind):
    risk = kind.make(1.0)
    lam, mu = np.array(list(SCORES.values())).T
    together = risk.value_and_gradient(Head.from_scores(lam, mu))
    hessians = risk.hessian(Head.from_scores(lam, mu))
    for i in range(lam.size):
        head = Head.from_scores(lam[i], mu[i])
        np.testing.assert_allclose(together[0][i], risk.value(head), rtol=1e-15)
        np.testing.assert_allclose(together[1][i], risk.gradient(head), rtol=1e-15, atol=1e-18)
        np.testing.assert_allclose(hessians[i], risk.hessian(head), rtol=1e-15, atol=1e-18)


@each_risk
def test_value_and_gradient_are_those_asked_for_alone(kind):
    risk, head = kind.make(1.0), Head.from_scores([1.0, -2.0], [3.0, 0.5])
    value, gradient = risk.value_and_gradient(head)
    np.testing.assert_array_equal(value, risk.value(head))
    np.testing.assert_array_equal(gradient, risk.gradient(head))


@each_risk
@each_score
def test_the_gradient_is_the_slope_of_the_value(kind, scores):
    risk, (lam, mu) = kind.make(1.0), scores
    steps = STEP * OFFSETS
    along_lam = risk.value(Head.from_scores(lam + steps, mu)) @ STENCIL / STEP
    along_mu = risk.value(Head.from_scores(lam, mu + steps)) @ STENCIL / STEP
    gradient = risk.gradient(Head.from_scores(lam, mu))
    assert norm(gradient - [along_lam, along_mu]) < DIFFERENCE_TOLERANCE


@each_risk
@each_score
def test_the_hessian_is_symmetric_and_the_slope_of_the_gradient(kind, scores):
    risk, (lam, mu) = kind.make(1.0), scores
    steps = STEP * OFFSETS
    along_lam = STENCIL @ risk.gradient(Head.from_scores(lam + steps, mu)) / STEP
    along_mu = STENCIL @ risk.gradient(Head.from_scores(lam, mu + steps)) / STEP
    hessian = risk.hessian(Head.from_scores(lam, mu))
    assert hessian[0, 1] == hessian[1, 0]
    assert np.abs(hessian - [along_lam, along_mu]).max() < DIFFERENCE_TOLERANCE


@symmetric_risk
@each_score
def test_the_reflected_head_has_the_same_risk(kind, scores):
    risk, head = kind.make(1.0), Head.from_scores(*scores)
    value, gradient = risk.value_and_gradient(head)
    mirrored_value, mirrored_gradient = risk.value_and_gradient(head.reflected)
    assert mirrored_value == pytest.approx(value, rel=ROUNDING, abs=0)
    size = max(norm(gradient), 1e-3)
    np.testing.assert_allclose(mirrored_gradient, -gradient, atol=ROUNDING * size)
    np.testing.assert_allclose(risk.hessian(head.reflected), risk.hessian(head), atol=ROUNDING)


@each_risk
@each_score
@pytest.mark.parametrize("half_width", [1e-50, 0.3, 2.0, 1e50])
def test_a_rescaled_interval_rescales_the_risk(kind, scores, half_width):
    lam, mu = scores
    head = Head.from_scores(lam, mu / half_width, half_width=half_width)
    unit = Head.from_scores(lam, head.scale * half_width)
    risk, unit_risk = kind.make(half_width), kind.make(1.0)
    units = np.array([1.0, half_width])
    value = risk.value(head) / half_width**2
    gradient = risk.gradient(head) / half_width**2 / units
    hessian = risk.hessian(head) / half_width**2 / np.outer(units, units)
    assert risk.half_width == half_width
    assert value == pytest.approx(unit_risk.value(unit), rel=ROUNDING, abs=0)
    # At the origin the gradient of a nonuniform rule is rounding of terms of order one.
    np.testing.assert_allclose(gradient, unit_risk.gradient(unit), atol=ROUNDING)
    np.testing.assert_allclose(hessian, unit_risk.hessian(unit), atol=ROUNDING)


@each_risk
@pytest.mark.parametrize("method", ["value", "gradient", "value_and_gradient", "hessian"])
def test_a_head_of_another_half_width_is_refused(kind, method):
    with pytest.raises(ValueError, match="half width"):
        getattr(kind.make(1.0), method)(Head.from_scores(1.0, 1.0, half_width=2.0))
