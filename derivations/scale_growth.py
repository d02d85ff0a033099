"""The flow's tube has its center at c* = log(2 (1 + l^2))/2, and in it mu ~ (8 t/(1 + l^2))^(1/4).

MODEL §4. Assumes mu -> infinity with c = delta - log mu bounded, and the expansion of tube_risk.
Symbols: half width l > 0, scale mu > 0, time t > 0, Q = exp(-2 c) > 0, T = (8 t/(1 + l^2))^(1/4).

Sharper than MODEL §4: mu(t) = T - (l^2/(6 (1 + l^2)) + zeta(3)/2)/l + O(1/T), so that mu^4/t
approaches its limit from below like t^(-1/4), at every l.
"""

from typing import NamedTuple

import sympy
from sympy import Rational, log, pi, symbols, zeta

from derivations.checks import Chain, show
from derivations.closed_form_risk import ell, mu
from derivations.tube_risk import Q, by_quadrature

T = symbols("T", positive=True)
lam = symbols("lam", real=True)


class ScaleGrowth(NamedTuple):
    tube_center: sympy.Expr  # in l and mu, through 1/mu
    growth_rate: sympy.Expr  # dmu/dt through mu^-4
    time: sympy.Expr  # t(mu) through mu^3
    scale: sympy.Expr  # mu(T) through T^0


def velocities():
    """d delta/dt and dmu/dt as functions of Q and mu, through mu^-4."""
    risk = mu**-2 + (2 * ell * Q - zeta(3) / ell) * mu**-3 - pi**2 / 3 * Q * mu**-4
    by_delta = -2 * Q * risk.diff(Q)
    by_scale = risk.diff(mu) + 2 * Q / mu * risk.diff(Q)  # at fixed delta, dQ/dmu = 2 Q/mu
    return tuple(truncated(v, 4) for v in in_tube_coordinates(ell, by_delta, by_scale))


def in_tube_coordinates(ell, by_delta, by_scale):
    """d delta/dt and dmu/dt, from the slopes of the risk in delta and in mu at fixed delta."""
    return -(1 + ell**2) * by_delta + ell * by_scale, ell * by_delta - by_scale


def truncated(expression, order):
    """Terms of a polynomial in 1/mu through mu^-order."""
    inverse = symbols("x")
    polynomial = sympy.Poly(sympy.cancel(expression.subs(mu, 1 / inverse)), inverse)
    coefficients = polynomial.all_coeffs()[::-1]
    return sum(c * mu**-k for k, c in enumerate(coefficients[: order + 1]))


def derive(chain: Chain) -> ScaleGrowth:
    by_delta, by_scale = symbols("L_delta L_mu", real=True)
    turned = sympy.Matrix([lam - mu * ell, mu]).jacobian([lam, mu])
    chain.proved(
        "d(delta, mu)/dt = -J J^T (L_delta, L_mu) where J is the Jacobian of (delta, mu)",
        -turned * turned.T * sympy.Matrix([by_delta, by_scale]),
        sympy.Matrix(in_tube_coordinates(ell, by_delta, by_scale)),
    )

    delta_velocity, growth = velocities()
    center = log(2 * (1 + ell**2)) / 2
    at_center = {Q: 1 / (2 * (1 + ell**2))}
    pull = delta_velocity.coeff(mu, -3)
    chain.proved("c* means Q = 1/(2 (1 + l^2))", sympy.exp(-2 * center), Q.subs(at_center))
    chain.proved("mu^3 d delta/dt tends to 0 there", pull.subs(at_center))
    chain.proved(
        "and falls with c, dQ/dc = -2 Q: the tube attracts",
        (-2 * Q * pull.diff(Q)).subs(at_center),
        -4 * ell,
    )
    leading = 2 / (1 + ell**2)
    chain.proved("mu^3 dmu/dt -> 2/(1 + l^2)", growth.coeff(mu, -3).subs(at_center), leading)

    part = ell**2 / (1 + ell**2)
    b = (3 * zeta(3) - 2 - pi**2 / 3 + part) / (4 * ell)
    on_curve = {Q: Q.subs(at_center) * (1 - 2 * b / mu)}
    chain.proved(
        "with c = c* + b/mu, d delta/dmu = 1/mu + dc/dmu holds through mu^-4 in time",
        truncated((delta_velocity - growth / mu).subs(on_curve), 4),
    )
    pace = 1 - (part / 2 + Rational(3, 2) * zeta(3)) / (mu * ell)
    rate = leading / mu**3 * pace
    chain.proved("and the scale's velocity is", truncated(growth.subs(on_curve), 4), rate)
    time = (1 + ell**2) / 8 * (mu**4 + (2 * part / 3 + 2 * zeta(3)) / ell * mu**3)
    chain.proved(
        "so this t(mu) has dt/dmu dmu/dt = 1 + O(mu^-2)", truncated(time.diff(mu) * rate, 1), 1
    )
    shift = (part / 6 + zeta(3) / 2) / ell
    scale = T - shift
    reached = sympy.expand(8 / (1 + ell**2) * time.subs(mu, scale))
    chain.proved("8 t/(1 + l^2) is T^4", reached.coeff(T, 4), 1)
    chain.proved("with no T^3 left over", reached.coeff(T, 3))

    points = [{ell: 1, mu: 10**8}, {ell: "1/2", mu: 10**8}, {ell: 2, mu: 10**8}]
    curve = center + b / mu
    chain.checked(
        "d delta/dmu of the exact flow at a point of the curve is the curve's own",
        (curve + log(mu)).diff(mu),
        lambda mp, *numbers: mp.fdiv(*_exact_velocities(curve, mp, *numbers)),
        points,
        digits=5,  # the curve misses log(mu)/mu^2, which the contraction magnifies by mu
    )
    chain.checked(
        "and so is dmu/dt",
        rate,
        lambda mp, *numbers: _exact_velocities(curve, mp, *numbers)[1],
        points,
        digits=14,  # log(mu)/mu^2
    )
    return ScaleGrowth(curve, rate, time, scale)


def _exact_velocities(curve, mp, ell_value, mu_value):
    """d delta/dt and dmu/dt on a curve c(mu), by quadrature of the differentiated integrand."""
    mp.dps = 40  # the leading terms of d delta/dt cancel
    c = sympy.lambdify((ell, mu), curve, [{"log": mp.log, "zeta": mp.zeta, "pi": mp.pi}])
    q = mp.exp(-2 * c(ell_value, mu_value)) / mu_value**2
    _, by_delta, by_scale = by_quadrature(mp, ell_value, mu_value, q)
    return in_tube_coordinates(ell_value, by_delta, by_scale)


if __name__ == "__main__":
    show(derive)
