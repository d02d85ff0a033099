"""Trained on its own risk, the reflected pair grows like t^(1/5) and its risk falls like t^(-3/5).

MODEL §7. Assumes an infinite clean context, features and thresholds uniform on [-l, l], gradient
flow of the pair's risk in (lam, mu), large mu. Symbols: half width l > 0, scale mu > 0, distances
s, r > 0 of the threshold to the ends, x = mu s, q = exp(-2 (lam - mu l)) in (0, 1), P = q mu^3 > 0,
z = (1 - q) exp(-x). The pair's error is (R(s, r) - R(r, s))/2 (`reflected_pair`). Sharper than
MODEL §7: the risk in closed form up to exp(-2 mu l), and the 1/mu terms of tube and growth.
"""

from functools import partial
from typing import NamedTuple

import sympy
from sympy import Function, Rational, exp, expand, log, symbols, zeta

from derivations.checks import Chain, show

ell, mu, x, q, P, nu = symbols("l mu x q P nu", positive=True)  # nu = 1/mu
log_mu = symbols("log_mu", real=True)


class Li(Function):
    """Li(k, z), k = 2 or 3, known by its derivative."""

    def fdiff(self, argindex=1):
        k, z = self.args
        return (Li(2, z) if k == 3 else -log(1 - z)) / z


class ReflectedTraining(NamedTuple):
    risk: sympy.Expr
    layer: sympy.Expr
    speed: sympy.Expr
    fifth_power: sympy.Expr
    time: sympy.Expr
    risk_at_time: sympy.Expr


def derive(chain: Chain) -> ReflectedTraining:
    # The two ends contribute alike, and R(s, r) R(r, s) is of order exp(-2 mu l): L = E R^2/2. At
    # the lower end R = ((1 - q) s + 2 l q)/(exp(mu s) - (1 - q)) up to exp(-2 mu l), so that
    # L = 1/(4 l mu) int ((1 - q) x/mu + 2 l q)^2 (z/((1 - q)(1 - z)))^2 dx over x > 0.
    z = (1 - q) * exp(-x)
    once = -z / (1 - z) - log(1 - z)  # primitives that vanish at x = oo, each of the one before
    twice = -log(1 - z) - Li(2, z)
    thrice = -Li(2, z) + Li(3, z)
    chain.proved("primitive of (z/(1 - z))^2", once.diff(x), (z / (1 - z)) ** 2)
    chain.proved("second primitive", twice.diff(x), once)
    chain.proved("third primitive", thrice.diff(x), twice)
    primitives = (once, x * once - twice, x**2 * once - 2 * x * twice + 2 * thrice)
    for j, primitive in enumerate(primitives):
        chain.proved(
            f"primitive of x^{j} (z/(1 - z))^2", primitive.diff(x), x**j * (z / (1 - z)) ** 2
        )
    moment = [-primitive.subs(x, 0) for primitive in primitives]
    part = (1 - q) / mu, 2 * ell * q
    raw = part[0] ** 2 * moment[2] + 2 * part[0] * part[1] * moment[1] + part[1] ** 2 * moment[0]
    raw = raw / (4 * ell * mu * (1 - q) ** 2)
    risk = (
        (Li(2, 1 - q) - Li(3, 1 - q)) / (2 * ell * mu**3)
        - q * (log(q) + Li(2, 1 - q)) / ((1 - q) * mu**2)
        + ell * q * (1 - q + q * log(q)) / ((1 - q) ** 2 * mu)
    )
    chain.proved("the risk, up to exp(-2 mu l)", raw, risk)
    polylog = {Li(k, 1 - q): sympy.polylog(k, 1 - q) for k in (2, 3)}
    chain.checked(
        "is the mean square of the pair's exact error",
        risk.subs(polylog),
        lambda mp, ell, mu, q: _risk(mp, ell, -mp.log(q) / 2, mu),
        [{ell: 1, mu: 40, q: "1/1000"}, {ell: 2, mu: 20, q: "1/3"}],
        digits=20,
    )

    # In the tube q = P/mu^3; the polylogarithms are zeta values up to q log q.
    bulk = (zeta(2) - zeta(3)) / (2 * ell)
    low = bulk * mu**-3 + ell * q / mu - q * (log(q) + zeta(2)) * mu**-2
    by_lam = -2 * q * low.diff(q)
    by_mu = low.diff(mu) + 2 * ell * q * low.diff(q)

    def in_tube(f):  # times mu^4, to two orders
        f = sympy.expand_log(f.subs(q, P / mu**3)).subs(log(mu), log_mu) * mu**4
        return sum(expand(f).subs(mu, 1 / nu).expand().coeff(nu, j) * nu**j for j in (0, 1))

    lam_speed, mu_speed = in_tube(-by_lam), in_tube(-by_mu)
    center = 3 * bulk / (2 * (1 + ell**2))
    chain.proved(
        "q mu^3 at first order", center, 3 * (zeta(2) - zeta(3)) / (4 * ell * (1 + ell**2))
    )
    # lam - mu l = (3 log mu - log P)/2 moves by 3/(2 mu) dmu, as P moves by O(log(mu) mu^-2) dmu.
    shift = (ell**2 + 3) / (2 * ell * (1 + ell**2)) - (3 * log_mu - log(center) - zeta(2) - 1) / ell

    def settled(f):
        f = f.subs(P, center * (1 + shift * nu))
        return f.subs(nu, 0) + nu * f.diff(nu).subs(nu, 0)

    drift = settled(lam_speed - (ell + Rational(3, 2) * nu) * mu_speed)
    chain.proved("P = center (1 + shift/mu) moves along with the head, to two orders", drift)
    speed = 2 * center * (1 - ell / ((1 + ell**2) * mu))
    chain.proved(
        "there mu^4 dmu/dt = 2 center (1 - l/((1 + l^2) mu)), without a logarithm",
        settled(mu_speed),
        speed.subs(mu, 1 / nu),
    )
    fifth_power = 15 * (zeta(2) - zeta(3)) / (2 * ell * (1 + ell**2))
    chain.proved("so mu^5 grows by this times t", 5 * speed.subs(ell / mu, 0), fifth_power)
    time = (mu**5 / 5 + ell * mu**4 / (4 * (1 + ell**2))) / (2 * center)
    rate = sympy.series((time.diff(mu) * speed / mu**4).subs(mu, 1 / nu), nu, 0, 2).removeO()
    chain.proved("and the time to reach mu is this, up to O(mu^3 log mu)", rate, 1)

    layer = (center * (1 + shift / mu)).subs(log_mu, log(mu))
    for words, law, which, widths in (
        ("q mu^3 is where the exact pair's flow settles", layer, 0, ("1/2", 2)),
        ("and mu^4 dmu/dt its speed", speed, 1, (1, 2)),
    ):
        places = [{ell: width, mu: 10**6} for width in widths]
        chain.checked(words, law, partial(_settled, which=which), places, digits=8)
    clock = symbols("t", positive=True)
    return ReflectedTraining(
        risk,
        layer,
        speed / mu**4,
        fifth_power,
        time,
        bulk * (fifth_power * clock) ** Rational(-3, 5),
    )


def _risk(mp, ell, excess, mu):
    """Mean square of (R(s, r) - R(r, s))/2: both halves are alike; mu s = q expm1(v)."""
    q = mp.exp(-2 * excess)

    def remainder(s, r):
        return (s + q * r) / (mp.exp(mu * s) - 1 - q * (mp.exp(-mu * r) - 1))

    def integrand(v):
        s = q * (mp.exp(v) - 1) / mu
        r = 2 * ell - s
        return (remainder(s, r) - remainder(r, s)) ** 2 * q * mp.exp(v)

    layer = mp.log1p(1 / q)  # cut into five: the integrand has poles at a distance of about pi
    edges = [layer * i / 5 for i in range(5)]
    edges += [mp.log1p(u / q) for u in (1, 5, 20, min(110, mu * ell))]
    return mp.quad(integrand, edges, method="gauss-legendre", maxdegree=5) / (4 * ell * mu)


def _settled(mp, ell, mu, which):
    """q mu^3, or mu^4 dmu/dt, where the head moves along (l + 3/(2 mu), 1)."""
    step = mp.mpf(10) ** -8

    def slope(layer, a, b):
        excess = (3 * mp.log(mu) - mp.log(layer)) / 2
        risks = [_risk(mp, ell, excess + h * (a - ell * b), mu + h * b) for h in (step, -step)]
        return mu**4 * (risks[0] - risks[1]) / (2 * step)

    with mp.workdps(55):  # exp(mu s) - 1 loses 20
        layer = mp.findroot(lambda p: slope(p, 1, -ell - 3 / (2 * mu)), (0.1, 0.2), tol=1e-16)
        return (layer, -slope(layer, 0, 1))[which]


if __name__ == "__main__":
    show(derive)
