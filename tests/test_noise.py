"""Label-flip laws: what they are, what is refused, what they do to draws and to moments."""

import pickle
from itertools import pairwise

import mpmath
import numpy as np
import pytest

from popdyn import (
    ArbitraryPrecisionRisk,
    Design,
    Head,
    LabelFlips,
    context_moments,
    context_moments_sampled,
    limit_error,
    localized,
    massart,
    sample_contexts,
    sample_corpus,
    tilted,
    tsybakov,
)

LOG_2 = np.log(2.0)
LAWS = {
    "massart": massart(0.2),
    "localized": localized(0.4, 0.125),
    "tsybakov": tsybakov(1, 0.25),
    "tsybakov, square root": tsybakov(0.5, 0.25),
}


# --- the laws -------------------------------------------------------------------------------------


def test_the_laws_have_their_formulas():
    distance = np.array([-0.25, -0.125, -0.0625, 0.0, 0.0625, 0.126, 1.9])
    assert massart(0.2).probability(distance).tolist() == [0.2] * 7
    assert localized(0.4, 0.125).probability(distance).tolist() == [0, 0.4, 0.4, 0.4, 0.4, 0, 0]
    linear = tsybakov(1, 0.25).probability(distance)
    assert linear == pytest.approx([0, 0.25, 0.375, 0.5, 0.375, 0.248, 0])
    root = tsybakov(0.5, 0.25).probability(distance)
    assert root == pytest.approx([0, 0.5 - 0.5**1.5, 0.25, 0.5, 0.25, 0.5 - 0.5 * 0.504**0.5, 0])


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_law_pickles_and_compares_by_value(law):
    copy = pickle.loads(pickle.dumps(law))
    assert copy == law
    assert pickle.loads(pickle.dumps(Design(noise=law).mirrored)) == Design(noise=law).mirrored


def test_whole_exponents_need_no_more_breaks_than_the_width():
    assert tsybakov(2, 0.25).breaks == localized(0.1, 0.25).breaks == (-0.25, 0.25)
    assert massart(0.1).breaks == ()
    assert min(map(abs, tsybakov(0.5, 0.25).breaks)) < 1e-10


def lopsided(distance):
    return np.where((distance > -0.1) & (distance < 0.3), 0.2, 0.0)


def test_the_mirror_image_reads_the_distance_from_the_other_side():
    law = LabelFlips(lopsided, [0.3, -0.1])
    assert law.breaks == (-0.1, 0.3)
    assert law.mirrored.breaks == (-0.3, 0.1)
    assert law.mirrored.probability(np.array([-0.2, 0.2])).tolist() == [0.2, 0.0]
    assert law.mirrored.mirrored == law
    design = Design(noise=law)
    assert not design.mirrored == design
    assert design.mirrored.mirrored == design


def test_piecewise_constant_laws_tell_their_levels():
    assert massart(0.2).levels == (0.2,)
    assert localized(0.4, 0.125).levels == (0.0, 0.4, 0.0)
    assert tsybakov(1, 0.25).levels is None
    law = LabelFlips(lambda d: np.where(d > 0.3, 0.2, 1.0), (0.3,), [1, 0.2])
    assert law.levels == (1.0, 0.2)
    assert law.mirrored.levels == (0.2, 1.0)
    assert Design(noise=law).mirrored.mirrored == Design(noise=law)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: massart(1.5), "probability must be a number from 0 to 1, got 1.5"),
        (lambda: massart(-0.1), "probability must be a number from 0 to 1, got -0.1"),
        (lambda: localized("often", 0.1), "probability must be a number from 0 to 1, got 'often'"),
        (lambda: localized(0.1, 0), "width must be one positive finite number, got 0"),
        (lambda: localized(0.1, np.nan), "width must be one positive finite number, got nan"),
        (lambda: tsybakov(1, np.inf), "width must be one positive finite number, got inf"),
        (lambda: tsybakov(-1, 0.1), "exponent must be one positive finite number, got -1"),
        (lambda: LabelFlips(0.1), r"must be a function .* got 0.1; massart\(p\)"),
        (lambda: LabelFlips(np.abs, (np.nan,)), "breaks must be a row of finite distances"),
        (lambda: LabelFlips(np.abs, 0.3), "breaks must be a row of finite distances, got 0.3"),
        (
            lambda: LabelFlips(np.abs, (0.1,), (0.2,)),
            "levels must be 2 probabilities, .* got .0.2,",
        ),
        (lambda: LabelFlips(np.abs, (), ("a",)), "levels must be 1 probabilities"),
        (
            lambda: Design(noise=LabelFlips(lopsided, (-0.1, 0.3), (0, 0.2, 0.1))),
            "its levels between its breaks, got 0.0 where the level is 0.1, at the distance 0.3",
        ),
        (lambda: Design(noise=0.01), "noise must be a law of label flips, got 0.01; use massart"),
        (lambda: Design(noise=np.abs), "noise must be a law of label flips, got .*; use massart"),
        (lambda: Design(noise=LabelFlips(np.abs)), "from 0 to 1, got 1.98.* distance -1.98"),
        (lambda: Design(2.0, noise=LabelFlips(lambda d: d)), "from 0 to 1, got -3.9"),
        (lambda: Design(noise=LabelFlips(lambda d: d * np.nan)), "from 0 to 1, got nan"),
        (lambda: Design(noise=LabelFlips(lambda d: 0.1)), "real values in the shape"),
        (lambda: Design(noise=LabelFlips(lambda d: 0j * d)), "got complex128"),
        (
            lambda: Design(noise=LabelFlips(lambda d: 7.0 * (abs(d) < 1e-9), (-1e-9, 1e-9))),
            "got 7.0 at the distance -",
        ),
    ],
)
def test_what_is_no_law_is_refused_in_one_line(make, message):
    with pytest.raises(ValueError, match=message) as refusal:
        make()
    assert "\n" not in str(refusal.value)


# --- draws ----------------------------------------------------------------------------------------

N_SIGMA = 5.0  # a right estimate is further off once in two million


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_noise_flips_labels_and_leaves_all_else_as_it_was(law):
    clean, noisy = (sample_corpus(Design(noise=noise), 400, 50, 3) for noise in (None, law))
    assert np.array_equal(noisy.features, clean.features)
    assert np.array_equal(noisy.thresholds, clean.thresholds)
    flipped = noisy.labels != clean.labels
    probability = law.probability(noisy.features - noisy.thresholds[:, None])
    spread = np.sqrt((probability * (1 - probability)).sum())
    assert abs(flipped.sum() - probability.sum()) < N_SIGMA * spread
    assert not flipped[probability == 0].any()


def test_noise_advances_a_generator_no_further():
    after = []
    for noise in (None, massart(0.3)):
        rng = np.random.default_rng(7)
        sample_contexts(Design(noise=noise), [0.0, 0.5], 30, rng)
        after.append(rng.random())
    assert after[0] == after[1]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("density", [None, tilted(0.3)], ids=["uniform", "tilted"])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_exact_moments_agree_with_draws(law, density, seed):
    design = Design(feature_density=density, noise=law)
    head = Head.from_ratio([[1.5], [0.9], [-0.5]], [[5.0], [20.0], [9.0]])
    exact = context_moments(head, [-0.9, 0.3], 12, design)
    drawn = context_moments_sampled(head, [-0.9, 0.3], 12, 4000, seed, design)
    assert (np.abs(drawn.bias - exact.bias) < N_SIGMA * drawn.bias_standard_error).all()
    departure = np.abs(drawn.mean_square_error - exact.mean_square_error)
    assert (departure < N_SIGMA * drawn.mean_square_error_standard_error).all()


# --- moments --------------------------------------------------------------------------------------

# Root mean squares on the tube at alpha = 0, as tabulated for the noise figures: at mu = 32 for
# seven context sizes, and N times it where N = 8 mu and the width is 1 / mu.
AT_INFERENCE = {
    "clean": (None, [0.29757, 0.09202, 0.04032, 0.03286, 0.03162, 0.03134, 0.03126]),
    "localized": (
        localized(0.25, 1 / 32),
        [0.29757, 0.09172, 0.03609, 0.02196, 0.01811, 0.01714, 0.01685],
    ),
    "massart": (massart(0.01), [0.31474, 0.24202, 0.42877, 0.70571, 0.90086, 0.95834, 0.96795]),
}
MATCHED = {
    "clean": (lambda width: None, 8.881, 8.929),
    "localized": (lambda width: localized(0.4, width), 5.819, 5.893),
    "tsybakov": (lambda width: tsybakov(1, width), 7.397, 7.457),
}
AT_THE_END = {
    "clean": (lambda width: None, 1.866, 1.998),
    "localized": (lambda width: localized(0.4, width), 0.833, 0.898),
}


@pytest.mark.parametrize(("noise", "table"), AT_INFERENCE.values(), ids=AT_INFERENCE)
def test_noise_at_inference_gives_the_tabulated_errors(noise, table):
    head, sizes = Head.from_tube(LOG_2, 32.0), [8, 32, 128, 512, 2048, 8192, 65536]
    rms = context_moments(head, 0.0, sizes, Design(noise=noise)).root_mean_square
    assert np.abs(rms - table).max() < 5.1e-6  # five digits given


@pytest.mark.parametrize(
    ("threshold", "law", "least", "most"),
    [(0.0, *row) for row in MATCHED.values()] + [(-1.0, *row) for row in AT_THE_END.values()],
    ids=[*MATCHED, *(f"{name}, at the end" for name in AT_THE_END)],
)
def test_noise_matched_to_the_resolution_gives_the_tabulated_errors(threshold, law, least, most):
    """Times N inside, where the error falls like 1/N; at the lower end it is of order one."""
    sizes = 2 ** np.arange(6, 13)
    rms = np.array(
        [
            context_moments(
                Head.from_tube(LOG_2, n / 8), threshold, n, Design(noise=law(8 / n))
            ).root_mean_square
            for n in sizes
        ]
    )
    scaled = rms * sizes if threshold == 0.0 else rms
    assert (np.diff(scaled) > 0).all()
    assert scaled[[0, -1]] == pytest.approx([least, most], abs=5.1e-4)  # three decimals given


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_large_contexts_reach_the_infinite_one_at_the_rate_one_over_n(law):
    head, design = Head.from_tube(LOG_2, 12.0), Design(noise=law)
    limit = limit_error(head, 0.2, design)
    departure = np.abs(context_moments(head, 0.2, [10**6, 10**7], design).bias - limit)
    assert departure[0] / departure[1] == pytest.approx(10, rel=0.1, abs=0)


# --- infinite contexts ----------------------------------------------------------------------------

# Relative, or to the larger of the two terms whose difference the error is.
LIMIT_TOLERANCE = 5e-15  # measured 7e-16 at the scales here
DEFINITION_TOLERANCE = 5e-15  # measured 6e-16


def capped(lam, p):
    """`atanh((1 - 2 p) tanh lam)` in 40 digits, rounded once."""
    ctx = mpmath.mp.clone()
    ctx.dps = 40
    return float(ctx.atanh((1 - 2 * ctx.mpf(p)) * ctx.tanh(ctx.mpf(lam))))


@pytest.mark.parametrize("p", [1e-9, 0.01, 0.3, 0.5])
@pytest.mark.parametrize(
    ("lam", "mu"), [(1.0, 3.0), (0.3, 0.2), (2.0, 30.0), (9.0, 200.0), (-2.0, 5.0), (2.0, -4.0)]
)
def test_massart_noise_is_a_reparametrization_of_the_label_score(lam, mu, p):
    noisy = limit_error(Head.from_scores(lam, mu), [-1, -0.875, 0.3, 1], Design(noise=massart(p)))
    for found, alpha in zip(noisy, [-1, -0.875, 0.3, 1], strict=True):
        exact = ArbitraryPrecisionRisk().limit_error(alpha, scale=mu, label_score=capped(lam, p))
        assert abs(found - float(exact)) < LIMIT_TOLERANCE


EXACT = {
    "localized": lambda ctx, d: ctx.mpf(0.4) if abs(d) <= 0.125 else ctx.mpf(0),
    "tsybakov": lambda ctx, d: (1 - min(1, abs(d) / ctx.mpf(0.25))) / 2,
    "tsybakov, square root": lambda ctx, d: (1 - ctx.sqrt(min(1, abs(d) / ctx.mpf(0.25)))) / 2,
    "dying out": lambda ctx, d: ctx.mpf(0.4) * ctx.exp(-((d / ctx.mpf(0.125)) ** 2)),
    "lopsided": lambda ctx, d: ctx.mpf(1.0) if 0.0625 < d < 0.25 else ctx.mpf(0),
}
FOUND = LAWS | {
    "dying out": LabelFlips(lambda d: 0.4 * np.exp(-((d / 0.125) ** 2))),
    "lopsided": LabelFlips(lambda d: np.where((d > 0.0625) & (d < 0.25), 1.0, 0.0), (0.0625, 0.25)),
}


def by_definition(flips, density_slope, lam, mu, alpha):
    """F - alpha by adaptive quadrature of the definition, in 30 digits."""
    ctx = mpmath.mp.clone()
    ctx.dps = 30
    # distances at which to cut: where a law breaks, and on towards a singularity at the threshold
    marks = [ctx.mpf(2) ** -k for k in range(2, 11)]
    cuts = {alpha + sign * mark for mark in marks for sign in (-1, 1)}
    cuts |= {-1 + ctx.mpf(k) / 4 for k in range(9)}
    cuts = sorted(cut for cut in cuts | {ctx.mpf(alpha)} if -1 <= cut <= 1)

    def moment(power, a, b):
        def integrand(x):
            rho = flips(ctx, x - alpha)
            positive = 1 - rho if (a + b) / 2 < alpha else rho
            weight = ctx.exp(mu * x + lam) * positive + ctx.exp(mu * x - lam) * (1 - positive)
            return (x - alpha) ** power * weight * (1 + density_slope * x)

        return ctx.quad(integrand, [a, b])

    sums = [sum(moment(k, a, b) for a, b in pairwise(cuts)) for k in (0, 1)]
    return float(sums[1] / sums[0])


@pytest.mark.parametrize(("lam", "mu"), [(2.0, 5.0), (21.0, 20.0), (-1.0, 5.0), (0.25, -8.0)])
@pytest.mark.parametrize("law", EXACT)
def test_any_law_gives_the_error_of_the_definition(law, lam, mu):
    slope = 0.25
    design = Design(feature_density=tilted(slope), noise=FOUND[law])
    for alpha in (-0.9375, 0.125):
        error = limit_error(Head.from_scores(lam, mu), alpha, design)
        exact = by_definition(EXACT[law], slope, lam, mu, alpha)
        assert abs(error - exact) < DEFINITION_TOLERANCE * max(abs(exact), 1 / abs(mu))


def test_flips_that_die_out_are_seen_wherever_their_positives_weigh_most():
    """Gaussian flips of width w weigh most at `mu w^2 / 2` above the threshold: here in between."""
    mu, width = 100.0, 0.1
    law = LabelFlips(lambda d: 0.4 * np.exp(-((d / width) ** 2)))
    error = limit_error(Head.from_scores(110.0, mu), -0.2, Design(noise=law))
    assert error == pytest.approx(mu * width**2 / 2, rel=1e-6, abs=0)


def test_flips_of_probability_zero_are_no_noise():
    head = Head.from_scores([7.5, -2.0, 34.0], [5.0, -3.0, 30.0])
    for density in (None, tilted(0.3)):
        clean, noisy = (
            limit_error(head, 0.3, Design(feature_density=density, noise=noise))
            for noise in (None, localized(0.0, 0.1))
        )
        assert noisy == pytest.approx(clean, rel=1e-13, abs=0)


@pytest.mark.parametrize("half_width", [1e-50, 0.25, 1e50])
def test_the_error_scales_with_the_interval(half_width):
    design = Design(half_width, noise=localized(0.3, 0.1 * half_width))
    head = Head.from_scores(3.0, 4.0 / half_width, half_width=half_width)
    error = limit_error(head, 0.3 * half_width, design) / half_width
    unit = limit_error(Head.from_scores(3.0, 4.0), 0.3, Design(noise=localized(0.3, 0.1)))
    assert error == pytest.approx(unit, rel=1e-14, abs=0)


def test_an_asymmetric_law_is_mirrored_with_the_head():
    design = Design(feature_density="tilted", noise=LabelFlips(lopsided, (-0.1, 0.3)))
    head = Head.from_scores([1.0, 7.5], [3.0, 5.0])
    mirrored = limit_error(head.reflected, -0.3, design.mirrored)
    assert mirrored == pytest.approx(-limit_error(head, 0.3, design), rel=1e-14, abs=0)


def test_heads_and_thresholds_broadcast():
    heads = Head.from_scores([[1.0], [2.0], [-3.0]], [[5.0], [-4.0], [0.0]])
    design = Design(noise=massart(0.1))
    errors = limit_error(heads, [-0.5, 0.25], design)
    assert errors.shape == (3, 2)
    assert errors[1, 1] == limit_error(Head.from_scores(2.0, -4.0), 0.25, design)
