"""Moments of a reflected pair and of midpoints: by quadrature, by sampling, in their limits."""

from functools import reduce

import numpy as np
import pytest

from popdyn import (
    Design,
    Head,
    bayes_estimates,
    bayes_moments,
    context_moments,
    limit_error,
    limit_laws,
    midpoint_moments,
    midpoints,
    pair_moments,
    pair_moments_sampled,
    sample_contexts,
)
from popdyn.noise import massart

TUBE = np.log(2.0)
# Of a sample's deviation, in standard errors of it: a chance of 6e-5 each, and the seed is fixed.
STANDARD_ERRORS = 4.0


# --- the pair, exactly ----------------------------------------------------------------------------


def by_quadrature(lam, mu, threshold, n_examples, order):
    """Bias and mean square of the pair by a product rule over the examples, half width 1."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    s, r = 1 + threshold, 1 - threshold
    gap = np.concatenate((s * (nodes - 1) / 2, r * (nodes + 1) / 2))
    mass = np.concatenate((s * weights, r * weights)) / 4
    score = lam * np.sign(-gap) + mu * gap
    gaps = np.meshgrid(*[gap] * n_examples, indexing="ij")
    scores = np.array(np.meshgrid(*[score] * n_examples, indexing="ij"))
    error = 0.0
    for sign in (1, -1):
        shares = np.exp(sign * scores - (sign * scores).max(axis=0))
        error += 0.5 * (shares * gaps).sum(axis=0) / shares.sum(axis=0)
    weight = reduce(np.multiply.outer, [mass] * n_examples)
    return (weight * error).sum(), (weight * error**2).sum()


# Relative to the mean square; measured 2e-15, of which the product rule has a part.
QUADRATURE = 1e-14


@pytest.mark.parametrize(
    "lam, mu, threshold, n_examples, order",
    [
        (4.0, 3.0, 0.3, 2, 30),
        (2.0, -3.0, 0.1, 3, 20),
        (0.3, 0.2, -0.7, 3, 20),
        (-1.0, 2.0, 0.5, 3, 20),
        (3.0, 2.0, -0.2, 4, 12),
    ],
)
def test_small_contexts_agree_with_a_product_rule(lam, mu, threshold, n_examples, order):
    bias, square = by_quadrature(lam, mu, threshold, n_examples, order)
    moments = pair_moments(Head.from_scores(lam, mu), threshold, n_examples)
    assert moments.mean_square_error == pytest.approx(square, rel=QUADRATURE, abs=0)
    assert moments.bias == pytest.approx(bias, abs=QUADRATURE)


@pytest.mark.parametrize("scale", [0.0, 5.0, 60.0])
@pytest.mark.parametrize("n_examples", [1, 2])
def test_one_example_or_two_are_averaged_whatever_the_head(scale, n_examples):
    # With weights w and 1/w, two examples have equal shares: the variance of a mean, 1/(3 N).
    moments = pair_moments(Head.from_scores(1.5 * scale, scale), 0.3, n_examples)
    assert moments.mean_square_error == pytest.approx(1 / (3 * n_examples) + 0.09, rel=1e-14, abs=0)


@pytest.mark.parametrize(
    "head, design",
    [
        (Head.from_tube(TUBE, 20.0), Design()),
        (Head.from_scores(2.0, -9.0), Design()),
        (Head.from_tube(0.0, 10.0), Design(feature_density="tilted", noise=massart(0.05))),
        (Head.from_tube(TUBE, 8.0, half_width=2.0), Design(half_width=2.0)),
    ],
    ids=["tube", "negative scale", "tilted and noisy", "another interval"],
)
def test_drawn_contexts_agree_within_their_standard_errors(head, design):
    cells = np.array([0.0, -0.6]), np.array([[8], [40]])
    exact = pair_moments(head, *cells, design)
    drawn = pair_moments_sampled(head, *cells, 10_000, rng=5, design=design)
    bias = (drawn.bias - exact.bias) / drawn.bias_standard_error
    square = drawn.mean_square_error - exact.mean_square_error
    assert np.abs(bias).max() < STANDARD_ERRORS
    assert np.abs(square / drawn.mean_square_error_standard_error).max() < STANDARD_ERRORS


def test_the_bias_is_the_mean_of_both_heads():
    head = Head.from_tube(TUBE, 16.0)
    biases = [context_moments(one, 0.4, 100).bias for one in (head, head.reflected)]
    assert pair_moments(head, 0.4, 100).bias == pytest.approx(np.mean(biases), rel=1e-15, abs=0)


def test_a_head_and_its_reflection_are_one_pair():
    head = Head.from_ratio(1.3, 12.0)
    moments, mirrored = (pair_moments(one, 0.4, [5, 300]) for one in (head, head.reflected))
    square = mirrored.mean_square_error
    # Of the mean square of one head; measured 2e-16.
    scale = context_moments(head, 0.4, [5, 300]).mean_square_error
    assert (np.abs(moments.mean_square_error - square) < 2e-15 * scale).all()


def test_few_examples_are_read_as_their_midpoint():
    pair = pair_moments(Head.from_excess(20.0, 128.0), [0.0, 0.5, -0.9], 8)
    limit = midpoint_moments([0.0, 0.5, -0.9], 8)
    np.testing.assert_allclose(pair.mean_square_error, limit.mean_square_error, rtol=1e-5)  # 2e-6


def test_many_examples_leave_the_spread_that_the_law_predicts():
    # N >> mu: RMS sqrt(l/(4 N mu)), far below the 1/mu of one head.
    head, n_examples = Head.from_tube(TUBE, 32.0), 65536
    rms = pair_moments(head, 0.0, n_examples).root_mean_square
    assert rms == pytest.approx(np.sqrt(1 / (4 * n_examples * 32.0)), rel=2e-3, abs=0)
    assert rms < 0.02 * context_moments(head, 0.0, n_examples).root_mean_square


def test_between_them_the_error_stays_below_the_law_for_both():
    n_examples = 2 ** np.arange(5, 15)
    rms = pair_moments(Head.from_tube(TUBE, 64.0), 0.0, n_examples).root_mean_square
    ratio = rms / limit_laws.pair_rms(64.0, n_examples)
    assert (ratio < 1.0).all()
    assert (ratio > 0.84).all()


@pytest.mark.parametrize("n_examples", [4, 1000])
def test_at_either_end_the_pair_errs_by_the_half_width(n_examples):
    head = Head.from_tube(TUBE, 32.0)
    rms = pair_moments(head, [-1.0, 1.0], n_examples).root_mean_square
    np.testing.assert_allclose(rms, 1.0, atol=1 / n_examples)
    one = context_moments(head, -1.0, n_examples).root_mean_square
    assert one == pytest.approx(2.0, abs=2.5 / n_examples + 1 / 32)


def test_the_infinite_context_is_the_limit():
    head = Head.from_scores(4.0, 3.0)
    limit = (limit_error(head, 0.9) + limit_error(head.reflected, 0.9)) / 2
    moments = pair_moments(head, 0.9, 10**6)
    assert moments.bias == pytest.approx(limit, abs=1e-5)  # of order 1/N; measured 2e-6
    assert moments.root_mean_square == pytest.approx(abs(limit), abs=1e-5)


# --- the midpoints --------------------------------------------------------------------------------

ESTIMATES = {"midpoint": (midpoints, midpoint_moments), "Bayes": (bayes_estimates, bayes_moments)}
each_estimate = pytest.mark.parametrize("estimate, moments", ESTIMATES.values(), ids=ESTIMATES)


@each_estimate
@pytest.mark.parametrize("threshold", [-1.5, -1.2, 0.1])
@pytest.mark.parametrize("n_examples", [1, 2, 9])
def test_midpoints_of_drawn_contexts_have_these_moments(estimate, moments, threshold, n_examples):
    contexts = sample_contexts(Design(half_width=1.5), np.full(40_000, threshold), n_examples, 8)
    errors = estimate(contexts) - threshold
    exact = moments(threshold, n_examples, 1.5)
    for sample, mean in ((errors, exact.bias), (errors**2, exact.mean_square_error)):
        standard_error = sample.std(ddof=1) / np.sqrt(sample.size)
        assert abs(sample.mean() - mean) < STANDARD_ERRORS * standard_error


NUMPY_NODES = 1e-13  # measured 3e-14, of the nodes; 1e-15 with exact ones


@pytest.mark.parametrize("n_examples", [1, 2, 7, 30])
@pytest.mark.parametrize("half_width", [1.0, 2.5])
def test_averaged_over_thresholds_they_are_the_prior_averaged_risks(n_examples, half_width):
    nodes, weights = np.polynomial.legendre.leggauss(18)  # exact: powers up to 32
    _, *risks = limit_laws.prior_averaged_risks(n_examples, half_width)
    for moments, risk in zip((midpoint_moments, bayes_moments), risks, strict=True):
        found = moments(half_width * nodes, n_examples, half_width).mean_square_error
        assert weights @ found / 2 == pytest.approx(risk, rel=NUMPY_NODES, abs=0)


def test_in_the_interior_both_near_sqrt_2_l_over_n():
    for moments in (midpoint_moments, bayes_moments):
        rms = moments(0.3, 10**5, 2.0).root_mean_square
        assert rms == pytest.approx(np.sqrt(2) * 2.0 / 10**5, rel=2e-5, abs=0)


def test_sentinels_cure_the_ends():
    assert midpoint_moments(1.0, 10**4).root_mean_square == pytest.approx(1.0, rel=1e-4, abs=0)
    assert bayes_moments(1.0, 10**4).root_mean_square == pytest.approx(
        np.sqrt(2) * 1e-4, rel=2e-4, abs=0
    )


# --- refusals -------------------------------------------------------------------------------------


@each_estimate
def test_a_threshold_outside_the_interval_is_refused(estimate, moments):
    with pytest.raises(ValueError, match="threshold must lie in"):
        moments(1.2, 5)


@each_estimate
@pytest.mark.parametrize("n_examples", [0, 2.5])
def test_a_size_that_is_no_whole_number_is_refused(estimate, moments, n_examples):
    with pytest.raises(ValueError, match="n_examples must be whole numbers"):
        moments(0.0, n_examples)


def test_a_scale_too_large_for_exact_moments_is_refused():
    with pytest.raises(ValueError, match="use pair_moments_sampled"):
        pair_moments(Head.from_tube(TUBE, 300.0), 0.0, 10)


def test_a_threshold_outside_the_interval_is_refused_before_drawing():
    with pytest.raises(ValueError, match="threshold must lie in"):
        pair_moments_sampled(Head.from_tube(TUBE, 30.0), 1.5, 10, 100, rng=1)


def test_another_half_width_is_refused():
    for moments in (pair_moments, lambda *rest: pair_moments_sampled(*rest[:3], 10, 1, rest[3])):
        with pytest.raises(ValueError, match="one half width"):
            moments(Head.from_tube(TUBE, 30.0), 0.0, 10, Design(half_width=2.0))


def test_one_head_threshold_and_size_draw_scalar_moments():
    drawn = pair_moments_sampled(Head.from_tube(TUBE, 30.0), 0.3, 10, 100, rng=1)
    assert np.shape(drawn.bias) == np.shape(drawn.bias_standard_error) == ()
