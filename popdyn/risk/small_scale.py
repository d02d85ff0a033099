"""Population risk at small scale outside the origin's neighbourhood, unit half width.

The closed form of MODEL §3 in `u = log(1 / z)`, with the powers of `mu` divided out by hand. With
`w = 2 / expm1(2 delta)`, `u = mu nu`, `g(u) = u / expm1(u)` and `p = (g - 1) / u` the error is

    F - alpha = nu p(u) + A g(u) / nu,      nu from nu_0 to nu_0 + 2,   A = (w - nu_0) / mu,

smooth in `mu` through 0. The boundary layer is the pole `1 / nu`; it is integrated by hand. What is
left is smooth and has the antiderivatives `nu^3 J(u)` of `nu^2 p^2` and `nu K(u)` of `p g` by `nu`,

    p = u r - 1/2,    J = 1/6 - r - u m,    K = u (1/4 - r) - u^2 n - 1/2,

with power series `r`, `m`, `n` in `u^2`, of half the length of those of `J` and `K` themselves:
since `1 / expm1(u)^2` is minus the slope of `1 / expm1(u)` and minus that itself, only the
integrals of `g` and of `u g` are left, and `g + u / 2` is even.
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
# The series have radius 2 pi in u, up to 3.55 here: their length in powers of u^2, and abs(u) up to
# which shorter ones leave 1e-17
_TERMS = 44
_SHORTER = ((0.1, 6), (1.0, 13), (2.4, 25))

_j = np.arange(_TERMS)
_B = bernoulli(2 * _TERMS + 1)
_R = np.array([float(_B[2 * j + 2] / factorial(2 * j + 2)) for j in range(_TERMS)])
_M: NDArray[float64] = _R / (2.0 * _j + 4.0)
_N: NDArray[float64] = _R / (2.0 * _j + 3.0)
_LAST_PHI = np.array([1.0 / factorial(j + 4) for j in range(24)])  # up to 3^24 / 28! = 9e-19
# 1 / (j + 4) with alternating signs, and abs(x) up to which so many leave 1e-18
_RECIPROCALS = (-1.0) ** np.arange(56) / (np.arange(56) + 4.0)
_FEWER = ((0.02, 10), (0.15, 20))
del _B, _j


@kernel
def _terms(u: float) -> int:
    for largest, terms in _SHORTER:
        if abs(u) < largest:
            return terms
    return _TERMS


@kernel
def _antiderivatives(u: float) -> tuple[float, float, float, float, float]:
    """`J`, `dJ/du`, `K`, `dK/du` and `p`."""
    square = u * u
    r = r_1 = m = m_1 = n = n_1 = 0.0
    for j in range(_terms(u) - 1, -1, -1):
        r_1 = multiply_add(r_1, square, r)
        r = multiply_add(r, square, _R[j])
        m_1 = multiply_add(m_1, square, m)
        m = multiply_add(m, square, _M[j])
        n_1 = multiply_add(n_1, square, n)
        n = multiply_add(n, square, _N[j])
    return (
        multiply_add(-u, m, 1.0 / 6.0 - r),
        multiply_add(-2.0 * u, multiply_add(u, m_1, r_1), -m),
        multiply_add(u, multiply_add(-u, n, 0.25 - r), -0.5),
        multiply_add(-2.0 * u, multiply_add(square, n_1, multiply_add(u, r_1, n)), 0.25 - r),
        multiply_add(u, r, -0.5),
    )


@kernel
def _second_derivatives(u: float) -> tuple[float, float, float]:
    """Those of `J` and `K` by `u`, and `dp/du`."""
    square = u * u
    r = r_1 = r_2 = m = m_1 = m_2 = n = n_1 = n_2 = 0.0
    for j in range(_terms(u) - 1, -1, -1):
        r_2 = multiply_add(r_2, square, r_1)
        r_1 = multiply_add(r_1, square, r)
        r = multiply_add(r, square, _R[j])
        m_2 = multiply_add(m_2, square, m_1)
        m_1 = multiply_add(m_1, square, m)
        m = multiply_add(m, square, _M[j])
        n_2 = multiply_add(n_2, square, n_1)
        n_1 = multiply_add(n_1, square, n)
        n = multiply_add(n, square, _N[j])
    return (
        -2.0 * r_1 - 8.0 * square * r_2 - u * (6.0 * m_1 + 8.0 * square * m_2),
        -u * (6.0 * r_1 + 8.0 * square * r_2)
        - 2.0 * n
        - square * (10.0 * n_1 + 8.0 * square * n_2),
        r + 2.0 * square * r_1,
    )


@kernel
def _logarithmic(x: float) -> tuple[float, float, float, float]:
    """`sum_j (-x)^j / (j + k)` for `k = 1` to 4; `log(1 + x) / x` is the first."""
    if abs(x) > 0.5:
        one = log1p(x) / x
        two = (1.0 - one) / x
        three = (0.5 - two) / x
        return one, two, three, (1.0 / 3.0 - three) / x
    terms = _RECIPROCALS.size
    for largest, fewer in _FEWER:
        if abs(x) < largest:
            terms = fewer
            break
    four = 0.0
    for j in range(terms - 1, -1, -1):
        four = multiply_add(four, x, _RECIPROCALS[j])
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
    mean = (phi - eps) / eps  # F at both ends
    u0, u1 = mu * nu0, mu * nu1
    j0, j0_1, k0, k0_1, p0 = _antiderivatives(u0)
    j1, j1_1, k1, k1_1, p1 = _antiderivatives(u1)
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
    _, _, k0, k0_1, p0 = _antiderivatives(u0)
    _, _, k1, k1_1, p1 = _antiderivatives(u1)
    j0_2, k0_2, p0_1 = _second_derivatives(u0)
    j1_2, k1_2, p1_1 = _second_derivatives(u1)
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
