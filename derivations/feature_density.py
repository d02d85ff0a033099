"""A feature density f moves the tube by log(f(l)/f(-l))/2 and leaves the growth of mu as it is.

MODEL §7. Assumes an infinite clean context, thresholds uniform on [-l, l], features with a smooth
density f on [-l, l], positive at both ends; the proof is written for every quadratic f (only f(-l)
and f(l) enter) and checked for others. Symbols: half width l > 0, scale mu > 0, distance s = alpha
+ l in (0, 2 l), q = exp(-2 (lam - mu l)) > 0, Q = q mu^2 > 0, sigma = mu s/q > 0.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import sympy
from sympy import exp, log, oo, symbols

from derivations.checks import Chain, show

ell, mu, s, q, Q, sigma, nu = symbols("l mu s q Q sigma nu", positive=True)  # nu = 1/mu
gap = symbols("gap", nonnegative=True)  # exp(-2 mu l), exponentially small
rho = symbols("rho", positive=True)  # f(l)/f(-l)
x, alpha, f0, f1, f2, g = symbols("x alpha f0 f1 f2 g", real=True)
tilt, wave = symbols("tilt wave", real=True)


NODES = list(zip(*np.polynomial.legendre.leggauss(20), strict=True))
PLACES = [
    {ell: 1, tilt: "3/10", wave: 0},  # c* = 1.0027
    {ell: 1, tilt: 0, wave: "3/10"},  # c* = 0.6931, as for the uniform density
    {ell: "3/2", tilt: "-1/5", wave: "1/4"},
]


class FeatureDensity(NamedTuple):
    tube_center: sympy.Expr
    layer_risk: sympy.Expr
    growth: sympy.Expr


def derive(chain: Chain) -> FeatureDensity:
    density = f0 + f1 * x + f2 * x**2
    power = {j: (x - alpha) ** j * density for j in (0, 1)}
    # exp(mu x) g(x) integrates to exp(mu x) (g/mu - g'/mu^2 + g''/mu^3 - ...), finite for these g.
    primitive = {
        j: sum((-1) ** i * power[j].diff(x, i) / mu ** (i + 1) for i in range(4)) for j in (0, 1)
    }
    for j, name in ((0, "mass"), (1, "moment about the threshold")):
        derivative = (exp(mu * x) * primitive[j]).diff(x) * exp(-mu * x)
        chain.proved(f"antiderivative of the {name}", derivative, power[j])

    def softmax(j, growth):
        """Integral of (x - alpha)^j times the weights, over exp(lam - mu l); growth = exp(mu s)."""
        here, left, right = (primitive[j].subs(x, place) for place in (alpha, -ell, ell))
        return here * growth - left + q * (right - gap * growth * here)

    # Inside, divided by growth, whatever carries 1/growth or gap vanishes exponentially.
    scaled = [sympy.expand(softmax(j, 1 / g) * g).subs({gap: 0, g: 0}) for j in (0, 1)]
    inside = (primitive[1] / primitive[0]).subs(x, alpha)
    chain.proved(
        "interior: only the near side of the threshold counts", scaled[1] / scaled[0], inside
    )
    chain.proved("so mu (F - alpha) -> -1 for every density", sympy.limit(mu * inside, mu, oo), -1)

    # In the layer mu s = q sigma, q = Q/mu^2, both masses are of order Q/mu^3.
    layer = {alpha: Q * sigma * nu**3 - ell, mu: 1 / nu, q: Q * nu**2, gap: 0}
    growth = 1 + Q * sigma * nu**2  # exp(q sigma): the next term enters two orders later
    parts = [sympy.expand(softmax(j, growth).subs(layer)).coeff(nu, 3) / Q for j in (0, 1)]
    left, right = (density.subs(x, place) for place in (-ell, ell))
    chain.proved(
        "positive examples weigh sigma f(-l), negative ones f(l)", parts[0], sigma * left + right
    )
    chain.proved("and the error is 2 l times the negative share", parts[1], 2 * ell * right)

    # With rho = f(l)/f(-l) the layer adds q/(2 l mu) times the integral of (2 l share)^2.
    share = rho / (sigma + rho)
    area = -rho * share
    chain.proved("an antiderivative of the squared share", area.diff(sigma), share**2)
    layer_risk = (2 * ell) ** 2 * (0 - area.subs(sigma, 0)) * q / mu / (2 * ell)
    chain.proved("the layer adds 2 l rho q/mu to the risk", layer_risk, 2 * ell * rho * q / mu)

    # Elsewhere (F - alpha)^2 is mu^-2 up to a mu^-3 that no q enters. Then, as in `scale_growth`:
    risk = mu**-2 + layer_risk + g * mu**-3
    by_lam = -2 * q * risk.diff(q)
    by_mu = risk.diff(mu) + 2 * ell * q * risk.diff(q)
    lead = [sympy.expand((-f * mu**3).subs(q, Q / mu**2)).subs(mu, 1 / nu) for f in (by_lam, by_mu)]
    d_lam, d_mu = (sympy.expand(f).subs(nu, 0) for f in lead)
    center = log(2 * (1 + ell**2) * rho) / 2
    settled = exp(-2 * center)
    chain.proved("d(lam - mu l)/dt vanishes at c*", (d_lam - ell * d_mu).subs(Q, settled))
    growth = 2 / (1 + ell**2)
    chain.proved("where mu^3 dmu/dt = 2/(1 + l^2) still", d_mu.subs(Q, settled), growth)
    chain.checked(
        "c* is where the exact flow settles, f = (1 + tilt x/l + wave cos(pi x/l))/(2 l)",
        center.subs(rho, (1 + tilt - wave) / (1 - tilt - wave)),
        partial(_settled, which="c"),
        PLACES,
        digits=6,
    )
    chain.checked(
        "and mu^3 dmu/dt there tends to 2/(1 + l^2)",
        growth,
        partial(_settled, which="speed"),
        PLACES[-1:],
        digits=6,
    )
    return FeatureDensity(center, layer_risk, growth)


def _risk(mp, ell, tilt, wave, lam, mu):
    """E (F - alpha)^2, by Gauss-Legendre panels in v with s = q expm1(v)/mu up to mu s = 110."""
    q, gap, turn = mp.exp(-2 * (lam - mu * ell)), mp.exp(-2 * mu * ell), mp.j * mp.pi / ell

    def primitives(x, a):  # of exp(mu x) f and exp(mu x) (x - a) f, over exp(mu x)/(2 l)
        line, slope, twist = 1 + tilt * x / ell, tilt / ell, wave * mp.exp(turn * x) / (mu + turn)
        first = line / mu - slope / mu**2
        second = ((x - a) * line - (line + (x - a) * slope) / mu + 2 * slope / mu**2) / mu
        return first + twist.real, second + (twist * (x - a - 1 / (mu + turn))).real

    def square(s):
        growth, places = mp.exp(mu * s), (s - ell, -ell, ell)
        parts = zip(*(primitives(x, s - ell) for x in places), strict=True)
        mass, first = (h * growth - lo + q * (hi - gap * growth * h) for h, lo, hi in parts)
        return (first / mass) ** 2

    def layer(v):
        return square(q * mp.expm1(v) / mu) * q * mp.exp(v) / mu

    inner, outer = mp.log1p(1 / q), mp.log1p(110 / q)
    edges = [inner * i / 4 for i in range(4)] + [inner + (outer - inner) * i / 3 for i in range(4)]
    near = sum(_gauss(mp, layer, *edges[i : i + 2]) for i in range(7))
    return (near + _gauss(mp, square, 110 / mu, 2 * ell)) / (2 * ell)


def _gauss(mp, function, low, high):
    middle, half = (low + high) / 2, (high - low) / 2
    return half * sum(w * function(middle + half * mp.mpf(x)) for x, w in NODES)


def _settled(mp, ell, tilt, wave, which):
    """c or mu^3 dmu/dt where the head moves along (l + 1/mu, 1), with 1/mu extrapolated away."""
    step = mp.mpf(10) ** -7

    def slope(c, mu, a, b):
        lam = mu * ell + mp.log(mu) + c
        risks = [_risk(mp, ell, tilt, wave, lam + h * a, mu + h * b) for h in (step, -step)]
        return mu**3 * (risks[0] - risks[1]) / (2 * step)

    found = []
    with mp.workdps(32):
        for mu in (mp.mpf(10_000), mp.mpf(20_000)):
            c = mp.findroot(lambda c, mu=mu: slope(c, mu, 1, -ell - 1 / mu), (0.5, 0.7), tol=1e-12)
            found.append(c if which == "c" else -slope(c, mu, 0, 1))
        return 2 * found[1] - found[0]


if __name__ == "__main__":
    show(derive)
