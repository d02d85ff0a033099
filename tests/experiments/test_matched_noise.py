"""Label noise as wide as the resolution: interior trend and boundary obstruction (MODEL §7)."""

import numpy as np
import pytest

from popdyn.experiments.matched_noise import BOUNDARY, INTERIOR, Config, findings, run
from popdyn.limit_laws import boundary_limits


@pytest.fixture(scope="module")
def paper():
    return run(Config.paper())


# Measured with other code on 64 and 4096 examples, to the digits given.
SCALED = {"clean": (8.881, 8.929), "localized": (5.819, 5.893), "Tsybakov": (7.397, 7.457)}
AT_BOUNDARY = {"clean": (1.866, 1.998), "localized": (0.833, 0.898)}
LAST_DIGIT = 5.1e-4


@pytest.mark.parametrize("condition", INTERIOR)
def test_interior_errors_are_those_measured_before(paper, condition):
    scaled = (paper.context_sizes * paper.interior[INTERIOR.index(condition)])[[0, -1]]
    np.testing.assert_allclose(scaled, SCALED[condition], rtol=0, atol=LAST_DIGIT)


@pytest.mark.parametrize("condition", BOUNDARY)
def test_boundary_errors_are_those_measured_before(paper, condition):
    errors = paper.boundary[BOUNDARY.index(condition), [0, -1]]
    np.testing.assert_allclose(errors, AT_BOUNDARY[condition], rtol=0, atol=LAST_DIGIT)


def test_noise_keeps_the_clean_trend_inside(paper):
    slopes = np.diff(np.log(paper.interior)) / np.diff(np.log(paper.context_sizes))
    # -0.9884 measured from 64 to 128 examples with localized flips, nearer to -1 elsewhere
    np.testing.assert_allclose(slopes, -1.0, rtol=0, atol=0.015)


def test_noise_at_the_resolution_lowers_the_interior_error(paper):
    clean, localized, tsybakov = paper.interior
    assert (localized < tsybakov).all()
    assert (tsybakov < clean).all()


def test_boundary_errors_grow_to_their_limits_of_order_one(paper):
    limits = boundary_limits(8.0, 0.4)
    assert limits == pytest.approx((2.0, 2 * np.exp(-0.8)), rel=1e-15, abs=0)
    assert (np.diff(paper.boundary) > 0).all()
    # 1/mu = 0.002 on the largest contexts: 0.0021 and 0.0011 measured
    np.testing.assert_allclose(paper.boundary[:, -1], limits, rtol=0, atol=3e-3)
    assert (paper.boundary < np.reshape(limits, (2, 1))).all()


def test_findings_name_the_powers_and_the_limits(paper):
    said = {finding.claim: finding for finding in findings(paper)}
    power = said["power of N in the interior RMS, clean"]
    ends = paper.interior[0, [0, -1]]
    # a fit and the chord differ by the bend of the points: 3e-4
    assert power.measured == pytest.approx(np.log(ends[1] / ends[0]) / np.log(64), abs=2e-3)
    assert said["N RMS at the interior threshold, clean"].measured == "8.881 to 8.929"
    boundary = said["RMS at the boundary on 4096 examples, localized"]
    assert boundary.measured == paper.boundary[1, -1]


def test_the_quick_form_has_the_ends_of_the_full_one(paper):
    quick = run(Config.quick())
    np.testing.assert_array_equal(quick.interior[:, [0, -1]], paper.interior[:, [0, -1]])
