"""The map of hitting times and the phase portrait: every start ends where the separatrix says."""

from dataclasses import replace

import numpy as np
import pytest

from popdyn import ClosedFormRisk, Head, hitting_time, separatrix
from popdyn.asymptotics import tube_limit
from popdyn.experiments import hitting_map, phase_portrait

ROUNDING = 1e-12


@pytest.fixture(scope="module")
def times():
    return hitting_map.run(replace(hitting_map.Config.quick(), scales=(0.001, 3.0)))


@pytest.fixture(scope="module")
def portrait():
    return phase_portrait.run(phase_portrait.Config.quick())


def test_each_time_is_that_of_its_start(times):
    assert times.times.shape == (times.scales.size, times.ratios.size)
    for i, j in ((0, 5), (3, 8)):
        start = Head.from_ratio(times.ratios[j], times.scales[i])
        hit = hitting_time(ClosedFormRisk(), start, scale=times.level)
        assert times.times[i, j] == pytest.approx(hit.time, rel=ROUNDING, abs=0)


def test_starts_at_the_level_are_there_and_others_come_if_the_separatrix_says_so(times):
    np.testing.assert_array_equal(times.times[-1], 0.0)
    assert times.scales[-1] == times.level
    beyond = times.ratios > times.separatrix[:-1, np.newaxis]
    assert beyond.any() and not beyond.all()
    np.testing.assert_array_equal(np.isfinite(times.times[:-1]), beyond)


def test_the_findings_count_starts_on_the_wrong_side(times):
    come, wrong = hitting_map.findings(times)
    assert come.predicted == come.measured > 0 and wrong.measured == 0
    spoilt = replace(times, separatrix=np.full_like(times.separatrix, 1.2))
    assert hitting_map.findings(spoilt)[1].measured > 0


def test_paths_end_where_the_separatrix_says(portrait):
    assert 0 < np.count_nonzero(portrait.upright) < portrait.upright.size
    assert [finding.measured for finding in phase_portrait.findings(portrait)] == [
        np.count_nonzero(portrait.predicted),
        0,
    ]
    spoilt = replace(portrait, predicted=~portrait.predicted)
    assert phase_portrait.findings(spoilt)[1].measured == portrait.upright.size


def test_upright_paths_end_in_the_tube_and_the_others_leave_upwards(portrait):
    for c, u, upright in zip(
        portrait.tubes, portrait.inverse_scales, portrait.upright, strict=True
    ):
        seen = np.isfinite(u)
        assert (u[seen] > 0).all() and (u[seen] <= portrait.window[2] * (1 + ROUNDING)).all()
        if upright:
            assert u[seen][-1] < 0.02 and abs(c[seen][-1] - tube_limit()) < 0.1
        else:
            assert (np.diff(u[seen]) > 0).all()


def test_the_two_starts_beside_the_separatrix_end_apart(portrait):
    assert portrait.upright[-2:].tolist() == [True, False]
    scale = 1 / portrait.inverse_scales[-2, 0]
    gap = portrait.tubes[-2, 0] - separatrix(scale).tube
    assert 0 < gap < 0.1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ratios": (1.0, 1.0)}, "ratios must be two increasing numbers, got 1.0, 1.0"),
        ({"scales": (-1.0, 1.0)}, "scales must be positive, got -1.0"),
        ({"n_ratios": 1}, "n_ratios and n_scales must be at least 2, got 1 and 7"),
    ],
)
def test_a_grid_that_is_none_is_refused_in_one_line(changes, message):
    with pytest.raises(ValueError, match=message) as refusal:
        replace(hitting_map.Config.quick(), **changes)
    assert "\n" not in str(refusal.value)
