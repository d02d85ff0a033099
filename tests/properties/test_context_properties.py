"""Moments and corpora of any size: bounds, symmetries, and the definition in many digits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp
from plane import heads, held_to, powers, signed

from popdyn import Corpus, CorpusRisk, Head, context_moments

WIDTHS = st.sampled_from([0.5, 1.0, 2.0])
ROOT = 1e-12  # of the bias, in units of the root mean square; and of the mean square: as promised
EXACT = 1e-12  # of a sum in which nothing cancels, as promised
SPACING = 2.3e-16
TINY = 1e-50  # of a sum of order one the definition in 60 digits knows no more


@held_to(max_examples=60)
@given(
    head=heads(largest=3, widths=WIDTHS),
    share=st.floats(-1.0, 1.0),
    n=st.one_of(st.integers(1, 5), st.integers(1, 10**6)),
)
def test_moments_are_finite_bounded_and_mirrored(head, share, n):
    width, threshold = head.half_width, share * head.half_width
    moments = context_moments(head, threshold, n)
    assert np.isfinite([moments.bias, moments.mean_square_error]).all()
    assert 0.0 < moments.mean_square_error <= 4.0 * width**2
    root = moments.root_mean_square
    assert abs(moments.bias) <= root * (1 + ROOT)
    mirrored = context_moments(head.reflected, -threshold, n)
    assert abs(mirrored.bias + moments.bias) <= 2 * ROOT * root
    assert mirrored.mean_square_error == pytest.approx(
        moments.mean_square_error, rel=2 * ROOT, abs=0
    )


@held_to(max_examples=60)
@given(head=heads(largest=3, widths=WIDTHS), share=st.floats(-1.0, 1.0))
def test_one_example_is_its_own_average_whatever_the_head(head, share):
    width, threshold = head.half_width, share * head.half_width
    moments = context_moments(head, threshold, 1)
    exact = width**2 / 3 + threshold**2
    assert moments.mean_square_error == pytest.approx(exact, rel=ROOT, abs=0)
    assert abs(moments.bias + threshold) <= ROOT * np.sqrt(exact)


@st.composite
def corpora(draw, width=1.0):
    m, n = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    numbers = st.one_of(
        st.floats(-1.0, 1.0), st.sampled_from([-1.0, 1.0, 0.0, 0.5]), signed(powers(-12, 0))
    )
    features = draw(st.lists(numbers, min_size=m * n, max_size=m * n))
    labels = draw(st.lists(st.sampled_from([-1, 1]), min_size=m * n, max_size=m * n))
    thresholds = draw(st.lists(numbers, min_size=m, max_size=m))
    return (
        np.reshape(features, (m, n)) * width,
        np.reshape(labels, (m, n)),
        np.array(thresholds) * width,
    )


PLANE = heads(largest=4, widths=st.just(1.0))


def by_definition(features, labels, thresholds, head):
    """Risk and gradient in 60 digits, and how large they would be if nothing cancelled."""
    with mp.workdps(60):
        lam, mu = mp.mpf(float(head.label_score)), mp.mpf(float(head.scale))
        if head.given[0] == "excess":
            lam = mp.mpf(float(head.excess)) + mu * mp.mpf(head.half_width)
        sums = [mp.mpf(0)] * 6
        for row, signs, alpha in zip(features, labels, thresholds, strict=True):
            d = [mp.mpf(float(number)) - mp.mpf(float(alpha)) for number in row]
            y = [int(sign) for sign in signs]
            scores = [lam * b + mu * a for a, b in zip(d, y, strict=True)]
            weights = [mp.exp(score - max(scores)) for score in scores]

            def average(numbers, weights=weights):
                return mp.fdot(weights, numbers) / sum(weights)

            miss, label = average(d), average(y)
            pairs = [(a - miss) * (b - label) for a, b in zip(d, y, strict=True)]
            cov, var = average(pairs), average([(a - miss) ** 2 for a in d])
            size, whole_cov = average([abs(a) for a in d]), average([abs(pair) for pair in pairs])
            exact = (miss**2, 2 * miss * cov, 2 * miss * var)
            whole = (size**2, 2 * size * whole_cov, 2 * size * var)
            sums = [a + b for a, b in zip(sums, exact + whole, strict=True)]
        risk, by_lam, by_mu, *wholes = (float(entry / len(thresholds)) for entry in sums)
        return (risk, by_lam, by_mu), wholes


@held_to(max_examples=100)
@given(arrays=corpora(), head=PLANE)
def test_a_corpus_risk_is_that_of_the_definition(arrays, head):
    exact, wholes = by_definition(*arrays, head)
    value, gradient = CorpusRisk(Corpus.from_arrays(*arrays)).value_and_gradient(head)
    # A spacing of a score is as much of a weight.
    tolerance = EXACT + SPACING * (abs(head.label_score) + abs(head.scale))
    for found, number, whole in zip((value, *gradient), exact, wholes, strict=True):
        assert abs(found - number) <= tolerance * whole + TINY


@held_to(max_examples=150)
@given(arrays=corpora(), head=heads(largest=12, widths=st.just(1.0)), seed=st.integers(0, 99))
def test_a_corpus_risk_is_finite_bounded_and_blind_to_order_and_mirrors(arrays, head, seed):
    features, labels, thresholds = arrays
    value, gradient = CorpusRisk(Corpus.from_arrays(*arrays)).value_and_gradient(head)
    assert 0.0 <= value <= 4.0 and np.isfinite(gradient).all()
    rng = np.random.default_rng(seed)
    tasks, examples = (rng.permutation(length) for length in features.shape)
    shuffled = Corpus.from_arrays(
        features[tasks][:, examples], labels[tasks][:, examples], thresholds[tasks]
    )
    mirrored = Corpus.from_arrays(-features, -labels, -thresholds)
    for corpus, one, sign in ((shuffled, head, 1), (mirrored, head.reflected, -1)):
        other, turned = CorpusRisk(corpus).value_and_gradient(one)
        assert abs(other - value) <= EXACT * 4.0
        assert np.abs(turned - sign * gradient).max() <= EXACT * 4.0


@held_to(max_examples=60)
@given(arrays=corpora(), at=st.integers(0, 1), bad=st.sampled_from([np.nan, np.inf, 1.0000001]))
def test_a_corpus_with_a_number_that_is_none_is_refused(arrays, at, bad):
    features, labels, thresholds = arrays
    (features, thresholds)[at].flat[0] = bad
    with pytest.raises(ValueError, match="must be finite and in"):
        Corpus.from_arrays(features, labels, thresholds)
    with pytest.raises(ValueError, match="threshold"):
        context_moments(Head.from_ratio(1.5, 5.0), bad, 4)
