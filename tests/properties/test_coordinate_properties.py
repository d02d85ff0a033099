"""Heads of any doubles: refused, or finite, exact in the coordinate given, and rounded once."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from plane import heads, held_to

from popdyn import Head
from popdyn.dynamics.charts import LinearChart, TubeChart

doubles = st.floats(allow_nan=False, allow_infinity=False)
any_float = st.floats()
MAKERS = {
    "label_score": Head.from_scores,
    "excess": Head.from_excess,
    "ratio": Head.from_ratio,
    "tube": Head.from_tube,
}
each_maker = pytest.mark.parametrize(("name", "make"), MAKERS.items(), ids=MAKERS)
TINY = 5e-324
NOTHING = 1e-300  # below it doubles lose bits by themselves


def spacing(*numbers):
    return float(np.spacing(max(map(abs, numbers))))


@each_maker
@held_to(max_examples=300)
@given(coordinate=any_float, scale=any_float, half_width=any_float)
def test_any_floats_are_refused_in_one_line_or_a_finite_head_that_keeps_them(
    name, make, coordinate, scale, half_width
):
    try:
        head = make(coordinate, scale, half_width)
    except ValueError as refusal:
        assert "\n" not in str(refusal)
        return
    assert np.isfinite([coordinate, scale, half_width]).all()
    assert np.isfinite([head.label_score, head.excess, head.scale]).all()
    assert (getattr(head, name), head.scale, head.half_width) == (coordinate, scale, half_width)
    assert np.isnan(head.tube) == np.isnan(head.ratio) == (scale <= 0)
    assert make(getattr(head, name), head.scale, head.half_width) == head
    assert eval(repr(head), {"Head": Head}) == head


@each_maker
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_no_head_has_a_coordinate_that_is_not_finite(name, make, bad):
    for arguments in ((bad, 1.0, 1.0), (1.0, bad, 1.0), (1.0, 1.0, bad), ([1.0, bad], 1.0, 1.0)):
        with pytest.raises(ValueError, match="must be"):
            make(*arguments)


@held_to(max_examples=300)
@given(label_score=doubles, scale=doubles, half_width=st.floats(min_value=1e-300, max_value=1e300))
def test_excess_and_label_score_are_the_exact_ones_rounded_once(label_score, scale, half_width):
    exact = Fraction(label_score) - Fraction(scale) * Fraction(half_width)
    if abs(exact) > 1e308 or abs(Fraction(scale) * Fraction(half_width)) > 1e308:
        return
    excess = Head.from_scores(label_score, scale, half_width).excess
    assert abs(Fraction(float(excess)) - exact) <= max(Fraction(spacing(excess)), Fraction(TINY))
    there = Fraction(label_score) + Fraction(scale) * Fraction(half_width)
    if abs(there) < 1e308:
        score = Head.from_excess(label_score, scale, half_width).label_score
        assert abs(Fraction(float(score)) - there) <= max(Fraction(spacing(score)), Fraction(TINY))


@example(head=Head.from_scores(5.0, 2.225073858507203e-309, 0.5))
@held_to(max_examples=300)
@given(head=heads(largest=12))
def test_a_round_trip_through_another_coordinate_is_within_a_spacing_of_its_terms(head):
    lam, delta, mu, l = head.label_score, head.excess, head.scale, head.half_width
    largest = spacing(lam, delta, mu * l)
    assert abs(Head.from_excess(delta, mu, l).label_score - lam) <= largest + NOTHING
    assert abs(Head.from_scores(lam, mu, l).excess - delta) <= largest + NOTHING
    if mu > 0:
        log = math.log(mu)
        back = Head.from_tube(head.tube, mu, l)
        # One spacing for each of the two roundings passed: of c and of delta.
        assert abs(back.excess - delta) <= 2 * spacing(head.tube, log, delta)
        if np.isfinite(head.ratio):  # a scale below 1e-308 may make it larger than any double
            there = Head.from_ratio(head.ratio, mu, l)
            assert abs(there.label_score - lam) <= 2 * spacing(lam) + NOTHING * max(1.0, mu)


@held_to(max_examples=300)
@given(head=heads(largest=12))
def test_reflection_is_exact_and_its_own_inverse(head):
    mirrored = head.reflected
    assert (mirrored.label_score, mirrored.scale) == (-head.label_score, -head.scale)
    assert mirrored.excess == -head.excess and mirrored.reflected == head


@held_to(max_examples=300)
@given(head=heads(largest=12))
def test_a_chart_gives_its_own_head_back(head):
    linear = LinearChart.around(head)
    back = linear.head(linear.state(head))
    assert abs(back.label_score - head.label_score) <= NOTHING
    assert abs(back.scale - head.scale) <= NOTHING / head.half_width
    if head.scale != 0:
        tube = TubeChart.around(head)
        back = tube.head(tube.state(head))
        upright = head if head.scale > 0 else head.reflected
        assert back.scale == head.scale
        assert abs(abs(back.excess) - abs(head.excess)) <= 2 * spacing(
            upright.tube, math.log(upright.scale), head.excess
        )
