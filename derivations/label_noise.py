"""Homogeneous label noise shrinks the label score, so that training ends at a finite scale.

MODEL §7. Assumes an infinite context, features and thresholds uniform on [-l, l], and every label
flipped with probability p, 0 < p < 1/2, independently of the rest. Symbols: half width l > 0, scale
mu > 0, label score lam of any sign, the effective score lam'.
Sharper than MODEL §7: the scale at which training saturates, as p -> 0, with its 1/mu term.
"""

from functools import cache, partial
from typing import NamedTuple

import mpmath
import sympy
from sympy import LambertW, Rational, atanh, exp, log, oo, pi, series, sqrt, symbols, tanh, zeta

from derivations.checks import Chain, show
from derivations.descent_stability import risk_by_quadrature

ell, mu, p, Q, nu = symbols("l mu p Q nu", positive=True)  # nu = 1/mu
exponent = symbols("exponent", integer=True, positive=True)
lam = symbols("lam", real=True)


class LabelNoise(NamedTuple):
    effective_score: sympy.Expr
    score_cap: sympy.Expr
    saturation_scale: sympy.Expr
    saturation_layer: sympy.Expr


def derive(chain: Chain) -> LabelNoise:
    # On an infinite context a flip is an average over the label in numerator and denominator.
    weight = {y: (1 - p) * exp(lam * y) + p * exp(-lam * y) for y in (1, -1)}
    effective = atanh((1 - 2 * p) * tanh(lam))
    chain.proved(
        "the averaged weights are those of clean labels with tanh lam' = (1 - 2 p) tanh lam",
        (weight[1] - weight[-1]) / (weight[1] + weight[-1]),
        (1 - 2 * p) * tanh(lam).rewrite(exp),
    )
    cap = log((1 - p) / p) / 2
    chain.proved("lam' grows with lam up to atanh(1 - 2 p)", sympy.limit(tanh(lam), lam, oo), 1)
    chain.proved("that is log((1 - p)/p)/2", tanh(cap).rewrite(exp), 1 - 2 * p)
    slope = effective.diff(lam)
    chain.proved(
        "lam' has slope (1 - 2 p)/(1 + 4 p (1 - p) sinh(lam)^2) > 0: dL/dlam keeps its sign",
        sympy.simplify((1 / slope).rewrite(exp)),
        (1 + 4 * p * (1 - p) * sympy.sinh(lam).rewrite(exp) ** 2) / (1 - 2 * p),
    )

    # So lam rises without end while dL/dlam' < 0, lam' to its cap, and mu to where dL/dmu = 0.
    # As p -> 0 that is far out: use the risk in the tube (MODEL §4, proved in `tube_risk`),
    # q = exp(-2 lam' + 2 mu l), Q = q mu^2, with dq/dmu = 2 l q at a fixed score.
    q = symbols("q", positive=True)
    risk = mu**-2 + 2 * ell * q / mu - zeta(3) / ell * mu**-3 - pi**2 / 3 * q * mu**-2
    slope = sympy.expand((risk.diff(mu) + 2 * ell * q * risk.diff(q)).subs(q, Q / mu**2))
    layer = (1 + (1 + pi**2 / 3 - 3 * zeta(3)) / (2 * ell * mu)) / (2 * ell**2)
    rest = sympy.expand(slope.subs(Q, layer).subs(mu, 1 / nu) / nu**3)
    chain.proved("dL/dmu = 0 at Q = layer, to two orders in 1/mu", series(rest, nu, 0, 2).removeO())
    w = symbols("w", positive=True)
    cap_at = log(sqrt(2) * w * exp(w))
    first_order = (exp(-2 * cap_at + 2 * mu * ell) * mu**2).subs(mu, w / ell)
    chain.proved(
        "first order: mu = w/l with w exp(w) = exp(cap)/sqrt 2", first_order, 1 / (2 * ell**2)
    )
    scale = LambertW(exp(cap) / sqrt(2)) / ell
    chain.checked(
        "that w is Lambert's function",
        sqrt(2) * (ell * scale) * exp(ell * scale),
        lambda mp, p, ell: mp.sqrt((1 - p) / p),
        [{p: "1/100", ell: 2}],
        digits=25,
    )
    chain.checked(
        "Q at the exact saturated scale for p = 10^-exponent, over layer there",
        Rational(1),
        lambda mp, *place: _exact_layer(mp, *place, sympy.lambdify((ell, mu), layer, "mpmath")),
        [{exponent: 10_000, ell: 1}, {exponent: 10_000, ell: 2}],
        digits=6,
    )

    # At p = 1 % the scale is of order one; the numbers come from the integrals.
    for words, claimed, which in (
        ("at p = 1 %, l = 1, training saturates at mu = 1.46849", "1.46849", 0),
        ("with the risk floor 0.198051", "0.198051", 1),
        ("where a larger lam' would still lower the risk", "1", 2),
    ):
        chain.checked(
            words,
            Rational(claimed),
            lambda mp, noise, i=which: _saturation(mp.nstr(noise, 15))[i],
            [{p: "1/100"}],
            digits=5,
        )
    return LabelNoise(effective, cap, scale, layer)


def _exact_layer(mp, exponent, ell, layer):
    """Q where dL/dmu = 0 at the capped score, divided by the law for it."""
    cap = mp.log(mp.mpf(10) ** exponent - 1) / 2

    def slope(mu):
        step = mp.mpf(10) ** -8
        risks = (risk_by_quadrature(mp, ell, cap - ell * m, m) for m in (mu + step, mu - step))
        return (next(risks) - next(risks)) / (2 * step) * mu**3

    start = mp.lambertw(mp.exp(cap) / mp.sqrt(2)).real / ell
    mu = mp.findroot(slope, (start, start + mp.mpf("0.01")), tol=1e-20)
    return mp.exp(2 * ell * mu - 2 * cap) * mu**2 / layer(ell, mu)


@cache
def _saturation(p):
    """Scale and risk at the minimum over mu with lam = oo, l = 1; sign of the risk's slope in p."""
    mp = mpmath.mp.clone()
    mp.dps, p = 20, mp.mpf(p)
    quad = partial(mp.quad, method="gauss-legendre", maxdegree=3)

    def risk(p, mu):
        def error(a):
            below, above = (
                [quad(lambda x, j=j: (x - a) ** j * mp.exp(mu * x), span) for j in (0, 1)]
                for span in ((-1, a), (a, 1))
            )
            first, mass = ((1 - p) * below[j] + p * above[j] for j in (1, 0))
            return first / mass

        # The error falls from order one within a distance p of the lower end.
        return quad(lambda a: error(a) ** 2 / 2, (-1, 4 * p - 1, 16 * p - 1, 1))

    step = mp.mpf(10) ** -8
    scale = mp.findroot(lambda mu: risk(p, mu + step) - risk(p, mu - step), (1, 2), tol=1e-20)
    floor = risk(p, scale)
    return scale, floor, mp.sign(risk(p + step, scale) - floor)


if __name__ == "__main__":
    show(derive)
