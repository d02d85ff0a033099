"""What the picture of the reflected pair on finite contexts says in numbers (MODEL §7)."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from popdyn.asymptotics import tube_limit
from popdyn.coordinates import Head
from popdyn.experiments.symmetrization import Config, findings, pair_cell, run
from popdyn.limit_laws import prior_averaged_risks
from popdyn.reflected_moments import pair_moments

# Standard errors, of drawn means beside exact values; the largest of so many normal numbers.
DRAWN = 4.0  # measured 2.5 over the points, 2.6 over the prior


@pytest.fixture(scope="module")
def quick():
    return run(Config.quick())


def of_sizes(result):
    return slice(None, result.n_sizes)


def of_scales(result):
    return slice(result.n_sizes, None)


def test_inside_the_biases_of_head_and_reflection_are_opposite_and_cancel(quick):
    last = quick.n_sizes - 1
    mu = quick.scales[last]
    # measured -1.0020 and 1.0020 at N = 8192, where 2 l mu/N is 1/128: -1 - h/4
    assert mu * quick.head_bias[0, last] == pytest.approx(-1.0, abs=2.5e-3)
    assert mu * quick.reflected_bias[0, last] == pytest.approx(1.0, abs=2.5e-3)
    assert abs(quick.pair_bias[0, last]) < DRAWN * quick.pair_bias_error[0, last]
    assert quick.pair_bias_error[0, last] < 0.01 / mu


def test_the_drawn_bias_of_the_pair_is_half_the_sum_of_the_exact_ones(quick):
    exact = (quick.head_bias + quick.reflected_bias) / 2
    assert (np.abs(quick.pair_bias - exact) < DRAWN * quick.pair_bias_error).all()


def test_the_drawn_rms_of_the_pair_is_the_exact_one(quick):
    points = [0, 2, 4]  # N = 8, 128, 2048: 0.1 s each
    head = Head.from_tube(tube_limit(), quick.scales[points])
    exact = pair_moments(head, quick.thresholds[:, None], quick.sizes[points]).root_mean_square
    drawn, error = quick.pair_rms[:, points], quick.pair_rms_error[:, points]
    assert (np.abs(drawn - exact) < DRAWN * error).all()


def test_on_few_examples_the_pair_is_the_midpoint(quick):
    last = len(quick.scales) - 1  # mu = 8192 and N = 512
    midpoint = np.sqrt(2.0) / quick.sizes[last]
    assert quick.midpoint_rms[0, last] == pytest.approx(midpoint, rel=4e-3, abs=0)  # 1.5/N
    error = quick.pair_rms_error[0, last]
    assert abs(quick.pair_rms[0, last] - midpoint) < DRAWN * error
    assert error < 0.07 * midpoint


def test_on_many_examples_the_pair_is_far_below_the_floor_of_a_head(quick):
    last = quick.n_sizes - 1
    mu, n = quick.scales[last], quick.sizes[last]
    floor = np.sqrt(1.0 / (4.0 * n * mu))
    # the next term of the law is 3/8 of 2 l mu/N = 1/128
    assert abs(quick.pair_rms[0, last] - floor) < DRAWN * quick.pair_rms_error[0, last]
    assert quick.pair_rms_error[0, last] < 0.06 * floor
    assert quick.head_rms[0, last] == pytest.approx(1.0 / mu, rel=4e-3, abs=0)  # measured 2.9e-3
    assert quick.pair_rms[0, last] < quick.head_rms[0, last] / 30.0  # measured 34


def test_the_rms_of_a_head_stops_falling_and_that_of_a_pair_does_not(quick):
    sizes = of_sizes(quick)
    head, pair = quick.head_rms[0, sizes], quick.pair_rms[0, sizes]
    assert head[-1] > 0.98 * head[-2]
    assert (pair[1:] < 0.6 * pair[:-1]).all()  # four times the examples: at least a half


def test_pair_midpoint_and_bayes_come_in_this_order_inside(quick):
    sizes = of_sizes(quick)
    margin = DRAWN * quick.pair_rms_error[0, sizes]
    assert (quick.bayes_rms[0] <= quick.midpoint_rms[0] * (1.0 + 1e-12)).all()
    assert (quick.pair_rms[0, sizes] + margin > quick.midpoint_rms[0, sizes]).all()
    assert (quick.pair_rms[0] + DRAWN * quick.pair_rms_error[0] < quick.head_rms[0]).all()


def test_at_the_ends_the_pair_errs_by_the_half_width_at_both(quick):
    for end, sign in ((1, 1.0), (2, -1.0)):
        assert quick.thresholds[end] == -sign
        drawn, error = quick.pair_bias[end], quick.pair_bias_error[end]
        # on average the farthest example is as far from the other end as the nearest from this
        assert (np.abs(drawn - sign) < DRAWN * error).all()
    assert quick.pair_rms[1:, of_sizes(quick)][:, -1] == pytest.approx([1.0, 1.0], abs=1e-3)


def test_at_the_ends_a_head_errs_by_twice_the_half_width_at_one(quick):
    last = quick.n_sizes - 1
    mu = quick.scales[last]
    # measured 6e-5 from both
    assert quick.head_bias[1, last] == pytest.approx(2.0 - 1.0 / mu, abs=1e-4)
    assert quick.head_bias[2, last] == pytest.approx(-1.0 / mu, abs=1e-4)
    steepest = quick.head_rms[1, of_scales(quick)][-1]
    assert steepest == pytest.approx(2.0, abs=3.0 * 2.0 / quick.sizes[-1])  # 2 l/(N + 1) short


def test_squared_errors_over_the_prior_follow_their_laws(quick):
    n = quick.prior_sizes
    laws = np.stack([4 * n / ((n + 1) * (n + 2)), 2 / (n + 2), 2 / ((n + 2) * (n + 3))])
    assert (np.abs(quick.prior_risks - laws) < DRAWN * quick.prior_errors).all()
    # the head's is a rare error at one end: at N = 256 one task in 257 of 10000
    assert (quick.prior_errors < 0.2 * quick.prior_risks).all()  # measured 0.16


def test_the_interval_sets_the_unit_of_everything():
    config = Config(
        n_examples=(8, 64),
        scales=(16.0,),
        size=16,
        n_contexts=50,
        prior_sizes=(4,),
        n_tasks=100,
    )
    wide = run(replace(config, half_width=2.0, scale=16.0, scales=(8.0,)))
    assert wide.thresholds.tolist() == [0.6, -2.0, 2.0]
    far = DRAWN * wide.pair_bias_error
    assert (np.abs(wide.pair_bias[1] - 2.0) < far[1]).all()
    law = prior_averaged_risks(wide.prior_sizes, 2.0)
    assert (np.abs(wide.prior_risks - law) < DRAWN * wide.prior_errors).all()


def test_a_point_is_drawn_alike_whatever_else_is_swept():
    config = Config(
        n_examples=(8, 16, 32),
        scales=(8.0, 32.0),
        size=16,
        n_contexts=20,
        prior_sizes=(4,),
        n_tasks=20,
    )
    seen, fewer = run(config), run(replace(config, n_examples=(32,), scales=(32.0,)))
    assert seen.pair_bias.shape == (3, 5)
    np.testing.assert_array_equal(seen.pair_bias[:, 1], seen.pair_bias[:, 4])  # mu = 32, N = 16
    np.testing.assert_array_equal(fewer.pair_rms, seen.pair_rms[:, [2, 4]])


def test_seeds_draw_other_contexts():
    def bias(scale: float, n_examples: int, seed: int) -> float:
        return float(pair_cell((scale, n_examples), np.zeros(1), 1.0, 20, seed)["bias"][0])

    assert len({bias(8.0, 8, 0), bias(8.0, 8, 1), bias(8.5, 8, 0), bias(8.0, 9, 0)}) == 4
    assert bias(8.0, 8, 0) == bias(8.0, 8, 0)


def test_findings_are_near_what_is_predicted(quick):
    said = {finding.claim: finding for finding in findings(quick)}
    pair = said["RMS of the pair at N = 8192, mu = 32"]
    assert pair.predicted == pytest.approx(9.765625e-4, rel=1e-12, abs=0)
    assert pair.measured == quick.pair_rms[0, quick.n_sizes - 1]
    averaged = [finding for claim, finding in said.items() if "over the prior" in claim]
    assert len(averaged) == 3
    for finding in averaged:
        assert finding.measured == pytest.approx(finding.predicted, abs=0.05)  # measured 0.024


def test_parameters_are_plain_numbers():
    for config in (Config.quick(), Config.paper()):
        json.dumps(asdict(config), allow_nan=False)
        assert len(config.n_examples) > 5
