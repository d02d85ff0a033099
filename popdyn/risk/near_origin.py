"""Population risk where no boundary layer is thin, unit half width: Gauss–Legendre quadrature.

With the partition function `D(lam, mu; alpha) = E exp(lam y + mu x)` one has `F = D_mu / D`, and
the other softmax averages are its derivatives too.

Near the origin `D = cosh(lam) C(mu) + sinh(lam) S(mu)`, where `C = sinh(mu) / mu` and
`S = (exp(mu alpha) - cosh(mu)) / mu` are summed as power series. The gradient vanishes at the
origin because the threshold is there uncorrelated with the covariance `Cov(x, y) = -(1 - alpha^2) /
2` and the variance `Var(x) = 1/3`; so what is averaged is their change since the origin, small by
itself and not as a difference. At moderate scale `D` is the sum of a positive and a negative group,
since its small values near the end `alpha = -1` would be lost in the difference.
"""

from math import cosh, exp, factorial, sinh

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.compiled import kernel

__all__ = [
    "hessian_at_moderate_scale",
    "hessian_near_origin",
    "risk_at_moderate_scale",
    "risk_near_origin",
]

# The averages have their nearest pole at alpha = -1.33 near the origin, at the corner (lam, mu) =
# (1.58, 1), and at -1.26 at moderate scale, at (2.42, 2); it is fourfold in the Hessian. The rules
# gain a factor 2.2^2 and 2^2 a node.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(28)
_MODERATE_NODES, _MODERATE_WEIGHTS = np.polynomial.legendre.leggauss(36)
# Terms of the power series in mu up to 1, where that of d3S/dmu3 ends with 22^3 / 23! = 4e-19,
# and |mu| up to which fewer leave 1e-18
_TERMS = 22
_SHORTER = ((0.01, 10), (0.2, 14))

_factorials = np.array([float(factorial(k + 1)) for k in range(_TERMS)])
_k = np.arange(_TERMS)
_S: NDArray[float64] = (_NODES[:, None] ** (_k + 1) - _k % 2) / _factorials
# C - 1, C' / mu, and C'' - C / 3, C''' / mu in powers of mu^2, without their first terms 0
_j = np.arange(1, _TERMS // 2)
_even = np.array([float(factorial(2 * j + 1)) for j in _j])
_C = 1.0 / _even
_C_1 = 2.0 * _j / _even
_C_2 = 4.0 * _j / (3.0 * (2.0 * _j + 3.0) * _even)
_C_3 = (2.0 * _j * (2.0 * _j - 1.0) * (2.0 * _j - 2.0) / _even)[1:]
del _even, _factorials, _j, _k


@kernel
def _series(coefficients: NDArray[float64], x: float) -> float:
    total = 0.0
    for a in coefficients[::-1]:
        total = total * x + a
    return total


@kernel
def _terms(mu: float) -> int:
    for largest, terms in _SHORTER:
        if abs(mu) <= largest:
            return terms
    return _TERMS


@kernel
def risk_near_origin(lam: float, mu: float) -> tuple[float, float, float]:
    """Risk and gradient for `-1 <= mu <= 1` where no boundary layer is thin.

    The gradient is relatively accurate down to the smallest radius; of the risk what is averaged
    is its change from 1/3 at the origin.
    """
    sh = sinh(lam)
    half = sinh(0.5 * lam)
    ch_1 = 2.0 * half * half
    ch = 1.0 + ch_1
    square = mu * mu
    c_0 = square * _series(_C, square)
    c = 1.0 + c_0
    c1 = mu * _series(_C_1, square)
    c2 = square * _series(_C_2, square)
    value = g_lam = g_mu = 0.0
    terms = _terms(mu)
    for i in range(_NODES.size):
        alpha = _NODES[i]
        tail = tail1 = tail2 = 0.0
        for k in range(terms - 1, 1, -1):
            tail2 = tail2 * mu + tail1
            tail1 = tail1 * mu + tail
            tail = tail * mu + _S[i, k]
        s1_0 = _S[i, 1]
        s1_change = mu * (2.0 * tail + mu * tail1)
        s = _S[i, 0] + mu * (s1_0 + mu * tail)
        s1 = s1_0 + s1_change
        s2 = 2.0 * tail + mu * (4.0 * tail1 + 2.0 * mu * tail2)
        d_change = ch_1 * c + c_0 + sh * s
        inverse = 1.0 / (1.0 + d_change)
        y = (sh * c + ch * s) * inverse
        f = (ch * c1 + sh * s1) * inverse
        cov = (ch * s1 + sh * c1) * inverse - y * f
        cov_change = (ch_1 * s1 + s1_change + sh * c1 - d_change * s1_0) * inverse - y * f
        var_change = (ch * c2 + sh * (s2 - s / 3.0)) * inverse - f * f
        w = _WEIGHTS[i]
        value += w * f * (f - 2.0 * alpha)
        g_lam += w * (f * cov - alpha * cov_change)
        g_mu += w * (f * (1.0 / 3.0 + var_change) - alpha * var_change)
    return 1.0 / 3.0 + 0.5 * value, g_lam, g_mu


@kernel
def hessian_near_origin(lam: float, mu: float) -> tuple[float, float, float]:
    """Hessian where `risk_near_origin` holds."""
    sh, ch = sinh(lam), cosh(lam)
    square = mu * mu
    c = 1.0 + square * _series(_C, square)
    c1 = mu * _series(_C_1, square)
    c2 = c / 3.0 + square * _series(_C_2, square)
    c3 = mu * _series(_C_3, square)
    lam_lam = lam_mu = mu_mu = 0.0
    terms = _terms(mu)
    for i in range(_NODES.size):
        s = s1 = s2 = s3 = 0.0
        for k in range(terms - 1, -1, -1):
            s3 = s3 * mu + s2
            s2 = s2 * mu + s1
            s1 = s1 * mu + s
            s = s * mu + _S[i, k]
        s2 *= 2.0
        s3 *= 6.0
        inverse = 1.0 / (ch * c + sh * s)
        y = (sh * c + ch * s) * inverse
        f = (ch * c1 + sh * s1) * inverse
        xx = (ch * c2 + sh * s2) * inverse
        xxy = (ch * s2 + sh * c2) * inverse
        xxx = (ch * c3 + sh * s3) * inverse
        cov = (ch * s1 + sh * c1) * inverse - y * f
        var = xx - f * f
        error = f - _NODES[i]
        w = _WEIGHTS[i]
        lam_lam += w * cov * (cov - 2.0 * error * y)
        lam_mu += w * (cov * var + error * (xxy - y * xx - 2.0 * f * cov))
        mu_mu += w * (var * var + error * (xxx - f * xx - 2.0 * f * var))
    return lam_lam, lam_mu, mu_mu


@kernel
def _groups(lam: float, mu: float, alpha: float) -> tuple[float, float, float, float, float, float]:
    """Averages of `y`, `x`, `x y`, `x^2`, `x^2 y`, `x^3` under the softmax, for `abs(mu) >= 1`."""
    low, middle, high = exp(-mu), exp(mu * alpha), exp(mu)
    square = alpha * alpha
    eta = 1.0 / mu
    up, down = exp(lam), exp(-lam)
    # 2 mu and less times the integrals of x^k exp(mu x) over the positives and the negatives
    p = up * (middle - low)
    m = down * (high - middle)
    p1 = up * (alpha * middle + low) - eta * p
    m1 = down * (high - alpha * middle) - eta * m
    p2 = up * (square * middle - low) - 2.0 * eta * p1
    m2 = down * (high - square * middle) - 2.0 * eta * m1
    p3 = up * (square * alpha * middle + low) - 3.0 * eta * p2
    m3 = down * (high - square * alpha * middle) - 3.0 * eta * m2
    inverse = 1.0 / (p + m)
    return (
        (p - m) * inverse,
        (p1 + m1) * inverse,
        (p1 - m1) * inverse,
        (p2 + m2) * inverse,
        (p2 - m2) * inverse,
        (p3 + m3) * inverse,
    )


@kernel
def risk_at_moderate_scale(lam: float, mu: float) -> tuple[float, float, float]:
    """Risk and gradient for `1 <= abs(mu) <= 2` where no boundary layer is thin."""
    value = g_lam = g_mu = 0.0
    for i in range(_MODERATE_NODES.size):
        y, f, xy, xx, _, _ = _groups(lam, mu, _MODERATE_NODES[i])
        error = f - _MODERATE_NODES[i]
        value += _MODERATE_WEIGHTS[i] * error * error
        g_lam += _MODERATE_WEIGHTS[i] * error * (xy - y * f)
        g_mu += _MODERATE_WEIGHTS[i] * error * (xx - f * f)
    return 0.5 * value, g_lam, g_mu


@kernel
def hessian_at_moderate_scale(lam: float, mu: float) -> tuple[float, float, float]:
    """Hessian where `risk_at_moderate_scale` holds."""
    lam_lam = lam_mu = mu_mu = 0.0
    for i in range(_MODERATE_NODES.size):
        y, f, xy, xx, xxy, xxx = _groups(lam, mu, _MODERATE_NODES[i])
        error = f - _MODERATE_NODES[i]
        cov, var = xy - y * f, xx - f * f
        lam_lam += _MODERATE_WEIGHTS[i] * cov * (cov - 2.0 * error * y)
        lam_mu += _MODERATE_WEIGHTS[i] * (cov * var + error * (xxy - y * xx - 2.0 * f * cov))
        mu_mu += _MODERATE_WEIGHTS[i] * (var * var + error * (xxx - f * xx - 2.0 * f * var))
    return lam_lam, lam_mu, mu_mu
