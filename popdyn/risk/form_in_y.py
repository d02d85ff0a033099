"""Population risk at a label score that is low for its scale, unit half width (MODEL §3).

With `V = s + 2 / expm1(2 delta)` and `y = 1 / z = (1 - q e) / (1 - q) exp(mu s)` the risk is the
increment over the interval of

    (V + eta)^3 / 6 + eta V^2 (y / (1 - y) - log(1 - y)) / 2 - eta^2 V Li2(y) + eta^3 Li3(y),

with `eta = 1 / mu`; `y < 1` has the sign of `-lam`. Along the interval `dV/ds = 1` and
`d log y/ds = mu`, hence the derivatives below. The ends are numbered 0 (`s = 0`) and 1 (`s = 2`).
"""

from math import exp, expm1, log, log1p

import numpy as np

from popdyn.compiled import kernel
from popdyn.machine_arithmetic import multiply_add
from popdyn.polylog import li2_and_li3, li2_and_li3_inverted

__all__ = ["hessian_in_y", "risk_in_y"]

# exp(-2 * 345) is 1e-300: a lower label score changes no digit of the risk but would lose 0 / 0.
_LARGEST = 345.0
# Up to here the second derivatives of Li2 and Li3 by y are summed as power series, 0.3^32 is 2e-17
_SMALL_Y = 0.3
_TERMS = 32

_n = np.arange(_TERMS + 1)
_LI2_CURVATURE = _n / (_n + 1.0)
_LI3_CURVATURE = _n / (_n + 1.0) ** 2
del _n


@kernel
def _end_in_y(
    y: float, log_minus_y: float, inverse: float, complement: float
) -> tuple[float, float, float, float, float, float]:
    """`y / (1 - y)`, `log(1 - y)`, `Li2(y)`, `Li3(y)` and `(1 - y) d/dy` of the last two.

    Reads `log(-y)` and `1 / y` where `y < -1` (`y` itself may overflow), else `y` and `1 - y`.
    """
    if y < -1.0:
        logarithm = log_minus_y + log1p(-inverse)
        two, three = li2_and_li3_inverted(log_minus_y, inverse)
        ratio = inverse - 1.0
        return 1.0 / ratio, logarithm, two, three, -ratio * logarithm, ratio * two
    if y == 0.0:
        return 0.0, 0.0, 0.0, 0.0, 1.0, 1.0
    logarithm = log(complement) if y > 0.5 else log1p(-y)
    two, three = li2_and_li3(y, complement, logarithm)
    return (
        y / complement,
        logarithm,
        two,
        three,
        -complement * (logarithm / y),
        complement * (two / y),
    )


@kernel
def _ends_in_y(lam: float, delta: float, mu: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """What `_end_in_y` gives at the ends 0 and 1, after `y` and `1 - y` there."""
    e = exp(-2.0 * mu) if mu < _LARGEST else 0.0
    y1 = expm1(2.0 * lam) / expm1(2.0 * delta)
    if y1 < -1.0:
        one_minus_qe = -expm1(-2.0 * lam)
        log1 = 2.0 * lam + log(one_minus_qe) - log1p(-exp(2.0 * delta))
        inverse1 = expm1(2.0 * delta) / expm1(2.0 * lam)
        y0 = exp(2.0 * delta) * one_minus_qe / expm1(2.0 * delta)
        return (
            (y0, 1.0 - y0, *_end_in_y(y0, log1 - 2.0 * mu, 1.0 / y0, 1.0 - y0)),
            (y1, 1.0 - y1, *_end_in_y(y1, log1, inverse1, 1.0 - y1)),
        )
    y0 = y1 * e
    complement1 = exp(2.0 * lam) * expm1(-2.0 * mu) / expm1(2.0 * delta)
    return (
        (y0, 1.0 - y0, *_end_in_y(y0, 0.0, 0.0, 1.0 - y0)),
        (y1, complement1, *_end_in_y(y1, 0.0, 0.0, complement1)),
    )


@kernel
def risk_in_y(label_score: float, delta: float, mu: float) -> tuple[float, float, float]:
    """Risk and gradient for `delta < 0`, of either sign of the label score."""
    lam = max(label_score, -_LARGEST)
    end0, end1 = _ends_in_y(lam, delta, mu)
    eta = 1.0 / mu
    v0, v1 = 2.0 / expm1(2.0 * delta), -2.0 / expm1(-2.0 * delta)
    sigma = v0 * v1
    a, b = v0 + eta, v1 + eta
    value0, lam0, mu0 = _end_share_in_y(v0, v1, sigma, eta, end0)
    value1, lam1, mu1 = _end_share_in_y(v1, v0, sigma, eta, end1)
    return (
        (a * a + a * b + b * b) / 3.0 + eta * (value1 - value0),
        -sigma * (a + b) + eta * (lam1 - lam0),
        (sigma - eta * eta) * (a + b) + eta * (mu1 - mu0),
    )


@kernel
def _end_share_in_y(
    v: float, other: float, sigma: float, eta: float, end: tuple[float, ...]
) -> tuple[float, float, float]:
    """`mu` times one end's share, without the cube, and its gradient; `other` is the other `V`.

    `dV/dlam = -sigma`, `dV/dmu = sigma`, `dy/dlam = (1 - y) V'`, `dy/dmu = V y`.
    """
    _, _, h, logarithm, two, three, two_1, three_1 = end
    k = h - logarithm
    vh = v * h
    share_v = v * k - eta * two
    value = v * (0.5 * v * k - eta * two) + eta * eta * three
    along_y = 0.5 * v * (vh + 2.0 * v) + eta * (eta * three_1 - v * two_1)
    along_u = 0.5 * vh * (vh + 2.0 * v) + eta * (v * logarithm + eta * two)
    along_eta = v * (0.5 * v * k - 2.0 * eta * two) + 3.0 * eta * eta * three
    return (
        value,
        other * along_y - sigma * share_v,
        sigma * share_v + v * along_u - eta * along_eta,
    )


@kernel
def hessian_in_y(label_score: float, delta: float, mu: float) -> tuple[float, float, float]:
    """Hessian where `risk_in_y` holds."""
    lam = max(label_score, -_LARGEST)
    end0, end1 = _ends_in_y(lam, delta, mu)
    eta = 1.0 / mu
    v0, v1 = 2.0 / expm1(2.0 * delta), -2.0 / expm1(-2.0 * delta)
    sigma = v0 * v1
    total = v0 + v1 + 2.0 * eta
    a0, b0, c0 = _end_hessian_in_y(v0, v1, eta, end0)
    a1, b1, c1 = _end_hessian_in_y(v1, v0, eta, end1)
    mixed = sigma * (v0 + v1) * total
    drift = sigma - eta * eta
    return (
        mixed + 2.0 * sigma * sigma + eta * (a1 - a0),
        -mixed - 2.0 * sigma * drift + eta * (b1 - b0),
        mixed + 2.0 * eta * eta * eta * total + 2.0 * drift * drift + eta * (c1 - c0),
    )


@kernel
def _end_hessian_in_y(
    v: float, other: float, eta: float, end: tuple[float, ...]
) -> tuple[float, float, float]:
    """`mu` times one end's share of the Hessian, without the cube."""
    y, complement, h, logarithm, two, three, two_1, three_1 = end
    sigma = v * other
    sigma_mu = sigma * (v + other)
    square = eta * eta
    k = h - logarithm
    vh = v * h
    s_v = v * k - eta * two
    s_vv = k
    s_vy = v * (h + 2.0) - eta * two_1
    s_y = 0.5 * v * (vh + 2.0 * v) + eta * (eta * three_1 - v * two_1)
    s_u = 0.5 * vh * (vh + 2.0 * v) + eta * (v * logarithm + eta * two)
    s_uv = h * (vh + 2.0 * v) + eta * logarithm
    s_uu = vh * (v + vh) / complement - eta * (vh + eta * logarithm)
    s_uy = (v + vh) * (v + vh) - eta * (v - eta * two_1)
    # (1 - y)^2 d2/dy2 - (1 - y) d/dy; away from 0 by log y, since for large -y its terms cancel
    if abs(y) <= _SMALL_Y:
        two_2 = three_2 = 0.0
        for n in range(_TERMS, 0, -1):
            two_2 = multiply_add(two_2, y, _LI2_CURVATURE[n])
            three_2 = multiply_add(three_2, y, _LI3_CURVATURE[n])
        square_of = complement * complement
        two_2, three_2 = square_of * two_2, square_of * three_2
        bend = 0.5 * v * (2.0 * vh + 3.0 * v) + eta * (eta * three_2 - v * two_2) - s_y
    else:
        ratio = complement / y if y >= -1.0 else 1.0 / h
        bend = ratio * (ratio * s_uu - s_u / y)
    # derivatives by eta, of the share itself and not of mu times the share
    e = v * (0.5 * v * k - 2.0 * eta * two) + 3.0 * square * three
    e_v = v * k - 2.0 * eta * two
    e_y = 0.5 * v * (vh + 2.0 * v) + eta * (3.0 * eta * three_1 - 2.0 * v * two_1)
    e_u = 0.5 * vh * (vh + 2.0 * v) + eta * (2.0 * v * logarithm + 3.0 * eta * two)
    e_e = eta * (6.0 * eta * three - 2.0 * v * two)
    lam_lam = (
        sigma_mu * s_v
        + sigma * sigma * s_vv
        - 2.0 * sigma * other * s_vy
        - sigma * s_y
        + other * other * bend
    )
    lam_mu = (
        -sigma_mu * s_v
        + sigma * (other * s_vy - sigma * s_vv)
        - sigma * s_u
        + v * (other * s_uy - sigma * s_uv)
        - eta * (other * e_y - sigma * e_v)
    )
    mu_mu = (
        sigma_mu * s_v
        + sigma * (sigma * s_vv + 2.0 * v * s_uv + s_u)
        + v * v * s_uu
        - 2.0 * eta * (sigma * e_v + v * e_u)
        + square * (2.0 * e + e_e)
    )
    return lam_lam, lam_mu, mu_mu
