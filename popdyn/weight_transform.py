"""Laplace transform of one example's softmax weight, and its moments, on a grid (MODEL §6).

With `w = exp(lam y + mu x)` the weight of one example, `phi(u) = E exp(-u w)` and the averages of
`d^j (u w)^k exp(-u w)`, `d = x - alpha`, say all about a context of `n` independent examples. The
grid is `y = log u` in steps of 1/4 or 1/5. Neither `u` nor `w` is ever formed: with `t = y + log w`
everything is a function of `t`, and `log w` is measured from a positive example at the threshold.

The features are cut into panels of width 2 in `log w`, which is a whole number of steps: all panels
of a run see the same values of `t`, one table of functions of `t` serves them all, and a panel's
share is a product of the table with its masses. A panel's table ends where `exp(-u w)` vanishes on
it; before it begins, the panel counts with its whole mass in `phi`.

Inside, half width 1 and `mu >= 0`. Label flips turn each panel into two, one of either label.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.compiled import kernel
from popdyn.design import Design
from popdyn.legendre import legendre_rule

__all__ = [
    "COARSE",
    "FINE",
    "G1",
    "G1_SLOPE",
    "G2",
    "G2_SLOPE",
    "Facing",
    "Panels",
    "Transform",
    "example_panels",
    "facing_up",
    "transform",
]

_PANEL = 2.0  # in log w; its 12 nodes give exp(-exp t) to 5e-15
# Steps of the trapezoid rule in a panel. Its error is the Fourier transform of the integrand at
# 2 pi / step; of exp(k t - exp t) it is |Gamma(k + 2 pi i / step)|: with steps of 1/4 that is
# 9e-17, 2e-15, 6e-14 and 1e-12 for k = 1 to 4, with steps of 1/5 it is 2e-16 for k = 4.
COARSE, FINE = 8, 10
_NODES = 12
# In units of the half width: no panel is wider where a density or flips are to be resolved.
_WIDEST = 0.25
# Below t = -38 - log(n) all n examples together weigh less than 1e-16 of one with t = 0.
_NEGLIGIBLE = 38.0
_VANISHED = 4.2  # exp(-exp(4.2)) = 1e-29
_SMALL = 1e-5  # of tau: three terms of exp(-tau) are all of it
_POWERS = 5  # of z, from 0


class Facing(NamedTuple):
    """A head and a task as the transform sees them, by units of the half width.

    Attributes
    ----------
    mu, s, r : float
        Scale, not negative, and distances to the two ends: of the mirrored task for `mu < 0`.
    highest : float
        `log w` at the upper end of the negatives.
    reach : float
        Below `t = -reach` all examples together weigh less than 1e-16 of one with `t = 0`.
    """

    mu: float
    s: float
    r: float
    highest: float
    reach: float


def facing_up(lam: float, delta: float, mu: float, s: float, r: float, n_examples: float) -> Facing:
    """The same for a scale of either sign; labels that no longer see each other stay in sight."""
    if mu < 0.0:
        lam, delta, mu, s, r = -lam, -delta, -mu, r, s
    reach = _NEGLIGIBLE + float(np.log(n_examples))
    # Groups further apart than this do not see each other; it keeps the grid short.
    apart = 0.5 * (reach + 10.0)
    if delta > apart:
        lam, delta = apart + mu, apart
    elif lam < -mu - apart:
        lam, delta = -mu - apart, -2.0 * mu - apart
    # from whichever of its two forms has smaller terms
    highest = mu * r - 2.0 * lam if abs(lam) < abs(delta) else -2.0 * delta - mu * s
    return Facing(mu, s, r, highest, reach)


class Panels(NamedTuple):
    """The law of one example, panel by panel; runs of panels that follow one another downwards.

    Attributes
    ----------
    reach : float
        The table of a panel begins at `t = -reach`.
    base : float
        `log w` of a negative example at the threshold, if there were one.
    groups : ndarray, shape (runs,)
        0 where the label is positive, 1 where it is negative.
    counts : ndarray, shape (runs,)
        Panels in each run.
    tops, widths : ndarray, shape (runs,)
        `log w` at the upper end of a run's first panel, and the width of its panels in `log w`.
    masses, gaps : ndarray, shape (panels, 12)
        Probability of each node, and its `d = x - alpha`.
    """

    reach: float
    base: float
    groups: NDArray[np.int64]
    counts: NDArray[np.int64]
    tops: NDArray[float64]
    widths: NDArray[float64]
    masses: NDArray[float64]
    gaps: NDArray[float64]


def example_panels(
    lam: float,
    delta: float,
    mu: float,
    s: float,
    r: float,
    n_examples: float,
    design: Design,
) -> Panels:
    """Law of an example for a task at distances `s` and `r` from the two ends.

    Scores and distances are in units of the half width. `n_examples` is the largest context that
    the transform is wanted for. For `mu < 0` this is the law of the mirrored task for the reflected
    head: `gap` is then `alpha - x`.
    """
    unit = -design.half_width if mu < 0.0 else design.half_width
    density, flips = design.feature_density, design.noise
    mu, s, r, highest, reach = facing_up(lam, delta, mu, s, r, n_examples)
    below, weights = _nodes()
    breaks = {0.0} if flips is None else {0.0, *(point / unit for point in flips.breaks)}
    widest = 2.0 if density is None and flips is None else _WIDEST
    cuts = [-s, *sorted(point for point in breaks if -s < point < r), r]

    runs: list[tuple[int, int, float, float]] = []
    masses: list[NDArray[float64]] = []
    gaps: list[NDArray[float64]] = []
    for low, high in pairwise(cuts):
        true = 0 if high <= 0.0 else 1
        for start, width, count in _pieces(low, high, mu, widest):
            gap = start - width * (np.arange(count)[:, None] + below)
            mass = np.broadcast_to(0.5 * width * weights, gap.shape)
            if density is not None:
                x = np.clip(gap + 0.5 * (s - r), -1.0, 1.0)
                mass = mass * (2.0 * design.half_width * density(unit * x))
            shares = [(true, mass)]
            if flips is not None:
                flipped = flips.probability(unit * gap)
                shares = [(true, mass * (1.0 - flipped)), (1 - true, mass * flipped)]
            for group, share in shares:
                top = highest - mu * (r - start) if group else mu * start
                runs.append((group, count, top, mu * width))
                masses.append(share)
                gaps.append(gap)
    groups, counts, tops, widths = (np.array(column) for column in zip(*runs, strict=True))
    return Panels(
        reach,
        highest - mu * r,
        groups,
        counts,
        tops,
        widths,
        np.concatenate(masses),
        np.concatenate(gaps),
    )


def _nodes() -> tuple[NDArray[float64], NDArray[float64]]:
    """Distances from the upper end of a panel of width 1, and weights."""
    distances, weights = legendre_rule(_NODES)
    return 0.5 * distances, 0.5 * weights


def _pieces(
    low: float, high: float, mu: float, widest: float
) -> Iterator[tuple[float, float, int]]:
    """(upper end, panel width, number of panels) from `high` down: whole panels, then the rest."""
    n_whole = 0
    if mu * widest > _PANEL:
        widest = _PANEL / mu
        n_whole = int((high - low) / widest)
        if n_whole:
            yield high, widest, n_whole
    start = high - n_whole * widest
    n_rest = int(np.ceil((start - low) / widest))
    for i in range(n_rest):
        width = (start - low) / n_rest
        yield start - i * width, width, 1


class Transform(NamedTuple):
    """Averages over one example at points `y = log u`.

    Attributes
    ----------
    weights : ndarray, shape (size,)
        Of a rule that integrates over `y`.
    y : ndarray, shape (size,)
    phi, log_phi : ndarray, shape (size,)
        `E exp(-u w)` and its logarithm, from `phi` itself or from `1 - phi`, the smaller one. Good
        to 5e-15.
    moments : ndarray, shape (2, channels, size)
        By label, positive and negative: the average of `z^j g(t)` for each channel `(g, j)`. At one
        point of a table good to 1e-11 of the largest, but the errors of neighbours cancel: sums of
        products with powers of phi are good to 1e-14.
    """

    weights: NDArray[float64]
    y: NDArray[float64]
    phi: NDArray[float64]
    log_phi: NDArray[float64]
    moments: NDArray[float64]


# The functions g(t) of a channel, tau = exp t: g1 = tau exp(-tau), g2 = tau^2 exp(-tau), and their
# derivatives with respect to t.
G1, G2, G1_SLOPE, G2_SLOPE = 0, 1, 2, 3


def transform(
    law: Panels,
    channels: NDArray[np.int64],
    per_scale: float = 0.0,
    level: float = 0.0,
    steps: int = COARSE,
) -> Transform:
    """Transform of an example's law on a grid.

    `channels`, shape (channels, 2), lists pairs `(g, j)`. The moments are those of `z = x - alpha`,
    or, with `per_scale = 1 / mu`, of `z = (t - level) / mu`, which is `x` seen from where the
    weights are at this point of the grid and loses no digits in differences of `x`.
    """
    step = _PANEL / steps
    begins = np.ceil((-law.reach - law.tops) / step).astype(np.int64)
    length = int(np.ceil((law.reach + _VANISHED + _PANEL) / step))
    start = int(begins.min())
    size = int((begins + steps * (law.counts - 1)).max()) + length - start
    phi, log_phi = np.zeros(size), np.zeros(size)
    moments = np.zeros((2, len(channels), size))
    runs = law.groups, law.counts, law.widths, begins - start, begins * step + law.tops
    functions = steps, length, channels, per_scale, level
    results = phi, log_phi, moments
    _accumulate(*runs, law.masses, law.gaps, _nodes()[0], *functions, *results)
    y = step * np.arange(start, start + size, dtype=float64)
    return Transform(np.full(size, step), y, phi, log_phi, moments)


@kernel
def _accumulate(
    groups: NDArray[np.int64],
    counts: NDArray[np.int64],
    widths: NDArray[float64],
    begins: NDArray[np.int64],
    highest: NDArray[float64],
    masses: NDArray[float64],
    gaps: NDArray[float64],
    below: NDArray[float64],
    steps: int,
    length: int,
    channels: NDArray[np.int64],
    per_scale: float,
    level: float,
    phi: NDArray[float64],
    log_phi: NDArray[float64],
    moments: NDArray[float64],
) -> None:
    """Fill phi, log_phi and the moments; run `i` begins at `begins[i]`, its top at `highest[i]`."""
    size = phi.size
    n_channels = channels.shape[0]
    table = np.empty((n_channels + 2, _NODES, length))
    complement = np.zeros(size)  # 1 - phi
    entering, leaving = np.zeros(size + 1), np.zeros(size + 1)
    x = np.empty(_NODES)
    panel = 0
    for run in range(counts.size):
        _fill_table(table, highest[run], widths[run], below, steps, channels, per_scale, level)
        for at in range(begins[run], begins[run] + steps * counts[run], steps):
            mass, gap = masses[panel], gaps[panel]
            panel += 1
            entering[at] += mass.sum()
            leaving[at + length] += mass.sum()
            _add_share(complement[at : at + length], mass, table[0])
            _add_share(phi[at : at + length], mass, table[1])
            for c in range(n_channels):
                for i in range(_NODES):
                    x[i] = mass[i] * gap[i] ** channels[c, 1] if per_scale == 0.0 else mass[i]
                _add_share(moments[groups[run], c, at : at + length], x, table[c + 2])
    gone = 0.0
    for k in range(size):
        gone += leaving[k]
        complement[k] += gone
    waiting = 0.0
    for k in range(size - 1, -1, -1):
        phi[k] += waiting
        waiting += entering[k]
    for k in range(size):
        log_phi[k] = np.log1p(-complement[k]) if complement[k] < 0.5 else np.log(phi[k])


@kernel
def _fill_table(
    table: NDArray[float64],
    highest: float,
    width: float,
    below: NDArray[float64],
    steps: int,
    channels: NDArray[np.int64],
    per_scale: float,
    level: float,
) -> None:
    """Rows `1 - exp(-tau)`, `exp(-tau)` and the channels; `t = highest` at the panel's top."""
    length = table.shape[2]
    g, powers = np.empty(4), np.ones(_POWERS)
    growth = np.exp(np.arange(length) * _PANEL / steps)
    for i in range(_NODES):
        first = highest - below[i] * width
        lowest = np.exp(first)
        for k in range(length):
            tau = lowest * growth[k]
            if tau < _SMALL:
                complement = tau * (1.0 - tau * (1.0 / 2.0 - tau / 6.0))
                decay = 1.0 - complement
            else:
                complement, decay = -np.expm1(-tau), np.exp(-tau)
            table[0, i, k] = complement
            table[1, i, k] = decay
            g[G1] = tau * decay
            g[G2] = tau * g[G1]
            g[G1_SLOPE] = g[G1] - g[G2]
            g[G2_SLOPE] = (2.0 - tau) * g[G2]
            if per_scale != 0.0:
                z = (first + k * _PANEL / steps - level) * per_scale
                for j in range(1, _POWERS):
                    powers[j] = powers[j - 1] * z
            for c in range(channels.shape[0]):
                power = powers[channels[c, 1]] if per_scale != 0.0 else 1.0
                table[c + 2, i, k] = g[channels[c, 0]] * power


@kernel
def _add_share(total: NDArray[float64], x: NDArray[float64], rows: NDArray[float64]) -> None:
    """`total += x @ rows`, written out so that the loop over the grid is vectorized."""
    a, b, c, d, e, f = x[0], x[1], x[2], x[3], x[4], x[5]
    g, h, i, j, m, n = x[6], x[7], x[8], x[9], x[10], x[11]
    for k in range(total.size):
        total[k] += (
            a * rows[0, k]
            + b * rows[1, k]
            + c * rows[2, k]
            + d * rows[3, k]
            + e * rows[4, k]
            + f * rows[5, k]
            + g * rows[6, k]
            + h * rows[7, k]
            + i * rows[8, k]
            + j * rows[9, k]
            + m * rows[10, k]
            + n * rows[11, k]
        )
