"""The risk of infinitely many tasks with n examples each: values, limits, rule, contract."""

import numpy as np
import pytest

from popdyn.attention import limit_error
from popdyn.coordinates import Head
from popdyn.design import Design
from popdyn.moments import context_moments
from popdyn.quadrature import boundary_graded, equal_weights
from popdyn.risk.finite_context import FiniteContextRisk, end_graded
from popdyn.risk.infinite_context import InfiniteContextRisk
from popdyn.sampling import sample_corpus

LOG_2 = np.log(2.0)


def tilted(x):
    return (1 + 0.3 * x) / 2


def wave(x):
    return (1 + 0.3 * np.cos(np.pi * x)) / 2


UNEVEN = Design(feature_density=tilted, threshold_density=wave)


# --- known numbers --------------------------------------------------------------------------------

# n: (mu*, delta*, L*), the minimum of the risk, at a scale of order n^2.
MINIMA = {16: (14.8526, 0.9085, 0.2088071), 32: (56.968, 1.195, 0.1140689)}


@pytest.mark.parametrize("n", MINIMA)
def test_the_minimum_is_where_it_is_known_to_be(n):
    scale, excess, least = MINIMA[n]
    risk = FiniteContextRisk(n)
    scores = np.array([scale + 1.0, scale])
    for _ in range(6):
        head = Head.from_scores(*scores)
        scores = scores - np.linalg.solve(risk.hessian(head), risk.gradient(head))
    minimum = Head.from_scores(*scores)
    assert (np.linalg.eigvalsh(risk.hessian(minimum)) > 0).all()
    assert minimum.scale == pytest.approx(scale, abs=1e-3)
    assert minimum.excess == pytest.approx(excess, abs=1e-3)
    assert risk.value(minimum) == pytest.approx(least, abs=1e-7)


# Relative deviation of u . grad L from the infinite context, at mu = 8 on the tube.
DEVIATIONS = {16: -0.80107, 64: -0.29006, 256: -0.12695}


@pytest.mark.parametrize("n", DEVIATIONS)
def test_progress_on_the_tube_falls_short_as_tabulated(n):
    head, along = Head.from_tube(LOG_2, 8.0), np.array([1 + 1 / 8, 1.0])
    limit = InfiniteContextRisk(Design(), boundary_graded()).gradient(head) @ along
    deviation = FiniteContextRisk(n).gradient(head) @ along / limit - 1
    assert deviation == pytest.approx(DEVIATIONS[n], abs=5.1e-6)  # five digits given


@pytest.mark.parametrize("half_width", [0.5, 1.0])
@pytest.mark.parametrize("n", [1, 2, 40])
def test_without_scores_the_prediction_is_the_mean_feature(n, half_width):
    """`E (mean - alpha)^2 = l^2 / (3 n) + l^2 / 3`."""
    risk = FiniteContextRisk(n, Design(half_width))
    exact = half_width**2 / 3 * (1 + 1 / n)
    assert risk.value(Head.from_scores(0, 0, half_width)) == pytest.approx(exact, rel=1e-14, abs=0)


# --- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("design", [Design(), UNEVEN], ids=["uniform", "uneven"])
@pytest.mark.parametrize(("ratio", "scale"), [(1.5, 3.0), (0.6, 9.0)])
def test_long_contexts_reach_the_infinite_context_at_the_rate_one_over_n(design, ratio, scale):
    head = Head.from_ratio(ratio, scale)
    limit = InfiniteContextRisk(design, boundary_graded())
    risks = [FiniteContextRisk(n, design) for n in (10**5, 10**6)]
    for method in ("value", "gradient", "hessian"):
        far, near = (getattr(risk, method)(head) - getattr(limit, method)(head) for risk in risks)
        assert far / near == pytest.approx(10, rel=0.1, abs=0)


def test_drawn_tasks_average_their_own_errors():
    head, thresholds = Head.from_ratio(1.5, 8.0), [-0.95, 0.0, 0.4]
    risk = FiniteContextRisk(12, rule=equal_weights(thresholds))
    each = context_moments(head, thresholds, 12).mean_square_error
    assert risk.value(head) == pytest.approx(each.mean(), rel=1e-15, abs=0)
    long = FiniteContextRisk(10**9, rule=equal_weights(thresholds))
    limit = np.mean(limit_error(head, thresholds) ** 2)
    assert long.value(head) == pytest.approx(limit, rel=1e-6, abs=0)


def test_drawn_tasks_take_no_threshold_density():
    rule = equal_weights([-0.5, 0.5])
    head = Head.from_ratio(1.5, 8.0)
    weighted = FiniteContextRisk(12, Design(threshold_density=tilted), rule)
    assert weighted.value(head) == FiniteContextRisk(12, rule=rule).value(head)


N_SIGMA = 5.0  # a right mean is further off once in two million


def corpus_risk(corpus, head):
    """Task by task `(F - alpha)^2` and its derivatives, by the definition of the predictor."""
    weights = np.exp(
        head.label_score * (corpus.labels - 1) + head.scale * (corpus.features - corpus.half_width)
    )
    weights /= weights.sum(axis=1, keepdims=True)
    mean = (weights * corpus.features).sum(axis=1, keepdims=True)
    error = mean[:, 0] - corpus.thresholds
    by_label = (weights * (corpus.features - mean) * corpus.labels).sum(axis=1)
    by_feature = (weights * (corpus.features - mean) ** 2).sum(axis=1)
    return np.stack([error**2, 2 * error * by_label, 2 * error * by_feature], axis=1)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("design", [Design(), UNEVEN], ids=["uniform", "uneven"])
def test_many_drawn_tasks_agree_within_their_standard_error(design, seed):
    head = Head.from_ratio(1.2, 6.0)
    sample = corpus_risk(sample_corpus(design, 20_000, 10, seed), head)
    value, gradient = FiniteContextRisk(10, design).value_and_gradient(head)
    departure = np.abs(sample.mean(axis=0) - [value, *gradient])
    assert (departure < N_SIGMA * sample.std(axis=0) / np.sqrt(len(sample))).all()


# --- the rule over thresholds ---------------------------------------------------------------------

# Relative, the derivatives in units of their largest component.
RULE_TOLERANCE = {
    "value": 1e-14,
    "gradient": 1e-13,
    "hessian": 1e-12,
}  # measured 3e-15, 2e-14, 3e-13


def finer(n):
    """More nodes, in panels of other places."""

    def rule(head):
        return end_graded(8 * n + 40, 30)(head)

    rule.is_sample = False
    return rule


@pytest.mark.parametrize(
    ("design", "n", "excess", "scale"),
    [
        (Design(), 16, 0.7, 15.0),
        (Design(), 300, 0.7, 15.0),
        (Design(), 2, -1.0, 15.0),
        (Design(), 16, -15.0, 15.0),
        (Design(), 300, -6.0, 8.0),
        (Design(), 16, 5.0, -12.0),
        (Design(), 1000, 0.5, 0.5),
        (UNEVEN, 16, 0.7, 15.0),
        (UNEVEN, 2, -10.0, 8.0),
    ],
)
def test_the_default_rule_has_converged(design, n, excess, scale):
    head = Head.from_excess(excess, scale)
    mine, more = FiniteContextRisk(n, design), FiniteContextRisk(n, design, finer(n))
    for method, tolerance in RULE_TOLERANCE.items():
        exact = getattr(more, method)(head)
        worst = np.abs(getattr(mine, method)(head) - exact).max()
        assert worst < tolerance * np.abs(exact).max()


def test_the_rule_is_independent_of_the_grading():
    """A plain composite rule, fine enough for this scale, gives the same average."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(-1, 1, 41)
    alpha = (edges[:-1, None] + (nodes + 1) / 40).ravel()
    head = Head.from_tube(LOG_2, 10.0)
    errors = context_moments(head, alpha, 20).mean_square_error
    average = errors @ np.tile(weights / 40, 40) / 2
    assert FiniteContextRisk(20).value(head) == pytest.approx(average, rel=1e-14, abs=0)


@pytest.mark.parametrize("scale", [-30.0, -1.0, 0.0, 1e-3, 2.0, 1e4])
@pytest.mark.parametrize("excess", [-20.0, -1e-3, 0.0, 2.0])
def test_the_nodes_cover_the_interval(scale, excess):
    nodes = end_graded(100)(Head.from_excess(excess, scale / 3, 3.0))
    assert nodes.weights.sum() == pytest.approx(1, rel=1e-14, abs=0)
    assert (nodes.lower * nodes.weights).sum() == pytest.approx(3, rel=1e-14, abs=0)
    assert nodes.lower + nodes.upper == pytest.approx(
        np.full(nodes.lower.shape, 6.0), rel=1e-14, abs=0
    )
    assert min(nodes.lower.min(), nodes.upper.min()) > 0


def test_the_nodes_of_the_reflected_head_are_mirrored():
    head = Head.from_excess([-3.0, 1.0], [10.0, 20.0])
    mine, mirrored = end_graded(10)(head), end_graded(10)(head.reflected)
    assert np.array_equal(mine.lower, mirrored.upper)
    assert np.array_equal(mine.weights, mirrored.weights)


# --- the contract of a risk -----------------------------------------------------------------------

SYMMETRY_TOLERANCE = 1e-14  # measured 4e-16


def test_risks_broadcast_over_heads_of_different_rules():
    heads = Head.from_excess([[1.0], [-4.0]], [3.0, 12.0, -7.0])
    risk = FiniteContextRisk(5)
    value, gradient, hessian = risk.value(heads), risk.gradient(heads), risk.hessian(heads)
    assert (value.shape, gradient.shape, hessian.shape) == ((2, 3), (2, 3, 2), (2, 3, 2, 2))
    alone = Head.from_excess(-4.0, 12.0)
    assert value[1, 1] == pytest.approx(float(risk.value(alone)), rel=1e-15, abs=0)
    assert np.array_equal(gradient[1, 1], risk.gradient(alone))
    assert np.array_equal(hessian[1, 1], risk.hessian(alone))
    assert risk.value(alone).shape == ()
    assert np.array_equal(hessian, np.swapaxes(hessian, -1, -2))
    empty = risk.gradient(Head.from_scores(np.empty(0), np.empty(0)))
    assert empty.shape == (0, 2)


def test_value_and_gradient_are_those_of_the_single_methods():
    head = Head.from_ratio(1.5, 8.0)
    risk = FiniteContextRisk(5)
    value, gradient = risk.value_and_gradient(head)
    assert value == pytest.approx(float(risk.value(head)), rel=1e-14, abs=0)
    assert np.array_equal(gradient, risk.gradient(head))


STEP = 0.01
COEFFICIENTS = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}  # error of order STEP^8
DIFFERENCE_TOLERANCE = 1e-10  # of the largest component; measured 1e-11, the differences' own


@pytest.mark.parametrize(
    ("design", "lam", "mu"),
    [(Design(), 7.5, 5.0), (Design(), 0.3, 0.1), (Design(), -2.0, 4.0), (UNEVEN, 3.0, 6.0)],
)
def test_derivatives_agree_with_differences(design, lam, mu):
    risk = FiniteContextRisk(9, design)
    shifts = STEP * np.arange(-4, 5)

    def slope(method):
        along_lam = method(Head.from_scores(lam + shifts, mu))
        along_mu = method(Head.from_scores(lam, mu + shifts))
        return np.array(
            [
                sum(c * (row[4 + k] - row[4 - k]) for k, c in COEFFICIENTS.items()) / STEP
                for row in (along_lam, along_mu)
            ]
        )

    head = Head.from_scores(lam, mu)
    for found, expected in (
        (risk.gradient(head), slope(risk.value)),
        (risk.hessian(head), slope(risk.gradient)),
    ):
        assert np.abs(found - expected).max() < DIFFERENCE_TOLERANCE * np.abs(found).max()


@pytest.mark.parametrize(("lam", "mu"), [(7.5, 5.0), (-1.0, 20.0), (0.0, 3.0)])
def test_the_reflected_head_has_the_same_risk(lam, mu):
    head = Head.from_scores(lam, mu)
    for mine, mirrored in (
        (FiniteContextRisk(7), FiniteContextRisk(7)),
        (FiniteContextRisk(7, UNEVEN), FiniteContextRisk(7, UNEVEN.mirrored)),
    ):
        value, gradient = mine.value_and_gradient(head)
        other_value, other_gradient = mirrored.value_and_gradient(head.reflected)
        assert other_value == pytest.approx(float(value), rel=SYMMETRY_TOLERANCE, abs=0)
        assert other_gradient == pytest.approx(-gradient, rel=SYMMETRY_TOLERANCE, abs=0)
        assert mirrored.hessian(head.reflected) == pytest.approx(
            mine.hessian(head), rel=SYMMETRY_TOLERANCE, abs=0
        )


@pytest.mark.parametrize("width", [1e-40, 0.5, 1e40])
def test_the_risk_scales_with_the_interval(width):
    wide = Head.from_excess(1.0, 12.0 / width, width)
    unit = Head.from_excess(1.0, 12.0)
    one, other = FiniteContextRisk(7), FiniteContextRisk(7, Design(width))
    powers = np.array([1.0, width])
    assert other.value(wide) / width**2 == pytest.approx(
        one.value(unit), rel=SYMMETRY_TOLERANCE, abs=0
    )
    assert other.gradient(wide) / width**2 / powers == pytest.approx(
        one.gradient(unit), rel=SYMMETRY_TOLERANCE, abs=0
    )
    assert other.hessian(wide) / width**2 / np.outer(powers, powers) == pytest.approx(
        one.hessian(unit), rel=SYMMETRY_TOLERANCE, abs=0
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "n_examples must be a whole number of at least 1, got 0"),
        ((2.5,), "n_examples must be a whole number of at least 1, got 2.5"),
        ((np.inf,), "n_examples must be a whole number of at least 1, got inf"),
        ((3, 1.0), "design must be a Design, got 1.0"),
        ((3, Design(), "plain"), "rule must be a quadrature rule or None, got 'plain'"),
    ],
)
def test_a_risk_that_is_none_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        FiniteContextRisk(*arguments)


@pytest.mark.parametrize("order", [3, 101, 8.5, True, None])
def test_a_rule_of_a_strange_order_is_refused(order):
    with pytest.raises(ValueError, match="order must be a whole number from 4 to 100, got"):
        end_graded(16, order)


@pytest.mark.parametrize("method", ["value", "gradient", "value_and_gradient", "hessian"])
def test_heads_of_another_interval_or_scale_are_refused(method):
    evaluate = getattr(FiniteContextRisk(3), method)
    with pytest.raises(ValueError, match=r"half width 1.0 of the risk, got 2.0"):
        evaluate(Head.from_ratio(1.5, 5, 2.0))
    with pytest.raises(ValueError, match="at most 100000"):
        evaluate(Head.from_ratio(1.5, 1e6))
