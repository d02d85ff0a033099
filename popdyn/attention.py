"""The predictor of one head on an infinite context, and its derivatives (MODEL §2, §6, §7).

The softmax average is split by label. A threshold at distances `s` and `r` from the two ends has
its positives in `[0, s]` below it and its negatives in `[0, r]` above; each group is a truncated
exponential law with its own mass, mean and cumulants, and the masses divide the weight:

    F - alpha = P- B - P+ A,   A, B the mean distances of the positives and negatives,
    dF/dlam = -2 P+ P- (A + B),   dF/dmu = P+ v+ + P- v- + P+ P- (A + B)^2

Nothing cancels at any scale, through `mu = 0` and at both ends, other than where `F - alpha`
changes sign. Inside, half width 1 and `mu >= 0`: a negative scale is mirrored, the ends swapped.

Flipped labels leave the formulas as they are: each group gains those of the other side, and `A` and
`B` are the mean distances of its mixture, which may be negative.
"""

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from popdyn.arguments import thresholds_inside
from popdyn.compiled import kernel
from popdyn.coordinates import Head, require_head
from popdyn.design import Density, Design, require_design
from popdyn.exponentials import exponential_law
from popdyn.legendre import legendre_rule
from popdyn.quadrature import unit_scores

__all__ = ["limit_error"]


@kernel
def exponent_at(s: float, r: float, lam: float, delta: float, mu: float) -> float:
    """Log of the heaviest negative's weight over the heaviest positive's, at a threshold.

    Of its two forms, `-2 delta - mu s = mu r - 2 lam`, the one with the smaller terms.
    """
    if abs(lam) < abs(delta):
        return mu * r - 2.0 * lam
    return -2.0 * delta - mu * s


@kernel
def group_weights(positive: float, negative: float, exponent: float) -> tuple[float, float]:
    """Softmax weights `P+`, `P-` of groups of these masses, each to full relative precision."""
    if positive == 0.0 or negative == 0.0:  # at an end, whatever the exponent
        return (1.0, 0.0) if negative == 0.0 else (0.0, 1.0)
    if exponent > 0.0:
        positive *= np.exp(-exponent)
    else:
        negative *= np.exp(exponent)
    total = positive + negative
    return positive / total, negative / total


@kernel
def uniform_groups(
    s: float, r: float, exponent: float, mu: float
) -> tuple[float, float, float, float, float, float, float, float]:
    """`P+, P-, A, B, v+, v-, dv+/dmu, dv-/dmu` for uniform features."""
    mass_s, mean_s, variance_s, slope_s = exponential_law(mu * s)
    mass_r, mean_r, variance_r, slope_r = exponential_law(mu * r)
    positive, negative = group_weights(s * mass_s, r * mass_r, exponent)
    return (
        positive,
        negative,
        s * mean_s,
        r * (1.0 - mean_r),
        s * s * variance_s,
        r * r * variance_r,
        s * s * s * slope_s,
        r * r * r * slope_r,
    )


@kernel
def first_derivatives(
    positive: float, negative: float, below: float, above: float, v_plus: float, v_minus: float
) -> tuple[float, float, float]:
    """`F - alpha`, `dF/dlam` and `dF/dmu`."""
    spread = below + above
    both = positive * negative
    return (
        negative * above - positive * below,
        -2.0 * both * spread,
        positive * v_plus + negative * v_minus + both * spread * spread,
    )


@kernel
def second_derivatives(
    positive: float,
    negative: float,
    below: float,
    above: float,
    v_plus: float,
    v_minus: float,
    slope_plus: float,
    slope_minus: float,
) -> tuple[float, float, float]:
    """`d2F/dlam2`, `d2F/dlam dmu` and `d2F/dmu2`."""
    gap = -(below + above)
    both = positive * negative
    tilt = both * (negative - positive)
    difference = v_plus - v_minus
    return (
        4.0 * tilt * gap,
        2.0 * (tilt * gap * gap + both * difference),
        tilt * gap * gap * gap
        + 3.0 * both * gap * difference
        + positive * slope_plus
        + negative * slope_minus,
    )


@kernel
def _uniform_errors(
    s: NDArray[float64], r: NDArray[float64], exponent: NDArray[float64], mu: NDArray[float64]
) -> NDArray[float64]:
    errors = np.empty(s.size)
    for i in range(s.size):
        positive, negative, below, above = uniform_groups(s[i], r[i], exponent[i], mu[i])[:4]
        errors[i] = negative * above - positive * below
    return errors


@kernel
def exponents(
    s: NDArray[float64],
    r: NDArray[float64],
    lam: NDArray[float64],
    delta: NDArray[float64],
    mu: NDArray[float64],
) -> NDArray[float64]:
    """`exponent_at` for rows."""
    found = np.empty(s.size)
    for i in range(s.size):
        found[i] = exponent_at(s[i], r[i], lam[i], delta[i], mu[i])
    return found


# --- any feature density --------------------------------------------------------------------------

# Panels in mu u of a group, u the distance from its heaviest point; beyond 45 the weights are below
# 1e-19. Twenty nodes hold exp(-mu u) to rounding on each, which leaves them for the density.
_GROUP_EDGES = np.array([0.0, 5.0, 17.0, 45.0])
_GROUP_ORDER = 20


def density_groups(
    density: Density,
    half_width: float,
    s: NDArray[float64],
    r: NDArray[float64],
    exponent: NDArray[float64],
    mu: NDArray[float64],
) -> NDArray[float64]:
    """The eight numbers of `uniform_groups` for features of any density, shape `(8, n)`.

    The last four arguments are those of `uniform_groups`, rows of shape `(n,)`, for half width 1;
    the density is a function on `[-half_width, half_width]`.
    """

    def group(length: NDArray[float64], top: NDArray[float64]) -> tuple[NDArray[float64], ...]:
        points, weights = _group_nodes(length, mu)
        x = np.clip(half_width * (top[:, None] - points), -half_width, half_width)
        return _cumulants(points, weights * np.asarray(density(x), dtype=float64))

    mass_s, below, v_plus, third_plus = group(s, np.where(s < r, s - 1.0, 1.0 - r))
    mass_r, from_top, v_minus, third_minus = group(r, np.ones_like(r))
    groups = np.stack(
        (mass_s, mass_r, below, r - from_top, v_plus, v_minus, -third_plus, -third_minus)
    )
    _divide_weight(groups, exponent)
    return groups


def _group_nodes(
    length: NDArray[float64], mu: NDArray[float64]
) -> tuple[NDArray[float64], NDArray[float64]]:
    """Nodes on `[0, length]` and weights with `exp(-mu u)` in them, shapes `(n, nodes)`."""
    distances, weights = legendre_rule(_GROUP_ORDER)
    rate = np.maximum(mu, 0.5 * _GROUP_EDGES[1])  # the first panel covers all at smaller rates
    ends = np.minimum(_GROUP_EDGES / rate[:, None], length[:, None])
    half = 0.5 * np.diff(ends, axis=1)[:, :, None]
    points = (ends[:, :-1, None] + half * distances).reshape(length.size, -1)
    return points, (half * weights).reshape(length.size, -1) * np.exp(-mu[:, None] * points)


def _cumulants(points: NDArray[float64], weights: NDArray[float64]) -> tuple[NDArray[float64], ...]:
    """Mass, mean, variance and third cumulant of each row; an empty row is a point at 0."""
    total = weights.sum(axis=1)
    shares = weights / np.where(total > 0.0, total, 1.0)[:, None]
    mean = (shares * points).sum(axis=1)
    centred = points - mean[:, None]
    square = shares * centred * centred
    return total, mean, square.sum(axis=1), (square * centred).sum(axis=1)


@kernel
def _divide_weight(groups: NDArray[float64], exponent: NDArray[float64]) -> None:
    for i in range(exponent.size):
        groups[0, i], groups[1, i] = group_weights(groups[0, i], groups[1, i], exponent[i])


# --- flipped labels -------------------------------------------------------------------------------

# Panels between two break points: the nodes hold exp(-16 u) to rounding on the unit interval, and
# densities and flips on a quarter of the half width. All of a piece is covered: where flips die out
# away from the threshold, the flipped positives weigh most somewhere in the middle.
_FLIP_PANEL = 16.0  # in mu x
_WIDEST = 0.25
_BLOCK_NODES = 2**20  # held in memory at a time


def noisy_groups(
    design: Design,
    s: NDArray[float64],
    r: NDArray[float64],
    lam: float,
    delta: float,
    mu: float,
) -> NDArray[float64]:
    """The eight numbers of `uniform_groups` for flipped labels and any features, shape `(8, n)`.

    For one head of `mu >= 0` and tasks at distances `s` and `r`, rows of shape `(n,)`, for half
    width 1. Takes time in proportion to the scale once `mu l` exceeds 100.
    """
    assert design.noise is not None
    breaks = np.unique([0.0, *design.noise.breaks]) / design.half_width
    edges = np.clip(breaks, -s[:, None], r[:, None])
    edges = np.concatenate((-s[:, None], edges, r[:, None]), axis=1)
    longest = np.diff(edges, axis=1).max(axis=0)
    counts = np.ceil(longest * max(mu / _FLIP_PANEL, 1.0 / _WIDEST)).astype(int)
    n_rows = max(1, _BLOCK_NODES // (_GROUP_ORDER * int(counts.sum())))
    groups = np.empty((8, s.size))
    for start in range(0, s.size, n_rows):
        rows = slice(start, start + n_rows)
        groups[:, rows] = _flipped_rows(
            design, s[rows], r[rows], edges[rows], counts, (lam, delta, mu)
        )
    return groups


def _flipped_rows(
    design: Design,
    s: NDArray[float64],
    r: NDArray[float64],
    edges: NDArray[float64],
    counts: NDArray[np.int64],
    scores: tuple[float, float, float],
) -> NDArray[float64]:
    lam, delta, mu = scores
    gap, from_top, mass = _flip_nodes(edges, counts)
    width = design.half_width
    if design.feature_density is not None:
        x = np.where((s < r)[:, None], gap + (s[:, None] - 1.0), gap + (1.0 - r[:, None]))
        mass = mass * np.asarray(design.feature_density(width * np.clip(x, -1.0, 1.0)))
    assert design.noise is not None
    flipped = np.asarray(design.noise.probability(width * gap), dtype=float64)
    positive = np.where(gap < 0.0, 1.0 - flipped, flipped)
    levels = mu * gap, -mu * from_top
    peak_p, top_p, mass_p, mean_p, v_p, third_p = _group(mass * positive, gap, levels)
    peak_n, top_n, mass_n, mean_n, v_n, third_n = _group(mass * (1.0 - positive), gap, levels)
    ones = np.ones_like(s)
    across = exponents(s, r, lam * ones, delta * ones, mu * ones)
    exponent = np.where(top_n > top_p, across, -2.0 * lam + np.where(top_p > top_n, -mu * r, 0.0))
    groups = np.stack((mass_p, mass_n, -mean_p, mean_n, v_p, v_n, third_p, third_n))
    _divide_weight(groups, exponent + (peak_n - peak_p))
    return groups


def _flip_nodes(
    edges: NDArray[float64], counts: NDArray[np.int64]
) -> tuple[NDArray[float64], NDArray[float64], NDArray[float64]]:
    """Signed distances from the threshold, distances from the upper end, weights: `(n, nodes)`."""
    distances, weights = legendre_rule(_GROUP_ORDER)
    gaps, from_top, masses = [], [], []
    for low, high, count in zip(edges.T[:-1], edges.T[1:], counts, strict=True):
        width = (high - low)[:, None] / max(count, 1)
        offsets = width * (np.arange(count)[:, None] + 0.5 * distances).ravel()
        gaps.append(high[:, None] - offsets)
        from_top.append((edges[:, -1] - high)[:, None] + offsets)
        masses.append(0.5 * width * np.tile(weights, count))
    return (
        np.concatenate(gaps, axis=1),
        np.concatenate(from_top, axis=1),
        np.concatenate(masses, axis=1),
    )


def _group(
    shares: NDArray[float64],
    gap: NDArray[float64],
    levels: tuple[NDArray[float64], NDArray[float64]],
) -> tuple[NDArray[float64], ...]:
    """Log weight at the heaviest node, from where it is measured, and the cumulants of a label.

    `levels` are log weights measured from the threshold and from the upper end. Of the two the one
    is taken whose end is nearer to the heaviest node: the other loses a digit per `log10(mu)`.
    """
    from_threshold, from_top = (np.where(shares > 0.0, level, -np.inf) for level in levels)
    top = from_top.max(axis=1) > -np.abs(from_threshold.max(axis=1))
    level = np.where(top[:, None], from_top, from_threshold)
    peak = level.max(axis=1)
    peak[peak == -np.inf] = 0.0  # no example of this label
    return peak, top, *_cumulants(gap, shares * np.exp(level - peak[:, None]))


# --- the public predictor -------------------------------------------------------------------------


def limit_error(head: Head, threshold: ArrayLike, design: Design | None = None) -> NDArray[float64]:
    """Error `F - alpha` of a head on an infinite context (MODEL §2, §7).

    Parameters
    ----------
    head : Head, fields of shape (...)
    threshold : array_like, shape (...)
        The task, in the units of `head.half_width`. Broadcasts against the head.
    design : Design, optional
        Laws of features and labels; uniform and clean by default. The threshold law plays no part.

    Returns
    -------
    ndarray, shape (...)
        In the same units; relative error 5e-15 over the whole plane, both ends included (measured
        against arbitrary precision), but where the error changes sign: there 1e-16 of the larger
        of the two terms whose difference it is, or one spacing of an input. Densities: 1e-14.
        Flipped labels: 1e-15 of the half width or 1e-14, for densities and flips that vary over
        1/10 of the half width or more between break points; in time that grows with the scale.

    Raises
    ------
    ValueError
        If a threshold is not finite or outside `[-half_width, half_width]`, if shapes do not
        broadcast, or if the design has another half width.

    Examples
    --------
    >>> head = Head.from_ratio(0.2, 800)
    >>> limit_error(head, [-1, -0.999, 0, 0.999, 1]).round(12).tolist()
    [1.99875, 1.99775, 0.99875, -0.00125, -0.00125]
    """
    require_head(head)
    width = head.half_width
    if design is not None:
        require_design(design, width)
    alpha = thresholds_inside(threshold, width)
    try:
        fields = np.broadcast_arrays(alpha, *unit_scores(head))
    except ValueError:
        raise ValueError(
            f"threshold and head must broadcast, got shapes {alpha.shape} and {head.shape}"
        ) from None
    shape = fields[0].shape
    alpha, lam, delta, mu = (np.array(field).ravel() for field in fields)
    s, r = (alpha + width) / width, (width - alpha) / width
    errors = np.empty(alpha.size)
    for sign in (1.0, -1.0):
        rows = (mu < 0.0) == (sign < 0.0)
        if not rows.any():
            continue
        ends = (s[rows], r[rows]) if sign > 0.0 else (r[rows], s[rows])
        scale = sign * mu[rows]
        exponent = exponents(*ends, sign * lam[rows], sign * delta[rows], scale)
        seen = design if design is None or sign > 0.0 else design.mirrored
        if seen is not None and seen.noise is not None:
            found = _noisy_errors(seen, *ends, sign * lam[rows], sign * delta[rows], scale)
        elif seen is None or seen.feature_density is None:
            found = _uniform_errors(*ends, exponent, scale)
        else:
            groups = density_groups(seen.feature_density, width, *ends, exponent, scale)
            found = _errors(groups)
        errors[rows] = sign * width * found
    return errors.reshape(shape)[()]


def _errors(groups: NDArray[float64]) -> NDArray[float64]:
    positive, negative, below, above = groups[:4]
    errors: NDArray[float64] = negative * above - positive * below
    return errors


def _noisy_errors(design: Design, *rows: NDArray[float64]) -> NDArray[float64]:
    """`F - alpha` for rows `s, r, lam, delta, mu`, head by head."""
    heads, of_head = np.unique(rows[2:], axis=1, return_inverse=True)
    errors = np.empty(rows[0].size)
    for i, (lam, delta, mu) in enumerate(heads.T.tolist()):
        tasks = np.ravel(of_head) == i
        groups = noisy_groups(design, rows[0][tasks], rows[1][tasks], lam, delta, mu)
        errors[tasks] = _errors(groups)
    return errors
