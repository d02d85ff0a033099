"""Risks over the whole plane: symmetries, scaling, bounds, and the slope of an exact witness."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp
from plane import heads, held_to, powers, signed

from popdyn import (
    ArbitraryPrecisionRisk,
    ClosedFormRisk,
    Design,
    Head,
    InfiniteContextRisk,
    ReflectedPairRisk,
    boundary_graded,
    limit_error,
)

RISKS = {
    "closed form": ClosedFormRisk,
    "graded": lambda width: InfiniteContextRisk(Design(width), boundary_graded()),
    "reflected pair": ReflectedPairRisk,
}
each_risk = pytest.mark.parametrize("make", RISKS.values(), ids=RISKS)
EVEN = 4e-15  # measured 1.0e-15, where the graded rule changes its side at scale 0; pair 0
LEAST = 2.3e-308  # below it doubles lose bits by themselves
ROUTES = 1e-11  # closed form and graded rule, gradients relative to the larger component


def norm(gradient, half_width):
    """In units where the half width is one."""
    return np.maximum(np.abs(gradient[..., 0]), np.abs(gradient[..., 1]) / half_width)


@each_risk
@held_to(max_examples=150)
@given(head=heads())
def test_every_finite_head_has_a_finite_risk_within_its_bounds(make, head):
    risk, width = make(head.half_width), head.half_width
    value, gradient = risk.value_and_gradient(head)
    assert 0.0 < value <= 4.0 * width**2
    assert np.isfinite(gradient).all() and np.isfinite(risk.hessian(head)).all()
    # |Cov(x, y)| <= 2 l and Var(x) <= l^2 under any weights, |F - alpha| <= 2 l
    assert abs(gradient[0]) <= 8.0 * width**2 and abs(gradient[1]) <= 4.0 * width**3


@each_risk
@held_to(max_examples=100)
@given(head=heads())
def test_the_risk_is_even_and_its_gradient_odd(make, head):
    risk = make(head.half_width)
    (value, gradient), (mirrored, turned) = (
        risk.value_and_gradient(one) for one in (head, head.reflected)
    )
    hessian = risk.hessian(head)
    assert abs(value - mirrored) <= EVEN * value
    assert norm(gradient + turned, head.half_width) <= EVEN * norm(gradient, head.half_width)
    unit = np.array([[1.0, head.half_width], [head.half_width, head.half_width**2]])
    off = np.abs(hessian - risk.hessian(head.reflected)) / unit
    assert off.max() <= EVEN * np.abs(hessian / unit).max()


@each_risk
@held_to(max_examples=100)
@given(head=heads(widths=st.just(1.0)), exponent=st.integers(-20, 20))
def test_a_half_width_that_is_a_power_of_two_is_a_unit_to_the_last_bit(make, head, exponent):
    l = 2.0**exponent
    value, gradient = make(1.0).value_and_gradient(Head.from_excess(head.excess, head.scale))
    other = Head.from_excess(head.excess, head.scale / l, l)
    of_other, turned = make(l).value_and_gradient(other)
    assert of_other / l**2 == value
    np.testing.assert_allclose(turned / [l**2, l**3], gradient, rtol=0, atol=LEAST / l**3)


@held_to(max_examples=100)
@given(head=heads(largest=6))
def test_the_closed_form_and_the_graded_rule_agree(head):
    width = head.half_width
    one = ClosedFormRisk(width).value_and_gradient(head)
    other = InfiniteContextRisk(Design(width), boundary_graded()).value_and_gradient(head)
    assert abs(one[0] - other[0]) <= ROUTES * one[0]
    assert norm(one[1] - other[1], width) <= ROUTES * norm(one[1], width)


# Central differences of the exact value, in arbitrary precision: their own error is of order
# STEP^2 of the third derivative, 1e-20, and 1e-40/STEP of the value.
STEP = mp.mpf(10) ** -10
DIGITS = 40
SLOPE = 3e-14  # of the larger component: the closed form's 2e-14, and what the step leaves


@held_to(max_examples=25)
@given(
    label_score=signed(powers(-5, 1.5)),
    scale=signed(powers(-5, 1.5)),
    half_width=st.sampled_from([0.5, 1.0, 2.0]),
)
def test_the_gradient_is_the_slope_of_the_exact_risk(label_score, scale, half_width):
    exact = ArbitraryPrecisionRisk(half_width, digits=DIGITS)
    slopes = []
    for by_lam, by_mu in ((STEP, 0), (0, STEP)):
        with mp.workdps(2 * DIGITS):
            ends = [(label_score + way * by_lam, scale + way * by_mu) for way in (1, -1)]
        ahead, behind = (exact.evaluate(label_score=lam, scale=mu).risk for lam, mu in ends)
        with mp.workdps(2 * DIGITS):
            slopes.append(float((ahead - behind) / (2 * STEP)))
    head = Head.from_scores(label_score, scale, half_width)
    off = ClosedFormRisk(half_width).gradient(head) - slopes
    assert norm(off, half_width) <= SLOPE * norm(np.array(slopes), half_width)


@held_to(max_examples=200)
@given(head=heads(), shares=st.lists(st.floats(-1.0, 1.0), min_size=2, max_size=5))
def test_the_predictor_stays_inside_the_interval_and_is_mirrored_with_the_task(head, shares):
    width = head.half_width
    thresholds = np.array(shares) * width
    predictions = limit_error(head, thresholds) + thresholds
    assert (np.abs(predictions) <= width * (1 + 1e-15)).all()
    mirrored = limit_error(head.reflected, -thresholds)
    np.testing.assert_array_equal(mirrored, -limit_error(head, thresholds))
