"""Collocation against scipy's solvers, and what only it does."""

import math
import pickle

import numpy as np
import pytest
from toy_risks import LinearRisk

from popdyn import (
    ClosedFormRisk,
    Head,
    crossings,
    gradient_flow,
    hitting_time,
    hitting_times,
    tube_entrance,
)
from popdyn.dynamics import arrivals
from popdyn.dynamics.collocation import Collocation, path
from popdyn.dynamics.collocation.march import STUCK

# Against LSODA at its default tolerances, which is the worse of the two.
TIME = 2e-10  # relative; worst measured 4.4e-11
EXCESS = 2e-10  # relative to the scores of the start, or one; worst measured 4.3e-11
# Against DOP853 at its smallest tolerance, next to which collocation is as good as its own.
PATH = 2e-12  # relative to the larger score; worst measured 6.1e-13

STARTS = [
    (Head.from_ratio(1.5, 5.0), 50.0),
    (Head.from_ratio(0.7, 8.0), 20.0),  # below the tube: the scale falls first
    (Head.from_ratio(2.5, 300.0), 600.0),  # far above it: the label score rests
    (Head.from_tube(3.0, 1e4), 2e4),
    (Head.from_scores(0.0, 40.0), 60.0),
    (Head.from_scores(-3.0, 4.0), -10.0),  # to the other side
    (Head.from_scores(2.0, -1.0), 10.0),
    (Head.from_scores(-20.0, -30.0), -50.0),
    (Head.from_scores(1e-9, -1e-9), 5.0),  # the saddle at the origin
    (Head.from_scores(-50.0, 1e4), -3.0),  # 1e11 in time of almost nothing
    (Head.from_ratio(0.7, 5.0, 0.5), 40.0),
    (Head.from_scores(-4.0, 1.0, 2.0), -20.0),
]


@pytest.mark.parametrize(("start", "scale"), STARTS, ids=repr)
def test_hitting_times_are_those_of_lsoda(start, scale):
    risk = ClosedFormRisk(start.half_width)
    hit = hitting_time(risk, start, scale=scale)
    same = hitting_time(risk, start, scale=scale, method="LSODA")
    assert hit.reached and same.reached
    assert hit.head.scale == scale
    assert hit.time == pytest.approx(same.time, rel=TIME, abs=0)
    size = max(1.0, abs(start.label_score), abs(start.scale) * start.half_width)
    assert hit.head.excess == pytest.approx(same.head.excess, rel=0, abs=EXCESS * size)


def test_no_start_here_needs_another_method():
    for start, scale in STARTS:
        run = Collocation(start, 1e300, rtol=1e-12, atol=1e-13, level=scale)
        assert run.entered and run.n_steps < 200  # most measured 98


def test_hitting_times_of_many_are_those_of_each():
    for scale in (20.0, -20.0):
        heads = [start for start, _ in STARTS if start.half_width == 1.0]
        many = Head.from_scores(
            [head.label_score for head in heads], [head.scale for head in heads]
        )
        alone = [
            hitting_time(ClosedFormRisk(), Head.from_scores(*scores), scale=scale).time
            for scores in zip(many.label_score, many.scale, strict=True)
        ]
        assert hitting_times(ClosedFormRisk(), many, scale).tolist() == alone
        assert 0 < np.isfinite(alone).sum() < len(alone)


@pytest.mark.parametrize(
    "start",
    [Head.from_ratio(1.5, 5.0), Head.from_ratio(0.0, 5.0), Head.from_scores(-1.0, 0.5)],
    ids=repr,
)
def test_between_its_nodes_the_path_is_that_of_an_explicit_solver(start):
    risk, times = ClosedFormRisk(), np.geomspace(1e-3, 200.0, 200)
    path = gradient_flow(risk, start, 200.0, t_eval=times)
    same = gradient_flow(
        risk, start, 200.0, t_eval=times, method="DOP853", rtol=2.3e-14, atol=1e-15
    )
    size = np.maximum(np.abs(same.scale), np.abs(same.label_score))
    assert (np.abs(path.scale - same.scale) / size).max() < PATH
    assert (np.abs(path.label_score - same.label_score) / size).max() < PATH
    assert (np.abs(path.excess - same.excess) / size).max() < PATH


@pytest.mark.parametrize("rtol", [1e-12, 1e-10, 1e-8])
def test_the_tolerance_is_the_accuracy(rtol):
    start = Head.from_ratio(1.5, 5.0)
    times = np.geomspace(1e-3, 1e6, 300)
    path = gradient_flow(ClosedFormRisk(), start, 1e6, t_eval=times, rtol=rtol, atol=rtol / 10)
    same = gradient_flow(ClosedFormRisk(), start, 1e6, t_eval=times, rtol=1e-13, atol=1e-14)
    error = np.abs(path.tube - same.tube).max()
    assert 1e-3 * rtol < error < 1.5 * rtol  # measured: 0.02 to 1 times the tolerance


@pytest.mark.parametrize("tube", [0.72, 0.6, 0.5])
def test_crossings_of_the_tube_coordinate_are_those_of_lsoda(tube):
    start = Head.from_ratio(0.0, 10.0)
    found = crossings(ClosedFormRisk(), start, tube=tube, t_end=1e6)
    same = crossings(ClosedFormRisk(), start, tube=tube, t_end=1e6, method="LSODA")
    assert [hit.message for hit in found] == [hit.message for hit in same]
    assert [hit.time for hit in found] == pytest.approx([hit.time for hit in same], rel=1e-8, abs=0)
    assert all(hit.head.tube == tube for hit in found)


def test_first_and_last_time_in_the_tube_are_those_of_lsoda():
    start = Head.from_ratio(0.0, 10.0)
    found = tube_entrance(ClosedFormRisk(), start, width=0.1, t_end=1e6)
    same = tube_entrance(ClosedFormRisk(), start, width=0.1, t_end=1e6, method="LSODA")
    for hit, other in zip(found, same, strict=True):
        assert hit.time == pytest.approx(other.time, rel=1e-9, abs=0)


def test_both_crossings_of_a_turning_scale_lie_close_to_its_lowest():
    risk, start = ClosedFormRisk(), Head.from_ratio(0.0, 10.0)
    path = gradient_flow(risk, start, 1e6)
    lowest = float(path.scale.min())
    down, up = crossings(risk, start, scale=lowest * (1 + 1e-9), t_end=1e6)
    assert "down" in down.message and "up" in up.message
    assert 0 < up.time - down.time < 1e-2 * down.time
    assert crossings(risk, start, scale=lowest * (1 - 1e-4), t_end=1e6) == []


def test_the_default_points_show_a_smooth_curve():
    path = gradient_flow(ClosedFormRisk(), Head.from_ratio(1.5, 5.0), 1e12)
    assert (np.diff(path.t) > 0).all()
    assert np.diff(np.log(path.scale)).max() < 0.15
    assert path.n_steps < 40 < len(path)
    assert path.nfev > path.njev > path.n_steps


def test_steps_grow_with_the_logarithm_of_time():
    risk, start = ClosedFormRisk(), Head.from_ratio(1.5, 5.0)
    n_steps = [gradient_flow(risk, start, t_end).n_steps for t_end in (1e8, 1e16, 1e24)]
    assert n_steps[2] - n_steps[1] <= n_steps[1] - n_steps[0] < 20


@pytest.mark.parametrize("t_end", [0.1, 10.0, 1e3, 12345.6, 1e9])
def test_a_level_that_is_reached_at_the_end_is_reached(t_end):
    risk, start = ClosedFormRisk(), Head.from_ratio(1.5, 5.0)
    level = float(gradient_flow(risk, start, t_end).scale[-1])
    hit = hitting_time(risk, start, scale=level, t_end=t_end)
    assert hit.reached and hit.time <= t_end
    assert hit.time == pytest.approx(t_end, rel=1e-11, abs=0)


def test_the_end_is_exact_and_so_is_what_is_evaluated_there():
    risk, start = ClosedFormRisk(), Head.from_ratio(1.5, 5.0)
    path = gradient_flow(risk, start, 1e5, t_eval=[0.0, 77.0, 1e5], dense_output=True)
    assert path.stop_time == 1e5
    assert path.head(2) == path.stop_head == path.sol(1e5)
    assert path.head(1) == path.sol(77.0)
    assert path.sol(0.0) is start
    assert gradient_flow(risk, start, 1e5).head(-1) == path.stop_head


def test_a_pickled_path_gives_the_same_heads():
    path = gradient_flow(ClosedFormRisk(), Head.from_ratio(1.5, 5.0), 1e5, dense_output=True)
    assert pickle.loads(pickle.dumps(path)).sol(345.6) == path.sol(345.6)


def test_the_callback_sees_every_point_and_may_end_the_run():
    risk, start = ClosedFormRisk(), Head.from_ratio(1.5, 5.0)
    seen = []
    whole = gradient_flow(risk, start, 1e5, callback=lambda t, head: seen.append((t, head)))
    assert [t for t, _ in seen] == whole.t[1:].tolist()
    assert seen[-1][1] == whole.stop_head and whole.status == 0
    cut = gradient_flow(
        risk, start, 1e5, callback=lambda t, head: head.scale >= 9.0, scale_levels=[8.0, 10.0]
    )
    assert cut.success and cut.status == 1 and "callback" in cut.message
    assert cut.scale[-2] < 9.0 <= cut.scale[-1] == cut.stop_head.scale
    assert cut.stop_time == cut.t[-1] < whole.stop_time
    assert [hit.reached for hit in cut.hits] == [True, False]
    np.testing.assert_array_equal(cut.scale, whole.scale[: len(cut)])


def test_the_step_limit_says_where_it_ended_the_run():
    path = gradient_flow(ClosedFormRisk(), Head.from_ratio(1.5, 5.0), 1e12, max_steps=3)
    assert not path.success and path.status == -1
    assert "3 steps of collocation" in path.message and "raise max_steps" in path.message
    assert path.n_steps == 3 and path.stop_time == path.t[-1] < 1e12


def test_a_run_of_more_steps_than_there_was_room_for_is_one_path():
    start = Head.from_scores(1e-200, 1e-200)
    path = gradient_flow(ClosedFormRisk(), start, 1e5)
    assert path.n_steps > 64 and path.success
    assert (np.diff(path.t) > 0).all()
    # the radius grows at the rate of the saddle (MODEL §5) for a time of 7e3
    early = (path.t > 100) & (path.t < 7000)
    growth = np.polyfit(path.t[early], np.log(path.scale[early]), 1)[0]
    assert growth == pytest.approx((math.sqrt(61) - 5) / 45, rel=1e-10, abs=0)


def test_a_stationary_start_stays():
    path = gradient_flow(ClosedFormRisk(), Head.from_scores(0.0, 0.0), 1e6)
    assert path.t.tolist() == [0.0, 1e6] and "stationary from t=0 on" in path.message


@pytest.mark.parametrize("rtol", [2.3e-14, 1e-3])
def test_the_extreme_tolerances_are_served(rtol):
    run = Collocation(Head.from_ratio(0.8, 6.0), 1e10, rtol=rtol, atol=rtol / 10)
    assert not run.gave_up and run.time == 1e10


def test_another_risk_cannot_be_followed_by_collocation():
    head = Head.from_scores(1.0, 1.5)
    with pytest.raises(ValueError, match=r"method must be one of LSODA.*ClosedFormRisk alone"):
        gradient_flow(LinearRisk((0.3, 0.2)), head, 5.0, method="collocation")


@pytest.fixture
def stuck(monkeypatch):
    for module in (path, arrivals):
        monkeypatch.setattr(module, "advance", lambda *_: STUCK)


def test_where_no_step_leads_on_lsoda_does(stuck):
    risk, start = ClosedFormRisk(), Head.from_ratio(1.5, 5.0)
    path = gradient_flow(risk, start, 1e3)
    same = gradient_flow(risk, start, 1e3, method="LSODA")
    np.testing.assert_array_equal(path.scale, same.scale)
    hit = hitting_time(risk, start, scale=7.0)
    assert hit == hitting_time(risk, start, scale=7.0, method="LSODA")
    assert crossings(risk, start, scale=7.0, t_end=1e4) == crossings(
        risk, start, scale=7.0, t_end=1e4, method="LSODA"
    )
    assert hitting_times(risk, Head.from_ratio([1.5], 5.0), 7.0).tolist() == [hit.time]


def test_a_head_of_huge_scores_comes_to_the_other_side_by_either_method():
    # LSODA gave up at scale 32: its steps came down to the spacing of the log of all time.
    start = Head.from_scores(-50.0, 1e6)
    hit = hitting_time(ClosedFormRisk(), start, scale=-3.0)
    same = hitting_time(ClosedFormRisk(), start, scale=-3.0, method="LSODA")
    assert hit.reached and same.reached
    assert hit.time == pytest.approx(same.time, rel=1e-9, abs=0)
    # the scale falls by 2 t/mu^2: mu^3 is used up at mu^3/6
    assert hit.time == pytest.approx(1e18 / 6, rel=1e-3, abs=0)


def test_a_label_score_is_not_lost_beside_a_scale_that_comes_down_to_it():
    # At scale 1e20 an excess is a multiple of 16384, and the fall takes 500 steps.
    fallen = [
        hitting_time(ClosedFormRisk(), Head.from_scores(-50.0, scale), scale=-3.0).head.label_score
        for scale in (1e3, 1e20)
    ]
    assert fallen[1] == pytest.approx(fallen[0], rel=1e-12, abs=0)
