"""Small starts, nonuniform designs and corrupted labels in training (MODEL §5, §7)."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from popdyn.coordinates import Head
from popdyn.experiments.scope import DESIGNS, Config, findings, run
from popdyn.limit_laws import density_tube_center, label_score_cap
from popdyn.risk.closed_form import ClosedFormRisk


@pytest.fixture(scope="module")
def quick():
    return run(Config.quick())


# Measured with other code at t = 300 and 45 degrees, to the digits given.
@pytest.mark.parametrize(
    ("radius", "risk"),
    [(1e-6, 0.0976), (1e-4, 0.0599), (1e-2, 0.0456), (0.1, 0.0413), (1.0, 0.0378)],
)
def test_risks_at_the_common_time_are_those_measured_before(quick, radius, risk):
    (time,) = np.flatnonzero(quick.common_times == 300.0)
    (start,) = np.flatnonzero(np.isclose(quick.radii, radius, rtol=1e-12))
    # 0.05985 is where the second was rounded
    assert quick.common_risk[time, start] == pytest.approx(risk, abs=6e-5)


def test_a_smaller_start_is_later_at_every_time(quick):
    assert (np.diff(quick.radii) > 0).all()
    assert (np.diff(quick.common_risk, axis=1) < 0).all()


def test_a_start_at_the_origin_would_keep_the_variance_of_the_threshold(quick):
    assert quick.origin_risk == pytest.approx(1 / 3, rel=1e-15, abs=0)
    # from radius 1e-6, at t = 100: (1e-6)^2 exp(2 * 0.062 * 100) = 3e-7 are gone
    assert quick.common_risk[1, 0] == pytest.approx(1 / 3, abs=1e-7)


# At t = 10^9.75, to the digits given; the solver is good to 1e-6 of it.
@pytest.mark.parametrize(
    ("design", "scale", "tolerance"),
    [("uniform", 386.583, 1e-3), ("tilted", 386.27, 6e-3), ("wavy", 386.587, 1e-3)],
)
def test_nonuniform_designs_stay_close_to_the_uniform_one(quick, design, scale, tolerance):
    assert quick.t[-1] == pytest.approx(5.6234e9, rel=1e-5)
    assert quick.scale[DESIGNS.index(design), -1] == pytest.approx(scale, abs=tolerance)


def test_they_settle_on_tubes_of_their_own(quick):
    center = density_tube_center([1.0, 1.3 / 0.7, 1.0])
    # b/mu and log(mu)/mu^2 are left at mu = 386: 8e-4 measured
    np.testing.assert_allclose(quick.tube[:3, -1], center, rtol=0, atol=1e-3)
    assert quick.tube[1, -1] - quick.tube[0, -1] == pytest.approx(np.log(1.3 / 0.7) / 2, abs=1e-3)


def test_one_percent_of_flips_in_training_ends_the_growth(quick):
    late = quick.t > 1e4
    # to the digits given; the rest point moves by the solver's tolerance
    np.testing.assert_allclose(quick.scale[3, late], 1.46849, rtol=0, atol=6e-6)
    np.testing.assert_allclose(quick.risk[3, late], 0.198051, rtol=0, atol=5.1e-7)


def test_its_rest_point_is_the_best_clean_head_of_the_capped_label_score(quick):
    """On an infinite context the flips only cap the label score (MODEL §7)."""
    cap = float(label_score_cap(0.01))
    best = minimize_scalar(
        lambda scale: ClosedFormRisk().value(Head.from_scores(cap, scale)), bracket=(1.0, 1.5, 3.0)
    )
    assert quick.risk[3, -1] == pytest.approx(best.fun, rel=1e-9)
    # tanh(lam) is still short of 1 by exp(-25), and the least is found to the root of a rounding
    assert quick.scale[3, -1] == pytest.approx(best.x, rel=1e-6)


def test_findings_are_the_ends_of_the_runs(quick):
    said = {finding.claim: finding for finding in findings(quick)}
    delay = said["risk at t = 300 from radius 1e-06 over that from 1"]
    assert delay.measured == quick.common_risk[2, 0] / quick.common_risk[2, -1]
    corrupted = said["mu at t = 5.6234e+09, corrupted"]
    assert corrupted.measured == quick.scale[3, -1]
    # the law neglects 1/(mu l)^2, and mu is 1.5
    assert corrupted.predicted == pytest.approx(corrupted.measured, rel=0.05)
    tilted = said["tube coordinate c at t = 5.6234e+09, tilted"]
    assert tilted.predicted == pytest.approx(1.0027, abs=5e-5)
