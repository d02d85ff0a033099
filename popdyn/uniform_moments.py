"""Bias and mean square error on clean uniform contexts, at a cost that no scale raises (MODEL §6).

With `t = y + log w`, uniform features make every average over one example a difference of its
antiderivative in `t` at the two ends of a label's features. From `tau = exp(t)` upwards these are

    int (1 - e^-tau) dt = Ein,   int z tau e^-tau dt = D (1 - e^-tau) - Ein,
    int z^2 tau^2 e^-tau dt = D^2 (1 - (1 + tau) e^-tau) - 2 D M + 2 P,

`z = mu (x - alpha)`, `D` its value at the end, `M = Ein - (1 - e^-tau)`, and `P` the integral of
`M dt`. All are sums of `tau^k e^-tau / k!` with coefficients of one sign: nothing cancels. Where an
end is passed by far they are polynomials in `y`, long before exponentially small.

So the integrands in `y = log u` have structure of width 1 beside the four ends alone, and of the
width over which `phi^n` falls in between: Gauss-Legendre panels that double where they may are
some 15 to 100 in number, from the smallest to the largest scale.
"""

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.compiled import kernel
from popdyn.legendre import legendre_rule
from popdyn.weight_transform import Facing, facing_up

__all__ = ["example_averages", "label_rows", "narrow_rule", "unit_uniform_moments"]

# --- one example ----------------------------------------------------------------------------------

# Above it an end is seen as infinitely far: exp(-exp(3.7)) = 3e-18.
_PASSED = 3.7
_UNSEEN = -700.0  # below it an end counts for nothing: 1e-304
_TERMS = 120  # of the series: at tau = exp(3.7) the rest is 1e-22
_ROUNDING = 1e-17
_HARMONIC = np.concatenate(([0.0], np.cumsum(1.0 / np.arange(1.0, _TERMS))))
# Coefficients of tau^k e^-tau / k! in M and P; that in Ein is the harmonic number.
_IN_M = np.concatenate(([0.0, 0.0], _HARMONIC[2:] - 1.0))
_IN_P = np.concatenate(([0.0, 0.0], np.cumsum(_IN_M[2:] / np.arange(2.0, _TERMS))))
_EULER = float(np.euler_gamma)
_ZETA_2 = np.pi**2 / 6.0
# Features of one label that spread less than this in log w are summed over nodes: their ends would
# cancel.
_NARROW = 2.0
_NARROW_ORDER = 12  # gives exp(-exp t) to 5e-15 on a panel of width 2
_SMALL = 1e-5  # of tau: three terms of 1 - exp(-tau) are all of it
_LEAST_PHI = 1e-30  # where phi ends in rounding errors it counts no more

# A row of numbers for each label: log w at the upper and the lower end of its features and, were
# there one, at the threshold; x - alpha at the two ends.
_TOP, _BOTTOM, _THRESHOLD, _GAP_TOP, _GAP_BOTTOM = range(5)


@kernel
def _end(t: float) -> tuple[float, float, float, float, float]:
    """`1 - e^-tau`, `1 - (1 + tau) e^-tau`, `Ein`, `M` and `P` for `t` up to `_PASSED`."""
    if t < _UNSEEN:
        return 0.0, 0.0, 0.0, 0.0, 0.0
    tau = np.exp(t)
    decay, term = np.exp(-tau), tau
    first, second, ein, m, p = tau, 0.0, tau, 0.0, 0.0
    for k in range(2, _TERMS):
        term *= tau / k
        first += term
        second += term
        ein += _HARMONIC[k] * term
        m += _IN_M[k] * term
        p += _IN_P[k] * term
        if _HARMONIC[k] * term < _ROUNDING * second:
            break
    return first * decay, second * decay, ein * decay, m * decay, p * decay


@kernel
def example_averages(
    y: float, step: float, mu: float, labels: NDArray[float64], nodes: NDArray[float64]
) -> tuple[float, float, float, float]:
    """`phi`, `log phi`, and the averages of `d u w e^(-u w)` and its square at `y + step`.

    `step` is added last: near an end, `y` and the place of the end cancel exactly.
    """
    gone, left, first, second = 0.0, 0.0, 0.0, 0.0
    for i in range(labels.shape[0]):
        label = labels[i]
        length = label[_GAP_TOP] - label[_GAP_BOTTOM]
        width = mu * length
        top, bottom = y + label[_TOP] + step, y + label[_BOTTOM] + step
        if bottom > _PASSED:
            gone += length
            continue
        if width < _NARROW:
            narrow = _narrow(top, width, label[_GAP_TOP], length, nodes)
            gone += narrow[0]
            left += narrow[1]
            first += narrow[2]
            second += narrow[3]
            continue
        z = mu * label[_GAP_BOTTOM]
        a, b, ein, m, p = _end(bottom)
        lower_first, lower_second = z * a - ein, z * (z * b - 2.0 * m) + 2.0 * p
        if top > _PASSED:
            below = y + label[_THRESHOLD] + step + _EULER
            missing, remaining = top + _EULER - ein, ein - bottom - _EULER
            upper_first, upper_second = -below, below * (below - 2.0) + _ZETA_2
        else:
            z = mu * label[_GAP_TOP]
            missing = -ein
            a, b, ein, m, p = _end(top)
            missing += ein
            remaining = width - missing
            upper_first, upper_second = z * a - ein, z * (z * b - 2.0 * m) + 2.0 * p
        gone += missing / mu
        left += remaining / mu
        first += (upper_first - lower_first) / mu**2
        second += (upper_second - lower_second) / mu**3
    log_phi = np.log1p(-0.5 * gone) if gone < 1.0 else np.log(max(0.5 * left, _LEAST_PHI))
    return np.exp(log_phi), log_phi, 0.5 * first, 0.5 * second


@kernel
def _narrow(
    top: float, width: float, gap: float, length: float, nodes: NDArray[float64]
) -> tuple[float, float, float, float]:
    """A label's share of the same averages, and of `1 - phi` first, from nodes."""
    gone, left, first, second = 0.0, 0.0, 0.0, 0.0
    for i in range(nodes.shape[1]):
        tau = np.exp(top - width * nodes[0, i])
        weight = length * nodes[1, i]
        if tau < _SMALL:
            complement = tau * (1.0 - tau * (1.0 / 2.0 - tau / 6.0))
            decay = 1.0 - complement
        else:
            complement, decay = -np.expm1(-tau), np.exp(-tau)
        moment = (gap - length * nodes[0, i]) * tau
        gone += weight * complement
        left += weight * decay
        first += weight * decay * moment
        second += weight * decay * moment * moment
    return gone, left, first, second


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
    labels: NDArray[float64],
    nodes: NDArray[float64],
) -> float:
    """The width of the panel at `y`: half of `width`, repeatedly, until the panel is smooth."""
    seen = min(most, _FALLEN / max(-log_phi, 1.0 / most)) / max(2.0 * mu, 1.0)
    distant = -_DISTANT - np.log(max(1.0, seen))
    while width > _NARROWEST:
        smooth = True
        for i in range(labels.shape[0]):
            for end in (_TOP, _BOTTOM):
                first = y + labels[i, end]
                last = first + width
                if first < _PASSED and last > distant - _INVISIBLE:
                    smooth = smooth and width <= _WIDE and last <= distant
        if smooth:
            fallen = -example_averages(y, width, mu, labels, nodes)[1]
            if fallen <= -_GROWTH * log_phi + _FALL / most:
                break
        width *= 0.5
    return width


@kernel
def _integrals(
    start: float,
    mu: float,
    labels: NDArray[float64],
    nodes: NDArray[float64],
    panel_nodes: NDArray[float64],
    sizes: NDArray[float64],
) -> tuple[NDArray[float64], int]:
    """Both moments for each context size, and the number of panels."""
    moments = np.zeros((2, sizes.size))
    fewest, most = sizes.min(), sizes.max()
    end = _PASSED - labels[:, _BOTTOM].min()
    y, width, log_phi, n_panels = start, _WIDE, 0.0, 0
    while y < end and (fewest - 1.0) * log_phi > _LOWEST_POWER:
        width = _panel_width(y, 2.0 * width, log_phi, most, mu, labels, nodes)
        for i in range(panel_nodes.shape[1]):
            phi, log_phi, a1, a2 = example_averages(y, width * panel_nodes[0, i], mu, labels, nodes)
            weight = width * panel_nodes[1, i]
            for j in range(sizes.size):
                n = sizes[j]
                exponent = (n - 1.0) * log_phi
                if exponent > _LOWEST_POWER:
                    power = weight * n * np.exp(exponent)
                    moments[0, j] += power * a1
                    moments[1, j] += power * (a2 + (n - 1.0) * a1 * a1 / phi)
        y += width
        log_phi = example_averages(y, 0.0, mu, labels, nodes)[1]
        n_panels += 1
    return moments, n_panels


def unit_uniform_moments(
    lam: float, delta: float, mu: float, s: float, r: float, sizes: NDArray[float64]
) -> tuple[NDArray[float64], int]:
    """Bias and mean square error for each context size, shape `(2, sizes)`, and the panels taken.

    Scores, distances `s` and `r` to the ends, and moments are in units of the half width. Good to
    2e-14 of the root mean square and of the mean square error, for `|mu|` up to 1e5 and 1 to 1e7
    examples.
    """
    up = facing_up(lam, delta, mu, s, r, float(sizes.max()))
    labels = label_rows(up)
    # Panels begin at whole numbers, which are exact beside any scale.
    start = float(np.floor(-up.reach - labels[:, _TOP].max()))
    rules = narrow_rule(), 0.5 * np.array(legendre_rule(_ORDER))
    moments, n_panels = _integrals(start, up.mu, labels, *rules, sizes)
    if mu < 0.0:
        moments[0] *= -1.0
    return moments, n_panels


def label_rows(up: Facing) -> NDArray[float64]:
    """What `example_averages` reads of the features of each label that has any."""
    base = up.highest - up.mu * up.r
    rows = [(0.0, -up.mu * up.s, 0.0, 0.0, -up.s), (up.highest, base, base, up.r, 0.0)]
    return np.array([row for row in rows if row[_GAP_TOP] > row[_GAP_BOTTOM]])


def narrow_rule() -> NDArray[float64]:
    """Distances from the upper end of a label of length 1, and weights, `(2, nodes)`."""
    return 0.5 * np.array(legendre_rule(_NARROW_ORDER))
