"""Estimates on contexts: by hand, by plain sums, in their limits."""

import numpy as np
import pytest

from popdyn import (
    Corpus,
    Design,
    Head,
    bayes_estimates,
    limit_error,
    midpoints,
    pair_predictions,
    predictions,
    sample_contexts,
    sample_corpus,
)

# Two labels, positives alone, negatives alone, and a label on the wrong side.
MIXED = Corpus.from_arrays(
    [[-0.5, 0.3, 0.9], [-0.5, 0.3, 0.9], [-0.5, 0.3, 0.9], [-0.5, 0.3, 0.9]],
    [[1, 1, -1], [1, 1, 1], [-1, -1, -1], [-1, 1, -1]],
    thresholds=[0.4, 0.95, -0.9, 0.4],
)
FAR = Head.from_ratio(1.5, 1e6)


@pytest.fixture(scope="module")
def corpus():
    return sample_corpus(Design(), 40, 25, rng=3)


def test_a_head_of_large_scale_reads_the_largest_positive_feature_exactly():
    # The report: scores of 1.8e6 once overflowed.
    assert predictions(Head.from_scores(1.5e6, 1e6), MIXED)[0] == 0.3


def test_without_positives_it_reads_the_largest_feature():
    np.testing.assert_array_equal(predictions(FAR, MIXED), [0.3, 0.9, 0.9, 0.3])


def test_its_reflection_reads_the_smallest_negative_feature():
    np.testing.assert_array_equal(predictions(FAR.reflected, MIXED), [0.9, -0.5, -0.5, -0.5])


def test_midpoints_fall_back_on_the_middle_of_the_range_where_a_label_is_missing():
    np.testing.assert_allclose(midpoints(MIXED), [0.6, 0.2, 0.2, -0.1], rtol=1e-15)


def test_bayes_estimates_take_the_ends_of_the_interval_as_sentinels():
    np.testing.assert_allclose(bayes_estimates(MIXED), [0.6, 0.95, -0.75, -0.1], rtol=1e-15)


def test_the_sentinels_scale_with_the_interval():
    corpus = Corpus.from_arrays([[1.0, 2.0]], [[1, 1]], thresholds=[2.5], half_width=3.0)
    assert bayes_estimates(corpus) == [2.5]


def test_a_pair_of_large_scale_is_the_midpoint():
    np.testing.assert_array_equal(pair_predictions(FAR, MIXED), midpoints(MIXED))


def test_predictions_are_the_plain_softmax_average(corpus):
    lam, mu = 1.2, 3.0
    weights = np.exp(lam * corpus.labels + mu * corpus.features)
    plain = (weights * corpus.features).sum(axis=1) / weights.sum(axis=1)
    found = predictions(Head.from_scores(lam, mu), corpus)
    np.testing.assert_allclose(found, plain, atol=1e-15)  # measured 3e-16


def test_the_zero_head_averages_the_features(corpus):
    found = pair_predictions(Head.from_scores(0.0, 0.0), corpus)
    np.testing.assert_allclose(found, corpus.features.mean(axis=1), atol=1e-15)  # measured 2e-16


def test_the_pair_is_the_mean_of_both_heads_and_its_own_reflection(corpus):
    head = Head.from_ratio(1.5, 7.0)
    pair = pair_predictions(head, corpus)
    both = predictions(head, corpus), predictions(head.reflected, corpus)
    np.testing.assert_allclose(pair, np.mean(both, axis=0), atol=1e-15)
    np.testing.assert_array_equal(pair_predictions(head.reflected, corpus), pair)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)])
def test_predictions_broadcast_over_the_head(corpus, shape):
    head = Head.from_scores(np.full(shape, 2.0), np.full(shape, 5.0))
    one = pair_predictions(Head.from_scores(2.0, 5.0), corpus)
    found = pair_predictions(head, corpus)
    np.testing.assert_array_equal(found, np.broadcast_to(one, (*shape, corpus.n_tasks)))


def test_a_large_context_nears_the_infinite_one():
    head, tasks = Head.from_ratio(1.2, 6.0), np.linspace(-0.8, 0.8, 5)
    contexts = sample_contexts(Design(), tasks, 400_000, rng=11)
    errors = predictions(head, contexts) - tasks - limit_error(head, tasks)
    standard_error = np.sqrt(1 / (2 * 400_000 * 6.0))  # sqrt(l/(2 N mu)), at most 10 % too large
    assert np.abs(errors).max() < 4 * standard_error


@pytest.mark.parametrize("estimate", [predictions, pair_predictions])
def test_a_head_of_another_half_width_is_refused(corpus, estimate):
    with pytest.raises(ValueError, match="head and corpus must have one half width"):
        estimate(Head.from_scores(1.0, 1.0, half_width=2.0), corpus)
