"""Mean and mean square of F on N examples are two exact integrals over a Laplace variable u > 0.

MODEL §6. Assumes N examples (x_i, w_i), independent and alike, with weights w_i > 0 of any law;
F = sum x_i w_i / S, S = sum w_i, phi(u) = E exp(-u w). 1/S and 1/S^2 are Laplace integrals of
exp(-u S), which factors over the examples; by exchangeability the N terms of F, and the N (N - 1)
mixed terms of F^2, are alike. That argument is general; proved as an identity for every law on two
points and N = 2, 3, 4, checked for laws on 40 points and more (a rule for uniform features).
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import sympy
from sympy import binomial, exp, symbols

from derivations.checks import Chain, show

ell, mu, u, total = symbols("l mu u S", positive=True)
lam, alpha = symbols("lam alpha", real=True)
size = symbols("N", integer=True, positive=True)
phi, first, second = symbols("phi first second")  # E of exp, x w exp, x^2 w^2 exp; exp(-u w)
STEP = 0.25  # of the trapezoid rule, exact to 1e-14 at this step (MODEL §6)
LIGHTEST = 60  # weights below exp(-60) of a positive one at the threshold are left out
a, b, p = symbols("a b p", real=True)
f, g, near, far = symbols("f g near far", positive=True)  # near = exp(-u f), far = exp(-u g)
DIRECT = [
    {size: 2, ell: 1, mu: 3, lam: 2, alpha: "1/3"},
    {size: 3, ell: 2, mu: 1, lam: 1, alpha: -1},
]


class ContextMoments(NamedTuple):
    mean_integrand: sympy.Expr
    square_integrand: sympy.Expr


def derive(chain: Chain) -> ContextMoments:
    laplace = -exp(-u * total) / total
    chain.proved("1/S is the integral of exp(-u S)", laplace.diff(u), exp(-u * total))
    laplace = -(u / total + 1 / total**2) * exp(-u * total)
    chain.proved("1/S^2 is the integral of u exp(-u S)", laplace.diff(u), u * exp(-u * total))
    mean = size * first * phi ** (size - 1)
    square = u * (
        size * second * phi ** (size - 1) + size * (size - 1) * first**2 * phi ** (size - 2)
    )
    for power, integrand in ((1, mean), (2, square)):
        for n in (2, 3, 4):
            chain.proved(
                f"the integral for E F^{power} is the sum over all contexts, two points, N = {n}",
                _over_two_points(integrand.subs(size, n), power),
                _over_contexts(n, power),
            )
        chain.checked(
            f"and for E (F - alpha)^{power} on a rule for uniform features",
            partial(moment_by_quadrature, power=power),
            partial(_directly, power=power),
            DIRECT,
            digits=12,
        )
    return ContextMoments(mean, square)


def _over_two_points(integrand, power):
    """The integral when (x, w) is (a, f) with probability p and (b, g) else, term by term."""
    law = (p, a, f, near), (1 - p, b, g, far)
    averages = (sum(m * (x * w) ** j * e for m, x, w, e in law) for j in range(3))
    expanded = (integrand / u ** (power - 1)).subs(zip((phi, first, second), averages, strict=True))
    terms = sympy.Poly(sympy.expand(expanded), near, far).terms()
    return sum(factor / (i * f + j * g) ** power for (i, j), factor in terms)


def _over_contexts(n, power):
    def average(i):  # of a context with i examples of the first kind
        return (i * f * a + (n - i) * g * b) / (i * f + (n - i) * g)

    return sum(
        binomial(n, i) * p**i * (1 - p) ** (n - i) * average(i) ** power for i in range(n + 1)
    )


def _examples(ell, mu, lam, alpha):
    """x = feature - alpha, mass, weight at Gauss-Legendre panels of width 2/mu or less."""
    nodes, shares = np.polynomial.legendre.leggauss(10)
    parts = []
    for low, high, score in ((-ell, alpha, 0), (alpha, ell, -2 * lam)):
        depth = (LIGHTEST + score) / mu + high - alpha  # what lies deeper weighs nothing
        full, deep = (int(np.ceil(mu * part / 2)) for part in (high - low, depth))
        panels = min(full, max(deep, 1))
        span = high - low if panels == full else 2 * panels / mu
        half = span / (2 * panels)
        x = (high - alpha - half * (2 * np.arange(panels)[:, None] + 1 - nodes)).ravel()
        parts.append((x, np.tile(shares * half / (2 * ell), panels), np.exp(score + mu * x)))
        if panels < full:
            parts.append(([0], [(high - low - span) / (2 * ell)], [0]))
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


def moment_by_quadrature(mp, *place, power):
    """E (F - alpha)^power at (N, l, mu, lam, alpha) by the integrals, trapezoid rule in log u."""
    n, ell, mu, lam, alpha = map(float, place)
    x, mass, w = _examples(ell, mu, lam, alpha)
    u = np.exp(np.arange(-np.log(n) - 38, 5 - np.log(w[w > 0].min()), STEP))[:, None]
    fall = np.exp(-u * w)
    missing, phi = -np.expm1(-u * w) @ mass, fall @ mass
    log_phi = np.where(missing < 0.5, np.log1p(-np.minimum(missing, 0.5)), np.log(phi))
    first, second = (fall * (u * x * w) ** j @ mass for j in (1, 2))
    terms = first * phi if power == 1 else second * phi + (n - 1) * first**2
    return mp.mpf(STEP * n * np.exp((n - 2) * log_phi) @ terms)


def _directly(mp, *place, power):
    """The same as the sum over all contexts on the same rule."""
    n, *head = map(float, place)
    x, mass, w = _examples(*head)
    first, total, chance = np.zeros(()), np.zeros(()), np.ones(())
    for _ in range(int(n)):
        first, total = np.add.outer(first, x * w), np.add.outer(total, w)
        chance = np.multiply.outer(chance, mass)
    return mp.mpf(float(np.sum(chance * (first / total) ** power)))


if __name__ == "__main__":
    show(derive)
