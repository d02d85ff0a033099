"""Descent in jumps: held to the same descent step by step, and what it says of its error."""

import math

import numpy as np
import pytest
from toy_risks import QuadraticRisk, SpoiltRisk

from popdyn import (
    ClosedFormRisk,
    CorpusRisk,
    Design,
    Head,
    InfiniteContextRisk,
    ReflectedPairRisk,
    equal_weights,
    gradient_descent,
    gradient_flow,
    sample_corpus,
)
from popdyn.dynamics import jumps

POPULATION = ClosedFormRisk()
ON_TUBE = Head.from_tube(math.log(2.0), 8.0)

# Relative in the scale and absolute in the excess. Measured: 3e-13 in the bowl, 1e-13 next to the
# minimum of a corpus of 64 tasks, 5e-14 everywhere else.
PROMISED = 1e-11
# What an estimate does not see: excesses of up to 10 are rounded before they are compared.
# Measured: 5e-16.
ROUNDING = 1e-14


def both(risk, head, step_size, n_steps, **options):
    steps = gradient_descent(risk, head, step_size, n_steps, **options)
    return steps, gradient_descent(risk, head, step_size, n_steps, method="jumps", **options)


def error(steps, jumped):
    np.testing.assert_array_equal(steps.t, jumped.t)
    off_scale = np.abs(jumped.scale / steps.scale - 1.0)
    return max(off_scale.max(), np.abs(jumped.excess - steps.excess).max())


def corpus_risk(size, seed):
    return CorpusRisk(sample_corpus(Design(), size, size, seed))


# --- the same descent -----------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [10.0, 30.0, 100.0])
@pytest.mark.parametrize("step_size", [1.0, 30.0])
def test_the_population_is_followed_over_many_steps(scale, step_size):
    steps, jumped = both(POPULATION, Head.from_tube(0.5, scale), step_size, 100_000)
    assert error(steps, jumped) < PROMISED
    assert error(steps, jumped) <= jumped.error_estimate + ROUNDING
    assert jumped.error_estimate <= PROMISED
    assert jumped.nfev < 3000  # measured 1300


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("step_size", [1.0, 20.0])
@pytest.mark.parametrize("steps_before", [30, 150, 2000], ids=["start", "middle", "end"])
def test_a_corpus_is_followed_from_all_places_of_a_run(seed, step_size, steps_before):
    risk = corpus_risk(48, seed)
    place = gradient_descent(risk, Head.from_ratio(1.5, 8), 100.0, steps_before).stop_head
    steps, jumped = both(risk, place, step_size, 4000)
    assert jumped.nfev < 2500
    assert error(steps, jumped) < PROMISED
    assert error(steps, jumped) <= jumped.error_estimate + ROUNDING


ELSEWHERE = {
    "far below the tube": (POPULATION, Head.from_ratio(0.4, 3), 1.0),
    "reflected": (POPULATION, Head.from_ratio(1.2, 4).reflected, 2.0),
    "next to the saddle": (POPULATION, Head.from_scores(1e-6, -1e-6), 0.5),
    "narrow": (ClosedFormRisk(0.3), Head.from_excess(4.0, 30.0, 0.3), 16.0),
    "wide": (ClosedFormRisk(3.0), Head.from_excess(4.0, 3.0, 3.0), 0.05),
}


@pytest.mark.parametrize(("risk", "head", "step_size"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_any_start_is_followed(risk, head, step_size):
    steps, jumped = both(risk, head, step_size, 100_000)
    assert error(steps, jumped) < PROMISED
    assert error(steps, jumped) <= jumped.error_estimate + ROUNDING
    assert jumped.nfev < 5000


RISKS = {
    "drawn tasks": (
        InfiniteContextRisk(Design(), equal_weights(np.linspace(-0.98, 0.97, 40))),
        Head.from_ratio(1.5, 8),
        10.0,
    ),
    "reflected pair": (ReflectedPairRisk(), Head.from_ratio(1.5, 5), 1.0),
    "bowl": (
        QuadraticRisk(((1.0, 0.2), (0.2, 0.1)), (2.0, 8.0)),
        Head.from_scores(2.8, 4.0),
        0.002,
    ),
}


@pytest.mark.parametrize(("risk", "head", "step_size"), RISKS.values(), ids=RISKS)
def test_any_risk_is_followed(risk, head, step_size):
    steps, jumped = both(risk, head, step_size, 2000)
    assert jumped.error_estimate > 0.0  # it did jump
    assert error(steps, jumped) < PROMISED


def test_it_is_the_descent_and_not_the_flow():
    steps, jumped = both(POPULATION, Head.from_ratio(1.5, 8), 100.0, 10_000, record=[0, 10_000])
    flow = gradient_flow(POPULATION, Head.from_ratio(1.5, 8), 1e6).stop_head
    assert error(steps, jumped) < PROMISED
    assert abs(jumped.stop_head.scale / flow.scale - 1.0) > 1e-5


def test_ten_million_steps_add_up_without_rounding():
    steps, jumped = both(POPULATION, ON_TUBE, 1.0, 10**7, record=[0, 10**6, 10**7])
    assert error(steps, jumped) < 5e-14  # measured 2e-14
    assert jumped.nfev < 5000


def test_more_steps_than_can_be_taken_lead_to_where_the_flow_goes():
    # Descent differs from flow by a shift of about a step in the time, here 1e-13 of it.
    jumped = gradient_descent(POPULATION, ON_TUBE, 1.0, 10**13, method="jumps")
    flow = gradient_flow(POPULATION, ON_TUBE, 1e13).stop_head
    assert jumped.stop_head.scale == pytest.approx(flow.scale, rel=1e-9, abs=0)
    assert jumped.stop_head.tube == pytest.approx(flow.tube, abs=1e-9)


# --- where it must not jump -----------------------------------------------------------------------


def test_a_fast_transient_is_taken_step_by_step():
    bowl = QuadraticRisk(((1.0, 0.0), (0.0, 1e-4)), (2.0, 8.0))
    steps, jumped = both(bowl, Head.from_scores(0.3, 4.0), 0.5, 3000, record=[0, 10, 20, 3000])
    assert error(steps, jumped) < PROMISED
    assert "of the steps were taken one by one, where they are not smooth" in jumped.message
    assert jumped.excess[2] == steps.excess[2]  # to the last bit
    assert jumped.nfev < 1500


def test_a_start_far_above_the_tube_is_followed():
    steps, jumped = both(POPULATION, Head.from_ratio(1.5, 8), 100.0, 20_000)
    assert error(steps, jumped) < PROMISED
    assert jumped.nfev < 4000


@pytest.mark.parametrize("tube", [-1.0, 3.0])
def test_a_transient_in_the_excess_is_followed(tube):
    steps, jumped = both(POPULATION, Head.from_tube(tube, 1000.0), 1e8, 50_000)
    assert error(steps, jumped) < PROMISED


def test_a_step_above_the_stability_limit_is_no_jump_until_the_scale_has_grown():
    steps, jumped = both(POPULATION, ON_TUBE, 600.0, 40_000)
    assert "where the step size is above half the local stability limit" in jumped.message
    assert error(steps, jumped) < PROMISED
    assert jumped.nfev < 4000


def test_a_step_that_stays_above_half_the_limit_is_never_a_jump():
    bowl = QuadraticRisk(((1.0, 0.0), (0.0, 0.01)), (2.0, 8.0))
    steps, jumped = both(bowl, Head.from_scores(0.3, 4.0), 1.5, 1000)
    np.testing.assert_array_equal(jumped.scale, steps.scale)
    np.testing.assert_array_equal(jumped.excess, steps.excess)
    assert jumped.message == (
        "1000 steps taken; 1000 of the steps were taken one by one, where the step size is above "
        "half the local stability limit"
    )
    assert jumped.error_estimate == 0.0


def test_a_gradient_with_noise_is_stepped_and_said_to_be():
    bowl = QuadraticRisk(((1.0, 0.0), (0.0, 0.1)), (2.0, 8.0))
    noisy = SpoiltRisk(bowl, noise=1e-8)
    steps, jumped = both(noisy, Head.from_scores(0.3, 4.0), 1e-3, 2000)
    np.testing.assert_array_equal(jumped.scale, steps.scale)
    assert "of the steps were taken one by one, where they are not smooth" in jumped.message
    assert jumped.error_estimate == 0.0


def test_an_error_that_is_not_met_is_stepped_and_said_to_be(monkeypatch):
    monkeypatch.setattr(jumps, "PROMISED", 1e-19)
    steps, jumped = both(POPULATION, ON_TUBE, 20.0, 5000)
    np.testing.assert_array_equal(jumped.scale, steps.scale)
    np.testing.assert_array_equal(jumped.excess, steps.excess)
    assert "the error of a jump is estimated above" in jumped.message


def test_a_run_too_short_for_a_patch_is_stepped():
    steps, jumped = both(POPULATION, ON_TUBE, 20.0, 150)
    np.testing.assert_array_equal(jumped.scale, steps.scale)
    assert jumped.message == steps.message


def test_a_corpus_run_stalls_at_the_minimum_of_its_risk():
    risk, start = corpus_risk(64, 0), Head.from_ratio(1.5, 8)
    jumped = gradient_descent(risk, start, 100.0, 10**9, method="jumps")
    assert (jumped.status, jumped.success) == (3, True)
    assert "stalled at scale 13.1646" in jumped.message
    way = np.linalg.solve(risk.hessian(jumped.stop_head), risk.gradient(jumped.stop_head))
    assert np.abs(way).max() < 1e-11 * jumped.stop_head.scale  # measured 5e-13
    assert jumped.nfev < 5000
    missed = gradient_descent(risk, start, 100.0, 10**9, until_scale=50.0, method="jumps")
    assert (missed.status, missed.success) == (3, False)


def test_next_to_the_minimum_the_error_is_kept():
    risk, start = corpus_risk(64, 0), Head.from_ratio(1.5, 8)
    steps, jumped = both(risk, start, 100.0, 6000)
    assert error(steps, jumped) < PROMISED
    assert error(steps, jumped) <= jumped.error_estimate + ROUNDING


def test_the_estimate_knows_what_later_plain_steps_make_of_the_error():
    # Each step multiplies a distance in the label score by 1 - 0.9 * 3.
    run = jumps.Jumps(QuadraticRisk(((3.0, 0.0), (0.0, 0.1))), 0.9)
    run._gap = np.array([1e-10, 0.0])
    state = np.zeros(7)
    state[0], state[2] = 1.0, 4.0
    assert run.steps(state, 0.9, 10, 0.0, math.inf) == (10, 0)
    # Heads of order 1 are rounded by 1e-15.
    assert run.error_estimate == pytest.approx(1e-10 * 1.7**10, rel=1e-4, abs=0)


# --- what a run records, and why it stops ---------------------------------------------------------


@pytest.mark.parametrize("tube", [1.7, 1.8])
def test_no_jump_leads_through_a_scale_of_zero(tube):
    risk, head = ClosedFormRisk(0.465), Head.from_tube(tube, 0.094, 0.465)
    steps, jumped = both(risk, head, 0.0083, 20_000)
    assert (jumped.status, jumped.n_steps) == (steps.status, steps.n_steps)
    assert jumped.error_estimate > 0.0


@pytest.mark.parametrize("step_size", [0.7, 5.0, 100.0])
def test_it_stops_after_the_same_step_to_the_scale(step_size):
    steps, jumped = both(POPULATION, ON_TUBE, step_size, 10**7, until_scale=20.0, record=20)
    assert (jumped.status, jumped.n_steps) == (2, steps.n_steps)
    assert jumped.stop_head.scale == pytest.approx(steps.stop_head.scale, rel=PROMISED, abs=0)
    assert jumped.message.startswith(f"scale 20 reached after {steps.n_steps} steps")


def test_a_corpus_run_stops_after_the_same_step_to_the_scale():
    steps, jumped = both(
        corpus_risk(128, 2), Head.from_ratio(1.5, 8), 17.0, 10**5, until_scale=15.0
    )
    assert jumped.n_steps == steps.n_steps > 400
    assert jumped.nfev < steps.nfev


def test_steps_asked_for_are_those_returned():
    wanted = [0, 3, 1000, 1001, 1002, 1007, 2000, 49_999]
    steps, jumped = both(POPULATION, ON_TUBE, 10.0, 50_000, record=wanted)
    assert (jumped.t / 10.0).tolist() == wanted
    assert error(steps, jumped) < PROMISED
    assert jumped.n_steps == 50_000


def test_a_run_to_a_scale_out_of_reach_says_so():
    jumped = gradient_descent(POPULATION, ON_TUBE, 1.0, 10**6, until_scale=1e3, method="jumps")
    assert (jumped.status, jumped.success) == (0, False)
    assert "raise n_steps" in jumped.message


def test_the_callback_is_called_on_the_way_and_may_end_the_run():
    seen = []

    def callback(t, head):
        seen.append((t, float(head.scale)))
        return head.scale > 30.0

    jumped = gradient_descent(POPULATION, ON_TUBE, 1.0, 10**12, callback=callback, method="jumps")
    assert (jumped.status, jumped.success) == (1, True)
    assert seen[-1] == (jumped.stop_time, jumped.stop_head.scale)
    assert len(seen) > 3 and jumped.stop_head.scale < 300.0


def test_steps_estimate_no_error():
    assert gradient_descent(POPULATION, ON_TUBE, 1.0, 10).error_estimate is None
