"""Population risk at small scale outside the origin's neighbourhood, unit half width.

The closed form of MODEL §3 in `u = log(1 / z)`, with the powers of `mu` divided out by hand. With
`w = 2 / expm1(2 delta)`, `u = mu nu`, `g(u) = u / expm1(u)` and `p = (g - 1) / u` the error is

    F - alpha = nu p(u) + A g(u) / nu,      nu from nu_0 to nu_0 + 2,   A = (w - nu_0) / mu,

smooth in `mu` through 0. The boundary layer is the pole `1 / nu`; it is integrated by hand, and the
smooth `nu^2 p^2` and `p g` by power series in `u`.
"""

from math import exp, expm1, factorial, log1p

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.compiled import kernel
from popdyn.machine_arithmetic import multiply_add
from popdyn.polylog import bernoulli

__all__ = ["hessian_at_small_scale", "risk_at_small_scale"]

# exp(-2 * 345) is 1e-300: more changes no digit of the risk but would lose 0 / 0.
_LARGEST = 345.0
# The series in u have radius 2 pi: their length, and |u| up to which shorter ones leave 1e-17
_TERMS = 100
_SHORTER = ((0.1, 12), (1.0, 26), (2.4, 50))

_B = bernoulli(_TERMS + 2)
_p = np.array([float(_B[n + 1] / factorial(n + 1)) for n in range(_TERMS + 1)])
_p_squared = np.convolve(_p, _p)[:_TERMS]
_p_g = _p[:_TERMS] + np.concatenate([[0.0], _p_squared[:-1]])
_n = np.arange(_TERMS)
# nu^3 J(u) and nu K(u) are the antiderivatives of nu^2 p^2 and of p g by nu
_J: NDArray[float64] = _p_squared / (_n + 3.0)
_K: NDArray[float64] = _p_g / (_n + 1.0)
_P: NDArray[float64] = _p[:_TERMS].copy()
_LAST_PHI = np.array([1.0 / factorial(j + 4) for j in range(24)])  # up to 3^24 / 28! = 9e-19
del _n, _p, _p_squared, _p_g


@kernel
def _terms(u: float) -> int:
    for largest, terms in _SHORTER:
        if abs(u) < largest:
            return terms
    return _TERMS


@kernel
def _series(u: float) -> tuple[float, float, float, float, float]:
    """`J`, `dJ/du`, `K`, `dK/du` and `p`."""
    j = j_1 = k = k_1 = p = 0.0
    for n in range(_terms(u) - 1, -1, -1):
        j_1 = multiply_add(j_1, u, j)
        j = multiply_add(j, u, _J[n])
        k_1 = multiply_add(k_1, u, k)
        k = multiply_add(k, u, _K[n])
        p = multiply_add(p, u, _P[n])
    return j, j_1, k, k_1, p


@kernel
def _jet(coefficients: NDArray[float64], u: float) -> tuple[float, float, float]:
    """A power series in `u` and its first two derivatives."""
    value = first = half_second = 0.0
    for n in range(_terms(u) - 1, -1, -1):
        half_second = multiply_add(half_second, u, first)
        first = multiply_add(first, u, value)
        value = multiply_add(value, u, coefficients[n])
    return value, first, 2.0 * half_second


@kernel
def _logarithmic(x: float) -> tuple[float, float, float, float]:
    """`sum_j (-x)^j / (j + k)` for `k = 1` to 4; `log(1 + x) / x` is the first."""
    if abs(x) > 0.5:
        one = log1p(x) / x
        two = (1.0 - one) / x
        three = (0.5 - two) / x
        return one, two, three, (1.0 / 3.0 - three) / x
    four, power, k = 0.0, 1.0, 4.0
    while abs(power) > 1e-18:
        four += power / k
        power *= -x
        k += 1.0
    three = 1.0 / 3.0 - x * four
    two = 0.5 - x * three
    return 1.0 - x * two, two, three, four


@kernel
def _exponential(mu: float) -> tuple[float, float, float, float]:
    """`phi_k(-2 mu)`, `k` = 1 to 4: `phi_k(x) = sum_j x^j / (j + k)!`, first `expm1(x) / x`."""
    x = -2.0 * mu
    four = 0.0
    for a in _LAST_PHI[::-1]:
        four = multiply_add(four, x, a)
    three = 1.0 / 6.0 + x * four
    two = 0.5 + x * three
    return 1.0 + x * two, two, three, four


@kernel
def risk_at_small_scale(label_score: float, excess: float, mu: float) -> tuple[float, float, float]:
    """Risk and gradient for `-1.5 <= mu <= 1.5` where a boundary layer may be thin."""
    delta = min(excess, _LARGEST)
    lam = min(label_score, _LARGEST)
    w = 2.0 / expm1(2.0 * delta)
    eps, phi2, phi3, _ = _exponential(mu)
    phi = 2.0 * phi2
    chi = 4.0 * phi3 - phi
    y = w * eps
    x = mu * y
    l1, l2, l3, _ = _logarithmic(x)
    nu0 = y * l1
    nu1 = nu0 + 2.0
    a = w * phi + y * y * l2
    w_mu = w * (w + 2.0)
    y_mu = w * (y + phi)
    x_mu = y + mu * y_mu
    l2_1 = 2.0 * l3 - 1.0 / (1.0 + x)
    a_mu = w_mu * phi + 2.0 * w * chi + y * (2.0 * y_mu * l2 + y * l2_1 * x_mu)
    e_mu = exp(mu)
    shc, shc_1 = e_mu * eps, e_mu * (phi - eps)
    product = 4.0 * exp(-lam - delta) / (expm1(-2.0 * lam) * expm1(-2.0 * delta))
    nu0_lam = -shc * product
    a_lam = -product * (shc_1 + (1.0 + w) * shc)
    mean = phi / eps - 1.0  # F at both ends
    u0, u1 = mu * nu0, mu * nu1
    j0, j0_1, k0, k0_1, p0 = _series(u0)
    j1, j1_1, k1, k1_1, p1 = _series(u1)
    h0 = 1.0 / y  # mu / expm1(u) at the ends
    h1 = exp(-2.0 * mu) / (eps * (w + 2.0))
    pole = h0 - h1 - 2.0 * mu * delta
    pole_mu = (1.0 + u1 * p1) * p1 - (1.0 + u0 * p0) * p0 - 2.0 * delta
    smooth = nu1 * nu1 * nu1 * j1 - nu0 * nu0 * nu0 * j0
    cross = nu1 * k1 - nu0 * k0
    smooth_mu = nu1**4 * j1_1 - nu0**4 * j0_1
    cross_mu = nu1 * nu1 * k1_1 - nu0 * nu0 * k0_1
    by_a = cross + a * pole
    return (
        0.5 * smooth + a * (cross + 0.5 * a * pole),
        a_lam * by_a - 2.0 * nu0_lam * mean,
        a * (cross_mu + 0.5 * a * pole_mu - 2.0 * mean) + 0.5 * smooth_mu + a_mu * by_a,
    )


@kernel
def hessian_at_small_scale(
    label_score: float, excess: float, mu: float
) -> tuple[float, float, float]:
    """Hessian on the region of `risk_at_small_scale`."""
    delta = min(excess, _LARGEST)
    lam = min(label_score, _LARGEST)
    w = 2.0 / expm1(2.0 * delta)
    eps, phi2, phi3, phi4 = _exponential(mu)
    phi = 2.0 * phi2
    chi = 4.0 * phi3 - phi
    chi_1 = -2.0 * chi - 8.0 * phi3 + 24.0 * phi4
    y = w * eps
    x = mu * y
    l1, l2, l3, l4 = _logarithmic(x)
    nu0 = y * l1
    nu1 = nu0 + 2.0
    a = w * phi + y * y * l2
    w_mu = w * (w + 2.0)
    y_mu = w * (y + phi)
    y_mu_mu = w_mu * (y + phi) + w * (y_mu + 2.0 * chi)
    x_mu = y + mu * y_mu
    x_mu_mu = 2.0 * y_mu + mu * y_mu_mu
    r = 1.0 / (1.0 + x)
    l2_1 = 2.0 * l3 - r
    l2_2 = 2.0 * (3.0 * l4 - r) + r * r
    a_mu = w_mu * phi + 2.0 * w * chi + y * (2.0 * y_mu * l2 + y * l2_1 * x_mu)
    a_mu_mu = (
        2.0 * (w + 1.0) * w_mu * phi
        + 4.0 * w_mu * chi
        + 2.0 * w * chi_1
        + 2.0 * (y_mu * y_mu + y * y_mu_mu) * l2
        + y * (4.0 * y_mu * l2_1 * x_mu + y * (l2_2 * x_mu * x_mu + l2_1 * x_mu_mu))
    )
    e_mu = exp(mu)
    shc, shc_1 = e_mu * eps, e_mu * (phi - eps)
    shc_2 = -e_mu * (mu * chi + chi + mu * chi_1)
    product = 4.0 * exp(-lam - delta) / (expm1(-2.0 * lam) * expm1(-2.0 * delta))
    coth = 1.0 + w
    coth_mu = w_mu  # of delta = lam - mu, whose derivative by lam is the negative
    product_lam = -product * (coth + 1.0 + 2.0 / expm1(2.0 * lam))
    nu0_lam = -shc * product
    nu0_lam_lam = -shc * product_lam
    inner = shc_1 + coth * shc
    a_lam = -product * inner
    a_lam_lam = -product_lam * inner + product * coth_mu * shc
    a_lam_mu = -product * (coth * inner + shc_2 + coth_mu * shc + coth * shc_1)
    mean = phi / eps - 1.0
    mean_mu = (2.0 * chi - phi * (phi - 2.0 * eps) / eps) / eps
    u0, u1 = mu * nu0, mu * nu1
    _, _, j0_2 = _jet(_J, u0)
    _, _, j1_2 = _jet(_J, u1)
    k0, k0_1, k0_2 = _jet(_K, u0)
    k1, k1_1, k1_2 = _jet(_K, u1)
    p0, p0_1, _ = _jet(_P, u0)
    p1, p1_1, _ = _jet(_P, u1)
    g0, g1 = 1.0 + u0 * p0, 1.0 + u1 * p1
    g0_1, g1_1 = p0 + u0 * p0_1, p1 + u1 * p1_1
    h0 = 1.0 / y
    h1 = exp(-2.0 * mu) / (eps * (w + 2.0))
    f0, f1 = mean + 1.0, mean - 1.0
    pole = h0 - h1 - 2.0 * mu * delta
    pole_mu = g1 * p1 - g0 * p0 - 2.0 * delta
    pole_mu_mu = nu1 * (g1_1 * p1 + g1 * p1_1 - p1) - nu0 * (g0_1 * p0 + g0 * p0_1 - p0)
    cross = nu1 * k1 - nu0 * k0
    cross_mu = nu1 * nu1 * k1_1 - nu0 * nu0 * k0_1
    cross_mu_mu = nu1**3 * k1_2 - nu0**3 * k0_2
    smooth_mu_mu = nu1**5 * j1_2 - nu0**5 * j0_2
    by_a = cross + a * pole
    ends = f1 * h1 - f0 * h0
    by_a_mu = a * ends + cross_mu + a_mu * pole + a * pole_mu
    f0_mu = nu0 * nu0 * p0_1 + a_mu * h0 + a * g0_1
    f1_mu = nu1 * nu1 * p1_1 + a_mu * h1 + a * g1_1
    lam_lam = a_lam_lam * by_a + a_lam * (nu0_lam * ends + a_lam * pole) - 2.0 * nu0_lam_lam * mean
    lam_mu = a_lam_mu * by_a + a_lam * by_a_mu - 2.0 * (a_lam * mean + nu0_lam * mean_mu)
    mu_mu = (
        -2.0 * (mean_mu * a + mean * a_mu)
        + a * (f1 * f1_mu - f0 * f0_mu)
        + 0.5 * smooth_mu_mu
        + a_mu_mu * by_a
        + 2.0 * a_mu * (cross_mu + a * pole_mu)
        + a * (cross_mu_mu + 0.5 * a * pole_mu_mu)
        + a_mu * a_mu * pole
    )
    return lam_lam, lam_mu, mu_mu
