"""The flow against reference/flow.json and small_radius.json, at the default tolerances."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from popdyn import ClosedFormRisk, Head, crossings, gradient_flow, hitting_time

REFERENCE = Path(__file__).parents[1] / "reference"
FLOWS = json.loads((REFERENCE / "flow.json").read_text())
SMALL = json.loads((REFERENCE / "small_radius.json").read_text())

# Asked for: 1e-9 in all. Two solvers of other families agree on the references to 1e-12.
SCALE = 1e-13  # relative; worst measured 1.0e-15
TUBE = 1e-12  # absolute; worst measured 3.1e-13
TIME = 5e-13  # relative; worst measured 4.1e-14
SMALL_RADIUS = 1e-11  # relative; worst measured 1.9e-12


def flow_id(row):
    return f"l={row['half_width']}-k={row['ratio']}-mu={row['scale']}"


def small_id(row):
    return f"l={row['half_width']}-lam={row['label_score']}-mu={row['scale']}"


@pytest.mark.parametrize("row", FLOWS, ids=flow_id)
def test_flow_reproduces_the_reference_state_and_hitting_times(row):
    width = row["half_width"]
    trajectory = gradient_flow(
        ClosedFormRisk(width),
        Head.from_ratio(row["ratio"], row["scale"], width),
        row["end"]["time"],
        scale_levels=[hit["scale"] for hit in row["hitting"]],
    )
    assert trajectory.success
    assert trajectory.scale[-1] == pytest.approx(row["end"]["scale"], rel=SCALE, abs=0)
    assert trajectory.tube[-1] == pytest.approx(row["end"]["tube_coordinate"], rel=0, abs=TUBE)
    for hit, exact in zip(trajectory.hits, row["hitting"], strict=True):
        assert hit.reached
        assert hit.head.scale == exact["scale"]
        assert hit.time == pytest.approx(exact["time"], rel=TIME, abs=0)
        assert hit.head.tube == pytest.approx(exact["tube_coordinate"], rel=0, abs=TUBE)


@pytest.mark.parametrize("row", SMALL, ids=small_id)
def test_small_starts_leave_the_saddle_at_the_reference_time(row):
    width = row["half_width"]
    scale = 1.0 if row["head"] == "forward" else -1.0
    start = Head.from_scores(row["label_score"], row["scale"], width)
    hit = hitting_time(ClosedFormRisk(width), start, scale=scale)
    assert hit.reached
    assert hit.head.scale == scale
    assert hit.time == pytest.approx(row["time_abs_scale_1"], rel=SMALL_RADIUS, abs=0)
    assert scale * hit.head.label_score == pytest.approx(
        row["abs_label_score"], rel=SMALL_RADIUS, abs=0
    )


def test_a_start_of_radius_1e_minus_12_leaves_the_saddle_at_the_linear_prediction():
    # Below radius 1e-6 the flow is linear to 1e-12 (the risk is even). From (1e-6, 1e-6) only the
    # part along the unstable direction (k, 1) is left in the end, of scale 1e-6 (k + 1)/(k^2 + 1).
    ratio = 2.1350416126511
    growth = (math.sqrt(61) - 5) / 45
    (row,) = (row for row in SMALL if row["label_score"] == 1e-6)
    part = 1e-6 * (ratio + 1) / (ratio**2 + 1)
    exact = row["time_abs_scale_1"] + math.log(part / 1e-12) / growth
    hit = hitting_time(ClosedFormRisk(), Head.from_ratio(ratio, 1e-12), scale=1.0, t_end=5000.0)
    assert hit.time == pytest.approx(exact, rel=SMALL_RADIUS, abs=0)


def test_both_crossings_of_a_scale_that_is_passed_twice_are_found():
    down, up = crossings(ClosedFormRisk(), Head.from_ratio(0.0, 1.0), scale=0.38, t_end=100.0)
    # Known to nine digits.
    assert down.time == pytest.approx(8.44205954, abs=1e-8)
    assert up.time == pytest.approx(10.13972648, abs=1e-8)
    assert down.head.scale == up.head.scale == 0.38


@pytest.mark.parametrize(("direction", "times"), [("down", [8.44205954]), ("up", [10.13972648])])
def test_crossings_of_one_direction_leave_out_the_other(direction, times):
    found = crossings(
        ClosedFormRisk(), Head.from_ratio(0.0, 1.0), scale=0.38, t_end=100.0, direction=direction
    )
    assert [hit.time for hit in found] == pytest.approx(times, abs=1e-8)


@pytest.mark.parametrize(
    ("start", "exact"),
    [
        # Known to eight decimals each.
        (Head.from_scores(0.0, 1.0), (0.65892426, 0.37937008)),
        (Head.from_scores(7.3, 5.1), (7.36114108, 5.13939023)),
        (Head.from_scores(np.float32(7.3), np.float32(5.1)), (7.36114125, 5.13939017)),
    ],
)
def test_the_flow_to_time_ten_ends_where_it_should(start, exact):
    trajectory = gradient_flow(ClosedFormRisk(), start, 10.0)
    end = (trajectory.label_score[-1], trajectory.scale[-1])
    assert end == pytest.approx(exact, rel=0, abs=1e-8)
    assert trajectory.label_score.dtype == np.float64


def test_a_longdouble_start_is_computed_in_double_precision():
    start = Head.from_scores(np.longdouble(7.3), np.longdouble(5.1))
    trajectory = gradient_flow(ClosedFormRisk(), start, 10.0)
    same = gradient_flow(ClosedFormRisk(), Head.from_scores(7.3, 5.1), 10.0)
    assert trajectory.scale.dtype == np.float64
    assert trajectory.scale[-1] == same.scale[-1]


@pytest.mark.parametrize("method", ["LSODA", "Radau", "BDF", "DOP853"])
def test_the_methods_agree(method):
    start = Head.from_ratio(1.5, 5.0)
    hit = hitting_time(ClosedFormRisk(), start, scale=10.0, method=method, rtol=1e-10)
    (exact, *_) = FLOWS[0]["hitting"]
    # Worst measured: BDF, 2e-9.
    assert hit.time == pytest.approx(exact["time"], rel=1e-8, abs=0)
    assert hit.head.tube == pytest.approx(exact["tube_coordinate"], abs=1e-8)


def test_the_fourth_power_of_the_scale_follows_its_law_to_time_1e40():
    trajectory = gradient_flow(ClosedFormRisk(), Head.from_ratio(1.5, 5.0), 1e40)
    # mu^4 (1 + l^2)/(8 t) -> 1 with a correction of order 1/mu (MODEL §4): mu is 1e10 here.
    assert trajectory.scale[-1] ** 4 / 1e40 == pytest.approx(4.0, rel=1e-9, abs=0)
    # c = log 2 + b/mu, b = 0.204
    assert trajectory.tube[-1] == pytest.approx(math.log(2), abs=1e-10)


def test_points_asked_for_lie_on_the_path_that_the_steps_take():
    risk, start = ClosedFormRisk(), Head.from_ratio(1.5, 5.0)
    row = FLOWS[0]
    times = [hit["time"] for hit in row["hitting"]]
    trajectory = gradient_flow(risk, start, row["end"]["time"], t_eval=times, dense_output=True)
    scales = [hit["scale"] for hit in row["hitting"]]
    np.testing.assert_allclose(trajectory.scale, scales, rtol=SCALE)
    np.testing.assert_allclose(
        trajectory.tube, [hit["tube_coordinate"] for hit in row["hitting"]], rtol=0, atol=TUBE
    )
    assert [trajectory.sol(t) for t in times] == [trajectory.head(i) for i in range(3)]
    np.testing.assert_array_equal(
        trajectory.risk, [risk.value(trajectory.head(i)) for i in range(3)]
    )


def test_a_reflected_start_gives_the_reflected_path():
    risk, start = ClosedFormRisk(), Head.from_ratio(1.5, 5.0)
    path = gradient_flow(risk, start, 1e6)
    mirror = gradient_flow(risk, start.reflected, 1e6)
    assert set(mirror.chart) == {"reflected tube"}
    np.testing.assert_array_equal(mirror.scale, -path.scale)
    np.testing.assert_array_equal(mirror.excess, -path.excess)
    assert np.isnan(mirror.tube).all()
    assert mirror.head(-1) == mirror.stop_head == path.stop_head.reflected
