"""Averages over one example of uniform features in closed form, at few points `y` (MODEL §6).

The features are cut where their label or its probability to be flipped changes. On a segment of one
label and probability, with `t = y + log w`, every average is a difference of its antiderivative in
`t` at the two ends. From `tau = exp(t)` upwards these are

    int z^j g1 dt = z^j L0 - j z^(j-1) L1 + j (j-1) z^(j-2) L2,     g1 = tau e^-tau,
    int z^j g2 dt = the same of M0 to M3,                           g2 = tau^2 e^-tau,

`z` linear in `t`, `L0 = 1 - e^-tau`, `M0 = 1 - (1 + tau) e^-tau`, and each further one the integral
of the one before; `L1` is `Ein`. All are sums of `tau^k e^-tau / k!` with coefficients of one sign:
nothing cancels. Where an end is passed by far they are polynomials in `z`.

So the integrands in `y = log u` have structure of width 1 beside the ends alone, and of the width
over which `phi^n` falls in between: Gauss-Legendre panels that double where they may are some 15 to
100 in number with clean labels, from the smallest to the largest scale.
"""

from bisect import bisect_right
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.compiled import kernel
from popdyn.design import Design
from popdyn.legendre import legendre_rule
from popdyn.noise import LabelFlips
from popdyn.weight_transform import G1, G1_SLOPE, G2, G2_SLOPE, Transform, facing_up

Array: TypeAlias = NDArray[float64]
Origin: TypeAlias = tuple[float, float]  # `per_scale` and `level` of `transform`

__all__ = [
    "Segments",
    "example_averages",
    "has_closed_form",
    "narrow_rule",
    "uniform_segments",
    "uniform_transform",
]


class Segments(NamedTuple):
    """The law of one example, for contexts of `fewest` to `most` examples.

    Attributes
    ----------
    mu : float
        Not negative: a negative scale reads the mirrored task, where `gap` is `alpha - x`.
    base : float
        `log w` of a negative example at the threshold, if there were one.
    rows : ndarray, shape (segments, 7)
        Of each segment: label (0 positive, 1 negative) and its probability; `log w` at the upper
        end, at the lower end and, were it part of the segment, at the threshold; `x - alpha` at the
        two ends.
    start : float
        Below `y = start` all examples together weigh nothing. A whole number.
    fewest, most : float
    """

    mu: float
    base: float
    rows: Array
    start: float
    fewest: float
    most: float


_LABEL, _SHARE, _TOP, _BOTTOM, _THRESHOLD, _GAP_TOP, _GAP_BOTTOM = range(7)


def has_closed_form(design: Design) -> bool:
    """Whether the features are uniform and the flips, if any, have levels."""
    flips = design.noise
    return design.feature_density is None and (flips is None or flips.levels is not None)


def uniform_segments(
    task: tuple[float, float, float, float, float], fewest: float, most: float, design: Design
) -> Segments:
    """Law of an example for `task = lam, delta, mu, s, r`, in units of the half width.

    `s` and `r` are the distances to the two ends. The design is one that `has_closed_form`.
    """
    unit = -design.half_width if task[2] < 0.0 else design.half_width
    up = facing_up(*task, most)
    breaks, levels = _steps(design.noise, unit)
    cuts = sorted({-up.s, 0.0, up.r, *(point for point in breaks if -up.s < point < up.r)})
    rows = []
    for low, high in pairwise(cuts):
        flipped = levels[bisect_right(breaks, low)]
        label = 0 if high <= 0.0 else 1
        for given, share in ((label, 1.0 - flipped), (1 - label, flipped)):
            if share > 0.0:
                places = (high, low, 0.0)
                logs = [up.highest - up.mu * (up.r - x) if given else up.mu * x for x in places]
                rows.append((given, share, *logs, high, low))
    table = np.array(rows)
    # Panels begin at whole numbers, which are exact beside any scale.
    start = float(np.floor(-up.reach - table[:, _TOP].max()))
    return Segments(up.mu, up.highest - up.mu * up.r, table, start, fewest, most)


def _steps(flips: LabelFlips | None, unit: float) -> tuple[list[float], tuple[float, ...]]:
    """Ascending break points and the levels between them, in units of the half width."""
    if flips is None:
        return [], (0.0,)
    assert flips.levels is not None
    step = -1 if unit < 0.0 else 1
    return [point / unit for point in flips.breaks[::step]], flips.levels[::step]


def uniform_transform(
    law: Segments, channels: NDArray[np.int64], per_scale: float = 0.0, level: float = 0.0
) -> Transform:
    """Transform of an example's law, at the nodes of the panels.

    `channels`, `per_scale` and `level` as in `transform`, with `j` up to 2 for `g1`, 3 for `g2`,
    and one more for their derivatives.
    """
    rules = narrow_rule(), 0.5 * np.array(legendre_rule(_ORDER))
    places = [_FIRST[g] + j for g, j in channels.tolist()]
    n_channels = _FIRST[G1_SLOPE] if max(places) < _FIRST[G1_SLOPE] else _ALL
    averages, moments = _sample(law.mu, *law[2:], *rules, n_channels, (per_scale, level))
    return Transform(averages[0], averages[1], averages[2], averages[3], moments[:, places])


# Where the moments of z^0 g stand among all.
_FIRST = {G1: 0, G2: 3, G1_SLOPE: 7, G2_SLOPE: 11}
_ALL = 16
_AT_G1, _AT_G2, _AT_G1_SLOPE, _AT_G2_SLOPE = _FIRST.values()

# --- one example ----------------------------------------------------------------------------------

# Above it an end is seen as infinitely far: z^4 tau^2 e^-tau, the largest of what is left out, is
# 2e-16 there.
_PASSED = 3.9
_UNSEEN = -700.0  # below it an end counts for nothing: 1e-304
_TERMS = 130  # of the series: at tau = exp(3.9) the rest is 1e-20
_ROUNDING = 1e-17
_HARMONIC = np.concatenate(([0.0], np.cumsum(1.0 / np.arange(1.0, _TERMS))))
# Coefficients of tau^k e^-tau / k! in M1, M2 and M3; that in L1 is the harmonic number.
_IN_M1 = np.concatenate(([0.0, 0.0], _HARMONIC[2:] - 1.0))
_IN_M2 = np.concatenate(([0.0, 0.0], np.cumsum(_IN_M1[2:] / np.arange(2.0, _TERMS))))
_IN_M3 = np.concatenate(([0.0, 0.0], np.cumsum(_IN_M2[2:] / np.arange(2.0, _TERMS))))
_EULER = float(np.euler_gamma)
_ZETA_2 = np.pi**2 / 6.0
_ZETA_3 = 1.2020569031595942
# Features of one label that spread less than this in log w are summed over nodes: their ends would
# cancel.
_NARROW = 2.0
_NARROW_ORDER = 12  # gives exp(-exp t) to 5e-15 on a panel of width 2
# So far below the other end, or below 0, an end does not show: the largest of its moments, with
# z^3, is exp(-80) mu^3 = 2e-20 at a scale of 1e5.
_BESIDE = 80.0
_LEAST_PHI = 1e-30  # where phi ends in rounding errors it counts no more


_UPPER, _LOWER, _UNITS = range(3)  # rows to work in


@kernel
def _series(t: float) -> tuple[float, float, float, float, float, float]:
    """`L0`, `L1`, and `M0` to `M3` for `t` up to `_PASSED`."""
    if t < _UNSEEN:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    tau = np.exp(t)
    decay, term = np.exp(-tau), tau
    l0, l1, m0, m1, m2, m3 = tau, tau, 0.0, 0.0, 0.0, 0.0
    for k in range(2, _TERMS):
        term *= tau / k
        l0 += term
        l1 += _HARMONIC[k] * term
        m0 += term
        m1 += _IN_M1[k] * term
        m2 += _IN_M2[k] * term
        m3 += _IN_M3[k] * term
        if _HARMONIC[k] * term < _ROUNDING * m0:
            break
    return l0 * decay, l1 * decay, m0 * decay, m1 * decay, m2 * decay, m3 * decay


@kernel
def _end(found: Array, i: int, t: float, z: float) -> float:
    """Antiderivatives at an end that is not passed, in units of `t`, to row `i`; returns `L1`."""
    l0, l1, m0, m1, m2, m3 = _series(t)
    found[i, _AT_G1] = l0
    found[i, _AT_G1 + 1] = z * l0 - l1
    found[i, _AT_G1 + 2] = z * (z * l0 - 2.0 * l1) + 2.0 * (l1 + m2)
    found[i, _AT_G2] = m0
    found[i, _AT_G2 + 1] = z * m0 - m1
    found[i, _AT_G2 + 2] = z * (z * m0 - 2.0 * m1) + 2.0 * m2
    found[i, _AT_G2 + 3] = z * (z * (z * m0 - 3.0 * m1) + 6.0 * m2) - 6.0 * m3
    if found.shape[1] == _ALL:
        tau = np.exp(t)
        g1 = tau * np.exp(-tau)
        _slopes(found, i, g1, g1 * tau, z)
    return l1


@kernel
def _passed_end(found: Array, i: int, zero: float) -> None:
    """The same for an end that is passed by far, from `z` at `t = 0`."""
    a, b = zero - _EULER, zero - _EULER + 1.0
    found[i, _AT_G1] = 1.0
    found[i, _AT_G1 + 1] = a
    found[i, _AT_G1 + 2] = a * a + _ZETA_2
    found[i, _AT_G2] = 1.0
    found[i, _AT_G2 + 1] = b
    found[i, _AT_G2 + 2] = b * b + (_ZETA_2 - 1.0)
    found[i, _AT_G2 + 3] = b * (b * b + 3.0 * (_ZETA_2 - 1.0)) - 2.0 * (_ZETA_3 - 1.0)
    if found.shape[1] == _ALL:
        _slopes(found, i, 0.0, 0.0, zero)


@kernel
def _slopes(found: Array, i: int, g1: float, g2: float, z: float) -> None:
    """Antiderivatives of `z^j dg/dt`, by parts."""
    found[i, _AT_G1_SLOPE], found[i, _AT_G2_SLOPE] = g1, g2
    for j in range(1, 5):
        g1 *= z
        g2 *= z
        if j < 4:
            found[i, _AT_G1_SLOPE + j] = g1 - j * found[i, _AT_G1 + j - 1]
        found[i, _AT_G2_SLOPE + j] = g2 - j * found[i, _AT_G2 + j - 1]


@kernel
def example_averages(
    moments: Array,
    y: float,
    step: float,
    mu: float,
    rows: Array,
    nodes: Array,
    work: Array,
    origin: Origin,
) -> tuple[float, float]:
    """Fill in the moments of both labels at `y + step`; return `phi` and its logarithm.

    `z` is `x - alpha`, or `(t - level) * per_scale` where that is not 0.

    `step` is added last: near an end, `y` and the place of the end cancel exactly. `work` has two
    rows to work in, and half the units of the moments.
    """
    gone, left = 0.0, 0.0
    per_scale, level = origin
    n_channels = moments.shape[1]
    moments[:] = 0.0
    for i in range(rows.shape[0]):
        label, share = int(rows[i, _LABEL]), rows[i, _SHARE]
        length = rows[i, _GAP_TOP] - rows[i, _GAP_BOTTOM]
        width = mu * length
        top, bottom = y + rows[i, _TOP] + step, y + rows[i, _BOTTOM] + step
        if bottom > _PASSED:
            gone += share * length
            continue
        if width < _NARROW:
            masses = _narrow(moments, label, rows[i], top, width, nodes, origin)
            gone += masses[0]
            left += masses[1]
            continue
        l1 = 0.0
        near = bottom > min(top, 0.0) - _BESIDE
        if near:
            z = mu * rows[i, _GAP_BOTTOM] if per_scale == 0.0 else bottom - level
            l1 = _end(work, _LOWER, bottom, z)
        if top > _PASSED:
            _passed_end(
                work, _UPPER, -(y + rows[i, _THRESHOLD] + step) if per_scale == 0.0 else -level
            )
            missing, remaining = top + _EULER - l1, l1 - bottom - _EULER
        else:
            z = mu * rows[i, _GAP_TOP] if per_scale == 0.0 else top - level
            missing = _end(work, _UPPER, top, z) - l1
            remaining = width - missing
        gone += share * missing / mu
        left += share * remaining / mu
        for c in range(n_channels):
            difference = work[_UPPER, c] - work[_LOWER, c] if near else work[_UPPER, c]
            moments[label, c] += share * work[_UNITS, c] * difference
    log_phi = np.log1p(-0.5 * gone) if gone < 1.0 else np.log(max(0.5 * left, _LEAST_PHI))
    return np.exp(log_phi), log_phi


@kernel
def _narrow(
    moments: Array, label: int, row: Array, top: float, width: float, nodes: Array, origin: Origin
) -> tuple[float, float]:
    """Add a segment's moments, from nodes; return its share of `2 (1 - phi)` and of `2 phi`."""
    gone, left = 0.0, 0.0
    per_scale, level = origin
    length = row[_GAP_TOP] - row[_GAP_BOTTOM]
    for i in range(nodes.shape[1]):
        t = top - width * nodes[0, i]
        tau = np.exp(t)
        weight = row[_SHARE] * length * nodes[1, i]
        decay = np.exp(-tau)
        gone -= weight * np.expm1(-tau)
        left += weight * decay
        z = row[_GAP_TOP] - length * nodes[0, i] if per_scale == 0.0 else (t - level) * per_scale
        g1 = 0.5 * weight * tau * decay
        g2 = tau * g1
        slope1, slope2 = g1 - g2, (2.0 - tau) * g2
        for j in range(5):
            if j < 3:
                moments[label, _AT_G1 + j] += g1
            if j < 4:
                moments[label, _AT_G2 + j] += g2
            g1 *= z
            g2 *= z
            if moments.shape[1] == _ALL:
                if j < 4:
                    moments[label, _AT_G1_SLOPE + j] += slope1
                moments[label, _AT_G2_SLOPE + j] += slope2
                slope1 *= z
                slope2 *= z
    return gone, left


def narrow_rule() -> Array:
    """Distances from the upper end of a segment of length 1, and weights, `(2, nodes)`."""
    return 0.5 * np.array(legendre_rule(_NARROW_ORDER))


# --- all examples ---------------------------------------------------------------------------------

_ORDER = 16  # nodes of a panel in y
# exp(-n exp t) is integrated to 1e-15 by panels of width 2 (width 2.5 leaves 4e-13); where all that
# varies is of order exp(t), and a third of that its square, a panel of width 8 does as well.
_NARROWEST, _WIDE = 2.0, 8.0
# All ends lie so far above a wide panel, and where n examples see an end n / (2 mu) times as early,
# by the logarithm of that further. exp(-2 * 5.3) = 2e-5.
_DISTANT = 5.3
_INVISIBLE = 35.0  # so far below that, any panel may: exp(-35) = 6e-16
# Between the ends phi^n falls nearly like an exponential. A panel may take in as much of it as is
# already behind: a fall by exp(-q) is integrated to exp(q) 1e-16 up to q = 40.
_GROWTH = 2.0
_FALL = 8.0  # and exp(-8) in any case
_FALLEN = 45.0  # contexts for which phi^n has fallen by exp(-45) ask for nothing any more
_LOWEST_POWER = -80.0  # exp of it is nothing beside the peak of n A1 phi^(n-1)


@kernel
def _panel_width(
    y: float,
    width: float,
    log_phi: float,
    most: float,
    mu: float,
    rows: Array,
    nodes: Array,
    moments: Array,
    work: Array,
) -> tuple[float, float]:
    """Half of `width`, repeatedly, until the panel at `y` is smooth; and `log phi` at its end."""
    seen = min(most, _FALLEN / max(-log_phi, 1.0 / most)) / max(2.0 * mu, 1.0)
    distant = -_DISTANT - np.log(max(1.0, seen))
    while True:
        smooth = True
        for i in range(rows.shape[0]):
            for end in (_TOP, _BOTTOM):
                first = y + rows[i, end]
                last = first + width
                if first < _PASSED and last > distant - _INVISIBLE:
                    smooth = smooth and width <= _WIDE and last <= distant
        if smooth or width <= _NARROWEST:
            end_log_phi = example_averages(moments, y, width, mu, rows, nodes, work, (0.0, 0.0))[1]
            if width <= _NARROWEST or -end_log_phi <= -_GROWTH * log_phi + _FALL / most:
                return width, end_log_phi
        width *= 0.5


@kernel
def _sample(
    mu: float,
    rows: Array,
    start: float,
    fewest: float,
    most: float,
    nodes: Array,
    panel_nodes: Array,
    n_channels: int,
    origin: Origin,
) -> tuple[Array, Array]:
    """Rows of weights, `y`, `phi` and its logarithm, and moments, at the nodes of all panels."""
    found, work = np.empty((2, n_channels)), np.full((3, n_channels), 0.5)
    end = _PASSED - rows[:, _BOTTOM].min()
    starts, widths = [start], [_WIDE]
    log_phi = 0.0
    while starts[-1] < end and (fewest - 1.0) * log_phi > _LOWEST_POWER:
        width, log_phi = _panel_width(
            starts[-1], 2.0 * widths[-1], log_phi, most, mu, rows, nodes, found, work
        )
        starts.append(starts[-1] + width)
        widths.append(width)
    order = panel_nodes.shape[1]
    size = order * (len(starts) - 1)
    averages = np.empty((4, size))
    moments = np.empty((2, n_channels, size))
    if mu >= _NARROW / 2.0:
        for at in (_AT_G1, _AT_G2, _AT_G1_SLOPE, _AT_G2_SLOPE):
            for c in range(at, n_channels):
                work[_UNITS, c] = 0.5 * mu ** (at - c - 1)
    k = 0
    for panel in range(len(starts) - 1):
        y, width = starts[panel], widths[panel + 1]
        for i in range(order):
            step = width * panel_nodes[0, i]
            averages[0, k] = width * panel_nodes[1, i]
            averages[1, k] = y + step
            averages[2, k], averages[3, k] = example_averages(
                found, y, step, mu, rows, nodes, work, origin
            )
            moments[:, :, k] = found
            k += 1
    return averages, moments
