"""The predicted laws against reference flows, exact risks and errors, and what they refuse."""

import json
from pathlib import Path

import numpy as np
import pytest

from popdyn import ArbitraryPrecisionRisk, ClosedFormRisk, Head, asymptotics, gradient_descent

REFERENCE = Path(__file__).parent / "reference"
FLOWS = json.loads((REFERENCE / "flow.json").read_text(encoding="utf-8"))
ESCAPES = json.loads((REFERENCE / "small_radius.json").read_text(encoding="utf-8"))
STATES = [
    pytest.param(flow["half_width"], state, id=f"l={flow['half_width']}-mu={state['scale']:.0f}")
    for flow in FLOWS
    for state in [*flow["hitting"][1:], flow["end"]]
]
LAWS_OF_SCALE = [
    asymptotics.tube_center,
    asymptotics.time_at,
    asymptotics.growth_rate,
    asymptotics.risk_in_tube,
]
LAWS_OF_TIME = [asymptotics.scale_at, asymptotics.interior_error]

CENTER = 5e-12  # of c, at mu = 50 and above: measured 3.7e-12 there (order 9), else 1e-13
INCREMENT = 1e-9  # relative, of t(1000) - t(100): measured 1.9e-10 at order 3, 3e-12 and less above
OFFSET = 1e-14  # of the time: measured 4.5e-15, what the file and rounding leave
EARLY_OFFSET = 3e-5  # of the offset itself, at order 8 and mu l = 50: measured 8e-6
END = 3e-14  # relative, of the end's scale: measured 2e-14 (offset from mu = 50), else 1.3e-15
RISK = 1e-12  # relative, of the risk at order 8: measured 5.3e-13 at mu = 50, 7e-15 above
ERROR = 5e-14  # relative, of the interior error: measured 2e-14, the offset of END
GAIN = 2e-4  # relative, of what mu^4 gains: measured 5.3e-5; without the term of the step 4e-4
ROUND_TRIP = 1e-15  # relative, of the scale: measured 2e-16


def offset_of(flow):
    """From the passages alone."""
    times, scales = zip(*((hit["time"], hit["scale"]) for hit in flow["hitting"]), strict=True)
    return asymptotics.time_offset(times, scales, flow["half_width"])


@pytest.mark.parametrize(("width", "state"), STATES)
def test_flows_settle_on_the_tube_center(width, state):
    found = asymptotics.tube_center(state["scale"], width, order=8)
    assert found == pytest.approx(state["tube_coordinate"], rel=0, abs=CENTER)


@pytest.mark.parametrize("order", range(3, 9))
def test_the_time_from_scale_100_to_1000_is_predicted_from_order_3_on(order):
    passages = {hit["scale"]: hit["time"] for hit in FLOWS[0]["hitting"]}
    early, late = asymptotics.time_at([100, 1000], order=order)
    assert late - early == pytest.approx(passages[1000] - passages[100], rel=INCREMENT, abs=0)


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: f"{flow['ratio']}-{flow['scale']}")
def test_a_flow_keeps_its_time_offset(flow):
    offset = offset_of(flow)
    for state in [*flow["hitting"][1:], flow["end"]]:
        law = asymptotics.time_at(state["scale"], flow["half_width"], order=8)
        doubt = OFFSET * state["time"] + EARLY_OFFSET
        assert state["time"] - law == pytest.approx(offset, rel=0, abs=doubt)


@pytest.mark.parametrize(
    ("flow", "stated"),
    list(zip(FLOWS, (-364.35, -954.05, -221.79, -719.36, -478.37, -1096.67), strict=True)),
    ids=lambda case: f"{case['ratio']}-{case['scale']}" if isinstance(case, dict) else "",
)
def test_the_offsets_are_those_that_the_docstring_explains(flow, stated):
    assert offset_of(flow) == pytest.approx(stated, abs=0.005)
    assert f"{stated} against" in " ".join(asymptotics.time_offset.__doc__.split())


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: f"{flow['ratio']}-{flow['scale']}")
def test_the_offset_and_the_law_give_the_end_of_a_flow(flow):
    end = flow["end"]
    law = asymptotics.scale_at(end["time"] - offset_of(flow), flow["half_width"], order=8)
    assert law == pytest.approx(end["scale"], rel=END, abs=0)


def test_a_start_on_the_tube_has_about_minus_its_law_as_offset():
    times = asymptotics.time_at([200.0, 400.0], order=8) - asymptotics.time_at(100.0, order=8)
    offset = asymptotics.time_offset(times, [200.0, 400.0])
    assert offset == pytest.approx(-asymptotics.time_at(100.0, order=8), rel=ROUND_TRIP * 10, abs=0)


@pytest.mark.parametrize(("width", "state"), STATES)
def test_the_risk_in_the_tube_is_that_of_the_flow(width, state):
    exact = ArbitraryPrecisionRisk(width, 20).evaluate(
        scale=state["scale"], tube=state["tube_coordinate"]
    )
    law = asymptotics.risk_in_tube(state["scale"], width, order=8)
    assert law == pytest.approx(float(exact.risk), rel=RISK, abs=0)


@pytest.mark.parametrize(("width", "state"), STATES)
def test_the_interior_error_in_time_is_that_of_the_flow(width, state):
    flow = next(f for f in FLOWS if state in [*f["hitting"], f["end"]])
    exact = ArbitraryPrecisionRisk(width, 20).limit_error(
        width / 4, scale=state["scale"], tube=state["tube_coordinate"]
    )
    law = asymptotics.interior_error(state["time"] - offset_of(flow), width, order=8)
    assert law == pytest.approx(-float(exact), rel=ERROR, abs=0)


@pytest.mark.parametrize("width", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("label_score", [-3, 0, 40])
def test_the_boundary_error_is_exact_for_every_label_score(width, label_score):
    exact = ArbitraryPrecisionRisk(width, 20).limit_error(-width, scale=7, label_score=label_score)
    assert asymptotics.boundary_error(7, width) == pytest.approx(
        float(exact), rel=ROUND_TRIP, abs=0
    )


@pytest.mark.parametrize("width", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("order", range(9))
def test_scale_at_inverts_time_at(order, width):
    scales = np.array([8.0, 1e2, 1e4, 1e8, 1e60])
    back = asymptotics.scale_at(asymptotics.time_at(scales, width, order), width, order)
    np.testing.assert_allclose(back, scales, rtol=ROUND_TRIP)


def test_time_at_has_no_constant():
    assert asymptotics.time_at(1.0, order=4) == asymptotics.time_at(1.0, order=3)


@pytest.mark.parametrize("width", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("order", [0, 1, 4, 8])
def test_the_growth_rate_is_one_over_the_slope_of_time_at(order, width):
    scale, step = 50.0, 1e-3
    slope = np.diff(asymptotics.time_at([scale - step, scale + step], width, order)) / (2 * step)
    assert slope * asymptotics.growth_rate(scale, width, order) == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("width", [0.5, 1.0, 2.0])
def test_deviations_from_the_tube_fall_at_the_relaxation_rate(width):
    scale, step = 1e8, 1e-6
    risk = ArbitraryPrecisionRisk(width, 40)
    center = float(asymptotics.tube_center(scale, width, order=4))
    slopes = []
    for tube in (center - step, center + step):
        by_score, by_scale = risk.evaluate(scale=scale, tube=tube).gradient
        slopes.append(by_score / by_scale)  # d lam/dmu, which is dc/dmu + l + 1/mu
    rate = -float((slopes[1] - slopes[0]) / (2 * step))
    # next is (2 + 3 l^2)/mu, and the step's square
    assert rate == pytest.approx(asymptotics.relaxation_rate(width), rel=1e-6, abs=0)


@pytest.mark.parametrize("width", [0.5, 1.0, 2.0])
def test_the_stable_step_is_two_over_the_largest_curvature(width):
    scale = 1e8
    center = float(asymptotics.tube_center(scale, width))
    first, cross, second = (
        ArbitraryPrecisionRisk(width, 20).evaluate(scale=scale, tube=center).hessian
    )
    largest = np.linalg.eigvalsh(np.array([[first, cross], [cross, second]], dtype=float))[1]
    # next is of order 1/mu
    assert asymptotics.stable_step(scale, width) * largest == pytest.approx(2, rel=1e-7, abs=0)


@pytest.mark.parametrize("width", [0.5, 1.0, 2.0, 1000.0])
def test_the_saddle_has_the_eigenvalues_of_the_exact_hessian(width):
    first, cross, second = (
        ArbitraryPrecisionRisk(width, 20).evaluate(scale=0, label_score=0).hessian
    )
    trace, determinant = float(first + second), float(first * second - cross**2)
    low, high = asymptotics.saddle_eigenvalues(width)
    assert low + high == pytest.approx(trace, rel=ROUND_TRIP, abs=0)
    assert low * high == pytest.approx(determinant, rel=ROUND_TRIP * 5, abs=0)


def test_each_factor_in_a_small_radius_costs_the_escape_time_predicted():
    near, far = ESCAPES[3], ESCAPES[0]  # both at 45 degrees, 1000 times apart
    predicted = asymptotics.escape_time(near["scale"]) - asymptotics.escape_time(far["scale"])
    # next is of the order of the radius squared, times 1/rate
    found = near["time_abs_scale_1"] - far["time_abs_scale_1"]
    assert found == pytest.approx(predicted, rel=1e-6, abs=0)


@pytest.mark.parametrize(("width", "scale", "step"), [(0.5, 20, 500), (1, 10, 100), (2, 6, 10)])
def test_descent_on_the_tube_gains_what_its_law_says(width, scale, step):
    start = Head.from_tube(asymptotics.tube_center(scale, width, order=8), scale, width)
    path = gradient_descent(ClosedFormRisk(width), start, step, 4000, record=[0])
    gained = (path.stop_head.scale**4 - scale**4) / (4000 * step)
    law = asymptotics.fourth_power_increment(step, 4000, scale, width)
    assert law == pytest.approx(gained, rel=GAIN, abs=0)


@pytest.mark.parametrize("width", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("angle", "u"), [(0, (1, 0)), (90, (0, 1)), (45, (0.5**0.5, 0.5**0.5))])
def test_the_gradient_grows_from_the_origin_as_the_hessian_says(width, angle, u):
    hessian = np.array([[0, -(width**3) / 15], [-(width**3) / 15, width**4 / 9]])
    slope = 2 * np.linalg.norm(hessian @ u)
    assert asymptotics.gradient_slope(angle, width) == pytest.approx(slope, rel=1e-14, abs=0)


def test_the_limit_laws_of_scale_and_time_are_powers():
    assert asymptotics.scale_at(16e8, order=0) == pytest.approx(16e8**0.25 * 4**0.25)
    assert asymptotics.fourth_power_rate(2.0) == 1.6


@pytest.mark.parametrize("law", [*LAWS_OF_SCALE, *LAWS_OF_TIME])
def test_laws_broadcast_over_their_argument(law):
    argument = np.array([[1e6, 2e6, 3e6], [4e6, 5e6, 6e6]])
    values = law(argument, 2.0, order=3)
    assert values.shape == argument.shape
    assert values[1, 2] == pytest.approx(law(6e6, 2.0, order=3), rel=ROUND_TRIP, abs=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: asymptotics.tube_center(0.0), "scale must be positive and finite, got 0.0"),
        (lambda: asymptotics.time_at([1.0, np.nan]), "scale must be positive and finite"),
        (lambda: asymptotics.scale_at(-1.0), "time must be positive and finite, got -1.0"),
        (lambda: asymptotics.tube_center("far"), "scale must be a real number or an array"),
        (lambda: asymptotics.tube_center(9.0, half_width=0), "half_width must be one positive"),
        (lambda: asymptotics.tube_center(9.0, [1.0, 2.0]), "half_width must be one positive"),
        (lambda: asymptotics.tube_center(9.0, order=9), "order must be an integer from 0 to 8"),
        (lambda: asymptotics.tube_center(9.0, order=1.5), "order must be an integer from 0 to 8"),
        (
            lambda: asymptotics.scale_at(1e-3, order=4),
            "time must be one that the series of order 4",
        ),
        (lambda: asymptotics.time_offset([1.0], [9.0], order=3), "order must be at least 4"),
        (lambda: asymptotics.time_offset([1.0, 2.0], [9.0]), "time and scale must be sequences"),
        (lambda: asymptotics.time_offset([1.0], [-9.0]), "scale must become positive"),
        (lambda: asymptotics.escape_time(0.0), "radius must be positive"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(ValueError, match=f"^{message}") as refusal:
        call()
    assert "\n" not in str(refusal.value)
