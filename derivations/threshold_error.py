"""In the tube every interior threshold is found to within 1/mu, and the lower end never is.

MODEL §2, §4. On [-a, a] with a < l, mu sup|F - alpha| -> 1, hence the error falls like
((1 + l^2)/8)^(1/4) t^(-1/4). At alpha = -l the error tends to 2 l whatever the head does. Assumes
an infinite clean context, uniform features, q = Q/mu^2 with Q bounded, and scale_growth. Symbols:
half width l > 0, scale mu > 0, time t > 0, distances s, r > 0 to the two ends, v = mu s > 0,
w > 0 a distance in units of the inner layer's width q/mu.

Sharper than MODEL §4: mu|F - alpha| - 1 is of order mu exp(-mu (l - a)); in time the error is
T^-1 + (l^2/(6 (1 + l^2)) + zeta(3)/2)/(l T^2) + ..., T = (8 t/(1 + l^2))^(1/4).
"""

from typing import NamedTuple

import sympy
from sympy import Rational, exp, log, oo, symbols, zeta

from derivations import scale_growth
from derivations.checks import Chain, show
from derivations.predictor import alpha, by_quadrature, ell, mu, q, r, remainder_of, s

Q, v, w, t, T = symbols("Q v w t T", positive=True)


class ThresholdError(NamedTuple):
    interior: sympy.Expr  # in mu
    constant: sympy.Expr  # interior error times t^(1/4)
    interior_in_time: sympy.Expr  # in T, through T^-2
    lower_end: sympy.Expr  # in l, mu


def derive(chain: Chain) -> ThresholdError:
    error = -1 / mu + remainder_of(mu, s, r, q)
    bound = (s + q * r) / (exp(mu * s) - 1)
    chain.proved(
        "R is below (s + q r)/expm1(mu s), by a ratio of positive terms",
        1 / (error + 1 / mu) - 1 / bound,
        q * (1 - exp(-mu * r)) / (s + q * r),
    )
    in_tube = bound.subs(q, Q / mu**2)
    chain.proved(
        "which at a fixed distance s is s exp(-mu s) to leading order",
        sympy.limit(in_tube * exp(mu * s), mu, oo),
        s,
    )
    falling = v / (exp(v) - 1)
    sign = exp(v) - 1 - v * exp(v)
    chain.proved("the slope of v/expm1(v)", falling.diff(v), sign / (exp(v) - 1) ** 2)
    chain.proved("is negative for v > 0: its sign is 0 at 0", sign.subs(v, 0))
    chain.proved("and falls from there", sign.diff(v), -v * exp(v))
    chain.proved(
        "so on [-a, a] the nearest distance to the end, s = l - a, decides: mu |F - alpha| -> 1",
        sympy.limit(mu * error.subs({q: Q / mu**2}), mu, oo),
        -1,
    )
    center = log(2 * (1 + ell**2)) / 2
    end = remainder_of(mu, ell - alpha, ell + alpha, exp(-2 * center) / mu**2)  # R at -alpha
    chain.checked(
        "the error at -alpha, on c = c*, is -1/mu + R",
        -1 / mu + end,
        _on_tube,
        [{ell: 1, mu: 30, alpha: "1/2"}, {ell: "1/2", mu: 100, alpha: "1/4"}],
        digits=30,
    )

    constant = ((1 + ell**2) / 8) ** Rational(1, 4)
    chain.proved(
        "1/mu for mu = (8 t/(1 + l^2))^(1/4)",
        (constant / t ** Rational(1, 4)) ** 4,
        1 / (8 * t / (1 + ell**2)),
    )
    scale = scale_growth.derive(Chain()).scale.subs(scale_growth.T, T)
    shift = (ell**2 / (6 * (1 + ell**2)) + zeta(3) / 2) / ell
    in_time = 1 / T + shift / T**2
    chain.proved(
        "with the scale's correction, 1/mu through T^-2",
        sympy.limit(T * (scale * in_time - 1), T, oo),
    )

    lower_end = 2 * ell / (1 - exp(-2 * mu * ell)) - 1 / mu
    chain.proved(
        "at alpha = -l no label score enters the error",
        error.subs(r, 2 * ell).subs(s, 0),
        lower_end,
    )
    chain.proved("and it tends to 2 l", sympy.limit(lower_end, mu, oo), 2 * ell)
    inner = remainder_of(mu, w * q / mu, 2 * ell - w * q / mu, q).subs(q, Q / mu**2)
    chain.proved(
        "errors of order one have the width q/mu: there R -> 2 l/(1 + w)",
        sympy.limit(inner, mu, oo),
        2 * ell / (1 + w),
    )
    share = -2 * ell / (1 + w)
    chain.proved(
        "an antiderivative of R^2/(2 l) there", share.diff(w), (2 * ell / (1 + w)) ** 2 / (2 * ell)
    )
    chain.proved(
        "whose ends give them the 2 l q/mu of tube_risk",
        sympy.limit(share, w, oo) - share.subs(w, 0),
        2 * ell,
    )
    return ThresholdError(1 / mu, constant, in_time, lower_end)


def _on_tube(mp, ell, mu, threshold):
    center = mp.log(2 * (1 + ell**2)) / 2
    lam = mu * ell + mp.log(mu) + center
    return by_quadrature(mp, ell, mu, lam, -threshold)


if __name__ == "__main__":
    show(derive)
