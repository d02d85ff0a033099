"""Flows and descents from anywhere: the risk falls, halves make a whole, mirrors are kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plane import heads, held_to, powers

from popdyn import ClosedFormRisk, Head, gradient_descent, gradient_flow, hitting_time

# The flow promises 1e-9 of the scale and of the tube coordinate; measured here: see below.
FLOW = 1e-9
FALL = 1e-11  # of the risk, from point to point: the path is not exact, measured 2e-13
WIDTHS = st.sampled_from([0.5, 1.0, 2.0])
STARTS = heads(largest=2, widths=WIDTHS)
TIMES = powers(-2, 6)


@held_to(max_examples=30)
@given(head=STARTS, t_end=TIMES)
def test_the_risk_falls_along_a_flow_and_everything_is_finite(head, t_end):
    trajectory = gradient_flow(ClosedFormRisk(head.half_width), head, t_end)
    assert trajectory.success and trajectory.stop_time == t_end
    assert np.isfinite([trajectory.scale, trajectory.label_score, trajectory.risk]).all()
    assert (np.diff(trajectory.risk) <= FALL * trajectory.risk[:-1]).all()
    np.testing.assert_array_equal(np.isnan(trajectory.tube), trajectory.scale <= 0)


def near(one, other):
    """Whether two heads are one to the flow's accuracy, relative to the larger score or to 1."""
    width = one.half_width
    size = max(1.0, abs(other.scale) * width)
    off = abs(one.scale - other.scale) * width
    return max(off, abs(one.excess - other.excess)) <= FLOW * size


@held_to(max_examples=20)
@given(head=STARTS, first=TIMES, second=TIMES)
def test_two_flows_one_after_the_other_are_one(head, first, second):
    risk = ClosedFormRisk(head.half_width)
    middle = gradient_flow(risk, head, first, t_eval=[]).stop_head
    end = gradient_flow(risk, middle, second, t_eval=[]).stop_head
    assert near(end, gradient_flow(risk, head, first + second, t_eval=[]).stop_head)


@held_to(max_examples=20)
@given(head=STARTS, t_end=TIMES)
def test_the_mirrored_start_flows_to_the_mirrored_end(head, t_end):
    risk = ClosedFormRisk(head.half_width)
    end = gradient_flow(risk, head, t_end, t_eval=[]).stop_head
    assert near(gradient_flow(risk, head.reflected, t_end, t_eval=[]).stop_head.reflected, end)


@held_to(max_examples=20)
@given(head=STARTS, t_end=TIMES)
def test_a_scale_on_the_way_is_hit_when_the_flow_is_there(head, t_end):
    risk = ClosedFormRisk(head.half_width)
    trajectory = gradient_flow(risk, head, t_end, t_eval=[t_end])
    level = float(trajectory.scale[-1])
    if level > 0 and level > head.scale:
        hit = hitting_time(risk, head, scale=level * (1 - 1e-3))
        assert hit.reached and hit.time <= t_end
        there = gradient_flow(risk, head, hit.time, t_eval=[]).stop_head
        assert there.scale == pytest.approx(hit.head.scale, rel=FLOW, abs=0)
        never = hitting_time(risk, head, scale=max(level, *trajectory.scale) * 10, t_end=hit.time)
        assert not never.reached and never.time == np.inf


@held_to(max_examples=30)
@given(head=heads(largest=1.5, widths=WIDTHS))
def test_small_steps_of_descent_never_raise_the_risk(head):
    # |Hessian| <= 8 in units of the half width, so that steps below 2/8 descend
    width = head.half_width
    step = 0.1 / max(width**2, width**4)
    run = gradient_descent(ClosedFormRisk(width), head, step, 200)
    assert np.isfinite([run.scale, run.label_score, run.risk]).all()
    assert (np.diff(run.risk) <= 1e-15 * run.risk[:-1]).all()


@held_to(max_examples=50)
@given(bad=st.sampled_from([np.nan, np.inf, -np.inf]), at=st.integers(0, 2))
def test_no_answer_comes_from_a_number_that_is_none(bad, at):
    numbers = [1.5, 5.0, 10.0]
    numbers[at] = bad
    with pytest.raises(ValueError, match="must be"):
        gradient_flow(ClosedFormRisk(), Head.from_ratio(*numbers[:2]), numbers[2])
    with pytest.raises(ValueError, match="must be"):
        gradient_descent(ClosedFormRisk(), Head.from_ratio(*numbers[:2]), numbers[2], 3)
