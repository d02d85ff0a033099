"""Mean and spread of one drawn task's gradient along the direction of progress (MODEL §6).

A task with its context adds to the gradient of a corpus, projected on a direction `u`,

    g = 2 (F - alpha) u . grad F,   u . grad F = D / W^2,   D = (1/2) sum_ij w_i w_j k_ij,

with `k_ij = (x_i - x_j) (h_i - h_j)`, `h = u_lam y + u_mu x` and `W = sum w`. As `1 / W^6` is a
Laplace integral over `v = log u`, the average of `g^2` is one of `A^2 D^2 exp(-u W)` with
`A = sum (x - alpha) w`. Its terms join six examples at most: two, three or four of them are those
of `D^2`, and each of the two of `A^2` may be one of these or another. In the sum of

    (n)_2 Q2(e) phi(e)^(n-2) / 2,   (n)_3 Q3(e) phi(e)^(n-3),   (n)_4 Q4(e) phi(e)^(n-4) / 4,

where every example carries the factor `exp(e d u w)`, `d = x - alpha`, that is the second
derivative at `e = 0`: `Q2`, `Q3` and `Q4` average `k_12^2`, `k_12 k_13` and `k_12 k_34` with
weights `u w exp(-u w)`, `phi` is the average of `exp(-u w)`, and `(n)_k = n (n-1) ... (n-k+1)`.
The average of `g` is the first derivative of `(n)_2 K(e) phi(e)^(n-2) / 2`, `K` that of `k_12`.

Features are uniform, so that a panel of them is a function of `t = v + log w` at its upper end
alone: one table serves all panels of a label. The positions `z = (t - level) / mu` are taken from
where the weights are; `k` is the square of `D = z_i - z_j` within a label, and
`D^2 + sigma D + pi` from a positive to a negative, with coefficients exact in the excess.
"""

from dataclasses import dataclass

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.arguments import count
from popdyn.compiled import kernel
from popdyn.coordinates import Head, require_head
from popdyn.moments import require_moderate
from popdyn.risk.finite_context import end_graded

__all__ = ["ProgressMoments", "progress_direction", "progress_moments", "unit_progress"]

_NODE, _WEIGHT = np.polynomial.legendre.leggauss(12)
_BELOW = 0.5 * (1.0 - _NODE)  # distance of the nodes from the upper end of a panel of width 1
_SHARES = 0.5 * _WEIGHT
_PANEL = 2.0  # in t; its 12 nodes give exp(-exp t) to 5e-15
# Steps of the trapezoid rule in a panel: its error is |Gamma(6 + 8 pi i)| / Gamma(6) = 7e-12.
_STEPS = 8
_STEP = _PANEL / _STEPS
# Where t = -38 - log n all n examples together weigh 3e-17 of one with t = 0, and as much in the
# variance as 5e-14 of one at a distance of 1 / mu.
_NEGLIGIBLE = 38.0
_VANISHED = 4.2  # exp(-exp(4.2)) = 1e-29
# The integrands fall like exp(3 v) and exp(6 v) below v = -log n, seen from the largest weight.
_BEGIN = 10.0
_LOWEST_POWER = -80.0  # exp of it is nothing beside the peak of the integrands
_LEAST_SCALE = 1.0  # of mu l: progress and its direction are matters of a large scale
# The averages of (u w)^k exp(-u w) z^j begin at _AT[k]; j runs to 2, 4, 5 and 6 for k = 1 to 4.
_AT = (0, 0, 3, 8, 14, 21)
_COMPLEMENT, _DECAY, _CHANNELS = 21, 22, 23  # of 1 - exp(-u w) and exp(-u w); all


@dataclass(frozen=True, eq=False)
class ProgressMoments:
    """Law of one task's share `g = 2 (F - alpha) <u, grad F>` in the projected gradient.

    Over tasks and their contexts, `u = (l + 1/mu, 1)`. A corpus of `m` tasks has the mean of `m`
    independent `g`: the same mean, and `standard_deviation / sqrt(m)`.

    Attributes
    ----------
    mean : ndarray, shape (...)
        The projected gradient of infinitely many tasks, that of `FiniteContextRisk`.
    standard_deviation : ndarray, shape (...)
    """

    mean: NDArray[float64]
    standard_deviation: NDArray[float64]


def progress_direction(head: Head) -> NDArray[float64]:
    """The direction `(l + 1/mu, 1)` of the logarithmic tube, by (label score, scale), `(..., 2)`.

    Along it the excess grows like `log mu`: the tube coordinate stays (MODEL §6).
    """
    require_head(head)
    with np.errstate(divide="ignore"):
        by_scale = head.half_width + 1.0 / np.asarray(head.scale)
    return np.stack([by_scale, np.ones_like(by_scale)], axis=-1)


def progress_moments(head: Head, n_examples: int) -> ProgressMoments:
    """Exact mean and standard deviation of a task's projected gradient, without sampling.

    For uniform features and thresholds, labels without noise. Measured against finer rules, for
    `mu l` from 1 to 3000 and tube coordinates from -3 to 4: the mean to 2e-13 of the standard
    deviation, which itself is good to 1e-11 relative for up to 1e4 examples and to 2e-10 for 1e6. A
    head takes 0.1 to 0.4 s; where `mu l` exceeds the number of examples longer, 1 s at 300 and 16
    examples.

    Parameters
    ----------
    head : Head, fields of shape (...)
        With `scale * half_width` from 1 to 1e5.
    n_examples : int
        Examples in a context, at least 1.

    Raises
    ------
    ValueError
        If a scale is outside that range, or `n_examples` is not a whole number of at least 1.

    Examples
    --------
    >>> moments = progress_moments(Head.from_tube(np.log(2), 8), n_examples=64)
    >>> print(f"{moments.mean:.4e} {moments.standard_deviation:.4e}")
    -2.3365e-03 7.8531e-03
    """
    require_head(head)
    n_examples = count("n_examples", n_examples)
    lam, delta, mu = (np.ravel(score) for score in require_moderate(head))
    if not (mu >= _LEAST_SCALE).all():
        raise ValueError(
            f"scale * half_width must be at least {_LEAST_SCALE:g} for the direction of progress, "
            f"got {float(mu.min())!r}; start at a larger scale"
        )
    width = head.half_width
    rule = end_graded(n_examples)
    found = np.empty((2, mu.size))
    for i in range(mu.size):
        lower, upper, weights, _ = rule(Head.from_excess(delta[i], mu[i]))
        task = float(lam[i]), float(delta[i]), float(mu[i]), float(n_examples)
        found[:, i] = _average(*task, lower, upper, weights)
    mean = width**3 * found[0]
    deviation = width**3 * np.sqrt(np.maximum(found[1] - found[0] ** 2, 0.0))
    return ProgressMoments(mean.reshape(head.shape)[()], deviation.reshape(head.shape)[()])


@kernel
def _average(
    lam: float,
    delta: float,
    mu: float,
    n: float,
    lower: NDArray[float64],
    upper: NDArray[float64],
    weights: NDArray[float64],
) -> tuple[float, float]:
    """Averages of `g` and `g^2` over tasks, too."""
    mean, square = 0.0, 0.0
    for j in range(weights.size):
        of_task = unit_progress(lam, delta, mu, lower[j], upper[j], n)
        mean += weights[j] * of_task[0]
        square += weights[j] * of_task[1]
    return mean, square


@kernel
def unit_progress(
    lam: float, delta: float, mu: float, s: float, r: float, n: float
) -> tuple[float, float]:
    """Averages of `g` and `g^2` over the contexts of one task at distances `s` and `r` to the ends.

    In units of the half width; `mu` at least 1.
    """
    level = -np.log(max(1.0, 0.5 * n / mu))
    base = -2.0 * lam  # log w of a negative at the threshold, of a positive there it is 0
    # log w at the upper end of either label, from whichever form has smaller terms
    highest = mu * r - 2.0 * lam if abs(lam) < abs(delta) else -2.0 * delta - mu * s
    tops, lengths = np.array([0.0, highest]), np.array([mu * s, mu * r])
    begin = -np.log(n) - _BEGIN - max(0.0, highest)
    size = int(np.ceil((_VANISHED - min(-mu * s, base) - begin) / _STEP))
    starts, n_panels, masses, tables = _tables(tops, lengths, begin, mu, level, n)
    shift = -2.0 * lam / mu
    other_shift = (2.0 - 2.0 * delta) / mu  # shift + 2 (1 + 1 / mu)
    sigma, pi = shift + other_shift, shift * other_shift

    averages = np.empty((2, _CHANNELS))
    v, w = np.empty((2, 3, 3)), np.empty((2, 5, 3))
    mean, square = 0.0, 0.0
    for i in range(size):
        for label in range(2):
            row = i - starts[label]
            _read(averages[label], tables[label], row, n_panels[label], masses[label])
        complement = averages[0, _COMPLEMENT] + averages[1, _COMPLEMENT]
        phi = averages[0, _DECAY] + averages[1, _DECAY]
        log_phi = np.log1p(-complement) if complement < 0.5 else np.log(phi)
        if (n - 1.0) * log_phi < _LOWEST_POWER:
            break
        a1, a2 = 0.0, 0.0  # log phi(e) = log(phi + a1 e + a2 e^2)
        for label in range(2):
            centre = (level - begin - i * _STEP - label * base) / mu
            a1 += _with_gap(averages[label], _AT[1], centre)
            a2 += 0.5 * _with_square(averages[label], _AT[2], centre)
            _fill_series(v[label], averages[label], 1, centre)
            _fill_series(w[label], averages[label], 2, centre)
        q2, q3, k = _pairs(v, w, sigma, pi)
        two = n * (n - 1.0) * np.exp((n - 2.0) * log_phi)
        three = (n - 2.0) / phi * two
        four = (n - 3.0) / phi * three
        a1, a2 = a1 / phi, a2 / phi
        mean += 0.5 * two * (k[1] + (n - 2.0) * a1 * k[0])
        square += 0.5 * two * _second(q2, n - 2.0, a1, a2)
        square += three * _second(q3, n - 3.0, a1, a2)
        square += 0.25 * four * _second(_times(k, k), n - 4.0, a1, a2)
    # 2 / Gamma(3), and 4 / Gamma(6) times 2 for the second derivative
    return _STEP * mean, _STEP * square / 15.0


# --- averages over one example --------------------------------------------------------------------


@kernel
def _tables(
    tops: NDArray[float64],
    lengths: NDArray[float64],
    begin: float,
    mu: float,
    level: float,
    n: float,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[float64], NDArray[float64]]:
    """By label: first grid point of the table, number of whole panels; masses and tables of a whole
    panel and of the rest, which is the lowest."""
    reach = _NEGLIGIBLE + np.log(n)
    n_rows = int(np.ceil((reach + _VANISHED + _PANEL) / _STEP))
    starts, n_panels = np.empty(2, dtype=np.int64), np.empty(2, dtype=np.int64)
    masses, tables = np.empty((2, 2)), np.empty((2, 2, n_rows, _CHANNELS))
    for label in range(2):
        n_panels[label] = int(lengths[label] / _PANEL)
        starts[label] = int(np.ceil((-reach - begin - tops[label]) / _STEP))
        first = begin + tops[label] + _STEP * starts[label]
        rest = lengths[label] - _PANEL * n_panels[label]
        for kind, width in ((0, _PANEL), (1, rest)):
            masses[label, kind] = 0.5 * width / mu
            _fill_table(tables[label, kind], first, width, masses[label, kind], mu, level)
    return starts, n_panels, masses, tables


@kernel
def _fill_table(
    table: NDArray[float64], first: float, width: float, mass: float, mu: float, level: float
) -> None:
    """Averages over a panel, with `t = first` at its upper end in the first row."""
    for row in range(table.shape[0]):
        table[row] = 0.0
        for node in range(_BELOW.size):
            t = first + _STEP * row - width * _BELOW[node]
            tau, share = np.exp(t), mass * _SHARES[node]
            part = share * np.exp(-tau)
            table[row, _COMPLEMENT] -= share * np.expm1(-tau)
            table[row, _DECAY] += part
            z = (t - level) / mu
            for k in range(1, 5):
                part *= tau
                power = part
                for channel in range(_AT[k], _AT[k + 1]):
                    table[row, channel] += power
                    power *= z


@kernel
def _read(
    averages: NDArray[float64],
    tables: NDArray[float64],
    row: int,
    n_panels: int,
    masses: NDArray[float64],
) -> None:
    """Averages over all panels of a label, the highest of which is at this row of its table."""
    n_rows = tables.shape[1]
    # panels above the table have lost their exp(-u w), those below it have all of it
    n_above = min(max(-((n_rows - 1 - row) // _STEPS), 0), n_panels)
    n_not_below = min(max(row // _STEPS + 1, n_above), n_panels)
    averages[:] = 0.0
    averages[_COMPLEMENT] = n_above * masses[0]
    averages[_DECAY] = (n_panels - n_not_below) * masses[0]
    for panel in range(n_above, n_not_below):
        for channel in range(_CHANNELS):
            averages[channel] += tables[0, row - panel * _STEPS, channel]
    last = row - n_panels * _STEPS
    if last < 0:
        averages[_DECAY] += masses[1]
    elif last >= n_rows:
        averages[_COMPLEMENT] += masses[1]
    else:
        averages += tables[1, last]


@kernel
def _with_gap(averages: NDArray[float64], at: int, centre: float) -> float:
    """Average with the factor `d = z + centre`."""
    return float(averages[at + 1] + centre * averages[at])


@kernel
def _with_square(averages: NDArray[float64], at: int, centre: float) -> float:
    """Average with the factor `d^2`."""
    return float(averages[at + 2] + centre * (2.0 * averages[at + 1] + centre * averages[at]))


@kernel
def _fill_series(
    series: NDArray[float64], averages: NDArray[float64], k: int, centre: float
) -> None:
    """Averages of `(u w)^k exp(-u w) z^j` for all `j`, as series in `e`."""
    for j in range(series.shape[0]):
        series[j, 0] = averages[_AT[k] + j]
        series[j, 1] = _with_gap(averages, _AT[k + 1] + j, centre)
        series[j, 2] = 0.5 * _with_square(averages, _AT[k + 2] + j, centre)


# --- two, three and four examples, as series in e to the second power -----------------------------


@kernel
def _pairs(
    v: NDArray[float64], w: NDArray[float64], sigma: float, pi: float
) -> tuple[NDArray[float64], NDArray[float64], NDArray[float64]]:
    """`Q2`, `Q3` and `K` from the moments of `u w exp(-u w)` and `(u w)^2 exp(-u w)` by label."""
    q2, q3, k = np.zeros(3), np.zeros(3), np.zeros(3)
    for label in range(2):
        mine, other = v[label], v[1 - label]
        turn = sigma if label == 0 else -sigma
        # the average of k over the second example is alpha z^2 + beta z + gamma
        alpha = mine[0] + other[0]
        beta = turn * other[0] - 2.0 * (mine[1] + other[1])
        gamma = mine[2] + other[2] - turn * other[1] + pi * other[0]
        k += _times(alpha, mine[2]) + _times(beta, mine[1]) + _times(gamma, mine[0])
        m = w[label]
        q3 += _times(_times(alpha, alpha), m[4]) + 2.0 * _times(_times(alpha, beta), m[3])
        q3 += _times(2.0 * _times(alpha, gamma) + _times(beta, beta), m[2])
        q3 += 2.0 * _times(_times(beta, gamma), m[1]) + _times(_times(gamma, gamma), m[0])
        q2 += 2.0 * _times(m[4], m[0]) - 8.0 * _times(m[3], m[1]) + 6.0 * _times(m[2], m[2])
    # (D^2 + sigma D + pi)^2 of a positive and a negative, in either order
    p, m = w[0], w[1]
    first = _times(p[1], m[0]) - _times(p[0], m[1])
    second = _times(p[2], m[0]) - 2.0 * _times(p[1], m[1]) + _times(p[0], m[2])
    third = _times(p[3], m[0]) - 3.0 * _times(p[2], m[1])
    third += 3.0 * _times(p[1], m[2]) - _times(p[0], m[3])
    fourth = _times(p[4], m[0]) - 4.0 * _times(p[3], m[1]) + 6.0 * _times(p[2], m[2])
    fourth += _times(p[0], m[4]) - 4.0 * _times(p[1], m[3])
    q2 += 2.0 * (fourth + 2.0 * sigma * third + (sigma * sigma + 2.0 * pi) * second)
    q2 += 2.0 * (2.0 * sigma * pi * first + pi * pi * _times(p[0], m[0]))
    return q2, q3, k


@kernel
def _times(f: NDArray[float64], h: NDArray[float64]) -> NDArray[float64]:
    """Product of two series."""
    return np.array(
        [f[0] * h[0], f[0] * h[1] + f[1] * h[0], f[0] * h[2] + f[1] * h[1] + f[2] * h[0]]
    )


@kernel
def _second(q: NDArray[float64], power: float, a1: float, a2: float) -> float:
    """Coefficient of `e^2` in `q(e) (1 + a1 e + a2 e^2)^power`."""
    of_power = power * (a2 + 0.5 * (power - 1.0) * a1 * a1)
    return float(q[2] + power * a1 * q[1] + of_power * q[0])
