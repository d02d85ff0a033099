"""Flipped labels at inference: errors of a frozen head and their floors (MODEL §6, §7)."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from popdyn.experiments.inference_noise import CONDITIONS, Config, findings, run
from popdyn.limit_laws import label_score_cap, localized_floor

# Measured with other code, to the digits given.
MEASURED = {
    "clean": (0.29757, 0.09202, 0.04032, 0.03286, 0.03162, 0.03134, 0.03126),
    "localized": (0.29757, 0.09172, 0.03609, 0.02196, 0.01811, 0.01714, 0.01685),
    "massart": (0.31474, 0.24202, 0.42877, 0.70571, 0.90086, 0.95834, 0.96795),
}
LAST_DIGIT = 5.1e-6


@pytest.fixture(scope="module")
def quick():
    return run(Config.quick())


@pytest.mark.parametrize("condition", CONDITIONS)
def test_errors_are_those_measured_before(quick, condition):
    row = quick.root_mean_square[CONDITIONS.index(condition)]
    assert quick.context_sizes.tolist() == [8, 32, 128, 512, 2048, 8192, 65536]
    np.testing.assert_allclose(row, MEASURED[condition], rtol=0, atol=LAST_DIGIT)


def test_clean_and_localized_errors_fall_with_the_size_and_approach_their_floors(quick):
    for row, floor in zip(quick.root_mean_square[:2], quick.floor[:2], strict=True):
        assert (np.diff(row) < 0).all()
        assert (row > floor).all()
        # 0.04 % and 0.24 % measured on the largest context
        assert row[-1] == pytest.approx(floor, rel=5e-3)


def test_one_percent_of_flips_anywhere_ends_at_order_one(quick):
    row = quick.root_mean_square[2]
    assert (np.diff(row[1:]) > 0).all()
    assert row[-1] == pytest.approx(quick.floor[2], rel=1e-3)
    assert quick.floor[2] > 0.9


def test_localized_flips_lower_the_floor(quick):
    clean, localized, _ = quick.floor
    assert localized < 0.6 * clean


def test_floors_are_those_of_the_laws(quick):
    # neglected: exp(-mu l) = 1e-14 of weight, at 32 times the floor; 6e-13 measured
    assert quick.floor[0] == pytest.approx(1 / 32, rel=1e-11, abs=0)
    assert quick.floor[1] == pytest.approx(localized_floor(32.0, 0.25), rel=1e-11, abs=0)
    # Flips cap the label score at 2.3, so that the negatives by the upper end win: l - 1/mu.
    # The positives keep a share exp(2 * 2.3 - 32) = 1e-12.
    share = np.exp(2 * label_score_cap(0.01) - 32)
    assert quick.floor[2] == pytest.approx(1 - 1 / 32, abs=2 * share)


def test_findings_are_floors_beside_their_laws(quick):
    said = {finding.claim: finding for finding in findings(quick)}
    homogeneous = said["floor with homogeneous flips"]
    assert (homogeneous.predicted, homogeneous.measured) == (1 - 1 / 32, quick.floor[2])
    reached = said["RMS over floor on 65536 examples, clean"]
    assert reached.measured == quick.root_mean_square[0, -1] / quick.floor[0]


@pytest.mark.parametrize("form", ["quick", "paper"])
def test_parameters_are_plain(form):
    config = getattr(Config, form)()
    assert Config(**{**asdict(config), "context_sizes": tuple(config.context_sizes)}) == config
    assert json.loads(json.dumps(asdict(config)))["scale"] == 32.0
