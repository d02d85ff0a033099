"""The head (0, 0) is a saddle of the risk, which nearby starts leave at a known slow rate.

MODEL §5. Assumes an infinite clean context, features and thresholds uniform on [-l, l]. Symbols:
half width l > 0, threshold alpha in (-l, l), head (lam, mu) of any sign, written eps times
a fixed direction with eps -> 0. All expansions are in eps, with exact polynomial coefficients.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import sympy
from scipy.integrate import solve_ivp
from sympy import Matrix, integrate, sqrt, symbols

from derivations.checks import Chain, show

ell = symbols("l", positive=True)
lam, mu, alpha, x, eps = symbols("lam mu alpha x eps", real=True)
ORDER = 3  # the risk is expanded up to eps^3


class Saddle(NamedTuple):
    hessian: sympy.Matrix
    growth_rate: sympy.Expr
    decay_rate: sympy.Expr
    unstable_ratio: sympy.Expr
    escape_time: sympy.Expr


def derive(chain: Chain) -> Saddle:
    risk = _expanded_risk()
    chain.proved("at the origin F = 0, so the risk is E alpha^2", risk.coeff(eps, 0), ell**2 / 3)
    chain.proved("its first order vanishes: the origin is stationary", risk.coeff(eps, 1))
    hessian = sympy.hessian(risk.coeff(eps, 2), (lam, mu))
    cross = -2 * ell**3 / 15
    claimed = Matrix([[0, cross], [cross, 2 * ell**4 / 9]])
    chain.proved("its second order has the Hessian of MODEL §5", hessian, claimed)
    chain.proved(
        "its third order vanishes (L is even in the head): grad L = H (lam, mu) up to eps^3",
        risk.coeff(eps, 3),
    )

    root = sqrt(25 * ell**2 + 36)
    low, high = ell**3 * (5 * ell - root) / 45, ell**3 * (5 * ell + root) / 45
    ratio = (5 * ell + root) / 6
    unstable, stable = Matrix([ratio, 1]), Matrix([1, -ratio])
    chain.proved("(k, 1) is an eigenvector, k = lam/mu", hessian * unstable, low * unstable)
    chain.proved("(1, -k) is the other one", hessian * stable, high * stable)
    chain.proved("their product is negative for every l: a saddle", low * high, -4 * ell**6 / 225)

    # Along (k, 1) the flow grows like exp(-low t): each factor e in the initial radius costs
    # 1/(-low), which is 15 k/(2 l^3).
    escape = 15 * ratio / (2 * ell**3)
    chain.proved("escape time per factor e in the radius", -low * escape, 1)
    chain.checked(
        "|grad L|/radius at 45 degrees (0.113312 at l = 1) is that of the exact gradient",
        (hessian * Matrix([1, 1]) / sqrt(2)).norm(),
        _slope,
        [{ell: 1}, {ell: "3/2"}],
        digits=11,
    )
    chain.checked(
        "1/rate is the delay of the exact flow to radius 1 when it starts e times closer",
        escape,
        _delay,
        [{ell: 1}, {ell: "3/2"}],
        digits=6,
    )
    return Saddle(hessian, -low, high, ratio, escape)


def _expanded_risk() -> sympy.Expr:
    """Risk at (eps lam, eps mu) up to eps^ORDER, from the expanded softmax weights."""

    def average(power):
        parts = []
        for label, span in ((1, (x, -ell, alpha)), (-1, (x, alpha, ell))):
            score = eps * (label * lam + mu * x)
            weight = sum(score**j / sympy.factorial(j) for j in range(ORDER + 1))
            parts.append(integrate(sympy.expand(x**power * weight), span))
        return sympy.expand(sum(parts) / (2 * ell))

    first, mass = average(1), average(0)
    inverse = sum((1 - mass) ** j for j in range(ORDER + 1))  # mass = 1 + O(eps)
    error = _truncated(first * _truncated(inverse)) - alpha
    return _truncated(integrate(sympy.expand(error**2), (alpha, -ell, ell)) / (2 * ell))


def _truncated(series: sympy.Expr) -> sympy.Expr:
    series = sympy.expand(series)
    return sum(series.coeff(eps, j) * eps**j for j in range(ORDER + 1))


def _gradient(quad, exp, ell, lam, mu):
    """Gradient from the softmax moments: dF/dlam = Cov(x, y), dF/dmu = Var(x) (MODEL §6)."""

    def integrands(a):
        up, down = (
            [quad(lambda x, j=j, y=y: x**j * exp(lam * y + mu * x), span) for j in range(3)]
            for y, span in ((1, (-ell, a)), (-1, (a, ell)))
        )
        total, mean, square = (one + other for one, other in zip(up, down, strict=True))
        mean, square = mean / total, square / total
        covariance = (up[1] - down[1] - mean * (up[0] - down[0])) / total
        return (mean - a) * covariance / ell, (mean - a) * (square - mean**2) / ell

    return [quad(lambda a, i=i: integrands(a)[i], (-ell, ell)) for i in (0, 1)]


def _slope(mp, ell):
    radius = mp.mpf("1e-6")
    quad = partial(mp.quad, maxdegree=3, method="gauss-legendre")
    return mp.norm(_gradient(quad, mp.exp, ell, *[radius / mp.sqrt(2)] * 2)) / radius


def _delay(mp, ell):
    """Time to radius 1 from radius 1e-3/e less that from 1e-3, by integrating the flow."""
    nodes, weights = np.polynomial.legendre.leggauss(16)

    def quad(function, span):
        middle, half = (span[1] + span[0]) / 2, (span[1] - span[0]) / 2
        places = nodes.reshape(-1, *(1,) * np.ndim(middle))
        return np.tensordot(weights, half * function(middle + half * places), 1)

    def velocity(time, head):
        return -np.array(_gradient(quad, np.exp, float(ell), *head))

    def beyond(time, head):
        return np.hypot(*head) - 1

    beyond.terminal = True
    starts = (np.full(2, 1e-3 * factor) for factor in (np.exp(-1), 1))
    flows = [
        solve_ivp(velocity, (0, 1e4), start, "DOP853", events=beyond, rtol=1e-10, atol=1e-15)
        for start in starts
    ]
    return mp.mpf(flows[0].t[-1]) - mp.mpf(flows[1].t[-1])


if __name__ == "__main__":
    show(derive)
