"""In the tube the risk is mu^-2 + (2 l Q - zeta(3)/l) mu^-3 - (pi^2/3) Q mu^-4 + O(mu^-5 log mu).

MODEL §4. Assumes mu -> infinity with Q bounded, and the closed form of closed_form_risk. Symbols:
half width l > 0, scale mu > 0, q = exp(-2 delta) in (0, 1), Q = q mu^2 = exp(-2 c) > 0 where
c = delta - log mu, e = exp(-2 mu l) > 0; log q and log mu are symbols of their own.

Sharper than MODEL §4: up to terms of order exp(-2 mu l) the risk is the function of q and mu that
the first steps state, and its first logarithm is -4 l Q^2 log(mu) mu^-5.
"""

from itertools import pairwise
from typing import NamedTuple

import sympy
from sympy import Rational, exp, expand_func, log, pi, polylog, symbols, zeta

from derivations.checks import Chain, show
from derivations.closed_form_risk import ell, mu, q, value_at

e, Q = symbols("e Q", positive=True)
log_q, log_Q, log_mu = symbols("logq logQ logmu", real=True)
DEGREE = 4  # the parts are expanded through q^(DEGREE - 1), and so the risk through mu^-7
ORDER = 7


class TubeRisk(NamedTuple):
    without_exponentials: sympy.Expr  # in l, mu, q
    first_exponential: sympy.Expr  # what multiplies exp(-2 mu l) next
    expansion: sympy.Expr  # in l, mu, Q, log Q, log mu, through mu^-7


def parts():
    """f1, f2, f3 as functions of q (they enter the risk by `assembled`)."""
    f1 = q / (1 - q) + q**2 * log(q) / (1 - q) ** 2
    return f1, q / (1 - q) * polylog(2, 1 - q), polylog(3, 1 - q)


def assembled(f1, f2, f3):
    return 1 / mu**2 + 2 * ell * f1 / mu - 2 * f2 / mu**2 - f3 / (ell * mu**3)


def derive(chain: Chain) -> TubeRisk:
    lower, upper = (1 - q) / (1 - q * e), (1 - q) * e / (1 - q * e)
    exact = 1 / mu**2 + (value_at(2 * ell, upper) - value_at(0, lower)) / (2 * ell)
    f1, f2, f3 = parts()
    risk = assembled(f1, f2, f3)
    chain.proved("at e = 0 the closed form is elementary in f1, f2, f3", exact.subs(e, 0), risk)
    exponential = (
        2 * ell * q / mu
        + 2 * (1 + q**2 * log(q) / (1 - q)) / mu**2
        + (1 - q - q * polylog(2, 1 - q)) / (ell * mu**3)
    )
    dilog = symbols("dilog")  # keeps the polylogarithm out of the series, being smooth in e
    slope = expand_func(exact.diff(e)).subs(polylog(2, lower), dilog)
    chain.proved(
        "what multiplies e = exp(-2 mu l) next",
        sympy.series(slope, e, 0, 1).removeO().subs(dilog, polylog(2, 1 - q)),
        exponential,
    )
    chain.checked(
        "both together are the integral of (F - alpha)^2",
        risk + exp(-2 * mu * ell) * exponential,
        lambda mp, *numbers: by_quadrature(mp, *numbers)[0],
        [{ell: 1, mu: 20, q: "1/1600"}, {ell: "1/2", mu: 40, q: "1/10"}],
        digits=30,
    )

    # The parts as power series in q and log q, through q^(DEGREE - 1).
    near_zero = zeta(2) - log_q * log(1 - q) - sum(q**n / n**2 for n in range(1, DEGREE))
    chain.proved(
        "Li2(1 - q) = zeta(2) - log(q) log(1 - q) - Li2(q): equal slopes",
        expand_func((polylog(2, 1 - q) + log(q) * log(1 - q) + polylog(2, q)).diff(q)),
    )
    chain.proved("and equal at q = 0", expand_func(polylog(2, 1)), zeta(2))
    chain.proved("q times the slope of f3 is -f2", q * f3.diff(q), -f2)
    s1 = _truncated(q / (1 - q) + q**2 * log_q / (1 - q) ** 2)
    s2 = _truncated(q / (1 - q) * near_zero)
    s3 = zeta(3) - zeta(2) * q + q**2 * (Rational(3, 4) - zeta(2) / 2 - log_q / 2)
    s3 += q**3 * (Rational(7, 12) - zeta(2) / 3 - log_q / 2)
    theta = q * s3.diff(q) + s3.diff(log_q)
    chain.proved("so this is the series of f3, with value zeta(3) at 0", _truncated(theta), -s2)

    in_tube = {log_q: log_Q - 2 * log_mu, q: Q / mu**2}
    series = sympy.expand(sympy.expand(assembled(s1, s2, s3)).subs(in_tube))
    kept = sum(series.coeff(mu, -k) * mu**-k for k in range(ORDER + 1))
    claimed = (
        mu**-2
        + (2 * ell * Q - zeta(3) / ell) * mu**-3
        - pi**2 / 3 * Q * mu**-4
        + (2 * ell * Q**2 * (1 + log_Q - 2 * log_mu) + pi**2 / 6 * Q / ell) * mu**-5
        + 2 * Q**2 * (1 - pi**2 / 6 - log_Q + 2 * log_mu) * mu**-6
        + 2 * ell * Q**3 * (1 + 2 * log_Q - 4 * log_mu) * mu**-7
        + Q**2 / ell * (pi**2 / 12 - Rational(3, 4) + log_Q / 2 - log_mu) * mu**-7
    )
    chain.proved("with q = Q/mu^2 the risk is, through mu^-7", kept, claimed)
    chain.checked(
        "this expansion is the integral of (F - alpha)^2",
        claimed.subs({log_Q: log(Q), log_mu: log(mu)}),
        lambda mp, ell, mu, Q: by_quadrature(mp, ell, mu, Q / mu**2)[0],
        [{ell: 1, mu: 10**7, Q: "1/4"}, {ell: "1/2", mu: 10**7, Q: 3}, {ell: 2, mu: 10**7, Q: 1}],
        digits=38,  # mu^-8 log(mu) against mu^-2
    )
    return TubeRisk(risk, exponential, claimed)


def _truncated(expression):
    return sympy.expand(sympy.series(expression, q, 0, DEGREE).removeO())


def by_quadrature(mp, ell, mu, q):
    """Risk, its slope in delta and its slope in mu at fixed delta, from the predictor's formula."""

    def integrands(s):
        r = 2 * ell - s
        grown, decayed = mp.expm1(mu * s), mp.expm1(-mu * r)
        top, bottom = s + q * r, grown - q * decayed
        R = top / bottom
        by_q = (r + R * decayed) / bottom
        by_mu = -R * (s * (1 + grown) + q * r * (1 + decayed)) / bottom
        return R**2 - 2 * R / mu, (R - 1 / mu) * by_q, R * by_mu - by_mu / mu + R / mu**2

    # Panels growing threefold from the inner layer to where exp(-mu s) is out of sight: the poles
    # of R stay so far from each that 48 Gauss nodes give 50 digits.
    edges = [mp.mpf(0), q / mu]
    while edges[-1] < min(2 * ell, mp.dps * 3 / mu):
        edges.append(min(3 * edges[-1], 2 * ell))
    sums = [mp.mpf(0)] * 3
    for low, high in pairwise(edges):
        for s, weight in mp._gauss_legendre.get_nodes(low, high, 5, mp.prec):
            sums = [total + weight * part for total, part in zip(sums, integrands(s), strict=True)]
    means = [total / (2 * ell) for total in sums]
    return 1 / mu**2 + means[0], -4 * q * means[1], -2 / mu**3 + 2 * means[2]


if __name__ == "__main__":
    show(derive)
