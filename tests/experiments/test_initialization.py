"""What the picture of the starts near zero says in numbers (MODEL §5)."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from popdyn.asymptotics import gradient_slope
from popdyn.coordinates import Head
from popdyn.dynamics.flow import gradient_flow
from popdyn.experiments.initialization import Config, findings, run
from popdyn.risk.closed_form import ClosedFormRisk


@pytest.fixture(scope="module")
def quick():
    return run(Config.quick())


def test_the_gradient_vanishes_linearly_in_the_radius(quick):
    small = quick.radii <= 1e-2
    slopes = quick.gradient_norm[small] / quick.radii[small]
    assert slopes == pytest.approx(0.113312, rel=1e-5, abs=0)  # measured 6e-6, at 1e-2
    assert slopes[:4] == pytest.approx(gradient_slope(45.0), rel=1e-8, abs=0)


def test_a_smaller_radius_delays_the_escape_by_one_over_the_rate(quick):
    inside = quick.radii <= 1e-2
    steps = -np.diff(quick.escape[inside]) / np.diff(np.log(quick.radii[inside]))
    # measured 16.01289 between 1e-3 and 1e-2, whose next term is of the square of the radius
    assert steps == pytest.approx(16.0128, abs=2e-4)


def test_an_escape_is_the_time_at_radius_1(quick):
    index = list(quick.radii).index(1e-2)
    head = Head.from_scores(1e-2 / 2**0.5, 1e-2 / 2**0.5)
    end = gradient_flow(ClosedFormRisk(), head, quick.escape[index]).stop_head
    assert np.hypot(end.label_score, end.scale) == pytest.approx(1.0, abs=1e-9)  # measured 1e-12


def test_a_start_outside_has_no_escape(quick):
    assert np.isnan(quick.escape).tolist() == (quick.radii >= 1.0).tolist()


def test_a_start_that_stays_near_zero_is_kept_and_flagged():
    # the direction that falls back to zero, to all digits of the angle: the other eigenvector
    _, vectors = np.linalg.eigh([[0, -2 / 15], [-2 / 15, 2 / 9]])
    angle = np.rad2deg(np.arctan2(vectors[1, 1], vectors[0, 1]))
    result = run(Config(radii=(1e-3,), shown=(0.0,), angle=angle, n_times=3))
    assert np.isnan(result.escape).tolist() == [True]


def test_the_zero_head_is_stationary(quick):
    assert quick.shown[0] == 0.0
    # the risk of the zero head is E alpha^2, up to rounding of the closed form
    np.testing.assert_allclose(quick.shown_risk[0], 1 / 3, rtol=1e-14)
    assert np.ptp(quick.shown_risk[0]) == 0.0


# given to three digits
@pytest.mark.parametrize(
    ("radius", "risk"), [(1e-6, 0.0976), (1e-4, 0.0598), (1e-2, 0.0456), (0.1, 0.0413), (1, 0.0378)]
)
def test_the_risk_after_a_common_time_depends_on_the_radius(quick, radius, risk):
    assert quick.final_risk[np.isclose(quick.radii, radius)] == pytest.approx(risk, abs=6e-5)
    assert quick.shown_risk[quick.shown == radius, -1] == pytest.approx(risk, abs=6e-5)


def test_a_larger_radius_ends_at_a_lower_risk(quick):
    assert (np.diff(quick.final_risk) < 0).all()
    assert quick.final_risk[0] > 0.29  # from 1e-8 it has hardly begun


def test_findings_are_near_what_was_predicted(quick):
    *said, last = findings(quick)
    for finding in said:
        assert finding.measured == pytest.approx(finding.predicted, rel=1e-5, abs=0)
    assert last.claim.endswith("from r = 1e-06, 0.0001, 0.01, 0.1, 1")
    assert last.measured == "0.0976, 0.0598, 0.0456, 0.0413, 0.0378"


def test_parameters_are_plain_numbers():
    for config in (Config.quick(), Config.paper()):
        radii = json.loads(json.dumps(asdict(config)))["radii"]
        assert radii == sorted(radii)
        assert min(radii) == pytest.approx(1e-8, rel=1e-12, abs=0)
