"""Moments of a task's projected gradient against the definition, by quadrature and by sampling."""

import mpmath
import numpy as np
import pytest

from popdyn import ClosedFormRisk, Design, FiniteContextRisk, Head, sample_corpus
from popdyn.projected_gradient import progress_direction, progress_moments, unit_progress

LOG2 = float(np.log(2))
MEAN_TOLERANCE = 1e-13  # in units of the standard deviation; measured 7e-15


def task(head, alpha):
    return *map(float, (head.label_score, head.excess, head.scale)), 1 + alpha, 1 - alpha


# --- the definition, by nested quadrature ---------------------------------------------------------

SQUARE_TOLERANCE = 1e-11  # relative, what the trapezoid rule's step allows; measured 2e-12


def projected(features, labels, head, alpha):
    """`2 (F - alpha) u . grad F` by the definition; contexts along the last axis."""
    scores = head.label_score * labels + head.scale * features
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    predicted = (shares * features).sum(axis=-1)
    off = features - predicted[..., None]
    along = (head.half_width + 1 / head.scale) * labels + off
    return 2 * (predicted - alpha) * (shares * off * along).sum(axis=-1)


def nested(head, alpha, n, order):
    """Averages of `g` and `g^2` over n uniform examples by a tensor rule."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    x = np.concatenate([(alpha - 1 + (1 + alpha) * nodes), (1 + alpha + (1 - alpha) * nodes)]) / 2
    y = np.repeat([1.0, -1.0], order)
    mass = np.concatenate([(1 + alpha) * weights, (1 - alpha) * weights]) / 4
    grid = np.stack(np.meshgrid(*[np.arange(x.size)] * n, indexing="ij"), axis=-1)
    probability = mass[grid].prod(axis=-1)
    g = projected(x[grid], y[grid], head, alpha)
    return np.sum(probability * g), np.sum(probability * g**2)


NESTED_CASES = [
    (5.0, 4.0, 0.3),
    (1.5, 1.2, -0.2),
    (0.7, 3.0, -0.9),
    (0.7, 3.0, 1.0),
    (0.3, 1.0, -1.0),
    (-3.0, 2.0, 0.1),
    (4.0, 1.01, 0.9),
]


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize(("lam", "mu", "alpha"), NESTED_CASES)
def test_few_examples_agree_with_the_definition(lam, mu, alpha, n):
    head = Head.from_scores(lam, mu)
    mean, square = nested(head, alpha, n, 40)
    found = unit_progress(*task(head, alpha), float(n))
    assert found[0] == pytest.approx(mean, abs=MEAN_TOLERANCE * np.sqrt(square))
    assert found[1] == pytest.approx(square, rel=SQUARE_TOLERANCE, abs=0)


def test_four_different_examples_agree_with_the_definition():
    head = Head.from_scores(1.5, 1.2)
    mean, square = nested(head, -0.2, 4, 16)  # to 1e-15: 14 nodes to a side give the same
    found = unit_progress(*task(head, -0.2), 4.0)
    assert found[0] == pytest.approx(mean, abs=MEAN_TOLERANCE * np.sqrt(square))
    assert found[1] == pytest.approx(square, rel=SQUARE_TOLERANCE, abs=0)


def test_one_example_is_predicted_whatever_the_head():
    assert unit_progress(*task(Head.from_scores(7.5, 5.0), 0.3), 1.0) == (0.0, 0.0)


# --- two examples at large scale, from one-dimensional integrals ----------------------------------


def two_examples(head, alpha):
    """The averages for two examples: what is averaged over the position is a polynomial."""
    context = mpmath.MPContext()
    context.dps = 30
    lam, mu, alpha = (context.mpf(float(x)) for x in (head.label_score, head.scale, alpha))
    s, r = 1 + alpha, 1 - alpha

    def powers(lower, upper, power):
        return (upper ** (power + 1) - lower ** (power + 1)) / (power + 1)

    def cuts(length, *centres):
        offsets = [0, *(sign * k / mu for k in (1, 3, 8, 20, 50, 110) for sign in (-1, 1))]
        inner = {centre + offset for centre in centres for offset in offsets}
        return [context.zero, *sorted(cut for cut in inner if 0 < cut < length), length]

    def alike(length, top, power):
        def over_positions(g):
            share = 1 / (1 + context.exp(mu * g))
            slope = 2 * share * (1 - share) * g**2
            fall = g * share
            return slope**power * powers(top - (length - g) - fall, top - fall, power)

        return 2 * context.quad(over_positions, cuts(length, context.zero))

    def unlike(power):
        def over_positions(g):
            share = 1 / (1 + context.exp(2 * lam - mu * g))
            slope = 2 * share * (1 - share) * g * (g - 2 * (1 + 1 / mu))
            rise = g * share
            lower, upper = max(-s, -g) + rise, min(context.zero, r - g) + rise
            return slope**power * powers(lower, upper, power)

        centres = context.zero, 2 * lam / mu, s + r
        return 2 * context.quad(over_positions, sorted({*cuts(s + r, *centres), s, r}))

    return [
        float((alike(s, context.zero, power) + alike(r, r, power) + unlike(power)) / 4)
        for power in (1, 2)
    ]


@pytest.mark.parametrize("mu", [5.0, 60.0, 1000.0])
@pytest.mark.parametrize("excess", [-3.0, 1.0, 7.0])
@pytest.mark.parametrize("alpha", [-1 + 2.0**-12, 0.25, 1 - 2.0**-12])
def test_two_examples_agree_with_integrals_at_any_scale(mu, excess, alpha):
    head = Head.from_excess(excess, mu)
    mean, square = two_examples(head, alpha)
    found = unit_progress(*task(head, alpha), 2.0)
    assert found[0] == pytest.approx(mean, abs=MEAN_TOLERANCE * np.sqrt(square))
    assert found[1] == pytest.approx(square, rel=SQUARE_TOLERANCE, abs=0)


# --- many examples --------------------------------------------------------------------------------

RISK_TOLERANCE = 2e-13  # of the sum of its two terms; measured 3e-14


@pytest.mark.parametrize(("scale", "n"), [(2.0, 16), (8.0, 64), (8.0, 5000), (40.0, 256)])
def test_the_mean_is_the_gradient_of_infinitely_many_tasks(scale, n):
    head = Head.from_tube(LOG2, scale)
    along = progress_direction(head)
    gradient = FiniteContextRisk(n).gradient(head)
    terms = np.abs(along * gradient).sum()
    assert progress_moments(head, n).mean == pytest.approx(
        along @ gradient, abs=RISK_TOLERANCE * terms
    )


# Computed beforehand with code of another origin, to five digits.
@pytest.mark.parametrize(("n", "deviation"), [(16, -0.80107), (64, -0.29006), (256, -0.12695)])
def test_the_mean_falls_short_of_the_population_as_known(n, deviation):
    head = Head.from_tube(LOG2, 8.0)
    population = progress_direction(head) @ ClosedFormRisk().gradient(head)
    assert progress_moments(head, n).mean / population - 1 == pytest.approx(deviation, abs=1e-5)


STANDARD_ERRORS = 4.0


# Standard errors of the second moment, relative: 1.4, 2.2, 1.3, 2.4 and 2.8 %.
@pytest.mark.parametrize(
    ("scale", "tube", "n", "n_tasks"),
    [
        (8.0, LOG2, 16, 100_000),
        (8.0, LOG2, 64, 100_000),
        (30.0, LOG2, 7, 100_000),
        (4.0, -1.0, 300, 20_000),
        (16.0, 3.0, 64, 100_000),
    ],
)
def test_moments_agree_with_drawn_tasks(scale, tube, n, n_tasks):
    head = Head.from_tube(tube, scale)
    corpus = sample_corpus(Design(), n_tasks, n, np.random.SeedSequence(5))
    g = projected(corpus.features, corpus.labels, head, corpus.thresholds)
    moments = progress_moments(head, n)
    square = moments.standard_deviation**2 + moments.mean**2
    for sample, exact, most in ((g, moments.mean, np.inf), (g**2, square, 0.03 * square)):
        error = sample.std(ddof=1) / np.sqrt(n_tasks)
        assert error < most
        assert abs(sample.mean() - exact) < STANDARD_ERRORS * error


# --- contract -------------------------------------------------------------------------------------

ROUNDING = 1e-15  # a power of 2: measured 0


def test_moments_scale_with_the_half_width():
    wide, unit = Head.from_excess(1.5, 4.0, half_width=2.0), Head.from_excess(1.5, 8.0)
    found, expected = progress_moments(wide, 32), progress_moments(unit, 32)
    assert found.mean == pytest.approx(8 * expected.mean, rel=ROUNDING, abs=0)
    assert found.standard_deviation == pytest.approx(
        8 * expected.standard_deviation, rel=ROUNDING, abs=0
    )


def test_heads_broadcast():
    heads = Head.from_tube([[0.0, 1.0]], [[5.0], [6.0]])
    found = progress_moments(heads, 8)
    one = progress_moments(Head.from_tube(1.0, 6.0), 8)
    assert found.mean.shape == found.standard_deviation.shape == (2, 2)
    assert (found.mean[1, 1], found.standard_deviation[1, 1]) == (one.mean, one.standard_deviation)
    assert progress_direction(heads).shape == (2, 2, 2)


def test_the_direction_keeps_the_tube_coordinate():
    head, step = Head.from_tube(0.3, 50.0, half_width=2.0), 1e-4
    by_label, by_scale = step * progress_direction(head)
    moved = Head.from_excess(head.excess + by_label - 2.0 * by_scale, head.scale + by_scale, 2.0)
    assert abs(moved.tube - head.tube) < (step / head.scale) ** 2


@pytest.mark.parametrize(
    ("scale", "n", "message"),
    [
        (0.5, 8, "scale \\* half_width must be at least 1 .* got 0.5; start at a larger scale"),
        (-3.0, 8, "scale \\* half_width must be at least 1 .* got -3.0"),
        (2e5, 8, "scale \\* half_width must be at most 100000"),
        (8.0, 0, "n_examples must be a whole number of at least 1, got 0"),
        (8.0, 1.5, "n_examples must be a whole number of at least 1, got 1.5"),
    ],
)
def test_bad_input_is_refused_in_one_line(scale, n, message):
    with pytest.raises(ValueError, match=message) as raised:
        progress_moments(Head.from_excess(1.0, scale), n)
    assert "\n" not in str(raised.value)
