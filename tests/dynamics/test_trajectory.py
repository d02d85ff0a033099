"""What a trajectory holds, whatever was asked for."""

import math
import pickle

import numpy as np
import pytest
from toy_risks import LinearRisk, QuadraticRisk, SpoiltRisk

from popdyn import Head, gradient_flow

# lam -> 2 at rate 1, mu -> 8 at rate 0.1: from scale -4 through zero into the tube chart.
BOWL = QuadraticRisk(((1.0, 0.0), (0.0, 0.1)), (2.0, 8.0))
START = Head.from_scores(0.3, -4.0)
ACCURACY = 1e-9  # absolute, in scores of order 1 to 10; worst measured 7e-11


def exact_scale(t):
    return 8.0 - 12.0 * np.exp(-0.1 * np.asarray(t))


def exact_label_score(t):
    return 2.0 - 1.7 * np.exp(-np.asarray(t))


def test_the_path_goes_through_three_charts_and_says_so():
    trajectory = gradient_flow(BOWL, START, 50.0)
    names = list(dict.fromkeys(trajectory.chart.tolist()))
    assert names == ["reflected tube", "linear", "tube"]
    np.testing.assert_allclose(trajectory.scale, exact_scale(trajectory.t), atol=ACCURACY)
    np.testing.assert_allclose(
        trajectory.label_score, exact_label_score(trajectory.t), atol=ACCURACY
    )


def test_without_times_the_points_are_the_start_and_every_step():
    trajectory = gradient_flow(BOWL, START, 50.0)
    assert trajectory.t[0] == 0.0
    assert trajectory.t[-1] == trajectory.stop_time == 50.0
    assert (np.diff(trajectory.t) > 0).all()
    assert len(trajectory) == trajectory.n_steps + 1
    assert trajectory.nfev > trajectory.n_steps > 0
    assert trajectory.success and trajectory.status == 0 and trajectory.message == "t_end reached"


def test_points_are_returned_at_the_times_asked_for():
    times = np.array([0.0, 1.0, 7.5, 50.0])
    trajectory = gradient_flow(BOWL, START, 50.0, t_eval=times)
    np.testing.assert_array_equal(trajectory.t, times)
    np.testing.assert_allclose(trajectory.scale, exact_scale(times), atol=ACCURACY)
    assert trajectory.head(0) == START
    assert trajectory.head(3) == trajectory.stop_head


def test_no_times_give_empty_columns_and_still_the_end():
    trajectory = gradient_flow(BOWL, START, 50.0, t_eval=[])
    for name in ("t", "label_score", "scale", "excess", "ratio", "tube", "risk", "chart"):
        assert getattr(trajectory, name).shape == (0,)
    assert trajectory.stop_time == 50.0
    assert trajectory.stop_head.scale == pytest.approx(exact_scale(50.0), abs=ACCURACY)


@pytest.mark.parametrize("t_eval", [None, [0.0]])
def test_a_run_of_no_length_is_the_start(t_eval):
    trajectory = gradient_flow(BOWL, START, 0, t_eval=t_eval, dense_output=True)
    assert trajectory.t.tolist() == [0.0]
    assert trajectory.head(0) == trajectory.stop_head == trajectory.sol(0.0) == START
    assert trajectory.risk.tolist() == [BOWL.value(START)]


def test_a_last_time_a_few_roundings_late_is_the_end():
    end = 51.35
    late = 9.23 + (51.35 - 9.23)
    assert late > end
    trajectory = gradient_flow(BOWL, START, end, t_eval=[9.23, late])
    assert trajectory.t.tolist() == [9.23, end]


def test_coordinates_agree_with_those_of_the_heads():
    trajectory = gradient_flow(BOWL, START, 50.0)
    for i in range(0, len(trajectory), 10):
        head = trajectory.head(i)
        assert head.scale == trajectory.scale[i]
        assert head.label_score == trajectory.label_score[i]
        assert head.excess == trajectory.excess[i]
        np.testing.assert_equal(head.ratio, trajectory.ratio[i])
        np.testing.assert_equal(head.tube, trajectory.tube[i])


def test_arrays_are_read_only():
    trajectory = gradient_flow(BOWL, START, 1.0)
    with pytest.raises(ValueError, match="read-only"):
        trajectory.t[0] = 1.0
    with pytest.raises(AttributeError):
        trajectory.success = False


def test_a_pickle_comes_back_equal_and_read_only():
    trajectory = gradient_flow(BOWL, START, 50.0, scale_levels=[1.0], dense_output=True)
    back = pickle.loads(pickle.dumps(trajectory))
    np.testing.assert_array_equal(back.scale, trajectory.scale)
    assert back.hits == trajectory.hits
    assert back.sol(20.0) == trajectory.sol(20.0)
    assert not back.scale.flags.writeable
    assert repr(back) == repr(trajectory)


def test_the_dense_solution_covers_the_span():
    trajectory = gradient_flow(BOWL, START, 50.0, dense_output=True)
    for t in (0.0, 1e-9, 3.3, 49.9, 50.0):
        assert trajectory.sol(t).scale == pytest.approx(exact_scale(t), abs=ACCURACY)


@pytest.mark.parametrize("t", [-1e-9, 50.1, math.nan, math.inf, [1.0]])
def test_the_dense_solution_refuses_times_outside_the_span(t):
    trajectory = gradient_flow(BOWL, START, 50.0, dense_output=True)
    with pytest.raises(ValueError, match=r"t must be one time in \[0, 50.0\]"):
        trajectory.sol(t)


def test_without_a_dense_solution_the_error_says_how_to_get_one():
    with pytest.raises(ValueError, match="dense_output=True"):
        gradient_flow(BOWL, START, 50.0).sol(1.0)


def test_reprs_are_one_short_line():
    trajectory = gradient_flow(BOWL, START, 50.0, scale_levels=[1.0, 9.0])
    assert repr(trajectory).startswith("Trajectory(")
    for text in (repr(trajectory), *map(repr, trajectory.hits)):
        assert "\n" not in text and len(text) < 100


def test_hits_come_in_the_order_asked_for():
    trajectory = gradient_flow(BOWL, START, 50.0, scale_levels=[3.0, 9.0, -4.0, 1.0])
    times = [hit.time for hit in trajectory.hits]
    exact = [10 * math.log(12 / 5), math.inf, 0.0, 10 * math.log(12 / 7)]
    assert times == pytest.approx(exact, rel=ACCURACY, abs=0)
    assert [hit.reached for hit in trajectory.hits] == [True, False, True, True]
    assert trajectory.hits[2].head == START


def test_the_callback_sees_every_step():
    seen = []
    trajectory = gradient_flow(BOWL, START, 50.0, callback=lambda t, head: seen.append((t, head)))
    assert [t for t, _ in seen] == trajectory.t[1:].tolist()
    assert seen[-1][1] == trajectory.stop_head
    assert trajectory.status == 0


def test_a_callback_that_returns_true_ends_the_run():
    trajectory = gradient_flow(BOWL, START, 50.0, callback=lambda t, head: head.scale > 0)
    assert trajectory.success and trajectory.status == 1
    assert "callback" in trajectory.message
    assert trajectory.stop_time < 50.0
    assert trajectory.scale[-2] <= 0 < trajectory.scale[-1] == trajectory.stop_head.scale


def test_the_step_limit_fails_with_where_it_stopped_and_what_to_change():
    trajectory = gradient_flow(
        BOWL, START, 50.0, t_eval=[0.0, 1.0, 2.0], max_steps=1, scale_levels=[3.0]
    )
    assert not trajectory.success and trajectory.status == -1
    assert "raise max_steps" in trajectory.message
    assert f"t={trajectory.stop_time:.6g}" in trajectory.message
    assert trajectory.n_steps == 1
    assert trajectory.t.tolist() == [0.0]
    assert trajectory.scale.shape == trajectory.risk.shape == trajectory.chart.shape == (1,)
    assert not trajectory.hits[0].reached


def test_a_run_that_fits_the_step_limit_succeeds():
    free = gradient_flow(BOWL, START, 50.0)
    assert gradient_flow(BOWL, START, 50.0, max_steps=free.n_steps).success


def test_a_saturating_head_comes_to_rest_long_before_the_end():
    trajectory = gradient_flow(BOWL, START, 1e40, t_eval=[1.0, 1e20, 1e40], dense_output=True)
    assert trajectory.success
    assert "stationary from t=" in trajectory.message
    # mu - 8 = -12 exp(-t/10) is lost in rounding from t = 390 on.
    np.testing.assert_allclose(trajectory.scale[1:], 8.0, atol=1e-10)
    assert trajectory.sol(1e30) == trajectory.stop_head
    assert trajectory.nfev < 5000


@pytest.mark.parametrize("t_eval", [None, [0.0, 1.0, 1e6]])
def test_a_stationary_start_stays(t_eval):
    risk = QuadraticRisk(((0.0, -1.0), (-1.0, 3.0)))
    origin = Head.from_scores(0.0, 0.0)
    trajectory = gradient_flow(
        risk, origin, 1e6, t_eval=t_eval, scale_levels=[1.0], dense_output=True
    )
    assert trajectory.success
    assert "stationary from t=0 on" in trajectory.message
    assert trajectory.t[[0, -1]].tolist() == [0.0, 1e6]
    assert not trajectory.scale.any() and not trajectory.label_score.any()
    assert trajectory.sol(3.0) == origin
    assert "stationary" in trajectory.hits[0].message


def test_a_start_close_to_a_saddle_is_not_taken_for_stationary():
    risk = QuadraticRisk(((0.0, -1.0), (-1.0, 3.0)))
    trajectory = gradient_flow(risk, Head.from_scores(1e-200, 1e-200), 10.0)
    # eigenvalues (3 -+ sqrt 13)/2; the part of (1, 1) along the unstable direction grows
    grow, decay = -(3 - math.sqrt(13)) / 2, -(3 + math.sqrt(13)) / 2
    unstable = np.array([1.0, grow])
    stable = np.array([1.0, decay])
    parts = np.linalg.solve(np.column_stack([unstable, stable]), [1.0, 1.0])
    exact = parts[0] * math.exp(10 * grow) * unstable + parts[1] * math.exp(10 * decay) * stable
    end = np.array([trajectory.label_score[-1], trajectory.scale[-1]]) * 1e200
    np.testing.assert_allclose(end, exact, rtol=1e-9)  # worst measured 3e-12


def test_an_endless_straight_path_ends_at_its_end():
    trajectory = gradient_flow(LinearRisk((0.3, 0.2)), START, 1e40)
    assert trajectory.scale[-1] == pytest.approx(0.2e40, rel=1e-10, abs=0)


def test_a_risk_that_turns_nan_is_an_error_with_the_last_head():
    with pytest.raises(RuntimeError, match=r"gradient of the risk is \[nan, nan\] at t=.*Head"):
        gradient_flow(SpoiltRisk(BOWL, from_call=50), START, 50.0)


@pytest.mark.parametrize("method", ["LSODA", "Radau", "BDF"])
def test_a_risk_with_noise_above_the_tolerance_ends_with_a_word_on_it(method):
    risk = SpoiltRisk(BOWL, noise=1e-6)
    try:
        trajectory = gradient_flow(risk, START, 1e12, method=method, max_steps=100)
    except RuntimeError as failure:
        message = str(failure)
        assert "Head.from" in message
    else:
        message = trajectory.message
    assert "rtol" in message
