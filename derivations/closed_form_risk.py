"""The population risk is elementary in log, Li2 and Li3 at the two ends of the interval.

MODEL §3. Assumes features and thresholds uniform on [-l, l], clean labels, an infinite context,
mu > 0 and 0 < q < 1; other q by continuation. Symbols: half width l > 0, scale mu > 0, label score
lam, excess delta = lam - mu l > 0, q = exp(-2 delta), e = exp(-2 mu l), distances s = alpha + l
and r = 2 l - s to the two ends, z = (1 - q)/(1 - q e) exp(-mu s) in (0, 1).

Sharper than MODEL §3: the term -(2/mu) E[R] cancels against a part of E[R^2], antiderivative by
antiderivative, so that Li2 and Li3 each enter once.
"""

from functools import cache, partial
from typing import NamedTuple

import sympy
from sympy import exp, expand_func, log, polylog, symbols

from derivations.checks import Chain, show
from derivations.predictor import remainder_of

ell, mu, s, q, front = symbols("l mu s q zeta", positive=True)
lam, delta = symbols("lam delta", real=True)


class ClosedForm(NamedTuple):
    at_end: sympy.Expr  # in l, mu, q, s and zeta, where z = zeta exp(-mu s)
    risk: sympy.Expr  # in l, lam, mu, like the rest
    gradient: sympy.Matrix
    hessian: sympy.Matrix


def value_at(s, z):
    """The antiderivative of (R - 1/mu)^2 - 1/mu^2 where the distance is s, and z there."""
    reach = s + 2 * ell * q / (1 - q)
    return (
        -(reach**2) * (z / (1 - z) + log(1 - z)) / mu
        + 2 * reach * polylog(2, z) / mu**2
        + 2 * polylog(3, z) / mu**3
    )


def derive(chain: Chain) -> ClosedForm:
    z = front * exp(-mu * s)
    shift = 2 * ell * q / (1 - q)
    e = exp(-2 * mu * ell)
    remainder = (shift + s) * z / (1 - z)
    chain.proved(
        "R = (A + s) z/(1 - z) with A = 2 l q/(1 - q)",
        sympy.cancel(
            sympy.expand(
                1 / remainder.subs(front, (1 - q) / (1 - q * e))
                - 1 / remainder_of(mu, s, 2 * ell - s, q),
                power_exp=True,
            )
        ),
    )

    def slope(antiderivative):
        return expand_func(antiderivative.diff(s))

    chain.proved("log(1 - z) has slope mu z/(1 - z)", slope(log(1 - z)), mu * z / (1 - z))
    chain.proved("Li2(z) has slope mu log(1 - z)", slope(polylog(2, z)), mu * log(1 - z))
    chain.proved("Li3(z) has slope -mu Li2(z)", slope(polylog(3, z)), -mu * polylog(2, z))
    first = (shift + s) * log(1 - z) / mu - polylog(2, z) / mu**2
    chain.proved("so this is an antiderivative of R", slope(first), remainder)
    at_end = value_at(s, z)
    second = at_end + 2 / mu * first
    chain.proved("and this one of R^2", slope(second), remainder**2)
    chain.proved(
        "-(2/mu) R cancels in (R - 1/mu)^2", slope(at_end), remainder**2 - 2 / mu * remainder
    )

    y = 1 / z
    chain.proved(
        "for lam < 0, where z > 1, the same in y = 1/z < 1",
        remainder,
        (s + q * (2 * ell - s)) / ((1 - q) * (y - 1)),
    )

    on_interval = 1 / mu**2 + (at_end.subs(s, 2 * ell) - at_end.subs(s, 0)) / (2 * ell)
    risk = on_interval.subs(front, (1 - q) / (1 - q * e)).subs(q, exp(-2 * (lam - mu * ell)))
    gradient = sympy.Matrix([risk.diff(lam), risk.diff(mu)])
    hessian = gradient.jacobian([lam, mu])
    # Both with q = 0.8, where the layer at the lower end is wide enough for a plain rule.
    points = [{ell: 1, mu: 2, lam: "21/10"}, {ell: "1/2", mu: 3, lam: "8/5"}]
    for indices, quantity in {
        (): risk,
        (0,): gradient[0],
        (1,): gradient[1],
        (0, 0): hessian[0, 0],
        (0, 1): hessian[0, 1],
        (1, 1): hessian[1, 1],
    }.items():
        name = "L" + "".join(("_lam", "_mu")[i] for i in indices)
        words = f"{name} is the mean over thresholds, by cumulants of the softmax weights"
        chain.checked(
            words, partial(_evaluated, quantity), partial(_defined, indices), points, digits=15
        )
    return ClosedForm(at_end, risk, gradient, hessian)


def _evaluated(quantity, mp, *numbers):
    functions = {"exp": mp.exp, "log": mp.log, "polylog": mp.polylog}
    return sympy.lambdify((ell, mu, lam), quantity, [functions])(*numbers)


def _defined(indices, mp, ell, mu, lam):
    """The risk or a derivative of it as a double Gauss sum over thresholds and features."""
    total = 0
    for alpha, weight, mean in _softmax_means(mp, ell, mu, lam):
        error = mean["x"] - alpha
        letters = ["yx"[i] for i in indices]  # what lam and mu multiply in the score
        slopes = [_covariance(mean, letter) for letter in letters]
        if len(indices) == 0:
            total += weight * error**2
        elif len(indices) == 1:
            total += weight * 2 * error * slopes[0]
        else:
            bend = _third_cumulant(mean, *letters)
            total += weight * 2 * (slopes[0] * slopes[1] + error * bend)
    return total / (2 * ell)


@cache
def _softmax_means(mp, ell, mu, lam):
    """Means of the words in x and y under the softmax weights, at each node of a rule."""
    return [
        (alpha, weight, _means(mp, ell, mu, lam, alpha)) for alpha, weight in _rule(mp, -ell, ell)
    ]


def _means(mp, ell, mu, lam, alpha):
    sums = dict.fromkeys(("", "x", "y", "xx", "xy", "yy", "xxx", "xxy", "xyy"), 0)
    for y, span in ((1, (-ell, alpha)), (-1, (alpha, ell))):
        for x, weight in _rule(mp, *span):
            mass = weight * mp.exp(lam * y + mu * x)
            for word in sums:
                sums[word] += mass * x ** word.count("x") * y ** word.count("y")
    return {word: total / sums[""] for word, total in sums.items()}


def _covariance(mean, a):
    return mean["x" + a] - mean["x"] * mean[a]


def _third_cumulant(mean, a, b):
    def joint(*letters):
        return mean["".join(sorted(letters))]

    pairs = joint("x") * joint(a, b) + joint(a) * joint("x", b) + joint(b) * joint("x", a)
    return joint("x", a, b) - pairs + 2 * joint("x") * joint(a) * joint(b)


def _rule(mp, low, high):
    """Gauss-Legendre rule of 24 nodes."""
    half = (high - low) / 2
    nodes = mp._gauss_legendre.get_nodes(-1, 1, 4, mp.prec)
    return [(low + half * (1 + node), half * weight) for node, weight in nodes]


if __name__ == "__main__":
    show(derive)
