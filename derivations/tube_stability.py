"""The flow falls onto the tube like mu^p exp(-2 l (1 + l^2) mu), and is stiff there like mu.

MODEL §4. Assumes mu -> infinity with c = delta - log mu bounded, and the expansion of tube_risk.
Symbols: half width l > 0, scale mu > 0 (the slow time), Q = exp(-2 c) > 0, a deviation d of c from
the slow manifold c(mu) = c* + b/mu + ..., which obeys d' = -rate d to first order.

Sharper than MODEL §4: the power of mu before the exponential, and the stiffness ratio
(2/3) l (1 + l^2) mu, which is also the condition number of the Hessian along the tube.
"""

from typing import NamedTuple

import sympy
from sympy import Rational, exp, pi, zeta

from derivations.checks import Chain, show
from derivations.closed_form_risk import ell, mu
from derivations.scale_growth import in_tube_coordinates, lam, truncated, velocities
from derivations.tube_risk import Q, by_quadrature

Q_STAR = 1 / (2 * (1 + ell**2))


class TubeStability(NamedTuple):
    rate: sympy.Expr  # of d in mu, through 1/mu
    deviation: sympy.Expr  # d(mu) up to a constant factor
    stiffness_ratio: sympy.Expr


def derive(chain: Chain) -> TubeStability:
    delta_velocity, growth = velocities()
    b = (3 * zeta(3) - 2 - pi**2 / 3 + ell**2 / (1 + ell**2)) / (4 * ell)
    on_curve = {Q: Q_STAR * (1 - 2 * b / mu)}
    # The slope of dc/dmu = v/w - 1/mu in c is (v_c w - v w_c)/w^2, where dQ/dc = -2 Q.
    by_c = -2 * Q * (delta_velocity.diff(Q) * growth - delta_velocity * growth.diff(Q))
    rate = 2 * ell * (1 + ell**2) + (2 + 3 * ell**2) / mu
    chain.proved(
        "the slope of dc/dmu in c on the slow manifold is -rate",
        truncated((mu**6 * (by_c + rate * growth**2)).subs(on_curve), 1),
    )
    deviation = mu ** -(2 + 3 * ell**2) * exp(-2 * ell * (1 + ell**2) * mu)
    chain.proved("which is the decay of", deviation.diff(mu), -rate * deviation)
    chain.checked(
        "the exact flow's dc/dmu has this slope",
        -rate,
        _exact_slope,
        [{ell: 1, mu: 10**8}, {ell: "1/2", mu: 10**8}, {ell: 2, mu: 10**8}],
        digits=14,  # log(mu)/mu^2
    )

    fast = 2 * ell * (1 + ell**2) * growth
    slow = -growth.diff(mu)
    ratio = Rational(2, 3) * ell * (1 + ell**2) * mu
    leading = {Q: Q_STAR}
    chain.proved(
        "in t, c relaxes at 4 l/mu^3 to leading order",
        truncated(fast.subs(leading), 3),
        4 * ell / mu**3,
    )
    chain.proved(
        "and neighbors on the tube close up slower by this ratio",
        truncated((fast - ratio * slow).subs(leading), 3),
    )

    risk = mu**-2 + 2 * ell * Q * mu**-3  # what the leading second slopes need
    by_delta, by_scale = _slopes(risk)
    entries = [_slopes(by_delta), _slopes(by_scale)]
    turn = sympy.Matrix([lam - mu * ell, mu]).jacobian([lam, mu])
    hessian = turn.T * sympy.Matrix(entries).subs(leading) * turn
    chain.proved(
        "the Hessian's largest eigenvalue is its trace 4 l/mu^3 to leading order",
        truncated(hessian.trace(), 3),
        4 * ell / mu**3,
    )
    chain.proved(
        "and its condition number, trace^2/det, is the same ratio",
        truncated(hessian.trace() ** 2 - ratio * hessian.det(), 6),
    )
    return TubeStability(rate, deviation, ratio)


def _slopes(risk):
    """In delta, and in mu at fixed delta, where dQ/dmu = 2 Q/mu."""
    return -2 * Q * risk.diff(Q), risk.diff(mu) + 2 * Q / mu * risk.diff(Q)


def _exact_slope(mp, ell, mu):
    mp.dps = 50  # a difference of nearly equal quotients of cancelling sums
    b = 3 * mp.zeta(3) - 2 - mp.pi**2 / 3 + ell**2 / (1 + ell**2)
    c = mp.log(2 * (1 + ell**2)) / 2 + b / (4 * ell * mu)
    step = mp.mpf(10) ** -10

    def steepness(c):
        q = mp.exp(-2 * c) / mu**2
        return mp.fdiv(*in_tube_coordinates(ell, *by_quadrature(mp, ell, mu, q)[1:]))

    return (steepness(c + step) - steepness(c - step)) / (2 * step)


if __name__ == "__main__":
    show(derive)
