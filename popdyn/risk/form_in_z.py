"""Population risk at a label score that is not low for its scale, unit half width (MODEL §3).

With `z = (1 - q) / (1 - q e) exp(-mu s)` and `w = -log(1 - z)` at the two ends of the interval,
`eta = 1 / mu`, and the errors of the prediction `c_0 - eta`, `c_1 - eta` there, the risk is

    eta^2 + eta [-c^2 H(w) / 2 + eta c M(w) + eta^2 Li3(z)],      M = Li2(z) / h, H = (h - w) / h^2,

the bracket a difference of the ends 1 (`s = 2`) and 0 (`s = 0`), with `h = expm1(w) = z / (1 - z)`.
Nothing is singular at `q = 1`, where `w = 0`. The errors at the ends do not depend on the label
score, `c_0 = 2 / (1 - e)`, `c_1 = c_0 - 2`, so that all derivatives are derivatives by `w`:

    dw/dlam = g,  g_0 = 2 / (1 - q e),  g_1 = g_0 - 2,      dw/dmu = -c,      dc/dmu = -c_0 c_1.
"""

from math import exp, expm1, factorial, log, log1p

import numpy as np

from popdyn.compiled import kernel
from popdyn.machine_arithmetic import multiply_add
from popdyn.polylog import bernoulli, li2_and_li3, li2_and_li3_inverted, trilogarithm_series

__all__ = ["hessian_in_z", "risk_in_z"]

# exp(-2 * 345) is 1e-300: more changes no digit of the risk but would lose 0 / 0.
_LARGEST = 345.0
# M and H are divided by powers of h; between these z, where that costs digits, they are summed as
# power series in w, of radius 2 pi: the first term left out of d2H/dw2 is 36^3 0.22^36 = 1e-19.
_LEAST_Z, _LARGEST_Z = -3.0, 0.5
_TERMS = 36
_NEAR_ZERO, _TERMS_NEAR_ZERO = 0.05, 12  # for smaller w, as at the end 1 from scale 2 on
_LINEAR, _TERMS_LINEAR = 1e-8, 5  # as there from scale 10 on; log(1 - z) = -z to 1e-16 of the risk
_SMALL_EXCESS = 0.35  # from here on q < 1/2, and 1 - q loses nothing

_B = bernoulli(_TERMS + 1)
_LI3 = np.array([0.0, *(float(a) for a in trilogarithm_series(_TERMS))])
_H = np.array([float((_B[n] + _B[n + 1]) / factorial(n)) for n in range(_TERMS)])
_n = np.arange(_TERMS)
_M_CURVATURE = _n * (_n - 1.0) * (_n - 2.0) * _LI3[:_TERMS]
_H_CURVATURE = _n * (_n - 1.0) * _H
del _n


@kernel
def _ends(
    label_score: float, excess: float, mu: float
) -> tuple[tuple[float, ...], tuple[float, ...], float, float]:
    """`(z, 1 - z, log(1 - z), 1 / z, log(-z))` at both ends, the last two read for `z < -1`; `c_1`
    and `g_1`."""
    delta = min(excess, _LARGEST)
    e = exp(-2.0 * mu) if mu < _LARGEST else 0.0
    inverse = 0.0
    log_minus_z = 0.0
    if delta > _SMALL_EXCESS:
        q = exp(-2.0 * delta)
        qe = q * e
        z = (1.0 - q) / (1.0 - qe)
        complement = q * (1.0 - e) / (1.0 - qe)
        logarithm = log(complement)
        z1 = z * e
    else:
        qe = exp(-2.0 * label_score)
        if delta > 0.0:
            z = -expm1(-2.0 * delta) / (1.0 - qe)
            z1 = z * e
        else:  # in terms of 1 / q, since q overflows
            inverse_q = exp(2.0 * delta)
            inverse = (1.0 - qe) * inverse_q / expm1(2.0 * delta)
            z = 1.0 / inverse
            z1 = (e - qe) / (1.0 - qe)
        complement = 1.0 - z
        if z < -1.0:
            log_minus_z = -2.0 * delta + log1p(-inverse_q) - log1p(-qe)
            logarithm = log_minus_z + log1p(-inverse)
        else:
            logarithm = log1p(-z)
    log1 = log1p(-z1) if abs(z1) > _LINEAR else -z1
    return (
        (z, complement, logarithm, inverse, log_minus_z),
        (z1, 1.0 - z1, log1, 0.0, 0.0),
        2.0 * e / (1.0 - e),
        2.0 * qe / (1.0 - qe),
    )


@kernel
def _functions(end: tuple[float, ...]) -> tuple[float, float, float, float, float]:
    """`Li3(z)`, `M`, `H`, `dM/dw` and `dH/dw`."""
    z, complement, logarithm, inverse, log_minus_z = end
    w = -logarithm
    if _LEAST_Z <= z <= _LARGEST_Z:
        three = m = m_1 = h = h_1 = 0.0
        terms = _TERMS
        if abs(w) < _NEAR_ZERO:
            terms = _TERMS_NEAR_ZERO if abs(w) > _LINEAR else _TERMS_LINEAR
        for n in range(terms - 1, -1, -1):
            m_1 = multiply_add(m_1, w, m)
            m = multiply_add(m, w, three)
            three = multiply_add(three, w, _LI3[n])
            h_1 = multiply_add(h_1, w, h)
            h = multiply_add(h, w, _H[n])
        return three, m, h, 2.0 * m_1, h_1
    if z < -1.0:
        two, three = li2_and_li3_inverted(log_minus_z, inverse)
        r = inverse - 1.0
    else:
        two, three = li2_and_li3(z, complement, logarithm)
        inverse = 1.0 / z
        r = complement * inverse
    m = r * two
    h = r * (1.0 - w * r)
    return three, m, h, w * r * r - inverse * m, r - 2.0 * inverse * h


@kernel
def risk_in_z(label_score: float, excess: float, mu: float) -> tuple[float, float, float]:
    """Risk and gradient for `label_score >= 0.7` and `mu >= 1.5`, where `q e` and `e` are small."""
    end0, end1, c1, g1 = _ends(label_score, excess, mu)
    eta = 1.0 / mu
    value0, lam0, mu0 = _share(c1 + 2.0, c1, g1 + 2.0, eta, end0)
    value1, lam1, mu1 = _share(c1, c1 + 2.0, g1, eta, end1)
    return (
        eta * (eta + (value1 - value0)),
        eta * (lam1 - lam0),
        eta * ((mu1 - mu0) - 2.0 * eta * eta),
    )


@kernel
def _share(
    c: float, other_c: float, g: float, eta: float, end: tuple[float, ...]
) -> tuple[float, float, float]:
    """`mu` times one end's share of the risk and its gradient."""
    three, m, h, m_1, h_1 = _functions(end)
    value = c * (eta * m - 0.5 * c * h) + eta * eta * three
    along_w = c * (eta * m_1 - 0.5 * c * h_1) + eta * eta * m
    along_c = eta * m - c * h
    along_eta = c * (2.0 * eta * m - 0.5 * c * h) + 3.0 * eta * eta * three
    return value, g * along_w, -c * (other_c * along_c + along_w) - eta * along_eta


@kernel
def _second_derivatives(
    end: tuple[float, ...], m: float, h: float, m_1: float, h_1: float
) -> tuple[float, float]:
    """Second derivatives of `M` and `H` by `w`, from both and their first ones."""
    z, complement, logarithm, inverse, _ = end
    w = -logarithm
    if _LEAST_Z <= z <= _LARGEST_Z:
        m_2 = h_2 = 0.0
        for n in range(_TERMS - 1, 2, -1):
            m_2 = multiply_add(m_2, w, _M_CURVATURE[n])
        for n in range(_TERMS - 1, 1, -1):
            h_2 = multiply_add(h_2, w, _H_CURVATURE[n])
        return m_2, h_2
    if z < -1.0:
        r = inverse - 1.0
    else:
        inverse = 1.0 / z
        r = complement * inverse
    return (
        r * r * (1.0 - w * inverse) - inverse * (2.0 * m_1 + m),
        inverse * (2.0 * r * h - r - 2.0 * h_1),
    )


@kernel
def hessian_in_z(label_score: float, excess: float, mu: float) -> tuple[float, float, float]:
    """Hessian where `risk_in_z` holds."""
    end0, end1, c1, g1 = _ends(label_score, excess, mu)
    eta = 1.0 / mu
    a0, b0, d0 = _share_of_hessian(c1 + 2.0, c1, g1 + 2.0, g1, eta, end0)
    a1, b1, d1 = _share_of_hessian(c1, c1 + 2.0, g1, g1 + 2.0, eta, end1)
    return eta * (a1 - a0), eta * (b1 - b0), eta * ((d1 - d0) + 6.0 * eta * eta * eta)


@kernel
def _share_of_hessian(
    c: float, other_c: float, g: float, other_g: float, eta: float, end: tuple[float, ...]
) -> tuple[float, float, float]:
    """`mu` times one end's share of the Hessian."""
    three, m, h, m_1, h_1 = _functions(end)
    m_2, h_2 = _second_derivatives(end, m, h, m_1, h_1)
    square = eta * eta
    k = c * other_c
    # subscripts: derivatives by w and c of mu times the share, f; e is f + eta df/deta
    f_w = c * (eta * m_1 - 0.5 * c * h_1) + square * m
    f_c = eta * m - c * h
    f_cw = eta * m_1 - c * h_1
    f_ww = c * (eta * m_2 - 0.5 * c * h_2) + square * m_1
    e = c * (2.0 * eta * m - 0.5 * c * h) + 3.0 * square * three
    e_w = c * (2.0 * eta * m_1 - 0.5 * c * h_1) + 3.0 * square * m
    e_c = 2.0 * eta * m - c * h
    along_mu = -k * f_c - c * f_w - eta * e
    mu_mu = (
        k * ((c + other_c) * f_c - k * h + 2.0 * c * f_cw + square * m + f_w)
        + c * (c * f_ww + square * (c * m_1 + 2.0 * eta * m))
        + eta * (eta * e + k * e_c + c * e_w + square * (2.0 * c * m + 6.0 * eta * three))
        - eta * along_mu
    )
    return (
        g * (g * f_ww - other_g * f_w),
        -g * (k * f_cw + c * f_ww + eta * e_w),
        mu_mu,
    )
