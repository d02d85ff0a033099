"""Threshold estimates on drawn contexts: a head, its reflected pair, midpoints (MODEL §7)."""

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.coordinates import Head, require_head
from popdyn.corpus import Corpus, require_corpus

__all__ = ["bayes_estimates", "midpoints", "pair_predictions", "predictions"]


def predictions(head: Head, corpus: Corpus) -> NDArray[float64]:
    """Softmax average `F` of the features of each task (MODEL §1).

    Exponents are differences from the heaviest example: no scale overflows, and at large scale the
    average is that example's feature. Good to rounding, but for the division of the weight between
    the labels where the heaviest examples of both weigh alike: `1e-16 mu l` of it is lost there.

    Parameters
    ----------
    head : Head, fields of shape (...)
        Of the half width of the corpus.
    corpus : Corpus
        Of m tasks.

    Returns
    -------
    ndarray, shape (..., m)
        In the units of the half width; the thresholds play no part.

    Raises
    ------
    ValueError
        If the half widths differ.

    Examples
    --------
    >>> corpus = Corpus.from_arrays([[-0.5, 0.3, 0.9]], [[1, 1, -1]], thresholds=[0.4])
    >>> head = Head.from_scores(1.5e6, 1e6)
    >>> print(predictions(head, corpus), pair_predictions(head, corpus))
    [0.3] [0.6]
    """
    require_head(head)
    require_corpus(corpus)
    if head.half_width != corpus.half_width:
        raise ValueError(
            f"head and corpus must have one half width, got {head.half_width!r} and "
            f"{corpus.half_width!r}"
        )
    scores = zip(np.ravel(head.label_score), np.ravel(head.scale), strict=True)
    rows = [_softmax_average(float(lam), float(mu), corpus) for lam, mu in scores]
    return np.array(rows, dtype=float64).reshape(*head.shape, corpus.n_tasks)


def _softmax_average(lam: float, mu: float, corpus: Corpus) -> NDArray[float64]:
    x, y = corpus.features, corpus.labels.astype(float64)
    heaviest = np.argmax(lam * y + mu * x, axis=1)[:, None]
    top = np.take_along_axis(x, heaviest, axis=1)
    distances = x - top
    weights = np.exp(mu * distances + lam * (y - np.take_along_axis(y, heaviest, axis=1)))
    average: NDArray[float64] = (weights * distances).sum(axis=1) / weights.sum(axis=1)
    return top[:, 0] + average


def pair_predictions(head: Head, corpus: Corpus) -> NDArray[float64]:
    """Average of the predictions of a head and of its reflection, shape `(..., m)` (MODEL §7).

    Both heads read the same contexts; where the design is asymmetric as well. Arguments, accuracy
    and errors are those of `predictions`.
    """
    require_head(head)
    return 0.5 * (predictions(head, corpus) + predictions(head.reflected, corpus))


def midpoints(corpus: Corpus) -> NDArray[float64]:
    """Midpoint of the largest positive and the smallest negative feature, shape `(m,)` (MODEL §7).

    The limit of `pair_predictions` for large `mu` and `lam > mu l`, and so without sentinels: where
    a label is missing, both heads fall back on the other one, and this is the midpoint of the
    smallest and the largest feature of all.
    """
    require_corpus(corpus)
    positive = corpus.labels > 0
    from_below = np.where(positive, corpus.features, -np.inf).max(axis=1)
    from_above = np.where(positive, np.inf, corpus.features).min(axis=1)
    from_below = np.where(positive.any(axis=1), from_below, corpus.features[:, -1])
    from_above = np.where(positive.all(axis=1), corpus.features[:, 0], from_above)
    return np.asarray(0.5 * (from_below + from_above), dtype=float64)


def bayes_estimates(corpus: Corpus) -> NDArray[float64]:
    """The midpoint with the ends of the interval as sentinels, shape `(m,)` (MODEL §7).

    Where a label is missing, the end of the interval on its side stands in for it. Given a context
    with clean labels, a uniform threshold is uniform between its neighbours, whatever the density
    of the features: this is then its mean, and no estimate has a smaller mean square error. With
    flipped labels or another law of the thresholds it is a reference and no more.
    """
    require_corpus(corpus)
    positive = corpus.labels > 0
    width = corpus.half_width
    from_below = np.where(positive, corpus.features, -width).max(axis=1)
    from_above = np.where(positive, width, corpus.features).min(axis=1)
    return np.asarray(0.5 * (from_below + from_above), dtype=float64)
