"""The risk of a corpus against its definition in extended precision, and in its limits."""

from dataclasses import dataclass

import mpmath
import numpy as np
import pytest

from popdyn import (
    ClosedFormRisk,
    Corpus,
    CorpusRisk,
    Design,
    FiniteContextRisk,
    Head,
    InfiniteContextRisk,
    cell_seed,
    equal_weights,
    sample_contexts,
    sample_corpus,
)

# Of the sum of absolute contributions: of tasks for value and gradient, of examples for the third
# moments in the Hessian. Measured: value 8e-16, the others 9e-15 at worst, where all variance is
# that of one example of weight exp(-60).
TOLERANCE = 3e-14

DIGITS = 340  # contributions vanish in doubles below 1e-300


@dataclass(frozen=True)
class Sums:
    """Value, gradient and Hessian by the definition, and their sums of absolute contributions."""

    found: np.ndarray
    absolute: np.ndarray


def by_definition(corpus, head):
    """Six numbers from the softmax averages of features and labels, in 750 digits."""
    ctx = mpmath.mp.clone()
    ctx.dps = DIGITS
    mu, (name, given) = ctx.mpf(float(head.scale)), head.given
    lam = {
        "label_score": lambda k: k,
        "excess": lambda d: d + mu * ctx.mpf(corpus.half_width),
        "ratio": lambda k: k * mu,
    }[name](ctx.mpf(float(given)))
    found, absolute = [ctx.zero] * 6, [ctx.zero] * 6
    for x, y, threshold in zip(corpus.features, corpus.labels, corpus.thresholds, strict=True):
        x = [ctx.mpf(float(one)) for one in x]
        y = [ctx.mpf(int(one)) for one in y]
        w = [ctx.exp(lam * b + mu * a) for a, b in zip(x, y, strict=True)]
        total = ctx.fsum(w)
        w = [one / total for one in w]
        mean_x, mean_y = ctx.fdot(w, x), ctx.fdot(w, y)
        dx, dy = [a - mean_x for a in x], [b - mean_y for b in y]

        def parts(*factors, w=w):
            return [ctx.fprod(row) for row in zip(w, *factors, strict=True)]

        error = mean_x - ctx.mpf(float(threshold))
        f_l, f_m = ctx.fsum(parts(dx, dy)), ctx.fsum(parts(dx, dx))
        terms = [
            [error * error],
            [2 * error * f_l],
            [2 * error * f_m],
            [2 * f_l * f_l, *(2 * error * part for part in parts(dx, dy, dy))],
            [2 * f_l * f_m, *(2 * error * part for part in parts(dx, dx, dy))],
            [2 * f_m * f_m, *(2 * error * part for part in parts(dx, dx, dx))],
        ]
        for i, summed in enumerate(terms):
            found[i] += ctx.fsum(summed)
            absolute[i] += ctx.fsum(summed, absolute=True)
    m = corpus.n_tasks
    return Sums(*(np.array([float(one / m) for one in row]) for row in (found, absolute)))


def six_numbers(risk, head):
    value, gradient = risk.value_and_gradient(head)
    return np.array([value, *gradient, *risk.hessian(head)[[0, 0, 1], [0, 1, 1]]])


def noisy(n_tasks, n_examples, rng):
    """Labels flipped with probability 0.2."""
    clean = sample_corpus(Design(), n_tasks, n_examples, rng)
    flips = np.random.default_rng(rng).random(clean.labels.shape) < 0.2
    labels = np.where(flips, -clean.labels, clean.labels)
    return Corpus.from_arrays(clean.features, labels, clean.thresholds)


CORPORA = {
    "many examples": sample_corpus(Design(), 2, 40, 1),
    "few examples": sample_corpus(Design(), 8, 3, 2),
    "one example": sample_corpus(Design(), 5, 1, 3),
    "noisy": noisy(6, 12, 4),
    "one label": Corpus.from_arrays(
        [[-0.2, 0.1, 0.7], [0.3, 0.5, 0.9]], [[1, 1, 1], [-1, -1, -1]], [0.8, 0.2]
    ),
    "equal features": Corpus.from_arrays(
        [[0.5, 0.5, 0.5, -0.5], [0.25, 0.25, 0.25, 0.25]],
        [[1, 1, -1, 1], [1, -1, 1, -1]],
        [0.6, 0.1],
    ),
    # The variance is the third example's alone: the two first have most weight, and no distance.
    "near duplicates": Corpus.from_arrays(
        [[0.9, 0.9 - 2e-16, -0.1, -0.2], [0.9, 0.9 - 2e-16, 0.4, 0.3]],
        [[1, 1, 1, 1], [-1, -1, -1, -1]],
        [0.95, 0.1],
    ),
    # Mean square and squared mean of the distances agree to three digits.
    "a crowd far away": Corpus.from_arrays(
        [np.append(np.linspace(-0.9, -0.899, 40), 0.8)], [[1] * 41], [0.85]
    ),
    "groups a hair apart": Corpus.from_arrays(
        [[0.3, 0.3 + 1e-13], [-0.7, -0.7 - 1e-13]], [[1, -1], [1, -1]], [-0.5, 0.4]
    ),
}

SCALES = [0.0, 1e-9, 0.3, 4.0, 60.0, 1000.0, 1e5]


def heads():
    for mu in SCALES:
        for excess in (0.7 + np.log1p(mu), -0.4, -0.3 * mu):
            yield Head.from_excess(excess, mu)
            yield Head.from_excess(excess, mu).reflected
        for lam in (1.3, 0.61 * mu, -2.0 * mu):
            yield Head.from_scores(lam, mu)
        if mu > 0.0:
            yield Head.from_ratio(0.43, mu)
            yield Head.from_ratio(1.01, mu)


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=CORPORA)
def test_value_gradient_and_hessian_are_those_of_the_definition(corpus):
    risk = CorpusRisk(corpus)
    for head in heads():
        exact = by_definition(corpus, head)
        off = np.abs(six_numbers(risk, head) - exact.found)
        # Below 1e-300 the smallest doubles are too coarse for a relative error.
        assert (off <= TOLERANCE * exact.absolute + 1e-300).all(), (head, off / exact.absolute)


@pytest.mark.parametrize("mu", [-1e4, 20.0, 1000.0])
def test_long_contexts_are_cut_where_their_weights_end(mu):
    corpus = sample_corpus(Design(), 1, 1500, 5)
    head = Head.from_excess(np.sign(mu) * (0.7 + np.log(abs(mu))), mu)
    exact = by_definition(corpus, head)
    off = np.abs(six_numbers(CorpusRisk(corpus), head) - exact.found)
    assert (off <= TOLERANCE * exact.absolute).all(), off / exact.absolute


# Value and gradient, of the sum of the tasks' absolute contributions. Measured: 3e-15.
TOLERANCE_OF_WINDOWS = 1e-14


def in_long_doubles(corpus, head):
    """Value and gradient by centred sums over all examples, and sums of absolute contributions."""
    x, y, alpha = (
        array.astype(np.longdouble) for array in (corpus.features, corpus.labels, corpus.thresholds)
    )
    score = np.longdouble(float(head.excess)) + np.longdouble(float(head.scale))  # half width 1
    w = score * y + np.longdouble(float(head.scale)) * x
    w = np.exp(w - w.max(axis=1, keepdims=True))
    w /= w.sum(axis=1, keepdims=True)
    dx = x - (w * x).sum(axis=1, keepdims=True)
    # The labels around their mean, without a difference of numbers near one.
    dy = 2 * np.where(y > 0, (w * (y < 0)).sum(axis=1, keepdims=True), 0) - 2 * np.where(
        y < 0, (w * (y > 0)).sum(axis=1, keepdims=True), 0
    )
    error = (w * (x - alpha[:, None])).sum(axis=1)
    terms = (
        error * error,
        2 * error * (w * dx * dy).sum(axis=1),
        2 * error * (w * dx * dx).sum(axis=1),
    )
    return Sums(
        np.array([float(one.mean()) for one in terms]),
        np.array([float(np.abs(one).mean()) for one in terms]),
    )


def drawn_from(lower, upper, n_tasks, n_examples, rng):
    """Features and labels of tasks on intervals of their own, thresholds anywhere."""
    u = np.random.default_rng(rng).random((n_tasks, n_examples))
    labels = np.where(np.random.default_rng([rng, 1]).random(u.shape) < 0.4, 1, -1)
    features = np.reshape(lower, (-1, 1)) + np.reshape(upper - lower, (-1, 1)) * u
    return Corpus.from_arrays(features, labels, np.linspace(-0.9, 0.9, n_tasks))


def crowds(n_tasks, n_examples, rng):
    """Features within 1e-4 below multiples of 1/4."""
    rng = np.random.default_rng(rng)
    places = rng.integers(-3, 5, (n_tasks, n_examples)) / 4.0
    return places - 1e-4 * rng.random((n_tasks, n_examples))


ROWS = np.arange(70)
# Where the examples of the first task say little about how far the windows of the others reach.
UNEVEN = {
    "clean": sample_corpus(Design(), 150, 1000, 6),
    "the first task on a hundredth": drawn_from(
        np.where(ROWS == 0, 0.5, -1.0), np.where(ROWS == 0, 0.52, 1.0), 70, 403, 7
    ),
    "all other tasks on a hundredth": drawn_from(
        np.where(ROWS == 0, -1.0, 0.5), np.where(ROWS == 0, 1.0, 0.52), 70, 403, 8
    ),
    "crowds far apart": Corpus.from_arrays(
        crowds(70, 501, 9),
        np.random.default_rng(10).choice([-1, 1], (70, 501)),
        np.linspace(-0.9, 0.9, 70),
    ),
    "fewer than a vector": drawn_from(np.full(70, -1.0), np.full(70, 1.0), 70, 11, 10),
}


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long doubles are doubles here")
@pytest.mark.parametrize("corpus", UNEVEN.values(), ids=UNEVEN)
@pytest.mark.parametrize("mu", [1.0, 10.0, 100.0, 1000.0, 3000.0])
def test_windows_end_where_the_weights_of_the_own_group_do(corpus, mu):
    for head in (Head.from_excess(0.7 + np.log(mu), mu), Head.from_excess(-0.7 - np.log(mu), -mu)):
        exact = in_long_doubles(corpus, head)
        value, gradient = CorpusRisk(corpus).value_and_gradient(head)
        off = np.abs(np.array([value, *gradient]) - exact.found)
        assert (off <= TOLERANCE_OF_WINDOWS * exact.absolute).all(), off / exact.absolute


# --- limits ---------------------------------------------------------------------------------------

HEAD = Head.from_scores(1.0, 2.0)
N_BATCHES = 20
STANDARD_ERRORS = 4.0
THRESHOLDS = np.linspace(-0.6, 0.6, 500)
FINITE_SIZE = 4.0  # over `n`: relative size allowed for the next order; measured 2 at n = 50


def infinite_averages():
    """`F`, `E[w]`, `E[w^2 (x - F)]` and `E[w^2 (x - F)^2]` for each of the thresholds."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    averages = []
    for alpha in THRESHOLDS:
        ends = np.array([[-1.0, alpha], [alpha, 1.0]])
        half = np.diff(ends) / 2.0
        x = (ends[:, :1] + half * (nodes + 1.0)).ravel()
        mass = (half * weights / 2.0).ravel()
        w = np.exp(HEAD.label_score * np.where(x < alpha, 1.0, -1.0) + HEAD.scale * x)
        limit = mass @ (w * x) / (mass @ w)
        off = x - limit
        averages.append((limit, mass @ w, mass @ (w**2 * off), mass @ (w**2 * off**2)))
    return np.transpose(averages)


@pytest.mark.parametrize("n_examples", [100, 400])
def test_long_contexts_approach_infinite_ones_at_the_predicted_rate(n_examples):
    limit, mean_w, once, twice = infinite_averages()
    error = limit - THRESHOLDS
    # The ratio of two averages, to the first order in 1/n.
    predicted = np.mean((twice - 2.0 * error * once) / mean_w**2)
    infinite = InfiniteContextRisk(Design(), equal_weights(THRESHOLDS)).value(HEAD)
    found = []
    for batch in range(N_BATCHES):
        corpus = sample_contexts(Design(), THRESHOLDS, n_examples, [n_examples, batch])
        w = np.exp(HEAD.label_score * corpus.labels + HEAD.scale * corpus.features)
        swing = (w * (corpus.features - limit[:, None])).mean(axis=1) / mean_w
        control = np.mean(2.0 * error * swing)  # has mean 0 and most of the spread
        found.append(n_examples * (CorpusRisk(corpus).value(HEAD) - control - infinite))
    spread = np.std(found, ddof=1) / np.sqrt(N_BATCHES)
    allowed = STANDARD_ERRORS * spread + FINITE_SIZE / n_examples * predicted
    assert allowed < 0.2 * predicted  # the rate is resolved
    assert abs(np.mean(found) - predicted) < allowed


def test_many_tasks_approach_the_exact_mean_within_standard_errors():
    n_examples, heads = 12, Head.from_excess([0.7, 2.0], [1.0, 8.0])
    exact = FiniteContextRisk(n_examples)
    batches = [CorpusRisk(sample_corpus(Design(), 20_000, n_examples, b)) for b in range(N_BATCHES)]
    for name in ("value", "gradient"):
        found = np.array([getattr(risk, name)(heads) for risk in batches])
        spread = found.std(axis=0, ddof=1) / np.sqrt(N_BATCHES)
        expected = getattr(exact, name)(heads)
        assert (spread.T < 0.03 * np.abs(expected).T.max(axis=0)).all()  # the mean is resolved
        assert (np.abs(found.mean(axis=0) - expected) < STANDARD_ERRORS * spread).all()


def progress_deviations(n_tasks, n_examples, n_corpora):
    """Relative deviations of the gradient along the tube from the population's, at scale 8."""
    head, along = Head.from_tube(np.log(2.0), 8.0), np.array([1.0 + 1.0 / 8.0, 1.0])
    progress = along @ ClosedFormRisk().gradient(head)
    corpora = [
        sample_corpus(Design(), n_tasks, n_examples, cell_seed(0, n_tasks, n_examples, i))
        for i in range(n_corpora)
    ]
    return np.array([along @ CorpusRisk(c).gradient(head) / progress - 1.0 for c in corpora])


# Exact means at infinitely many tasks, computed beforehand with code of another origin.
@pytest.mark.parametrize(("n_examples", "exact"), [(16, -0.80107), (64, -0.29006)])
def test_the_deviation_from_the_population_has_a_mean_of_the_context_size_alone(n_examples, exact):
    for n_tasks in (128, 512):
        found = progress_deviations(n_tasks, n_examples, 60)
        error = found.std(ddof=1) / np.sqrt(found.size)
        assert error < 0.15 * abs(exact)
        assert abs(found.mean() - exact) < STANDARD_ERRORS * error


def test_the_spread_of_the_deviation_falls_like_the_root_of_the_number_of_tasks():
    few, many = (progress_deviations(m, 32, 150).std() for m in (50, 800))
    assert few / many == pytest.approx(4.0, rel=STANDARD_ERRORS * np.sqrt(1.0 / 150), abs=0)


# --- contract -------------------------------------------------------------------------------------

SMALL = CORPORA["few examples"]


def test_values_gradients_and_hessians_broadcast_over_the_head():
    risk = CorpusRisk(SMALL)
    lam, mu = np.array([[0.0, 2.0, -1.0]]), np.array([[3.0], [-4.0]])
    value, gradient = risk.value_and_gradient(Head.from_scores(lam, mu))
    hessian = risk.hessian(Head.from_scores(lam, mu))
    assert value.shape == (2, 3) and gradient.shape == (2, 3, 2) and hessian.shape == (2, 3, 2, 2)
    for i, j in np.ndindex(2, 3):
        head = Head.from_scores(lam[0, j], mu[i, 0])
        assert value[i, j] == risk.value(head)
        np.testing.assert_array_equal(gradient[i, j], risk.gradient(head))
        np.testing.assert_array_equal(hessian[i, j], risk.hessian(head))


def test_heads_come_back_in_their_own_order():
    mu = np.array([3.0, 1.0, 3.0, -2.0, 1.0, 3.0])
    lam = np.arange(6.0)
    found = CorpusRisk(SMALL).gradient(Head.from_scores(lam, mu))
    alone = [
        CorpusRisk(SMALL).gradient(Head.from_scores(*pair)) for pair in zip(lam, mu, strict=True)
    ]
    np.testing.assert_array_equal(found, alone)


def test_the_reflected_head_reads_the_mirrored_corpus():
    mirrored = Corpus.from_arrays(-SMALL.features, -SMALL.labels, -SMALL.thresholds)
    for head in (Head.from_ratio(1.2, 30.0), Head.from_scores(1.0, 0.5)):
        value, gradient = CorpusRisk(SMALL).value_and_gradient(head)
        mirrored_value, mirrored_gradient = CorpusRisk(mirrored).value_and_gradient(head.reflected)
        assert mirrored_value == pytest.approx(value, rel=1e-15, abs=0)
        np.testing.assert_allclose(mirrored_gradient, -gradient, rtol=1e-14)


@pytest.mark.parametrize("half_width", [2.0**-60, 2.0**80])
def test_a_rescaled_interval_rescales_the_risk(half_width):
    wide = Corpus.from_arrays(
        half_width * SMALL.features, SMALL.labels, half_width * SMALL.thresholds, half_width
    )
    head, unit = Head.from_excess(1.0, 5.0 / half_width, half_width), Head.from_excess(1.0, 5.0)
    found, expected = six_numbers(CorpusRisk(wide), head), six_numbers(CorpusRisk(SMALL), unit)
    powers = half_width ** np.array([2.0, 2.0, 3.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(found, expected * powers)


def test_a_head_of_another_half_width_is_refused():
    with pytest.raises(ValueError, match=r"the half width 1\.0 of the risk"):
        CorpusRisk(SMALL).hessian(Head.from_scores(1.0, 1.0, half_width=2.0))


def test_something_else_than_a_corpus_is_refused():
    with pytest.raises(ValueError, match="corpus must be a Corpus, got ndarray; make one with"):
        CorpusRisk(SMALL.features)
