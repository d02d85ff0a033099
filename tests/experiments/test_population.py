"""What the picture of the population dynamics says in numbers (MODEL §4)."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from popdyn.attention import limit_error
from popdyn.coordinates import Head
from popdyn.dynamics.flow import gradient_flow
from popdyn.experiments.population import Config, Result, findings, observe, run
from popdyn.risk.closed_form import ClosedFormRisk


def result_of(head: Head, t_end: float) -> Result:
    risk = ClosedFormRisk(head.half_width)
    times = np.concatenate(([0.0], np.geomspace(1.0, t_end, 60)))
    return observe(risk, gradient_flow(risk, head, t_end, t_eval=times))


@pytest.fixture(scope="module")
def quick():
    return run(Config.quick())


# At t = 1e12 the next terms of the laws are 1/mu = 7e-4 in c, which is 2e-4 of it from its center
# by b/mu, and 2.6/mu in the growth.
@pytest.mark.parametrize("start", range(4))
@pytest.mark.parametrize(
    ("name", "limit", "tolerance"),
    [("tube", np.log(2.0), 1e-3), ("scaled_error", 1.0, 1e-12), ("scaled_growth", 1.0, 3e-3)],
)
def test_every_run_settles_on_the_limits_of_the_caption(quick, start, name, limit, tolerance):
    assert getattr(quick, name)[start, -1] == pytest.approx(limit, abs=tolerance)


def test_the_run_from_the_first_start_ends_where_it_was_measured_to(quick):
    # given to seven digits
    assert quick.scale[0, -1] == pytest.approx(1413.528, abs=1e-3)
    assert quick.tube[0, -1] == pytest.approx(0.69294, abs=1e-5)


def test_starts_lie_on_both_sides_of_the_tube(quick):
    assert np.sign(quick.tube[:, 0] - np.log(2.0)).tolist() == [1.0, -1.0, -1.0, 1.0]


def test_the_fourth_power_of_the_scale_is_affine_after_entry(quick):
    later = quick.t > 1e4
    slope = np.diff(quick.scale[:, later] ** 4) / np.diff(quick.t[later])
    # growth is 2.6/mu below its limit 4, and mu is 14 at t = 1e4
    assert ((slope > 4.0 * (1.0 - 2.6 / 13.0)) & (slope < 4.0)).all()


def test_findings_name_the_run_farthest_from_its_limit(quick):
    said = {finding.claim: finding for finding in findings(quick)}
    power = said["mu^4 / t at t = 1e+12"]
    ratios = quick.scale[:, -1] ** 4 / 1e12
    assert (power.predicted, power.measured) == (4.0, ratios.min())
    assert said["power of t in mu, last decade"].measured == pytest.approx(0.25, abs=1e-3)


def test_parameters_are_plain_numbers():
    for config in (Config.quick(), Config.paper()):
        assert json.loads(json.dumps(asdict(config)))["starts"][0] == [1.5, 5.0]


def test_a_flow_that_does_not_end_is_no_figure(monkeypatch):
    monkeypatch.setattr("popdyn.dynamics.collocation.path.MAX_STEPS", 3)
    with pytest.raises(RuntimeError, match="step"):
        run(Config.quick())


def test_the_growth_is_the_slope_of_the_scale():
    head = Head.from_ratio(1.5, 5.0)
    risk = ClosedFormRisk()
    times = 1e4 * np.array([1 - 1e-4, 1.0, 1 + 1e-4])
    seen = observe(risk, gradient_flow(risk, head, 1.1e4, t_eval=times))
    slope = (seen.scale[0, 2] - seen.scale[0, 0]) / (times[2] - times[0])
    # central difference: (1e-4)^2 of the third derivative, and rounding of the flow at 1e-11
    assert seen.scaled_growth[0, 1] == pytest.approx(seen.scale[0, 1] ** 3 * slope, rel=1e-6, abs=0)


def test_the_error_is_the_largest_over_the_interior():
    head = Head.from_ratio(1.2, 2.0)
    risk = ClosedFormRisk()
    seen = observe(risk, gradient_flow(risk, head, 0.0, t_eval=[0.0]), interior=0.9)
    errors = np.abs(limit_error(head, np.linspace(-0.9, 0.9, 4001)))
    # the grid of the run is 40 times coarser; the error is largest at its end
    assert seen.scaled_error[0, 0] == pytest.approx(2.0 * errors.max(), rel=1e-12, abs=0)


def test_a_run_to_the_reflected_head_is_seen_as_its_mirror_image():
    reflected = result_of(Head.from_scores(-7.5, -5.0), 1e4)
    upright = result_of(Head.from_scores(7.5, 5.0), 1e4)
    assert (reflected.reflected.tolist(), upright.reflected.tolist()) == ([True], [False])
    for name in ("ratio", "tube", "scale", "scaled_error", "scaled_growth"):
        np.testing.assert_allclose(getattr(reflected, name), getattr(upright, name), rtol=1e-12)
