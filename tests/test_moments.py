"""Exact moments on finite contexts against the definition, reference values, limits and draws."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from two_examples import mean_square_error

from popdyn.attention import limit_error
from popdyn.coordinates import Head
from popdyn.design import Design
from popdyn.moments import context_moments
from popdyn.noise import LabelFlips, localized, massart, tsybakov
from popdyn.sampled_moments import context_moments_sampled

REFERENCE = json.loads((Path(__file__).parent / "reference" / "moments.json").read_text())
REFERENCE_TOLERANCE = 1e-14  # measured 3e-15; the values themselves are good to about 2e-15
LOG_2 = np.log(2.0)

NOISE = {
    "massart p=0.01": massart(0.01),
    "local p=0.25 w=1/32": localized(0.25, 1 / 32),
    "tsybakov b=1 w=1/32": tsybakov(1, 1 / 32),
}


def tilted(x):
    return (1 + 0.3 * x) / 2


@pytest.mark.parametrize("case", REFERENCE, ids=lambda case: f"{case['noise']}, {case['scale']}")
def test_moments_agree_with_the_reference_values(case):
    head = Head.from_scores(case["label_score"], case["scale"], case["half_width"])
    density = tilted if case["noise"].startswith("density") else None
    design = Design(case["half_width"], feature_density=density, noise=NOISE.get(case["noise"]))
    moments = context_moments(head, case["threshold"], case["n_examples"], design)
    unit = np.sqrt(case["mean_square_error"])
    assert abs(moments.bias - case["bias"]) < REFERENCE_TOLERANCE * unit
    assert abs(moments.mean_square_error / case["mean_square_error"] - 1) < REFERENCE_TOLERANCE


# --- the definition, by nested quadrature ---------------------------------------------------------

NESTED_TOLERANCE = 1e-14  # measured 4e-15
NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


def nested(lam, mu, alpha, n, density):
    """Moments from an n-fold tensor Gauss-Legendre rule, split at the threshold."""
    x = np.concatenate(
        [(low + high + (high - low) * NODES) / 2 for low, high in ((-1, alpha), (alpha, 1))]
    )
    mass = np.concatenate([(1 + alpha) / 2 * WEIGHTS, (1 - alpha) / 2 * WEIGHTS]) * density(x)
    score = lam * np.repeat([1, -1], NODES.size) + mu * x
    weight = np.exp(score - score.max())
    numerator, denominator, probability = 0.0, 0.0, 1.0
    for axis in range(n):
        shape = [-1 if i == axis else 1 for i in range(n)]
        numerator = numerator + (weight * (x - alpha)).reshape(shape)
        denominator = denominator + weight.reshape(shape)
        probability = probability * mass.reshape(shape)
    error = numerator / denominator
    return np.sum(probability * error), np.sum(probability * error**2)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(
    "density", [lambda x: np.full(x.shape, 0.5), tilted], ids=["uniform", "tilted"]
)
@pytest.mark.parametrize(
    ("lam", "mu", "alpha"),
    [
        (5.0, 4.0, 0.3),
        (0.0, 0.0, -0.2),
        (2.0, 1e-9, 0.5),
        (0.7, 3.0, -1.0),
        (0.7, 3.0, 1.0),
        (-6.0, 2.0, 0.1),
        (40.0, 1.0, 0.9),
        (-3.0, -2.5, -0.4),
    ],
)
def test_small_contexts_agree_with_the_definition(lam, mu, alpha, n, density):
    bias, mean_square = nested(lam, mu, alpha, n, density)
    moments = context_moments(Head.from_scores(lam, mu), alpha, n, Design(feature_density=density))
    assert abs(moments.bias - bias) < NESTED_TOLERANCE * np.sqrt(mean_square)
    assert abs(moments.mean_square_error / mean_square - 1) < NESTED_TOLERANCE


# --- two examples at any scale, from integrals over their distance --------------------------------

TWO_TOLERANCE = 1e-14  # measured 2.5e-15


@pytest.mark.parametrize("mu", [5.0, 300.0, 1e4, 1e5])
@pytest.mark.parametrize("excess", [-4.0, 0.0, 3.0, 60.0])
@pytest.mark.parametrize("alpha", [-1.0, -1 + 2.0**-13, 0.25, 1 - 2.0**-13, 1.0])
def test_two_examples_agree_with_one_dimensional_integrals(mu, excess, alpha):
    head = Head.from_excess(excess, mu)
    exact = float(mean_square_error(head.label_score, mu, alpha))
    moments = context_moments(head, alpha, 2)
    assert abs(moments.mean_square_error / exact - 1) < TWO_TOLERANCE


@pytest.mark.parametrize("lam", [-1e300, -400.0, -3.0, 0.0, 17.0, 1e300])
def test_any_label_score_agrees_with_one_dimensional_integrals(lam):
    exact = float(mean_square_error(lam, 30.0, 0.25))
    moments = context_moments(Head.from_scores(lam, 30.0), 0.25, 2)
    assert abs(moments.mean_square_error / exact - 1) < TWO_TOLERANCE


# --- the recipe once more, plainly, in long double ------------------------------------------------

PLAIN_TOLERANCE = 3e-14  # measured 1.5e-14 in 120 draws
STEP = 0.125  # half the step and half the panels of the code under test


def plain(lam, mu, alpha, n):
    """Both moments from the full table of (y, x), summed in long double."""
    gaps, masses, logs = [], [], []
    for low, high, shift in ((-1 - alpha, 0.0, 0.0), (0.0, 1 - alpha, -2 * lam)):
        if high > low:
            count = int(np.ceil(max(mu * (high - low), 4 * (high - low))))
            width = np.longdouble(high - low) / count
            gap = low + width * (np.arange(count)[:, None] + (NODES[None, :] + 1) / 2)
            gaps.append(gap.ravel())
            masses.append(np.tile(width * WEIGHTS / 4, count))
            logs.append(mu * gap.ravel() + shift)
    gap, mass, log = map(np.concatenate, (gaps, masses, logs))
    log = log - log.max()
    grid = np.arange(-44 - np.log(n), -float(log.min()) + 5, STEP)
    bias = mean_square = np.longdouble(0)
    for y in np.array_split(grid, grid.size // 200 + 1):
        tau = np.exp(np.minimum(y[:, None] + log, 6))
        decay = np.exp(-tau)
        complement, phi = -np.expm1(-tau) @ mass, decay @ mass
        log_phi = np.where(
            complement < 0.5, np.log1p(-np.minimum(complement, 0.6)), np.log(phi + 1e-300)
        )
        first = (tau * decay) @ (mass * gap)
        second = (tau**2 * decay) @ (mass * gap**2)
        bias += STEP * np.sum(n * first * np.exp((n - 1) * log_phi))
        mean_square += STEP * np.sum(
            n * second * np.exp((n - 1) * log_phi)
            + n * (n - 1) * first**2 * np.exp((n - 2) * log_phi)
        )
    return float(bias), float(mean_square)


PLAIN_CASES = [
    (lam, mu, alpha, n)
    for mu, lam, alpha, n in itertools.product(
        (0.3, 8.5, 25.0), (-1.0, 0.5, 9.0, 26.0, 60.0), (-1.0, -0.97, 0.1), (2, 7, 300, 10**6)
    )
]


@pytest.mark.parametrize("seed", range(25))
def test_moments_agree_with_the_plain_recipe_in_long_double(seed):
    lam, mu, alpha, n = PLAIN_CASES[np.random.default_rng(seed).integers(len(PLAIN_CASES))]
    bias, mean_square = plain(lam, mu, alpha, n)
    moments = context_moments(Head.from_scores(lam, mu), alpha, n)
    assert abs(moments.bias - bias) < PLAIN_TOLERANCE * np.sqrt(mean_square)
    assert abs(moments.mean_square_error / mean_square - 1) < PLAIN_TOLERANCE


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [2.0, 40.0, 1000.0])
@pytest.mark.parametrize("alpha", [-1.0, -0.9, 0.0, 0.5, 1.0])
def test_large_contexts_reach_the_infinite_one_at_the_rate_one_over_n(mu, alpha):
    head = Head.from_tube(LOG_2, mu)
    limit = limit_error(head, alpha)
    moments = context_moments(head, alpha, [10**6, 10**7])
    departure = np.abs(moments.bias - limit)
    assert departure[0] < 0.1 * abs(limit)
    assert departure[0] / departure[1] == pytest.approx(10, rel=0.1, abs=0)
    spread = moments.mean_square_error - moments.bias**2
    assert spread[0] / spread[1] == pytest.approx(10, rel=0.1, abs=0)


@pytest.mark.parametrize("density", [tilted, lambda x: (1 + 0.3 * np.cos(np.pi * x)) / 2])
def test_the_density_reaches_its_infinite_context(density):
    design = Design(feature_density=density)
    head = Head.from_tube(LOG_2, 20.0)
    limit = limit_error(head, 0.2, design)
    departure = np.abs(context_moments(head, 0.2, [10**6, 10**7], design).bias - limit)
    assert departure[0] / departure[1] == pytest.approx(10, rel=0.1, abs=0)


@pytest.mark.parametrize("mu", [16.0, 256.0, 1e4])
@pytest.mark.parametrize("alpha", [-0.5, 0.0, 0.5])
def test_interior_error_follows_the_two_term_law(mu, alpha):
    sizes = 2 ** np.arange(5, 17)
    rms = context_moments(Head.from_tube(LOG_2, mu), alpha, sizes).root_mean_square
    law = np.sqrt(mu**-2.0 + 8.0 / sizes**2.0)
    assert np.abs(rms / law - 1).max() < 0.08  # the law's own error, largest at n = 32


def test_the_floor_times_the_scale_is_one_at_every_interior_threshold():
    heads = Head.from_tube(LOG_2, np.array([[40.0], [160.0], [640.0]]))
    rms = context_moments(heads, [-0.5, 0.0, 0.5], 65536).root_mean_square
    assert np.abs(rms * heads.scale - 1).max() < 0.01


# --- symmetries and arrays ------------------------------------------------------------------------

SYMMETRY_TOLERANCE = 1e-14  # measured 2e-15


@pytest.mark.parametrize(("lam", "mu"), [(7.5, 5.0), (-2.0, 30.0), (0.0, 0.4), (2.0, 0.0)])
def test_the_reflected_head_on_the_mirrored_task_has_the_opposite_bias(lam, mu):
    design = Design(feature_density=tilted)
    head = Head.from_scores(lam, mu)
    mine = context_moments(head, 0.3, [1, 5, 90], design)
    mirrored = context_moments(head.reflected, -0.3, [1, 5, 90], design.mirrored)
    unit = mine.root_mean_square
    assert np.abs((mine.bias + mirrored.bias) / unit).max() < SYMMETRY_TOLERANCE
    assert mine.mean_square_error == pytest.approx(
        mirrored.mean_square_error, rel=SYMMETRY_TOLERANCE, abs=0
    )


def lopsided(gap):
    return np.where((gap > -0.1) & (gap < 0.3), 0.2, 0.0)


def test_label_flips_are_mirrored_with_the_task():
    head = Head.from_scores(7.5, 5.0)
    design = Design(noise=LabelFlips(lopsided, (-0.1, 0.3)))
    mine = context_moments(head, 0.25, 4, design)
    theirs = context_moments(head.reflected, -0.25, 4, design.mirrored)
    assert mine.bias == pytest.approx(-theirs.bias, rel=SYMMETRY_TOLERANCE, abs=0)
    assert mine.mean_square_error == pytest.approx(
        theirs.mean_square_error, rel=SYMMETRY_TOLERANCE, abs=0
    )


@pytest.mark.parametrize("width", [1e-50, 0.25, 3.0, 1e50])
def test_moments_scale_with_the_interval(width):
    unit = context_moments(Head.from_excess(2.0, 12.0), -0.75, [3, 40])
    design = Design(width, feature_density=lambda x: np.full(x.shape, 0.5 / width))
    wide = context_moments(
        Head.from_excess(2.0, 12.0 / width, width), -0.75 * width, [3, 40], design
    )
    assert wide.bias / width == pytest.approx(unit.bias, rel=SYMMETRY_TOLERANCE, abs=0)
    assert wide.mean_square_error / width**2 == pytest.approx(
        unit.mean_square_error, rel=SYMMETRY_TOLERANCE, abs=0
    )


def test_moments_broadcast_over_heads_thresholds_and_sizes():
    heads = Head.from_ratio([[[1.5]], [[1.2]]], [[[5.0]], [[8.0]]])
    thresholds = np.array([[-0.5], [0.0], [0.9]])
    sizes = np.array([3, 50, 7, 50])
    moments = context_moments(heads, thresholds, sizes)
    assert moments.bias.shape == moments.mean_square_error.shape == (2, 3, 4)
    alone = context_moments(Head.from_ratio(1.2, 8.0), 0.9, 7)
    assert alone.bias.shape == ()
    assert moments.bias[1, 2, 2] == pytest.approx(float(alone.bias), rel=SYMMETRY_TOLERANCE, abs=0)
    assert np.array_equal(moments.bias[..., 1], moments.bias[..., 3])
    assert context_moments(heads, thresholds, np.empty((0,), dtype=int)).bias.shape == (2, 3, 0)


@pytest.mark.parametrize(
    ("head", "threshold", "sizes", "design", "message"),
    [
        (Head.from_ratio(1.5, 5), 1.1, 8, None, r"threshold must lie in \[-1.0, 1.0\], got 1.1"),
        (Head.from_ratio(1.5, 5), np.nan, 8, None, "threshold must lie in .* got nan"),
        (Head.from_ratio(1.5, 5), "a", 8, None, "threshold must be a real number"),
        (Head.from_ratio(1.5, 5), 0.0, 0, None, "n_examples must be whole numbers of at least 1"),
        (Head.from_ratio(1.5, 5), 0.0, 1.5, None, "n_examples must be whole numbers of at least 1"),
        (Head.from_ratio(1.5, 5), 0.0, np.nan, None, "n_examples must be whole numbers"),
        (Head.from_ratio(1.5, 5), 0.0, np.inf, None, "finite, got inf; limit_error"),
        (Head.from_ratio(1.5, 5), 0.0, "8", None, "n_examples must be whole numbers"),
        (
            Head.from_ratio(1.5, 5),
            [0.0, 0.1],
            [1, 2, 3],
            None,
            r"broadcast, got shapes \(\), \(2,\)",
        ),
        (Head.from_ratio(1.5, 5), 0.0, 8, Design(2.0), "one half width, got 1.0 and 2.0"),
        (Head.from_ratio(1.5, 2e5), 0.0, 8, None, "at most 100000 .* got 200000.0"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(head, threshold, sizes, design, message):
    with pytest.raises(ValueError, match=message) as refusal:
        context_moments(head, threshold, sizes, design)
    assert "\n" not in str(refusal.value)


# --- draws ----------------------------------------------------------------------------------------

N_SIGMA = 5.0  # a right estimate is further off once in two million


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    "design", [Design(), Design(feature_density=tilted)], ids=["uniform", "tilted"]
)
def test_exact_moments_agree_with_draws(design, seed):
    head = Head.from_ratio([[1.5], [0.9], [-0.5]], [[5.0], [20.0], [9.0]])
    exact = context_moments(head, [-0.9, 0.3], 12, design)
    drawn = context_moments_sampled(head, [-0.9, 0.3], 12, 4000, seed, design)
    assert drawn.bias.shape == (3, 2)
    assert (np.abs(drawn.bias - exact.bias) < N_SIGMA * drawn.bias_standard_error).all()
    departure = np.abs(drawn.mean_square_error - exact.mean_square_error)
    assert (departure < N_SIGMA * drawn.mean_square_error_standard_error).all()


def test_standard_errors_tell_the_spread_of_the_estimates():
    head = Head.from_ratio(1.5, 8.0)
    runs = [context_moments_sampled(head, 0.2, 20, 200, seed) for seed in range(200)]
    for name in ("bias", "mean_square_error"):
        spread = np.std([getattr(run, name) for run in runs], ddof=1)
        claimed = np.mean([getattr(run, f"{name}_standard_error") for run in runs])
        assert claimed == pytest.approx(
            spread, rel=0.25, abs=0
        )  # the spread itself is known to 5 %


def test_draws_are_repeatable_and_in_bounded_memory():
    head = Head.from_ratio(1.5, 8.0)
    first, second = (context_moments_sampled(head, 0.2, 10**6, 3, 5) for _ in range(2))
    assert first.bias == second.bias
    assert first.bias_standard_error > 0


@pytest.mark.parametrize("wrong", [1, 0, 2.5, None])
def test_too_few_contexts_for_a_standard_error_are_refused(wrong):
    with pytest.raises(ValueError, match="n_contexts must be a whole number of at least 2, got"):
        context_moments_sampled(Head.from_ratio(1.5, 8.0), 0.2, 10, wrong, 0)
