"""Averaging a head with its reflection cancels the bias and halves the boundary limitation.

MODEL §7. Assumes features and thresholds uniform on [-l, l], clean labels, heads (lam, mu) and
(-lam, -mu) reading the same context, mu > 0. Symbols: half width l > 0, distances s, r > 0 of the
threshold to the two ends, q = exp(-2 (lam - mu l)) > 0, N examples, v = N/(2 l mu) > 0 and h = 1/v.
Sharper than MODEL §7: the boundary error of the pair is l exactly, the prior-averaged risks of one
head and of the pair are 4 l^2 N/((N + 1)(N + 2)) and 2 l^2/(N + 2) exactly as mu -> oo at fixed N.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import sympy
from sympy import exp, expand, pi, symbols

from derivations.checks import Chain, show
from derivations.context_laws import law
from derivations.context_moments import moment_by_quadrature

ell, mu, s, r, q, v, h, d = symbols("l mu s r q v h d", positive=True)
lam, alpha = symbols("lam alpha", real=True)
size = symbols("N", integer=True, positive=True)


class ReflectedPair(NamedTuple):
    error: sympy.Expr
    end_error: sympy.Expr
    square_few: sympy.Expr
    square_many: sympy.Expr
    head_risk: sympy.Expr
    pair_risk: sympy.Expr
    bayes_risk: sympy.Expr


def derive(chain: Chain) -> ReflectedPair:
    # Infinite context: F - alpha = -1/mu + R(s, r) (`predictor`); mirrored, 1/mu - R(r, s).
    remainder = (s + q * r) / (exp(mu * s) - 1 - q * (exp(-mu * r) - 1))
    mirrored = remainder.subs({s: r, r: s}, simultaneous=True)
    error = (-1 / mu + remainder + 1 / mu - mirrored) / 2
    chain.proved(
        "1/mu cancels: the pair's error is (R(s, r) - R(r, s))/2", error, (remainder - mirrored) / 2
    )
    chain.checked(
        "it is the average of the two softmax averages",
        error.subs(q, exp(-2 * lam + mu * (s + r))).subs({s: alpha + ell, r: ell - alpha}),
        _averaged,
        [{ell: 1, mu: 3, lam: 4, alpha: "1/3"}, {ell: 2, mu: 1, lam: -1, alpha: "-3/2"}],
        digits=25,
    )
    end_error = error.subs({s: 0, r: 2 * ell})
    chain.proved(
        "at the lower end the error is l for every head; at the upper one -l", end_error, ell
    )
    chain.proved(
        "(the error is odd under s <-> r)", error.subs({s: r, r: s}, simultaneous=True), -error
    )

    # N examples, interior (`context_laws`): the heads read independent Poisson processes, one on
    # either side, with mu^2 E (F - alpha)^2 = G^2 and mu E[alpha - F] = B for the first and alike
    # for the other, so the mean square of the average is (G^2 - B^2)/(2 mu^2).
    scale = size / (2 * ell * v)  # mu
    few_bias, few_square = 1 / v + v * pi**2 / 12, 2 / v**2 + pi**2 / 6
    few = expand((few_square - few_bias**2) / 2)
    square_few = (few.coeff(v, -2) / v**2 / scale**2).simplify()
    chain.proved("N << mu: the mean square is 2 l^2/N^2", square_few, 2 * ell**2 / size**2)
    chain.proved("with nothing of order mu^-2 beside it", few.coeff(v, 0))
    many_bias, many_square = 1 + h / 4, 1 + 3 * h / 4
    many = expand((many_square - many_bias**2) / 2)
    chain.proved("N >> mu: the bulk mu^-2 cancels", many.coeff(h, 0))
    square_many = (many.coeff(h, 1) * (2 * ell * mu / size) / mu**2).simplify()
    chain.proved("and the mean square is l/(4 N mu)", square_many, ell / (4 * size * mu))
    chain.checked(
        "the mean square (G^2 - B^2)/2 at fixed v is that of the pair on 10^6 examples",
        lambda mp, v: (law(mp, v, 2) - law(mp, v, 1) ** 2) / 2,
        _pair_square,
        [{v: "1/2"}, {v: 5}],
        digits=5,
    )

    # mu -> oo at fixed N: each head picks the nearest example on its own side, or the farthest one
    # on the other. Threshold and examples are N + 1 exchangeable points; they leave N + 2 gaps.
    above = -((1 - d) ** (size + 1)) * (
        d**2 + 2 * d * (1 - d) / (size + 2) + 2 * (1 - d) ** 2 / ((size + 2) * (size + 3))
    )
    density = (size + 1) * (1 - d) ** size  # of one gap, in units of 2 l
    chain.proved("antiderivative of the squared gap", above.diff(d), d**2 * density)
    own = -above.subs(d, 0)
    chain.proved("E gap^2 = 2/((N + 2)(N + 3))", own, 2 / ((size + 2) * (size + 3)))
    cross = (1 - (size + 2) * own) / ((size + 2) * (size + 1))  # as the gaps add up to 1
    chain.proved("E gap gap' = half of that", cross, own / 2)
    lowest = 1 / (size + 1)  # chance that the threshold is the lowest of the N + 1 points

    # One head errs by a gap, or by the N gaps up to the highest point when the threshold is lowest.
    head = (2 * ell) ** 2 * ((1 - lowest) * own + lowest * (size * own + size * (size - 1) * cross))
    head_risk = 4 * ell**2 * size / ((size + 1) * (size + 2))
    chain.proved("one head: 4 l^2 N/((N + 1)(N + 2))", head, head_risk)
    # The pair errs by half the difference of two gaps; at an end by half the sum of the nearest gap
    # and of all N, that is by the gap plus half of the other N - 1.
    middle = (own - cross) / 2
    end = own + (size - 1) * cross + ((size - 1) * own + (size - 1) * (size - 2) * cross) / 4
    pair = (2 * ell) ** 2 * ((1 - 2 * lowest) * middle + 2 * lowest * end)
    pair_risk = 2 * ell**2 / (size + 2)
    chain.proved("the pair: 2 l^2/(N + 2)", pair, pair_risk)
    # Given the context, the threshold is uniform between its neighbours (the ends are sentinels):
    # the midpoint is the mean and errs by the variance, a twelfth of the squared sum of two gaps.
    bayes_risk = 2 * ell**2 / ((size + 2) * (size + 3))
    chain.proved(
        "Bayes: 2 l^2/((N + 2)(N + 3))", (2 * ell) ** 2 * (2 * own + 2 * cross) / 12, bayes_risk
    )
    for which, risk in (("head", head_risk), ("pair", pair_risk), ("bayes", bayes_risk)):
        chain.checked(
            f"{which}: by integrating over threshold and neighbours",
            risk,
            partial(_picked, which=which),
            [{size: 2, ell: 1}, {size: 5, ell: "3/2"}],
            digits=20,
        )
    return ReflectedPair(
        error, end_error, square_few, square_many, head_risk, pair_risk, bayes_risk
    )


def _averaged(mp, ell, mu, lam, a):
    """Mean of F - alpha over the head and its reflection, from the softmax integrals."""
    errors = []
    for sign in (1, -1):

        def weight(x, y, sign=sign):
            return mp.exp(sign * (lam * y + mu * x))

        sides = ((1, (-ell, a)), (-1, (a, ell)))
        total = sum(mp.quad(lambda x, y=y: weight(x, y), span) for y, span in sides)
        first = sum(mp.quad(lambda x, y=y: (x - a) * weight(x, y), span) for y, span in sides)
        errors.append(first / total)
    return sum(errors) / 2


def _pair_square(mp, v, n=10**6, step=0.25):
    """mu^2 times the mean square of the pair's error on n examples, l = 1, alpha = 0."""
    mu = n / (2 * float(v))
    plain = moment_by_quadrature(mp, n, 1, mu, mu + np.log(mu), 0, power=2)
    # E F F' is the integral over u, u' of the mixed terms; 60/mu on either side is all that weighs.
    nodes, shares = np.polynomial.legendre.leggauss(10)
    x = ((np.arange(-30, 30)[:, None] * 2 + 1 + nodes) / mu).ravel()
    mass = np.tile(shares / (2 * mu), 60)
    weights = [np.where(side * x < 0, np.exp(side * mu * x), 0) for side in (1, -1)]
    u = np.exp(np.arange(-np.log(n) - 38, 60, step))[:, None]
    fall, other = (np.exp(-u * w) for w in weights)
    missing = -np.expm1(-u * weights[0]) @ mass
    missing = missing[:, None] + (fall * mass) @ -np.expm1(-u * weights[1]).T
    first = (fall * u * x * weights[0] * mass) @ other.T
    second = (fall * mass) @ (other * u * x * weights[1]).T
    mixed = n * (n - 1) * step**2 * np.sum(first * second * np.exp((n - 2) * np.log1p(-missing)))
    return mu**2 * (plain + mixed) / 2


def _picked(mp, n, ell, which):
    """Mean square error when each head picks one example: threshold at s, lengths over 2 l."""
    # a, b: distances to the nearest examples below and above; c: to the farthest, when one side of
    # the threshold is empty (below, then above).
    both, none_below, none_above = {
        "head": (lambda a, b: -a, lambda b, c, s: c, lambda a, c, s: -a),
        "pair": (
            lambda a, b: (b - a) / 2,
            lambda b, c, s: (b + c) / 2,
            lambda a, c, s: -(a + c) / 2,
        ),
        "bayes": (
            lambda a, b: (b - a) / 2,
            lambda b, c, s: (b - s) / 2,
            lambda a, c, s: (1 - s - a) / 2,
        ),
    }[which]
    quad = partial(mp.quad, method="gauss-legendre", maxdegree=2)  # 6 nodes: exact, as n <= 5

    def at(s):
        def inside(a, b):
            return (1 - a - b) ** (n - 2) * both(a, b) ** 2

        def outside(error, room):
            return quad(
                lambda c: quad(lambda near: (c - near) ** (n - 2) * error(near, c, s) ** 2, (0, c)),
                (0, room),
            )

        interior = quad(lambda a: quad(lambda b: inside(a, b), (0, 1 - s)), (0, s))
        return interior + outside(none_below, 1 - s) + outside(none_above, s)

    return (2 * ell) ** 2 * n * (n - 1) * quad(at, (0, 1))


if __name__ == "__main__":
    show(derive)
