"""Entrances, crossings and the tube, on flows known in closed form and on the population risk."""

import math

import mpmath
import numpy as np
import pytest
from toy_risks import DriftingRisk, LinearRisk, QuadraticRisk, SpoiltRisk

from popdyn import (
    ClosedFormRisk,
    Design,
    Head,
    InfiniteContextRisk,
    boundary_graded,
    crossings,
    gradient_flow,
    hitting_time,
    massart,
    tube_entrance,
)

# lam -> 2 at rate 1, mu -> 8 at rate 0.1: from scale -4 through zero into the tube chart.
BOWL = QuadraticRisk(((1.0, 0.0), (0.0, 0.1)), (2.0, 8.0))
START = Head.from_scores(0.3, -4.0)
TIME = 5e-11  # relative; worst measured 8e-12

# c falls and then grows again: lam grows by 0.3 and mu by 0.2 in unit time, c' = 0.1 - 0.2/mu.
RAMP = LinearRisk((0.3, 0.2))
RAMP_START = Head.from_scores(1.0, 1.5)
RAMP_LOWEST = 1.75 - 2.0 - math.log(2.0)  # at t = 2.5


def ramp_crossings(tube):
    """Times at which `1 + 0.3 t - (1.5 + 0.2 t) - log(1.5 + 0.2 t) = tube`."""
    ctx = mpmath.mp.clone()
    ctx.dps = 30

    def above(t):
        return 1 + ctx.mpf("0.3") * t - 1.5 - t / 5 - ctx.log(1.5 + t / 5) - ctx.mpf(tube)

    return [float(ctx.findroot(above, span, solver="anderson")) for span in ((0, 2.5), (2.5, 20))]


@pytest.mark.parametrize("scale", [0.0, 1e-9, 0.5, 1.0, 2.0, 3.0, 7.0])
def test_entrance_is_found_in_every_chart(scale):
    hit = hitting_time(BOWL, START, scale=scale)
    assert hit.reached
    assert hit.time == pytest.approx(10 * math.log(12 / (8 - scale)), rel=TIME, abs=0)
    assert hit.head.scale == scale


def test_a_negative_scale_asks_for_the_mirror_image():
    mirror = QuadraticRisk(BOWL.curvature, (-2.0, -8.0))
    hit = hitting_time(mirror, START.reflected, scale=-3.0)
    assert hit.time == pytest.approx(hitting_time(BOWL, START, scale=3.0).time, rel=1e-15, abs=0)
    assert hit.head.scale == -3.0


@pytest.mark.parametrize("scale", [5.0, 4.0, 0.0])
def test_a_head_that_is_there_already_enters_at_time_zero(scale):
    start = Head.from_ratio(1.5, 5.0)
    hit = hitting_time(ClosedFormRisk(), start, scale=scale)
    assert hit.reached and hit.time == 0.0
    assert hit.head is start
    assert "at the start" in hit.message


def test_a_negative_scale_that_holds_at_the_start_is_entered_at_time_zero():
    assert hitting_time(BOWL, START, scale=-3.9).time == 0.0


@pytest.mark.parametrize(
    ("start", "above"),
    [(Head.from_scores(1.0, 5.0), 6.0), (Head.from_scores(1.0, 1.1), 2.0)],
)
def test_the_next_double_is_entered_after_a_tiny_positive_time(start, above):
    level = float(np.nextafter(start.scale, above))
    hit = hitting_time(RAMP, start, scale=level)
    assert hit.head.scale == level
    # One rounding of log mu next to zero is a full one of the difference of the scales.
    assert hit.time == pytest.approx((level - float(start.scale)) / 0.2, rel=1e-5, abs=0)


def test_the_next_double_is_entered_on_the_population_flow_with_a_dense_solution():
    start, level = Head.from_ratio(1.5, 5.0), float(np.nextafter(5.0, 6.0))
    risk = ClosedFormRisk()
    trajectory = gradient_flow(risk, start, 1.0, scale_levels=[level], dense_output=True)
    (hit,) = trajectory.hits
    speed = -risk.gradient(start)[1]
    assert hit.time == pytest.approx((level - 5.0) / speed, rel=1e-5, abs=0)
    assert trajectory.sol(hit.time).scale == pytest.approx(5.0, rel=1e-15, abs=0)


def test_never_says_that_the_time_ran_out():
    hit = hitting_time(BOWL, START, scale=3.0, t_end=5.0)
    assert not hit.reached and hit.time == math.inf
    assert "time ran out at t=5" in hit.message
    assert hit.head.scale == pytest.approx(8 - 12 * math.exp(-0.5), abs=1e-9)


@pytest.mark.parametrize("scale", [8.0, 9.0])
def test_never_says_that_the_head_saturates(scale):
    hit = hitting_time(BOWL, START, scale=scale)
    assert not hit.reached and hit.time == math.inf
    assert "stationary from t=" in hit.message


def test_a_search_without_end_notices_that_the_scale_rests_while_the_label_score_drifts():
    hit = hitting_time(DriftingRisk(1.5), Head.from_scores(1.0, 4.0), scale=9.0)
    assert not hit.reached and hit.time == math.inf
    assert "the scale saturates, at t=" in hit.message
    assert hit.head.scale == pytest.approx(1.5, rel=1e-9, abs=0)


@pytest.mark.parametrize(
    ("start", "scale"),
    [
        (Head.from_scores(0.0, 1e6), 1.1e6),  # the label score sets out alone
        (Head.from_scores(-50.0, 1e4), -3.0),  # the scale falls by 2 t/mu^2
        (Head.from_tube(0.6931, 1e9), 1.01e9),  # the tube, whose pace is least
        (Head.from_scores(1e-200, -1e-200), 1.0),  # the saddle at the origin
        (Head.from_scores(20.0, 5.0), 30.0),  # far above the tube
    ],
    ids=repr,
)
def test_a_slow_start_is_not_taken_for_saturation(start, scale):
    assert "saturates" not in hitting_time(ClosedFormRisk(), start, scale=scale).message


def test_what_is_fast_after_a_long_slow_phase_is_resolved():
    # The scale falls by 2 t/mu^2 for t = mu^3/6 = 2e11, and then through zero within a few units.
    risk, start = ClosedFormRisk(), Head.from_scores(-50.0, 1e4)
    late = hitting_time(risk, start, scale=-3.0)
    early = hitting_time(risk, Head.from_scores(-50.0, 30.0), scale=-3.0)
    assert late.reached and 1.6e11 < late.time < 1.7e11
    assert late.head.tube == pytest.approx(early.head.tube, nan_ok=True)
    assert late.head.label_score == pytest.approx(early.head.label_score, rel=1e-3)


def test_training_on_flipped_labels_is_seen_to_saturate():
    risk = InfiniteContextRisk(Design(noise=massart(0.01)), boundary_graded())
    hit = hitting_time(risk, Head.from_ratio(1.5, 8.0), scale=9.0, rtol=1e-9, atol=1e-10)
    assert "the scale saturates" in hit.message
    # The drift of the label score leaves about 1e-8
    assert hit.head.scale == pytest.approx(1.46849, abs=1e-5)


def test_never_says_that_the_start_is_stationary():
    hit = hitting_time(ClosedFormRisk(), Head.from_scores(0.0, 0.0), scale=1.0)
    assert not hit.reached and hit.time == math.inf
    assert "stationary from t=0 on" in hit.message


@pytest.mark.parametrize(
    ("start", "scale", "where"),
    [
        (Head.from_scores(-1e-3, 1e-3), 1.0, "reflected head"),
        (Head.from_ratio(2.0, 1.0), -1.0, "upright head"),
    ],
)
def test_never_says_that_the_flow_went_to_the_other_side(start, scale, where):
    hit = hitting_time(ClosedFormRisk(), start, scale=scale)
    assert not hit.reached and hit.time == math.inf
    assert where in hit.message


def test_a_scale_that_falls_first_is_entered_on_its_way_back():
    # A head that ignores labels falls from scale 100 to 27 before it finds the tube.
    hit = hitting_time(ClosedFormRisk(), Head.from_ratio(0.0, 100.0), scale=200.0)
    low = crossings(ClosedFormRisk(), Head.from_ratio(0.0, 100.0), scale=50.0, t_end=1e9)
    assert hit.reached
    assert [found.message.split()[-1] for found in low] == ["down", "up"]
    assert low[0].time < low[1].time < hit.time


def test_hits_of_the_flow_are_those_of_the_search():
    levels = [1.0, 3.0, 7.0]
    hits = gradient_flow(BOWL, START, 50.0, scale_levels=levels).hits
    for scale, hit in zip(levels, hits, strict=True):
        assert hit.time == pytest.approx(
            hitting_time(BOWL, START, scale=scale).time, rel=1e-10, abs=0
        )


@pytest.mark.parametrize("method", ["LSODA", "Radau", "BDF", "DOP853", "RK45", "RK23"])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
@pytest.mark.parametrize("rise", [1e-7, 1e-4, 1e-2])
def test_two_crossings_in_one_step_are_both_found(method, tolerance, rise):
    found = crossings(
        RAMP, RAMP_START, tube=RAMP_LOWEST + rise, t_end=1e3,
        method=method, rtol=tolerance, atol=tolerance,
    )  # fmt: skip
    assert ["down" in hit.message for hit in found] == [True, False]
    assert found[0].time <= found[1].time


@pytest.mark.parametrize("rise", [1e-4, 1e-2, 0.03])
def test_crossings_of_the_tube_coordinate_are_where_they_should_be(rise):
    level = RAMP_LOWEST + rise
    found = crossings(RAMP, RAMP_START, tube=level, t_end=1e3)
    # c is flat between the crossings: an error of 1e-12 in it is one of 1e-9 in the time.
    assert [hit.time for hit in found] == pytest.approx(ramp_crossings(level), rel=5e-9, abs=0)
    assert [hit.head.tube for hit in found] == [level, level]


def test_a_level_below_the_lowest_point_is_not_crossed():
    assert crossings(RAMP, RAMP_START, tube=RAMP_LOWEST - 1e-7, t_end=1e3) == []


def test_the_tube_coordinate_comes_down_from_infinity_at_scale_zero():
    # mu = -1 + t, lam = 0: c = -mu - log mu = 2 at mu = 0.12002823... = W(exp(-2))
    hits = crossings(LinearRisk((0.0, 1.0)), Head.from_scores(0.0, -1.0), tube=2.0, t_end=5.0)
    assert [hit.time for hit in hits] == pytest.approx([1 + float(mpmath.lambertw(math.exp(-2)))])
    assert "down" in hits[0].message


def test_a_start_on_the_level_is_no_crossing():
    start = Head.from_ratio(1.5, 5.0)
    assert crossings(ClosedFormRisk(), start, scale=5.0, t_end=1e5) == []
    assert crossings(ClosedFormRisk(), start, scale=4.0, t_end=1e5) == []


def test_a_level_at_the_end_of_the_run_is_reached():
    end = 10.0
    level = float(gradient_flow(RAMP, RAMP_START, end).scale[-1])
    hit = hitting_time(RAMP, RAMP_START, scale=level, t_end=end)
    assert hit.reached and hit.time == pytest.approx(end, rel=1e-12, abs=0) and hit.time <= end


@pytest.mark.parametrize("rise", [1e-4, 1e-2])
def test_first_and_last_time_inside_the_tube_are_the_crossings_of_its_border(rise):
    first, last = tube_entrance(
        RAMP, RAMP_START, center=RAMP_LOWEST - 1.0, width=1.0 + rise, t_end=1e3
    )
    exact = ramp_crossings(RAMP_LOWEST + rise)
    assert [first.time, last.time] == pytest.approx(exact, rel=5e-9, abs=0)


def test_a_head_inside_the_tube_at_both_ends_has_both_ends_as_times():
    first, last = tube_entrance(RAMP, RAMP_START, center=-1.0, width=0.5, t_end=3.0)
    assert (first.time, last.time) == (0.0, 3.0)
    assert first.head is RAMP_START


def test_a_tube_never_entered_says_so():
    first, last = tube_entrance(RAMP, RAMP_START, center=-2.0, width=0.5, t_end=1e3)
    assert first == last and not first.reached and first.time == math.inf
    assert "at no time" in first.message


def test_the_default_tube_is_the_one_that_the_flow_settles_in():
    first, last = tube_entrance(ClosedFormRisk(), Head.from_ratio(1.5, 5.0), width=0.1, t_end=1e6)
    # From below, b/mu = 0.2/mu away: inside for good after the transient.
    assert first.head.tube == pytest.approx(math.log(2) + 0.1, abs=1e-12)
    assert last.time == 1e6


@pytest.mark.parametrize("call", [1, 2, 3, 30, 300])
def test_a_nan_of_the_risk_is_an_error_and_no_answer(call):
    risk = SpoiltRisk(ClosedFormRisk(), from_call=call)
    with pytest.raises(RuntimeError, match="gradient of the risk is"):
        hitting_time(risk, Head.from_ratio(1.5, 5.0), scale=50.0)
