"""On an infinite context the error of the head is -1/mu + R, and R is positive.

MODEL §2. Assumes features uniform on [-l, l], clean labels, scale mu > 0. Symbols: half width
l > 0, threshold alpha in (-l, l), its distances s = alpha + l > 0 and r = l - alpha > 0 to the two
ends, excess delta = lam - mu l, q = exp(-2 delta) > 0. Hence, interior: mu (alpha - F) -> 1.
At the lower end, where a context has no positive example, the error stays near 2 l for every head.
"""

from typing import NamedTuple

import sympy
from sympy import exp, symbols

from derivations.checks import Chain, show

ell, mu, s, r, q = symbols("l mu s r q", positive=True)
lam, x, alpha = symbols("lam x alpha", real=True)


class Predictor(NamedTuple):
    remainder: sympy.Expr
    error: sympy.Expr
    lower_end_error: sympy.Expr


def remainder_of(mu, s, r, q):
    """R at a scale, the distances to the two ends, and q."""
    return (s + q * r) / (exp(mu * s) - 1 - q * (exp(-mu * r) - 1))


def derive(chain: Chain) -> Predictor:
    # Positive examples fill [-l, alpha], negative ones [alpha, l]; features are measured from the
    # threshold, x = feature - alpha, and every weight divided by exp(lam + mu alpha).
    weight = exp(mu * x)
    mass = weight / mu
    moment = (x / mu - 1 / mu**2) * weight
    chain.proved("mass is an antiderivative of the weight", mass.diff(x), weight)
    chain.proved("moment is one of x times the weight", moment.diff(x), x * weight)

    def over(antiderivative, low, high):
        return antiderivative.subs(x, high) - antiderivative.subs(x, low)

    odds = exp(-2 * lam)  # of a negative example against a positive one at the same feature
    numerator = over(moment, -s, 0) + odds * over(moment, 0, r)
    mass_total = over(mass, -s, 0) + odds * over(mass, 0, r)
    error = numerator / mass_total

    remainder = remainder_of(mu, s, r, q)
    in_excess = remainder.subs(q, exp(-2 * (lam - mu * (s + r) / 2)))
    chain.proved(
        "the softmax average is -1/mu + R, with q = exp(-2 lam + 2 mu l) and s + r = 2 l",
        sympy.cancel(sympy.expand(error - (-1 / mu + in_excess), power_exp=True)),
    )
    chain.checked(
        "and is the ratio of the integrals that define it",
        (-1 / mu + in_excess).subs({s: alpha + ell, r: ell - alpha}),
        by_quadrature,
        [
            {ell: 1, mu: 3, lam: 4, alpha: "1/3"},
            {ell: 2, mu: "1/2", lam: "-2/3", alpha: "-3/2"},
        ],
        digits=30,
    )

    # exp(mu s) - 1 and q (1 - exp(-mu r)) are positive for mu, s, r > 0: written with positive
    # symbols, numerator and denominator are sums of positive terms.
    up, down = symbols("up down", positive=True)  # expm1(mu s) and -expm1(-mu r)
    positive = (s + q * r) / (up + q * down)
    chain.proved("R is a ratio of sums of positive terms", sympy.Abs(positive), positive)
    chain.proved(
        "as q -> 0, R -> s/expm1(mu s)", sympy.limit(remainder, q, 0), s / (exp(mu * s) - 1)
    )

    # At mu = 0 the weights are constant on each side: averages of x over 0 < -x < s and 0 < x < r.
    cleared = [sympy.series(mu**2 * part, mu, 0, 4).removeO() for part in (numerator, mass_total)]
    at_zero = sympy.limit(sympy.cancel(cleared[0] / cleared[1]), mu, 0)
    chain.proved(
        "mu = 0 is removable, F - alpha -> (odds r^2 - s^2)/(2 (s + odds r))",
        at_zero,
        (odds * r**2 - s**2) / (2 * (s + odds * r)),
    )

    lower_end = sympy.limit(-1 / mu + remainder.subs(r, 2 * ell), s, 0)
    claimed_end = 2 * ell / (1 - exp(-2 * mu * ell)) - 1 / mu
    chain.proved("at alpha = -l the error is 2 l/(1 - exp(-2 mu l)) - 1/mu", lower_end, claimed_end)
    chain.proved("which no label score enters", lower_end.diff(q))
    chain.proved("and which tends to 2 l", sympy.limit(claimed_end, mu, sympy.oo), 2 * ell)
    chain.proved("it is -> l as mu -> 0", sympy.limit(claimed_end, mu, 0), ell)
    return Predictor(remainder, -1 / mu + remainder, claimed_end)


def by_quadrature(mp, ell, mu, lam, a):
    """F - alpha from the softmax integrals."""
    weights = [lambda x, y=y: mp.exp(lam * y + mu * x) for y in (1, -1)]
    parts = [(weights[0], (-ell, a)), (weights[1], (a, ell))]
    total = sum(mp.quad(weight, span) for weight, span in parts)
    first = sum(mp.quad(lambda x, w=weight: (x - a) * w(x), span) for weight, span in parts)
    return first / total


if __name__ == "__main__":
    show(derive)
