"""Gradient descent holds the tube while eta < mu^3/(2 l), and mu^4 gains 8 eta/(1 + l^2) a step.

MODEL §4. Assumes the population risk (infinite clean context, uniform) in the tube, expanded as
proved in `tube_risk`, and steps of gradient descent in (lam, mu) with a constant eta > 0.
Symbols: half width l > 0, scale mu > 0, excess delta = lam - mu l, q = exp(-2 delta) > 0,
Q = q mu^2 > 0 (so c = -log(Q)/2). Expansions are in 1/mu at bounded Q. Sharper than MODEL §4: the
1/mu terms of both laws and the eta term of the second, which together account for the measured
increments (a frozen tube at l = 1, mu = 8 breaks at 324 by the exact risk, 256 at first order).
"""

from typing import NamedTuple

import numpy as np
import sympy
from sympy import log, pi, series, symbols, zeta

from derivations.checks import Chain, show

ell, mu, eta, q, Q, nu = symbols("l mu eta q Q nu", positive=True)  # nu = 1/mu
STEPS = 40_000


class DescentStability(NamedTuple):
    limit_step: sympy.Expr
    fourth_power_increment: sympy.Expr
    steady_lag: sympy.Expr


def derive(chain: Chain) -> DescentStability:
    risk = mu**-2 + 2 * ell * q / mu - zeta(3) / ell * mu**-3 - pi**2 / 3 * q * mu**-2

    def by_lam(f):  # q = exp(-2 lam + 2 mu l)
        return -2 * q * f.diff(q)

    def by_mu(f):
        return f.diff(mu) + 2 * ell * q * f.diff(q)

    def two_orders(f, power):
        """Coefficients of nu^power and the next one, at bounded Q."""
        in_tube = sympy.expand(sympy.expand(f).subs(q, Q / mu**2).subs(mu, 1 / nu) * nu**-power)
        return series(in_tube, nu, 0, 2).removeO()

    # The curvature. Across the tube it is that of 2 l q/mu, whose gradient points along (1, -l).
    # The other eigenvalue is O(mu^-4), so the large one is trace - det/trace to two orders.
    trace = by_lam(by_lam(risk)) + by_mu(by_mu(risk))
    determinant = by_lam(by_lam(risk)) * by_mu(by_mu(risk)) - by_lam(by_mu(risk)) ** 2
    curvature = two_orders(trace - determinant / trace, 3)
    chain.proved(
        "the largest eigenvalue of the Hessian is 8 l (1 + l^2) Q mu^-3 at first order",
        curvature.coeff(nu, 0),
        8 * ell * (1 + ell**2) * Q,
    )
    center = 1 / (2 * (1 + ell**2))
    at_center = sympy.expand(curvature.subs(Q, center))
    chain.proved("that is 4 l mu^-3 at c*, for every l", at_center.coeff(nu, 0), 4 * ell)

    # A step multiplies a deviation across the tube by 1 - eta curvature: |.| < 1 iff eta < 2/curv.
    limit = series(2 / at_center, nu, 0, 2).removeO()
    chain.proved("hence eta < mu^3/(2 l) at first order", limit.subs(nu, 0), 1 / (2 * ell))
    limit_step = mu**3 / (2 * ell) + sympy.factor(limit.coeff(nu, 1)) * mu**2
    chain.checked(
        "the limit step, with its 1/mu term, is 2 over the curvature of the exact risk at c*",
        limit_step,
        _exact_limit,
        [{ell: 1, mu: 10**6}, {ell: "1/2", mu: 10**6}, {ell: 2, mu: 10**6}],
        digits=9,
    )

    # The steady motion: c = c* + b/mu moves by O(mu^-2) dmu, so delta by dmu/mu.
    step_lam, step_mu = -by_lam(risk), -by_mu(risk)
    b = (3 * zeta(3) - 2 - pi**2 / 3 + ell**2 / (1 + ell**2)) / (4 * ell)
    steady = center * (1 - 2 * b * nu)
    drift = two_orders(step_lam - (ell + 1 / mu) * step_mu, 3).subs(Q, steady)
    residue = series(drift, nu, 0, 2).removeO()
    chain.proved("Q = (1 - 2 b/mu)/(2 (1 + l^2)) moves along with the head, to two orders", residue)
    speed = series(two_orders(step_mu, 3).subs(Q, steady), nu, 0, 2).removeO()
    chain.proved("there -dL/dmu -> 2/((1 + l^2) mu^3)", speed.subs(nu, 0), 2 / (1 + ell**2))

    # A finite step: (mu + d)^4 - mu^4 = 4 mu^3 d + 6 mu^2 d^2 + ..., d = eta speed mu^-3.
    gain = 4 * eta * speed + 6 * (eta * speed.subs(nu, 0)) ** 2 * nu**4
    lowest = -3 * zeta(3) / (2 * ell) - ell / (2 * (1 + ell**2))
    increment = 8 * eta / (1 + ell**2) * (1 + lowest / mu + 3 * eta / ((1 + ell**2) * mu**4))
    chain.proved(
        "mu^4 gains 8 eta/(1 + l^2) (1 - (3 zeta(3)/(2 l) + l/(2 (1 + l^2)))/mu + eta term)",
        gain,
        increment.subs(mu, 1 / nu),
    )

    # log(mu + d) - log mu lacks d^2/(2 mu^2) of d/mu, and the tube pulls back by 4 l eta mu^-3 a
    # step: the descent's tube lies a little above the flow's.
    d = eta * speed.subs(nu, 0) / mu**3
    lag = eta / (2 * ell * (1 + ell**2) ** 2 * mu**5)
    second_order = series(log(1 + q) - q, q, 0, 3).removeO().subs(q, d / mu)
    chain.proved(
        "the descent's tube lies eta/(2 l (1 + l^2)^2 mu^5) above the flow's in c",
        -second_order / (4 * ell * eta / mu**3),
        lag,
    )
    chain.checked(
        "the increments add up to 40,000 steps on the exact risk from (k, mu) = (1.2, 8), l = 1",
        lambda mp, size: _summed(mp, increment.subs(ell, 1), size),
        _descent,
        [{eta: 50}, {eta: 200}],
        digits=3,
    )
    return DescentStability(limit_step, increment, lag)


def risk_by_quadrature(mp, ell, excess, mu):
    """Mean of (R - 1/mu)^2 over thresholds, s = q expm1(v)/mu; R is negligible past mu s = 110."""
    q = mp.exp(-2 * excess)

    def integrand(v):
        growth = q * mp.expm1(v)
        s = growth / mu
        rest = (s + q * (2 * ell - s)) / (mp.expm1(growth) + q)
        return (rest**2 - 2 * rest / mu) * q * mp.exp(v)

    return 1 / mu**2 + mp.quad(integrand, [mp.log1p(u / q) for u in (0, 1, 5, 30, 110)]) / (
        2 * ell * mu
    )


def _exact_limit(mp, ell, mu):
    """2 over the largest eigenvalue of the Hessian at c*, from central differences of the risk."""
    step = mp.mpf(10) ** -8
    excess = mp.log(2 * (1 + ell**2)) / 2 + mp.log(mu)

    def at(i, j):
        return risk_by_quadrature(mp, ell, excess + step * (i - ell * j), mu + step * j)

    with mp.workdps(40):
        lam_lam, mu_mu = (at(i, j) - 2 * at(0, 0) + at(-i, -j) for i, j in ((1, 0), (0, 1)))
        lam_mu = (at(1, 1) + at(-1, -1) - at(1, -1) - at(-1, 1)) / 4
        hessian = mp.matrix([[lam_lam, lam_mu], [lam_mu, mu_mu]]) / step**2
        return 2 / mp.eigsy(hessian, eigvals_only=True)[1]


def _descent(mp, eta):
    """(mu^4 - 8^4)/(eta steps) after descent in doubles from (k, mu) = (1.2, 8), l = 1."""
    nodes, weights = np.polynomial.legendre.leggauss(48)
    turn = 1e-30j * np.eye(2)  # the gradient is a complex step: exact, on nodes that stay
    head = np.array([9.6, 8.0])
    for _ in range(STEPS):
        q, mu = np.exp(2 * head[1] - 2 * head[0]), head[1]
        v = np.log1p(min(45, 2 * mu) / q) * (nodes + 1) / 2
        s = q * np.expm1(v) / mu
        measure = weights * q * np.exp(v) / mu * v[-1] / (nodes[-1] + 1) / 2
        lam, mu = (head + turn)[:, :, None].swapaxes(0, 1)
        q = np.exp(2 * mu - 2 * lam)
        rest = (s + q * (2 - s)) / (np.expm1(mu * s) - q * np.expm1(mu * (s - 2)))
        risk = 1 / mu[:, 0] ** 2 + (rest**2 - 2 * rest / mu) @ measure
        head -= float(eta) * risk.imag / 1e-30
    return (head[1] ** 4 - 8**4) / (float(eta) * STEPS)


def _summed(mp, increment, size):
    """The same from the law for the increment, step by step."""
    gain = sympy.lambdify(mu, increment.subs(eta, float(size)))
    fourth = 8.0**4
    for _ in range(STEPS):
        fourth += gain(fourth**0.25)
    return (fourth - 8**4) / (float(size) * STEPS)


if __name__ == "__main__":
    show(derive)
