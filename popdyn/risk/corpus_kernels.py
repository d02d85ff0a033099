"""Softmax averages of drawn tasks in the group form, cut where the weights end (MODEL §6).

The examples of one label are a group, weighed relative to its heaviest one: the largest feature for
a positive scale, the smallest for a negative one. Distances from there to the other examples and to
the threshold are differences of stored numbers, so that nothing cancels in the averages; the two
heaviest examples and the label score make up the one exponent that divides the weight in two.
"""

from typing import TypeAlias

import numpy as np
from numpy import float64, int64
from numpy.typing import NDArray

from popdyn.attention import group_weights, second_derivatives
from popdyn.compiled import kernel
from popdyn.coordinates import _two_product, _two_sum
from popdyn.risk.exponential_rows import fill_exponentials

__all__ = ["Tasks", "corpus_gradient", "corpus_hessian", "two_product", "two_sum"]

# Features, shape (m, n), each task's positives before its negatives and both ascending; numbers of
# positives, shape (m,); thresholds, shape (m,).
Tasks: TypeAlias = tuple[NDArray[float64], NDArray[int64], NDArray[float64]]

two_sum = kernel(_two_sum)
two_product = kernel(_two_product)

# The rest of a group is left out once it adds less than this part to the sum of squared distances,
# and so to the variance. That sum and not the weights, of which near duplicates of the heaviest
# example have almost all: they make no variance, and the next example may be far away.
_NEGLIGIBLE = 1e-16
_FALLING = 3.0  # `d^3 exp(-mu d)`, the largest integrand, falls from `mu d = 3` on
# Examples weighed before the first look at the rest, and at most between looks.
_FIRST_BLOCK, _BLOCK = 16, 64
# Below this part of the mean square the variance is summed anew around the mean: the difference of
# mean square and squared mean then loses more than a digit.
_CANCELS = 0.1


@kernel
def _sums(distances: NDArray[float64], weights: NDArray[float64]) -> tuple[float, float, float]:
    """Sums of `w`, `w d` and `w d^2`: in four parts, which the processor adds at the same time."""
    a0, a1, a2, a3 = 0.0, 0.0, 0.0, 0.0
    b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0
    c0, c1, c2, c3 = 0.0, 0.0, 0.0, 0.0
    for quarter in range(weights.size // 4):
        i = 4 * quarter
        d0, d1, d2, d3 = distances[i], distances[i + 1], distances[i + 2], distances[i + 3]
        w0, w1, w2, w3 = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        a0, a1, a2, a3 = a0 + w0, a1 + w1, a2 + w2, a3 + w3
        w0, w1, w2, w3 = w0 * d0, w1 * d1, w2 * d2, w3 * d3
        b0, b1, b2, b3 = b0 + w0, b1 + w1, b2 + w2, b3 + w3
        c0, c1, c2, c3 = c0 + w0 * d0, c1 + w1 * d1, c2 + w2 * d2, c3 + w3 * d3
    for i in range(weights.size - weights.size % 4, weights.size):
        d0, w0 = distances[i], weights[i]
        a0, b0, c0 = a0 + w0, b0 + w0 * d0, c0 + w0 * d0 * d0
    return (a0 + a1) + (a2 + a3), (b0 + b1) + (b2 + b3), (c0 + c1) + (c2 + c3)


@kernel
def _group(
    features: NDArray[float64], mu: float, buffers: NDArray[float64], with_third: bool
) -> tuple[float, float, float, float]:
    """Mass, mean, variance and third central moment of the distances to the heaviest example.

    The third one on demand.
    """
    size = features.size
    if size == 0:
        return 0.0, 0.0, 0.0, 0.0
    rate = abs(mu)
    downwards = mu >= 0.0
    top = features[size - 1] if downwards else features[0]
    distances, weights, powers = buffers[0], buffers[1], buffers[2]
    mass, mean, square = 0.0, 0.0, 0.0
    kept, end = 0, min(_FIRST_BLOCK, size)
    while kept < end:
        points = features[size - end : size - kept] if downwards else features[kept:end]
        block = slice(kept, end)
        fill_exponentials(rate, top, points, distances[block], weights[block], powers[block])
        more_mass, more_mean, more_square = _sums(distances[block], weights[block])
        mass += more_mass
        mean += more_mean
        square += more_square
        last = kept if downwards else end - 1  # of the block, the farthest from the top
        farthest = distances[last]
        rest = (size - end) * weights[last] * farthest * farthest
        kept = end
        if rate * farthest < _FALLING or rest > _NEGLIGIBLE * square or square == 0.0:
            end = min(end + min(end, _BLOCK), size)
    mean /= mass
    square /= mass
    variance, third = square - mean * mean, 0.0
    if with_third or variance < _CANCELS * square:
        variance = 0.0
        for i in range(kept):
            off = distances[i] - mean
            part = weights[i] * off * off
            variance += part
            third += part * off
        variance /= mass
        third /= mass
    return mass, mean, variance, third


@kernel
def _exponent(top_plus: float, top_minus: float, score: float, base: float, mu: float) -> float:
    """`mu (top- - top+ - base) - 2 score`, rounded once: its terms reach 1e5 and cancel."""
    gap, gap_tail = two_sum(top_minus, -top_plus)
    gap, base_tail = two_sum(gap, -base)
    product, product_tail = two_product(mu, gap)
    total, total_tail = two_sum(product, -2.0 * score)
    exponent: float = total + (total_tail + (product_tail + mu * (gap_tail + base_tail)))
    return exponent


@kernel
def _task(
    tasks: Tasks,
    j: int,
    score: float,
    base: float,
    mu: float,
    buffers: NDArray[float64],
    with_thirds: bool,
) -> tuple[float, float, float, float, float, float, float, float]:
    """`F - alpha, P+, P-, m+ - m-, v+, v-, dv+/dmu, dv-/dmu` of one task."""
    features, n_positives, threshold = tasks[0][j], tasks[1][j], tasks[2][j]
    n_examples = features.size
    sign = 1.0 if mu >= 0.0 else -1.0
    mass_p, mean_p, v_plus, third_p = _group(features[:n_positives], mu, buffers, with_thirds)
    mass_n, mean_n, v_minus, third_n = _group(features[n_positives:], mu, buffers, with_thirds)
    top_plus = features[max(n_positives - 1, 0) if mu >= 0.0 else 0]
    top_minus = features[n_examples - 1 if mu >= 0.0 else min(n_positives, n_examples - 1)]
    exponent = _exponent(top_plus, top_minus, score, base, mu)
    positive, negative = group_weights(mass_p, mass_n, exponent)
    error = positive * ((top_plus - threshold) - sign * mean_p) + negative * (
        (top_minus - threshold) - sign * mean_n
    )
    gap = (top_plus - top_minus) - sign * (mean_p - mean_n)
    return error, positive, negative, gap, v_plus, v_minus, -sign * third_p, -sign * third_n


@kernel
def corpus_gradient(
    tasks: Tasks, score: float, base: float, mu: float
) -> tuple[float, float, float]:
    """Risk and gradient where `lam = score + mu base / 2`."""
    n_tasks, n_examples = tasks[0].shape
    buffers = np.empty((3, n_examples))
    value, d_lam, d_mu = 0.0, 0.0, 0.0
    for j in range(n_tasks):
        error, positive, negative, gap, v_plus, v_minus, _, _ = _task(
            tasks, j, score, base, mu, buffers, False
        )
        both = positive * negative
        value += error * error
        d_lam += error * (2.0 * both * gap)
        d_mu += error * (positive * v_plus + negative * v_minus + both * gap * gap)
    return value / n_tasks, 2.0 * d_lam / n_tasks, 2.0 * d_mu / n_tasks


@kernel
def corpus_hessian(
    tasks: Tasks, score: float, base: float, mu: float
) -> tuple[float, float, float]:
    """Hessian where `lam = score + mu base / 2`: its entries lam lam, lam mu, mu mu."""
    n_tasks, n_examples = tasks[0].shape
    buffers = np.empty((3, n_examples))
    lam_lam, lam_mu, mu_mu = 0.0, 0.0, 0.0
    for j in range(n_tasks):
        error, positive, negative, gap, v_plus, v_minus, slope_plus, slope_minus = _task(
            tasks, j, score, base, mu, buffers, True
        )
        both = positive * negative
        covariance = 2.0 * both * gap
        variance = positive * v_plus + negative * v_minus + both * gap * gap
        f_ll, f_lm, f_mm = second_derivatives(
            positive, negative, 0.0, -gap, v_plus, v_minus, slope_plus, slope_minus
        )
        lam_lam += covariance * covariance + error * f_ll
        lam_mu += covariance * variance + error * f_lm
        mu_mu += variance * variance + error * f_mm
    return 2.0 * lam_lam / n_tasks, 2.0 * lam_mu / n_tasks, 2.0 * mu_mu / n_tasks
