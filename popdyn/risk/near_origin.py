"""Population risk where no boundary layer is thin, unit half width: Gauss–Legendre quadrature.

With the partition function `D(lam, mu; alpha) = E exp(lam y + mu x)` one has `F = D_mu / D`, and
the other softmax averages are its derivatives too.

Near the origin `D = cosh(lam) C(mu) + sinh(lam) S(mu)`, where `C = sinh(mu) / mu` and
`S = (exp(mu alpha) - cosh(mu)) / mu`. The gradient vanishes at the origin because the threshold is
there uncorrelated with the covariance `Cov(x, y) = -(1 - alpha^2) / 2` and the variance `Var(x) =
1/3`; so what is averaged is their change since the origin, small by itself and not as a difference.
At moderate scale `D` is the sum of a positive and a negative group, since its small values near the
end `alpha = -1` would be lost in the difference.

The averages are written so that several nodes are computed at a time: no function is called for a
node, series have a fixed length, and their sums over the nodes may be reordered.
"""

from decimal import Decimal, localcontext
from math import exp, expm1, factorial

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.compiled import kernel
from popdyn.machine_arithmetic import multiply_add, reordered_add

__all__ = [
    "hessian_at_moderate_scale",
    "hessian_near_origin",
    "risk_at_moderate_scale",
    "risk_near_origin",
]


def _legendre_rule(order: int) -> tuple[NDArray[float64], NDArray[float64]]:
    """Gauss–Legendre nodes and weights, rounded once.

    NumPy's weights are off by 4e-13 at the ends and by 1e-15 elsewhere, and so were the averages.
    (`popdyn.legendre` has a kernel for it, which importing this module would compile.)
    """
    nodes, weights = [], []
    with localcontext(prec=40):
        for guess in np.polynomial.legendre.leggauss(order)[0]:
            x = Decimal(float(guess))
            polynomial, slope = _legendre(order, x)
            x -= polynomial / slope  # a step of Newton's method makes 30 digits of 15
            _, slope = _legendre(order, x)
            nodes.append(float(x))
            weights.append(float(2 / ((1 - x * x) * slope * slope)))
    return np.array(nodes), np.array(weights)


def _legendre(order: int, x: Decimal) -> tuple[Decimal, Decimal]:
    """Legendre polynomial and its derivative."""
    before, polynomial = Decimal(1), x
    for k in range(2, order + 1):
        before, polynomial = polynomial, ((2 * k - 1) * x * polynomial - (k - 1) * before) / k
    return polynomial, order * (before - x * polynomial) / (1 - x * x)


# The averages have their nearest pole at alpha = -1.25 near the origin, at the corner (lam, mu) =
# (1.7, 1), and at -1.28 at moderate scale, at (2.42, 2); it is fourfold in the Hessian. The rule
# gains a factor 2^2 a node: 28 nodes leave 3e-12 of the Hessian, 32 leave nothing of it.
_N_NODES = 32
_NODES, _WEIGHTS = _legendre_rule(_N_NODES)
# phi_k(x) = sum_j x^j / (j + k)!, first (exp(x) - 1) / x; the series for abs(x) <= 1
_TERMS = 17  # the next one of phi_3 is 1 / 20! = 4e-19
_PHI_1 = np.array([1.0 / factorial(j + 1) for j in range(_TERMS + 1)])
_PHI_3 = np.array([1.0 / factorial(j + 3) for j in range(_TERMS)])
_PHI_4 = np.array([1.0 / factorial(j + 4) for j in range(_TERMS)])
_EVEN, _ODD = _PHI_4[0:16:2].copy(), _PHI_4[1:16:2].copy()


@kernel
def _hyperbolic(mu: float) -> tuple[float, float]:
    """`(cosh(mu) - 1 - mu^2 / 2) / mu^4` and `(sinh(mu) - mu - mu^3 / 6) / mu^5`."""
    square = mu * mu
    even = odd = 0.0
    for j in range(_ODD.size - 1, -1, -1):
        even = multiply_add(even, square, _EVEN[j])
        odd = multiply_add(odd, square, _ODD[j])
    return even, odd


@kernel
def risk_near_origin(lam: float, mu: float) -> tuple[float, float, float]:
    """Risk and gradient for `-1 <= mu <= 1` where no boundary layer is thin.

    The gradient is relatively accurate down to the smallest radius; of the risk what is averaged
    is its change from 1/3 at the origin.
    """
    e = expm1(lam)
    e_minus = e / (1.0 + e)
    sh, ch_1 = 0.5 * (e + e_minus), 0.5 * e * e_minus
    ch = 1.0 + ch_1
    square = mu * mu
    even, odd = _hyperbolic(mu)
    a, b = 1.0 / 6.0 + square * odd, 0.5 + square * even
    # C, its change, C' and C'' - C / 3; (cosh(mu) - 1) / mu, the change of its derivative, its
    # second derivative
    c_0 = square * a
    c = 1.0 + c_0
    c1 = mu * (b - a)
    c2 = 2.0 * square * (a / 3.0 - (even - odd))
    k = mu * b
    k1_change = square * (a - even)
    k2 = mu * (b - 2.0 * (a - even))
    value = g_lam = g_mu = 0.0
    for i in range(_N_NODES):
        alpha = _NODES[i]
        x = mu * alpha
        phi3 = 0.0
        for j in range(_TERMS - 1, -1, -1):
            phi3 = multiply_add(phi3, x, _PHI_3[j])
        phi2 = multiply_add(x, phi3, 0.5)
        phi1 = multiply_add(x, phi2, 1.0)
        alpha_2 = alpha * alpha
        s = multiply_add(alpha, phi1, -k)
        s1_0 = 0.5 * alpha_2 - 0.5
        s1_change = multiply_add(alpha_2 * x, phi2 - phi3, -k1_change)
        s1 = s1_0 + s1_change
        s2 = multiply_add(alpha_2 * alpha, phi1 - 2.0 * (phi2 - phi3), -k2)
        d_change = multiply_add(ch_1, c, multiply_add(sh, s, c_0))
        inverse = 1.0 / (1.0 + d_change)
        y = multiply_add(sh, c, ch * s) * inverse
        f = multiply_add(ch, c1, sh * s1) * inverse
        change = multiply_add(ch_1, s1, s1_change) + multiply_add(sh, c1, -d_change * s1_0)
        cov_change = multiply_add(change, inverse, -y * f)
        change = multiply_add(ch, c2, sh * multiply_add(-1.0 / 3.0, s, s2))
        var_change = multiply_add(change, inverse, -f * f)
        error = f - alpha
        w = _WEIGHTS[i]
        value = reordered_add(value, w * f * (error - alpha))
        g_lam = reordered_add(g_lam, w * multiply_add(error, cov_change, f * s1_0))
        g_mu = reordered_add(g_mu, w * multiply_add(error, var_change, f * (1.0 / 3.0)))
    return 1.0 / 3.0 + 0.5 * value, g_lam, g_mu


@kernel
def hessian_near_origin(lam: float, mu: float) -> tuple[float, float, float]:
    """Hessian where `risk_near_origin` holds."""
    e = expm1(lam)
    e_minus = e / (1.0 + e)
    sh, ch = 0.5 * (e + e_minus), 1.0 + 0.5 * e * e_minus
    even, odd = _hyperbolic(mu)
    a, b = 1.0 / 6.0 + mu * mu * odd, 0.5 + mu * mu * even
    # C and (cosh(mu) - 1) / mu with their first three derivatives
    c = 1.0 + mu * mu * a
    c1 = mu * (b - a)
    c2 = c - 2.0 * (b - a)
    c3 = c1 - 2.0 * mu * (a - 3.0 * (even - odd))
    k, k1 = mu * b, c - b
    k2_by_mu = b - 2.0 * (a - even)
    k2, k3 = mu * k2_by_mu, c - 3.0 * k2_by_mu
    lam_lam = lam_mu = mu_mu = 0.0
    for i in range(_N_NODES):
        alpha = _NODES[i]
        x = mu * alpha
        phi4 = 0.0
        for j in range(_TERMS - 1, -1, -1):
            phi4 = multiply_add(phi4, x, _PHI_4[j])
        phi3 = multiply_add(x, phi4, 1.0 / 6.0)
        phi2 = multiply_add(x, phi3, 0.5)
        phi1 = multiply_add(x, phi2, 1.0)
        alpha_2 = alpha * alpha
        s = multiply_add(alpha, phi1, -k)
        s1 = multiply_add(alpha_2, phi1 - phi2, -k1)
        s2 = multiply_add(alpha_2 * alpha, phi1 - 2.0 * (phi2 - phi3), -k2)
        s3 = multiply_add(alpha_2 * alpha_2, phi1 - 3.0 * phi2 + 6.0 * (phi3 - phi4), -k3)
        inverse = 1.0 / multiply_add(ch, c, sh * s)
        y = multiply_add(sh, c, ch * s) * inverse
        f = multiply_add(ch, c1, sh * s1) * inverse
        xx = multiply_add(ch, c2, sh * s2) * inverse
        xxy = multiply_add(ch, s2, sh * c2) * inverse
        xxx = multiply_add(ch, c3, sh * s3) * inverse
        cov = multiply_add(multiply_add(ch, s1, sh * c1), inverse, -y * f)
        var = multiply_add(-f, f, xx)
        error = f - alpha
        w = _WEIGHTS[i]
        lam_lam = reordered_add(lam_lam, w * cov * (cov - 2.0 * error * y))
        lam_mu = reordered_add(lam_mu, w * (cov * var + error * (xxy - y * xx - 2.0 * f * cov)))
        mu_mu = reordered_add(mu_mu, w * (var * var + error * (xxx - f * xx - 2.0 * f * var)))
    return lam_lam, lam_mu, mu_mu


@kernel
def _moments(
    alpha: float, up: float, down: float, low: float, high: float, mu: float, eta: float
) -> tuple[float, float, float, float, float, float, float]:
    """`2 mu` times the integrals of `x^k exp(lam y + mu x)` over the positives and the negatives,
    for `k = 0, 1, 2` in turn; and `alpha^2 exp(mu alpha)`."""
    x = 0.5 * mu * alpha
    phi1 = 0.0
    for j in range(_TERMS, -1, -1):
        phi1 = multiply_add(phi1, x, _PHI_1[j])
    root = multiply_add(x, phi1, 1.0)
    middle = root * root
    first = alpha * middle
    second = alpha * first
    p = up * (middle - low)
    m = down * (high - middle)
    p1 = multiply_add(up, first + low, -eta * p)
    m1 = multiply_add(down, high - first, -eta * m)
    return (
        p,
        m,
        p1,
        m1,
        multiply_add(up, second - low, -2.0 * eta * p1),
        multiply_add(down, high - second, -2.0 * eta * m1),
        second,
    )


@kernel
def risk_at_moderate_scale(lam: float, mu: float) -> tuple[float, float, float]:
    """Risk and gradient for `1 <= abs(mu) <= 2` where no boundary layer is thin."""
    up, down = exp(lam), exp(-lam)
    low, high = exp(-mu), exp(mu)
    eta = 1.0 / mu
    value = g_lam = g_mu = 0.0
    for i in range(_N_NODES):
        alpha = _NODES[i]
        p, m, p1, m1, p2, m2, _ = _moments(alpha, up, down, low, high, mu, eta)
        inverse = 1.0 / (p + m)
        f = (p1 + m1) * inverse
        cov = multiply_add(p1 - m1, inverse, -(p - m) * inverse * f)
        var = multiply_add(p2 + m2, inverse, -f * f)
        error = f - alpha
        weighted = _WEIGHTS[i] * error
        value = reordered_add(value, weighted * error)
        g_lam = reordered_add(g_lam, weighted * cov)
        g_mu = reordered_add(g_mu, weighted * var)
    return 0.5 * value, g_lam, g_mu


@kernel
def hessian_at_moderate_scale(lam: float, mu: float) -> tuple[float, float, float]:
    """Hessian where `risk_at_moderate_scale` holds."""
    up, down = exp(lam), exp(-lam)
    low, high = exp(-mu), exp(mu)
    eta = 1.0 / mu
    lam_lam = lam_mu = mu_mu = 0.0
    for i in range(_N_NODES):
        alpha = _NODES[i]
        p, m, p1, m1, p2, m2, second = _moments(alpha, up, down, low, high, mu, eta)
        third = alpha * second
        p3 = multiply_add(up, third + low, -3.0 * eta * p2)
        m3 = multiply_add(down, high - third, -3.0 * eta * m2)
        inverse = 1.0 / (p + m)
        y = (p - m) * inverse
        f = (p1 + m1) * inverse
        xx = (p2 + m2) * inverse
        xxy = (p2 - m2) * inverse
        xxx = (p3 + m3) * inverse
        cov = multiply_add(p1 - m1, inverse, -y * f)
        var = multiply_add(-f, f, xx)
        error = f - alpha
        w = _WEIGHTS[i]
        lam_lam = reordered_add(lam_lam, w * cov * (cov - 2.0 * error * y))
        lam_mu = reordered_add(lam_mu, w * (cov * var + error * (xxy - y * xx - 2.0 * f * cov)))
        mu_mu = reordered_add(mu_mu, w * (var * var + error * (xxx - f * xx - 2.0 * f * var)))
    return lam_lam, lam_mu, mu_mu
