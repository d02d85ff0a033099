"""Softmax averages of drawn tasks in the group form, cut where the weights end (MODEL §6).

The examples of one label are a group, weighed relative to its heaviest one: the largest feature for
a positive scale, the smallest for a negative one. Distances from there to the other examples and to
the threshold are differences of stored numbers, so that nothing cancels in the averages; the two
heaviest examples and the label score make up the one exponent that divides the weight in two.

The averages of the groups depend on the scale alone. They are found for a block of tasks at a time,
and each label score is then one loop over the block.
"""

from typing import TypeAlias

import numpy as np
from numpy import float64, int64
from numpy.typing import NDArray

from popdyn.attention import second_derivatives
from popdyn.compiled import kernel
from popdyn.error_free import two_product as _two_product
from popdyn.error_free import two_sum as _two_sum
from popdyn.machine_arithmetic import fusable_product, fused_multiply_add, reordered_add
from popdyn.risk.exponential_rows import LOG2_E, exponential, power_of_two

__all__ = [
    "Tasks",
    "corpus_gradient",
    "corpus_gradients",
    "corpus_hessians",
    "two_product",
    "two_sum",
]

# Features, shape (m, n), each task's positives before its negatives and both ascending; numbers of
# positives, shape (m,); thresholds, shape (m,).
Tasks: TypeAlias = tuple[NDArray[float64], NDArray[int64], NDArray[float64]]

two_sum = kernel(_two_sum)
two_product = kernel(_two_product)

# The rest of a group is left out once it adds less than this part to the sum of squared distances,
# and so to the variance. That sum and not the weights, of which near duplicates of the heaviest
# example have almost all: they make no variance, and the next example may be far away.
_NEGLIGIBLE = 1e-15
_FALLING = 3.0  # `d^3 exp(-mu d)`, the largest integrand, falls from `mu d = 3` on
# Where evenly spread examples get negligible: `(z^3/8) exp(-z)` is then below this part.
_FAR = 44.0
# As many standard deviations of a Poisson number more are weighed at first: of groups of uniform
# features at most 5 % then reach farther, which costs them a second look.
_MARGIN = 2.0
_LANES = 8  # numbers in a vector instruction: examples are taken by whole vectors
# Below this part of the mean square the variance is summed anew around the mean: the difference of
# mean square and squared mean then loses more than a digit.
_CANCELS = 0.1
_BLOCK = 64  # tasks taken at a time: what is kept of them, 26 numbers each, stays in the cache

# Rows of what is kept of a block of tasks, with the positives of all tasks in the first half of a
# row and the negatives in the second: the heaviest feature of each group and averages of the signed
# distances `d` to it;
_TOP, _MEAN, _VARIANCE, _THIRD = range(4)
# sums of `w`, `w d` and `w d^2` over the examples up to an end, and what is known of the others:
# two distances, and how many are at the one or farther, and at the other or farther.
_MASS, _ONCE, _TWICE, _END, _GOAL, _NEAREST, _FARTHER, _N_NEAREST, _N_FARTHER = range(4, 13)
_ROWS = 13


@kernel
def _first_look(features: NDArray[float64], n_positives: int, mu: float) -> int:
    """How many examples of a group probably reach as far as its weights, in whole vectors."""
    size = features.size
    lowest = min(features[0], features[min(n_positives, size - 1)])
    highest = max(features[max(n_positives, 1) - 1], features[size - 1])
    reach = abs(mu) * (highest - lowest)
    if not reach > _FAR:
        return size
    expected = size * (_FAR / reach)
    return (int(expected + _MARGIN * np.sqrt(expected)) // _LANES + 1) * _LANES


@kernel
def _span(tasks: Tasks, start: int, half: int, i: int) -> tuple[int, int, int]:
    """Task, first example and end of the group that column `i` is about."""
    j = start + (i if i < half else i - half)
    n_positives = tasks[1][j]
    return (j, 0, n_positives) if i < half else (j, n_positives, tasks[0].shape[1])


@kernel
def _sum_on(tasks: Tasks, start: int, count: int, mu: float, kept: NDArray[float64]) -> None:
    """Add to the sums of each group its examples from the end to the goal: the new end."""
    features, n_positives, _ = tasks
    size = features.shape[1]
    half = kept.shape[1] // 2
    downwards = mu >= 0.0
    rate = mu * LOG2_E
    for g in range(2 * count):
        i = g // 2 + half * (g % 2)  # the two groups of a task in turn: they are neighbours
        if not kept[_GOAL, i] > kept[_END, i]:
            continue
        j = start + g // 2  # not by `_span`: handing the tasks over costs as much as 16 examples
        lower = n_positives[j] if g % 2 else 0
        upper = size if g % 2 else n_positives[j]
        n = upper - lower
        row = np.uintp(j)  # what has no sign is not held against 0 where it is an index
        begin, end = int(kept[_END, i]), min(int(kept[_GOAL, i]), n)
        top = features[row, np.uintp(upper - 1 if downwards else lower)] if n > 0 else 0.0
        after = min(end + (end // 4 // _LANES + 1) * _LANES, n)
        nearest, farther = 0.0, 0.0
        if end < n:
            nearest = features[row, np.uintp(upper - end if downwards else lower + end - 1)] - top
            farther = (
                features[row, np.uintp(upper - after if downwards else lower + after - 1)] - top
            )
        kept[_TOP, i], kept[_END, i] = top, end
        kept[_NEAREST, i], kept[_N_NEAREST, i] = nearest, after - end
        kept[_FARTHER, i], kept[_N_FARTHER, i] = farther, n - after
        first = np.uintp(upper - end if downwards else lower + begin)
        mass, once, twice = 0.0, 0.0, 0.0
        for k in range(np.uintp(end - begin)):
            d = features[row, first + k] - top
            w = power_of_two(d, rate)
            part = fusable_product(w, d)
            mass = reordered_add(mass, w)
            once = reordered_add(once, part)
            twice = reordered_add(twice, fusable_product(part, d))
        kept[_MASS, i] += mass
        kept[_ONCE, i] += once
        kept[_TWICE, i] += twice


@kernel
def _average(first: int, stop: int, rate: float, kept: NDArray[float64]) -> tuple[float, float]:
    """Averages from the sums, and in how many groups they need more examples or have cancelled.

    The goal of the former is set beyond the end.
    """
    masses, onces, twices = kept[_MASS], kept[_ONCE], kept[_TWICE]
    means, variances = kept[_MEAN], kept[_VARIANCE]
    nearest, farther = kept[_NEAREST], kept[_FARTHER]
    n_nearest, n_farther = kept[_N_NEAREST], kept[_N_FARTHER]
    ends, goals = kept[_END], kept[_GOAL]
    n_open, n_cancel = 0.0, 0.0
    for i in range(np.uintp(first), np.uintp(stop)):
        mass = max(masses[i], 1.0)  # that of the top alone; of no example it is 0
        mean = onces[i] / mass
        square = twices[i] / mass
        variance = square - mean * mean
        a, b = nearest[i], farther[i]
        rest = n_nearest[i] * (power_of_two(a, rate) * a * a)
        rest += n_farther[i] * (power_of_two(b, rate) * b * b)
        rises = (rate * a > -_FALLING * LOG2_E) & (n_nearest[i] > 0.0)
        is_open = rises | (rest > _NEGLIGIBLE * twices[i])
        means[i], variances[i] = mean, variance
        goals[i] = ends[i] + (n_nearest[i] if is_open else 0.0)
        n_open = reordered_add(n_open, 1.0 if is_open else 0.0)
        n_cancel = reordered_add(n_cancel, 1.0 if variance < _CANCELS * square else 0.0)
    return n_open, n_cancel


@kernel
def _sum_around_means(
    tasks: Tasks, start: int, count: int, mu: float, all_groups: bool, kept: NDArray[float64]
) -> None:
    """Variances, and third central moments, of all groups or of those whose variances cancelled."""
    features = tasks[0]
    half = kept.shape[1] // 2
    rate = mu * LOG2_E
    for g in range(2 * count):
        i = g // 2 + half * (g % 2)
        mass, mean, variance = kept[_MASS, i], kept[_MEAN, i], kept[_VARIANCE, i]
        if mass == 0.0:
            kept[_THIRD, i] = 0.0
            continue
        if not (all_groups or variance * mass < _CANCELS * kept[_TWICE, i]):
            continue
        j, lower, upper = _span(tasks, start, half, i)
        end = int(kept[_END, i])
        first = np.uintp(upper - end if mu >= 0.0 else lower)
        row, top = np.uintp(j), kept[_TOP, i]
        twice, thrice = 0.0, 0.0
        for k in range(np.uintp(end)):
            d = features[row, first + k] - top
            off = d - mean
            part = fusable_product(fusable_product(power_of_two(d, rate), off), off)
            twice = reordered_add(twice, part)
            thrice = reordered_add(thrice, fusable_product(part, off))
        kept[_VARIANCE, i], kept[_THIRD, i] = twice / mass, thrice / mass


@kernel
def _weigh(
    tasks: Tasks, start: int, mu: float, n_first: int, with_thirds: bool, kept: NDArray[float64]
) -> int:
    """Fill `kept` for the tasks from `start` on and return how many there are."""
    half = kept.shape[1] // 2
    count: int = min(half, tasks[2].size - start)
    rate = mu * LOG2_E
    for i in range(2 * half):
        kept[_GOAL, i] = n_first
        kept[_MASS, i] = kept[_ONCE, i] = kept[_TWICE, i] = kept[_END, i] = 0.0
    while True:
        _sum_on(tasks, start, count, mu, kept)
        open_p, cancel_p = _average(0, count, rate, kept)
        open_n, cancel_n = _average(half, half + count, rate, kept)
        if open_p + open_n == 0.0:
            break
    if with_thirds or cancel_p + cancel_n > 0.0:
        _sum_around_means(tasks, start, count, mu, with_thirds, kept)
    return count


@kernel
def _weights(
    mass_p: float, mass_n: float, top_p: float, top_n: float, score: float, base: float, mu: float
) -> tuple[float, float]:
    """`P+` and `P-`: the one exponent is `mu (top- - top+ - base) - 2 score`.

    Its terms reach 1e5 and cancel, so that it takes two doubles.
    """
    gap, gap_tail = two_sum(top_n, -top_p)
    gap, base_tail = two_sum(gap, -base)
    product = mu * gap
    product_tail = fused_multiply_add(mu, gap, -product)
    total, total_tail = two_sum(product, -2.0 * score)
    tail = total_tail + (product_tail + mu * (gap_tail + base_tail))
    sign = -1.0 if total > 0.0 else 1.0
    less = exponential(sign * total, sign * tail)
    if mass_p * mass_n == 0.0:  # all weight is in one group, whatever the exponent
        less = 1.0
    positive = mass_p * (less if total > 0.0 else 1.0)
    negative = mass_n * (1.0 if total > 0.0 else less)
    both = positive + negative
    return positive / both, negative / both


@kernel
def _gradient(
    tasks: Tasks,
    start: int,
    kept: NDArray[float64],
    count: int,
    score: float,
    base: float,
    mu: float,
) -> tuple[float, float, float]:
    """Sums over the tasks: of the squared error, and of the error times each derivative."""
    thresholds = tasks[2]
    half = np.uintp(kept.shape[1] // 2)
    tops, masses, means, variances = kept[_TOP], kept[_MASS], kept[_MEAN], kept[_VARIANCE]
    value, d_lam, d_mu = 0.0, 0.0, 0.0
    for i in range(np.uintp(count)):
        top_p, top_n, mean_p, mean_n = tops[i], tops[half + i], means[i], means[half + i]
        positive, negative = _weights(masses[i], masses[half + i], top_p, top_n, score, base, mu)
        threshold = thresholds[np.uintp(start) + i]
        error = positive * ((top_p - threshold) + mean_p) + negative * (
            (top_n - threshold) + mean_n
        )
        gap = (top_p - top_n) + (mean_p - mean_n)
        covariance = positive * negative * gap
        variance = positive * variances[i] + negative * variances[half + i] + covariance * gap
        value = reordered_add(value, fusable_product(error, error))
        d_lam = reordered_add(d_lam, fusable_product(error, 2.0 * covariance))
        d_mu = reordered_add(d_mu, fusable_product(error, variance))
    return value, d_lam, d_mu


@kernel
def _hessian(
    tasks: Tasks,
    start: int,
    kept: NDArray[float64],
    count: int,
    score: float,
    base: float,
    mu: float,
) -> tuple[float, float, float]:
    """Sums over the tasks of half the second derivatives of the squared error."""
    half = kept.shape[1] // 2
    lam_lam, lam_mu, mu_mu = 0.0, 0.0, 0.0
    for i in range(count):
        n = half + i
        top_p, top_n = kept[_TOP, i], kept[_TOP, n]
        mean_p, mean_n, v_plus, v_minus = (
            kept[_MEAN, i],
            kept[_MEAN, n],
            kept[_VARIANCE, i],
            kept[_VARIANCE, n],
        )
        positive, negative = _weights(kept[_MASS, i], kept[_MASS, n], top_p, top_n, score, base, mu)
        threshold = tasks[2][start + i]
        error = positive * ((top_p - threshold) + mean_p) + negative * (
            (top_n - threshold) + mean_n
        )
        gap = (top_p - top_n) + (mean_p - mean_n)
        both = positive * negative
        covariance = 2.0 * both * gap
        variance = positive * v_plus + negative * v_minus + both * gap * gap
        f_ll, f_lm, f_mm = second_derivatives(
            positive, negative, 0.0, -gap, v_plus, v_minus, kept[_THIRD, i], kept[_THIRD, n]
        )
        lam_lam += covariance * covariance + error * f_ll
        lam_mu += covariance * variance + error * f_lm
        mu_mu += variance * variance + error * f_mm
    return lam_lam, lam_mu, mu_mu


@kernel
def corpus_gradient(
    tasks: Tasks, score: float, base: float, mu: float
) -> tuple[float, float, float]:
    """Risk and gradient where `lam = score + mu base / 2`."""
    n_tasks = tasks[2].size
    n_first = _first_look(tasks[0][0], tasks[1][0], mu)
    kept = np.empty((_ROWS, 2 * min(n_tasks, _BLOCK)))
    value, d_lam, d_mu = 0.0, 0.0, 0.0
    for start in range(0, n_tasks, _BLOCK):
        count = _weigh(tasks, start, mu, n_first, False, kept)
        more_value, more_lam, more_mu = _gradient(tasks, start, kept, count, score, base, mu)
        value += more_value
        d_lam += more_lam
        d_mu += more_mu
    return value / n_tasks, 2.0 * d_lam / n_tasks, 2.0 * d_mu / n_tasks


@kernel
def _end_of_scale(scales: NDArray[float64], first: int) -> int:
    """Where the scale `scales[first]` ends."""
    stop = first
    while stop < scales.size and scales[stop] == scales[first]:
        stop += 1
    return stop


@kernel
def corpus_gradients(
    tasks: Tasks, scores: NDArray[float64], bases: NDArray[float64], scales: NDArray[float64]
) -> NDArray[float64]:
    """`corpus_gradient` at many heads, shape `(k, 3)`: quick where neighbours share their scale."""
    n_tasks = tasks[2].size
    kept = np.empty((_ROWS, 2 * min(n_tasks, _BLOCK)))
    found = np.zeros((scales.size, 3))
    first = 0
    while first < scales.size:
        mu, stop = scales[first], _end_of_scale(scales, first)
        n_first = _first_look(tasks[0][0], tasks[1][0], mu)
        for start in range(0, n_tasks, _BLOCK):
            count = _weigh(tasks, start, mu, n_first, False, kept)
            for i in range(first, stop):
                value, d_lam, d_mu = _gradient(tasks, start, kept, count, scores[i], bases[i], mu)
                found[i, 0] += value
                found[i, 1] += d_lam
                found[i, 2] += d_mu
        first = stop
    for i in range(scales.size):
        found[i, 0] /= n_tasks
        found[i, 1] = 2.0 * found[i, 1] / n_tasks
        found[i, 2] = 2.0 * found[i, 2] / n_tasks
    return found


@kernel
def corpus_hessians(
    tasks: Tasks, scores: NDArray[float64], bases: NDArray[float64], scales: NDArray[float64]
) -> NDArray[float64]:
    """Entries lam lam, lam mu and mu mu of the Hessians there, shape `(k, 3)`."""
    n_tasks = tasks[2].size
    kept = np.empty((_ROWS, 2 * min(n_tasks, _BLOCK)))
    found = np.zeros((scales.size, 3))
    first = 0
    while first < scales.size:
        mu, stop = scales[first], _end_of_scale(scales, first)
        n_first = _first_look(tasks[0][0], tasks[1][0], mu)
        for start in range(0, n_tasks, _BLOCK):
            count = _weigh(tasks, start, mu, n_first, True, kept)
            for i in range(first, stop):
                entries = _hessian(tasks, start, kept, count, scores[i], bases[i], mu)
                found[i, 0] += entries[0]
                found[i, 1] += entries[1]
                found[i, 2] += entries[2]
        first = stop
    return 2.0 * found / n_tasks
