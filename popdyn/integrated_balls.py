"""Risk and error by rigorous integration of their definitions (MODEL §1).

`flint.acb.integral` evaluates an integrand on boxes of complex thresholds, and bounds by these what
its Gauss rules leave out.
"""

from collections.abc import Callable
from functools import cache
from math import factorial
from typing import Any

import flint
from flint import acb, acb_poly, arb

__all__ = ["integrated_error", "integrated_risk"]

_TERMS = 60  # of a power series at arguments up to 1; what is left out is below 1e-81


def _tolerance() -> Any:
    """Relative goal of an integral; flint's absolute one is 2^-bits.

    A goal beyond what rounding leaves of the integrand, or beyond its size where that is
    exponentially small, would cut panels without end: 5/8 of the bits are asked for.
    """
    return arb(2) ** -(5 * flint.ctx.prec // 8)


def integrated_risk(lam: Any, mu: Any, width: Any) -> tuple[Any, Any, Any]:
    """`(1/2l) int_0^{2l} (F - alpha)^2 ds` with `s = alpha + l`, and its derivatives.

    Each half is integrated in the distance to its own end, because a layer there may be narrower
    than the spacing of numbers near `2 l`. Layers narrower still are cut off with the bounds
    `|F - alpha| <= 2 l`, `|dF/dlam| <= l`, `|dF/dmu| <= l^2` (a covariance with a sign, and a
    variance, of numbers in `[-l, l]`).
    """
    cut = width * arb(2) ** -flint.ctx.prec

    def square(error: Any, by_lam: Any, by_mu: Any) -> Any:
        return error**2

    def slope_by_lam(error: Any, by_lam: Any, by_mu: Any) -> Any:
        return 2 * error * by_lam

    def slope_by_mu(error: Any, by_lam: Any, by_mu: Any) -> Any:
        return 2 * error * by_mu

    def average(of: Callable[[Any, Any, Any], Any], bound: Any) -> Any:
        # Quotients of entire functions: a box on which one is not holomorphic is one where the
        # divisor's ball holds 0, and then the quotient is not finite.
        halves = (
            lambda s, _: of(*_error_and_slopes(s, 2 * width - s, lam, mu)),
            lambda r, _: of(*_error_and_slopes(2 * width - r, r, lam, mu)),
        )
        total = sum(acb.integral(half, cut, width, rel_tol=_tolerance()).real for half in halves)
        return (total + 2 * cut * bound * arb(0, 1)) / (2 * width)

    return (
        average(square, 4 * width**2),
        average(slope_by_lam, 4 * width**2),
        average(slope_by_mu, 4 * width**3),
    )


def _error_and_slopes(s: Any, r: Any, lam: Any, mu: Any) -> tuple[Any, Any, Any]:
    """`F - alpha` and its derivatives, from the moments of `x - alpha` on either side of `alpha`.

    Weights are `exp(mu (x - alpha))` below the threshold, which is `s` above the lower end, and
    `exp(-2 lam)` times that above it. Either side is divided by its largest weight and the lighter
    side multiplied by the quotient of these, since a quotient of exponentials that are large on a
    wide box would tell nothing.
    """
    a0, a1, a2 = _exponential_moments(s, mu)
    b0, b1, b2 = _exponential_moments(r, -mu)
    surplus = (mu * r if mu > 0 else mu * s) - 2 * lam
    if surplus.real.mid() > 0:
        a0, a1, a2 = ((-surplus).exp() * moment for moment in (a0, a1, a2))
    else:
        b0, b1, b2 = (surplus.exp() * moment for moment in (b0, b1, b2))
    D = a0 + b0
    error = (b1 - a1) / D
    return error, -2 * (a0 * b1 + a1 * b0) / (D * D), (a2 + b2) / D - error * error


def _exponential_moments(length: Any, rate: Any) -> tuple[Any, Any, Any]:
    """`int_0^length t^j exp(-rate t) dt` for `j = 0, 1, 2`, on a box of complex lengths.

    Divided by the weight at the far end where that is the largest, that is if `rate < 0`.
    """
    x = rate * length
    grows = rate < 0
    if x.abs_upper() < 1:
        # Coefficients are at most 1/k!, so that the terms left out sum to less than 2 |x|^K/K!.
        rest = arb(x.abs_upper()) ** _TERMS * 2 / factorial(_TERMS) * arb(0, 1)
        sums = [series(-x) + acb(rest, rest) for series in _moment_series(flint.ctx.prec)]
        peak = x.exp() if grows else 1
        return peak * length * sums[0], peak * length**2 * sums[1], peak * length**3 * sums[2]
    near, far = (x.exp(), 1) if grows else (1, (-x).exp())
    return (
        (near - far) / rate,
        (near - (1 + x) * far) / rate**2,
        (2 * near - (2 + 2 * x + x * x) * far) / rate**3,
    )


@cache
def _moment_series(bits: int) -> list[Any]:
    """`sum x^k/(k! (k + j + 1))` for `j = 0, 1, 2`: the moments at `-x` and length 1."""
    return [
        acb_poly([arb(1) / (factorial(k) * (k + j + 1)) for k in range(_TERMS)]) for j in range(3)
    ]


def integrated_error(lam: Any, mu: Any, width: Any, alpha: float) -> Any:
    """Quotient of the integrals of `(x - alpha) exp(lam y + mu x)` and of the weights alone."""
    p = (-2 * lam).exp()

    def integral(power: int, end: Any) -> Any:
        """`int_0^end t^power exp(mu t) dt`, where `t = x - alpha`."""
        top = end if mu * end > 0 else arb(0)  # where the weight is largest
        bottom, rest = end - top, arb(0)
        if abs(mu * end) > 2 * flint.ctx.prec:
            # Farther than this from the top, weights are below exp(-2 bits) of the largest.
            bottom = top + (bottom - top) * (2 * flint.ctx.prec / abs(mu * end))
            rest = abs(end) ** (power + 1) * arb(-2 * flint.ctx.prec).exp() * arb(0, 1)
        weight = acb.integral(
            lambda t, _: t**power * (mu * (t - top)).exp(), bottom, top, rel_tol=_tolerance()
        )
        return (mu * top).exp() * (weight.real * (1 if top is end else -1) + rest)

    low, high = -(alpha + width), width - alpha
    top = p * integral(1, high) - integral(1, low)
    return top / (p * integral(0, high) - integral(0, low))
