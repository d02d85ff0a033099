"""Bias and mean square error of a reflected pair and of the midpoints it nears (MODEL §6, §7).

Those of a pair need the joint law of two heads that read one context. Each head's own moments are
those of `context_moments`; with weights `w` and `1/w` of an example, their mixed moment is

    E[(F - alpha)(F' - alpha)] = int int n A phi^(n-1) + n (n-1) A1 A1' phi^(n-2) dy dy'

where `phi`, `A1`, `A1'` and `A` are the averages of `exp(-u w - u'/w)` over one example, alone and
times `d u w`, `d u'/w` and the product of both, `d = x - alpha`, `y = log u`, `y' = log u'`. Every
average is a product of two tables, one for each head.
"""

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from popdyn.arguments import one_width, thresholds_inside
from popdyn.coordinates import Head, require_head
from popdyn.design import Design
from popdyn.moments import ContextMoments, context_cells, context_moments, context_sizes
from popdyn.quadrature import unit_scores
from popdyn.weight_transform import Panels, example_panels

__all__ = ["bayes_moments", "midpoint_moments", "pair_moments"]

LARGEST_SCALE = 256.0  # of mu l: time and memory grow like its cube and square


def pair_moments(
    head: Head, threshold: ArrayLike, n_examples: ArrayLike, design: Design | None = None
) -> ContextMoments:
    """Exact moments of a reflected pair's error over contexts of `n_examples` (MODEL §6, §7).

    The error is `(F(lam, mu) + F(-lam, -mu)) / 2 - alpha`, both heads on the same context. The two
    heads' errors cancel for many examples, and what is left keeps the absolute accuracy of theirs:
    the mean square error is good to 1e-14 of that of one head, 1e-13 from a million examples on.
    A head and threshold take about 0.1 s at `mu l = 32`, 1 s at 128, and 10 s and 500 MB at 256
    for few examples; 14 sizes take 1.5 times as long as one.

    Parameters
    ----------
    head : Head, fields of shape (...)
        With `|scale| * half_width` at most 256; beyond, `pair_moments_sampled`.
    threshold, n_examples, design
        As in `context_moments`.

    Raises
    ------
    ValueError
        As in `context_moments`, or if the scale is too large.

    Examples
    --------
    >>> moments = pair_moments(Head.from_tube(np.log(2), 32), 0.0, [8, 128, 2048])
    >>> print(moments.root_mean_square.round(5))
    [0.14906 0.01158 0.00199]
    """
    require_head(head)
    scores = unit_scores(head)
    largest = float(np.abs(scores[2]).max(initial=0.0))
    if largest > LARGEST_SCALE:
        raise ValueError(
            f"scale * half_width must be at most {LARGEST_SCALE:g} for exact moments of a pair, "
            f"got {largest!r}; use pair_moments_sampled, or midpoint_moments where "
            "scale * half_width exceeds n_examples by far"
        )
    design = Design(head.half_width) if design is None else design
    plain = context_moments(head, threshold, n_examples, design)
    other = context_moments(head.reflected, threshold, n_examples, design)
    cells = context_cells(head, threshold, n_examples, design)
    mixed = np.empty(cells.sizes.size)
    for (lam, delta, mu, s, r), of_pair in cells.pairs():
        sizes = cells.sizes[of_pair]
        law = example_panels(lam, delta, mu, s, r, float(sizes.max()), design)
        mixed[of_pair] = head.half_width**2 * _mixed_moments(law, mu, sizes)
    mean_square = 0.25 * (plain.mean_square_error + other.mean_square_error) + 0.5 * mixed.reshape(
        cells.shape
    )
    return ContextMoments(0.5 * (plain.bias + other.bias), mean_square)


_STEP = 0.25  # of the trapezoid rule, as for one head
_VANISHED = 4.2  # exp(-exp(4.2)) = 1e-29
_LOWEST_POWER = -80.0  # of phi^(n-2), in logarithms


def _mixed_moments(law: Panels, mu: float, sizes: NDArray[float64]) -> NDArray[float64]:
    """For each context size, from averages that all sizes share."""
    groups = np.repeat(law.groups, law.counts)[:, None]
    log_weights = (abs(mu) * law.gaps + law.base * groups).ravel()
    mass, gaps = law.masses.ravel(), law.gaps.ravel()
    fewest = float(sizes.min())
    gone, left, first = _table(log_weights, mass, law.reach, fewest)
    other_gone, other_left, other_first = _table(-log_weights, mass, law.reach, fewest)
    phi = (left * mass) @ other_left.T
    complement = (gone @ mass)[:, None] + (left * mass) @ other_gone.T
    log_phi = np.where(complement < 0.5, np.log1p(-np.minimum(complement, 0.5)), _log(phi))
    both = (first * (mass * gaps * gaps)) @ other_first.T
    each = (first * (mass * gaps)) @ other_left.T * ((left * (mass * gaps)) @ other_first.T)
    moments = np.empty(sizes.size)
    for i, n in enumerate(sizes):
        moments[i] = n * np.sum(both * np.exp((n - 1.0) * log_phi))
        if n > 1.0:
            moments[i] += n * (n - 1.0) * np.sum(each * np.exp((n - 2.0) * log_phi))
    return _STEP**2 * moments


def _table(
    log_weights: NDArray[float64], mass: NDArray[float64], reach: float, fewest: float
) -> tuple[NDArray[float64], NDArray[float64], NDArray[float64]]:
    """`1 - exp(-tau)`, `exp(-tau)` and `tau exp(-tau)`, `tau = u w`: `(grid, nodes)`.

    The grid of `log u` ends where `exp(-tau)` vanishes on all nodes, or its average to the power
    of `fewest - 2` does.
    """
    y = np.arange(-reach - log_weights.max(), _VANISHED - log_weights.min(), _STEP)
    tau = np.exp(np.minimum(y[:, None] + log_weights, 2.0 * _VANISHED))
    left = np.exp(-tau)
    seen = (fewest - 2.0) * _log(left @ mass) > _LOWEST_POWER
    tau, left = tau[seen], left[seen]
    return -np.expm1(-tau), left, tau * left


def _log(phi: NDArray[float64]) -> NDArray[float64]:
    return np.asarray(np.log(np.maximum(phi, 1e-300)))


def midpoint_moments(
    threshold: ArrayLike, n_examples: ArrayLike, half_width: float = 1.0
) -> ContextMoments:
    """Exact moments of the error of `midpoints` on clean uniform contexts (MODEL §7).

    With `s` and `r` the distances to the two ends over `2 l`, the bias is `l (r^N - s^N)` and the
    mean square error `2 l^2/((N + 1)(N + 2)) - alpha bias`. It is that of a reflected pair for
    `mu -> oo` and `lam > mu l`; averaged over uniform thresholds it is `2 l^2/(N + 2)`.

    Parameters
    ----------
    threshold : array_like, shape (...)
        In `[-half_width, half_width]`.
    n_examples : array_like of whole numbers, shape (...)
        At least 1. Broadcasts against the thresholds.
    half_width : float

    Raises
    ------
    ValueError
        If a threshold lies outside the interval, a size is no whole number of at least 1, or the
        half width is not positive.

    Examples
    --------
    >>> moments = midpoint_moments([-1.0, 0.0], 100)
    >>> print(moments.root_mean_square.round(5))
    [1.0001  0.01393]
    """
    alpha, n, width, s, r = _task(threshold, n_examples, half_width)
    bias = width * (r**n - s**n)
    square = 2.0 * width**2 / ((n + 1.0) * (n + 2.0)) - alpha * bias
    return ContextMoments(bias, square)


def bayes_moments(
    threshold: ArrayLike, n_examples: ArrayLike, half_width: float = 1.0
) -> ContextMoments:
    """Exact moments of the error of `bayes_estimates` on clean uniform contexts (MODEL §7).

    With `s` and `r` the distances to the two ends over `2 l`, the bias is
    `l (r^(N+1) - s^(N+1))/(N + 1)` and the mean square error
    `2 l^2/(N + 1) (1/(N + 2) - r s (r^N + s^N))`; averaged over uniform thresholds it is
    `2 l^2/((N + 2)(N + 3))`. Arguments and errors are those of `midpoint_moments`.
    """
    _, n, width, s, r = _task(threshold, n_examples, half_width)
    bias = width * (r ** (n + 1.0) - s ** (n + 1.0)) / (n + 1.0)
    square = 2.0 * width**2 / (n + 1.0) * (1.0 / (n + 2.0) - r * s * (r**n + s**n))
    return ContextMoments(bias, square)


def _task(
    threshold: ArrayLike, n_examples: ArrayLike, half_width: float
) -> tuple[NDArray[float64], NDArray[float64], float, NDArray[float64], NDArray[float64]]:
    """Thresholds, sizes, half width, and distances to the two ends over the length of both."""
    width, n = one_width(half_width), context_sizes(n_examples)
    alpha = thresholds_inside(threshold, width)
    return alpha, n, width, (width + alpha) / (2.0 * width), (width - alpha) / (2.0 * width)
