"""The population risk as a second-order jet in the head, in a mpmath context (MODEL §2, §3, §5).

Half width 1. The formulas are those of the risk alone; jet arithmetic differentiates them, so every
function here returns `(f, f_l, f_m, f_ll, f_lm, f_mm)`, derivatives in label score and scale. Each
has its range of scales:

- `closed_form`: polylogarithms, with the guard digits that their cancellations cost;
- `interpolated_in_scale`: near `mu = 0`, where those would be too many, through `mu = 0`;
- `taylor`: near the origin, where the gradient vanishes too, with rational coefficients.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import comb, factorial
from typing import Any

import mpmath

__all__ = ["closed_form", "context", "interpolated_in_scale", "taylor"]

# Digits that the closed form loses where `mu` falls by ten; the worst is the Hessian at `lam ~ mu`.
_LOST_PER_DECADE = 7
_NODE_PAIRS = 3  # interpolation error: the sixth power of the spacing
_TAYLOR_DEGREE = 8  # the first term left out is the sixth power of the radius, or less
_SMALL_ARGUMENT = 0.25  # below, the polylogarithms are summed from their power series


@lru_cache(maxsize=64)
def context(digits: int) -> Any:
    """A private mpmath context; the global one is the user's."""
    ctx = mpmath.MPContext()
    ctx.dps = digits
    return ctx


class _Jet:
    """Value, gradient and Hessian `(f, f_l, f_m, f_ll, f_lm, f_mm)` of a function of the head."""

    __slots__ = ("parts",)

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __add__(self, other: Any) -> "_Jet":
        if isinstance(other, _Jet):
            return _Jet(*(a + b for a, b in zip(self.parts, other.parts, strict=True)))
        return _Jet(self.parts[0] + other, *self.parts[1:])

    def __mul__(self, other: Any) -> "_Jet":
        if not isinstance(other, _Jet):
            return _Jet(*(a * other for a in self.parts))
        f, f_l, f_m, f_ll, f_lm, f_mm = self.parts
        g, g_l, g_m, g_ll, g_lm, g_mm = other.parts
        return _Jet(
            f * g,
            f_l * g + f * g_l,
            f_m * g + f * g_m,
            f_ll * g + 2 * f_l * g_l + f * g_ll,
            f_lm * g + f_l * g_m + f_m * g_l + f * g_lm,
            f_mm * g + 2 * f_m * g_m + f * g_mm,
        )

    def through(self, value: Any, first: Any, second: Any) -> "_Jet":
        """The jet of `phi(f)` from `phi`, `phi'` and `phi''` at `f`."""
        _, f_l, f_m, f_ll, f_lm, f_mm = self.parts
        return _Jet(
            value,
            first * f_l,
            first * f_m,
            first * f_ll + second * f_l * f_l,
            first * f_lm + second * f_l * f_m,
            first * f_mm + second * f_m * f_m,
        )

    def _reciprocal(self) -> "_Jet":
        inverse = 1 / self.parts[0]
        return self.through(inverse, -(inverse**2), 2 * inverse**3)

    def __truediv__(self, other: Any) -> "_Jet":
        if isinstance(other, _Jet):
            return self * other._reciprocal()
        return _Jet(*(a / other for a in self.parts))

    def __rtruediv__(self, other: Any) -> "_Jet":
        return _Jet(*(other * a for a in self._reciprocal().parts))

    def __neg__(self) -> "_Jet":
        return _Jet(*(-a for a in self.parts))

    def __sub__(self, other: Any) -> "_Jet":
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> "_Jet":
        return (-self).__add__(other)

    __radd__ = __add__
    __rmul__ = __mul__


def _exp(ctx: Any, x: _Jet) -> _Jet:
    value = ctx.exp(x.parts[0])
    return x.through(value, value, value)


def _one_minus_exp(ctx: Any, x: _Jet) -> _Jet:
    value = ctx.exp(x.parts[0])
    return x.through(-ctx.expm1(x.parts[0]), -value, -value)


def closed_form(ctx: Any, scores: Callable[[Any], tuple[Any, Any, Any]], mu: Any) -> list[Any]:
    """Risk, gradient and Hessian at half width 1, right to about the precision of `ctx`.

    `scores(ctx)` reads label score, scale and excess in the precision of its argument.
    """
    lost = _LOST_PER_DECADE * max(0, -int(ctx.log10(abs(mu))))
    wide = context(ctx.dps + lost)
    sign = -1 if mu < 0 else 1
    lam, mu, excess = (sign * score for score in scores(wide))
    formula = _closed_form_in_y if 2 * lam < mu else _closed_form_in_z
    jet = formula(
        wide,
        _Jet(lam, 1, 0, 0, 0, 0),
        _Jet(mu, 0, 1, 0, 0, 0),
        _Jet(excess, 1, -1, 0, 0, 0),
    )
    parity = (1, sign, sign, 1, 1, 1)
    return [ctx.mpf(factor * part) for factor, part in zip(parity, jet.parts, strict=True)]


def _closed_form_in_z(ctx: Any, lam: _Jet, mu: _Jet, excess: _Jet) -> _Jet:
    """`L = 1/mu^2 - (2/mu) E[R] + E[R^2]` by parts, for `lam > 0` where `z < 1` (MODEL §3).

    With `w = 1 - q`, `N = 2 q + w s`, `E = exp(-mu s)/(1 - q e)` and `z = w E` the integrand is
    `R = N E/(1 - z)`, and `E/(1 - z)`, `E^2/(1 - z)^2` integrate again and again to `Li_j(z)/z` and
    `(Li_j(z) - Li_{j-1}(z))/z^2`, all smooth at `q = 1`, that is `z = 0`.
    """
    w, q = _one_minus_exp(ctx, -2 * excess), _exp(ctx, -2 * excess)
    one_minus_e, e = _one_minus_exp(ctx, -2 * mu), _exp(ctx, -2 * mu)
    one_minus_qe = _one_minus_exp(ctx, -2 * lam)

    def antiderivatives(N: _Jet, E: _Jet, one_minus_z: _Jet) -> tuple[_Jet, _Jet]:
        z = w * E
        P1, P2, T1, T2, T3 = _divided_polylogs(ctx, z, one_minus_z)
        h = w / mu
        return (
            -E * (N * P1 + h * P2) / mu,
            E * E * (N * N * T1 + 2 * h * N * T2 + 2 * h * h * T3) / mu,
        )

    E, one_minus_z = 1 / one_minus_qe, one_minus_e / one_minus_qe
    low = antiderivatives(2 * q, E, q * one_minus_z)
    high = antiderivatives(_Jet(2, 0, 0, 0, 0, 0), e * E, one_minus_z)
    return _risk_from_integrals(mu, high[0] - low[0], high[1] - low[1])


def _closed_form_in_y(ctx: Any, lam: _Jet, mu: _Jet, excess: _Jet) -> _Jet:
    """The same for `lam < mu`, in `y = 1/z < 1` (MODEL §3).

    `R = N/(1 - y)` with `N = 2/(1 - 1/q) - s` and `y = (1 - 1/(q e)) exp(-mu r)/(1 - 1/q)`; the
    repeated integrals hold `Li_j(y)`, smooth at `lam = 0`, that is `y = 0`. Written in `1/q` and
    `1/(q e)`, because derivatives in a very negative `lam` are proportional to these.
    """
    one_minus_Q, Q = _one_minus_exp(ctx, 2 * excess), _exp(ctx, 2 * excess)
    one_minus_P, P = _one_minus_exp(ctx, 2 * lam), _exp(ctx, 2 * lam)
    one_minus_e, e = _one_minus_exp(ctx, -2 * mu), _exp(ctx, -2 * mu)

    def antiderivatives(s: int, N: _Jet, y: _Jet, one_minus_y: _Jet) -> tuple[_Jet, _Jet]:
        Li1, Li2, Li3 = _polylogs(ctx, y, one_minus_y)
        V1 = s + Li1 / mu
        V2 = ctx.mpf(s) ** 2 / 2 + Li2 / (mu * mu)
        V3 = ctx.mpf(s) ** 3 / 6 + Li3 / (mu * mu * mu)
        U1, U2, U3 = V1 + 1 / (mu * one_minus_y), V2 + V1 / mu, V3 + V2 / mu
        return N * V1 + V2, N * N * U1 + 2 * N * U2 + 2 * U3

    y, one_minus_y = one_minus_P / one_minus_Q, one_minus_e / one_minus_Q
    low = antiderivatives(0, 2 / one_minus_Q, e * y, one_minus_y)
    high = antiderivatives(2, 2 * Q / one_minus_Q, y, P * one_minus_y)
    return _risk_from_integrals(mu, high[0] - low[0], high[1] - low[1])


def _risk_from_integrals(mu: _Jet, of_R: _Jet, of_R_squared: _Jet) -> _Jet:
    return (1 / mu - of_R) / mu + of_R_squared / 2


def _polylogs(ctx: Any, z: _Jet, one_minus_z: _Jet) -> list[_Jet]:
    """`Li_1, Li_2, Li_3` at `z < 1`.

    `1 - z` is an argument of its own, since near `z = 1` it cannot be had from `z`.
    """
    x, y = z.parts[0], one_minus_z.parts[0]
    if abs(x) < _SMALL_ARGUMENT:
        return [z + z * z * S for S in _shifted_polylogs(ctx, z)]
    li1, li2, li3 = -ctx.log(y), ctx.re(ctx.polylog(2, x)), ctx.re(ctx.polylog(3, x))
    return [
        z.through(li1, 1 / y, 1 / y**2),
        z.through(li2, li1 / x, (x / y - li1) / x**2),
        z.through(li3, li2 / x, (li1 - li2) / x**2),
    ]


def _divided_polylogs(ctx: Any, z: _Jet, one_minus_z: _Jet) -> list[_Jet]:
    """`Li_1/z, Li_2/z` and `(Li_j - Li_{j-1})/z^2` for `j = 1, 2, 3`, where `Li_0 = z/(1 - z)`."""
    if abs(z.parts[0]) < _SMALL_ARGUMENT:
        S0, (S1, S2, S3) = 1 / one_minus_z, _shifted_polylogs(ctx, z)
        return [1 + z * S1, 1 + z * S2, S1 - S0, S2 - S1, S3 - S2]
    Li0, (Li1, Li2, Li3) = z / one_minus_z, _polylogs(ctx, z, one_minus_z)
    square = z * z
    return [Li1 / z, Li2 / z, (Li1 - Li0) / square, (Li2 - Li1) / square, (Li3 - Li2) / square]


def _shifted_polylogs(ctx: Any, z: _Jet) -> list[_Jet]:
    """`(Li_j(z) - z)/z^2` for `j = 1, 2, 3` at small `z`."""
    return [z.through(*_power_series(ctx, z.parts[0], j)) for j in (1, 2, 3)]


def _power_series(ctx: Any, x: Any, j: int) -> tuple[Any, Any, Any]:
    """`sum z^k/(k + 2)^j` with its first two derivatives."""
    value = first = second = ctx.zero
    power, k = ctx.one, 0  # power is x^k
    while k < 3 or abs(power) * k**2 > ctx.eps:
        coefficient = ctx.one / (k + 2) ** j
        value += coefficient * power
        first += (k + 1) * power / (k + 3) ** j
        second += (k + 1) * (k + 2) * power / (k + 4) ** j
        power, k = power * x, k + 1
    return value, first, second


def interpolated_in_scale(ctx: Any, lam: Any, mu: Any, tiny: Any) -> list[Any]:
    """Lagrange interpolation of the closed form in the scale, through `mu = 0`.

    For real `lam` every component is analytic in `|Im mu| < pi/2`, because all softmax weights then
    lie in one half plane; so the error of nodes at `±h, ±3h, ±5h` is of the order `h^6`.

    At `mu = 0` the risk is `1/3` whatever `lam`, since the integrand of `dL/dlam` is there a
    multiple of `d/ds (s r/D)^2` with `D = s + exp(-2 lam) r`. So the derivatives in `lam` alone
    are interpolated after division by the scale, which keeps their relative accuracy.
    """
    nodes = [sign * (2 * i + 1) * tiny for i in range(_NODE_PAIRS) for sign in (1, -1)]
    f, f_l, f_m, f_ll, f_lm, f_mm = [ctx.zero] * 6
    for node in nodes:
        weight = ctx.fprod((mu - other) / (node - other) for other in nodes if other != node)

        def scores(wide: Any, node: Any = node) -> tuple[Any, Any, Any]:
            return wide.mpf(lam), wide.mpf(node), wide.mpf(lam) - wide.mpf(node)

        g, g_l, g_m, g_ll, g_lm, g_mm = (weight * c for c in closed_form(ctx, scores, node))
        f, f_l, f_m = f + g, f_l + mu * g_l / node, f_m + g_m
        f_ll, f_lm, f_mm = f_ll + mu * g_ll / node, f_lm + g_lm, f_mm + g_mm
    return [f, f_l, f_m, f_ll, f_lm, f_mm]


def taylor(ctx: Any, lam: Any, mu: Any) -> list[Any]:
    """The Taylor series of the risk at the origin and its derivatives (MODEL §5)."""
    jet = [ctx.zero] * 6
    for (i, j), fraction in _taylor_coefficients(_TAYLOR_DEGREE).items():
        coefficient = ctx.mpf(fraction.numerator) / fraction.denominator
        for part, (a, b) in enumerate(((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))):
            if i >= a and j >= b:
                factor = factorial(a) * comb(i, a) * factorial(b) * comb(j, b)
                jet[part] += coefficient * factor * lam ** (i - a) * mu ** (j - b)
    return jet


@lru_cache(maxsize=1)
def _taylor_coefficients(degree: int) -> dict[tuple[int, int], Fraction]:
    """Coefficients of `lam^i mu^j` in the risk at half width 1, up to a total degree, exactly.

    The series of `F - alpha` follows from `F Z = dZ/dmu`, with the partition function
    `Z = int exp(lam y + mu x) dx`. Coefficients are polynomials in the threshold, of degree at
    most `degree + 2` in the squared error, and are carried by their values at as many points.
    """
    orders = [(i, n - i) for n in range(degree + 1) for i in range(n + 1)]
    total = dict.fromkeys(orders, Fraction(0))
    for alpha, weight in _interpolatory_rule(degree + 3):

        def moment(i: int, j: int, alpha: Fraction = alpha) -> Fraction:
            """`int y^i x^j dx`."""
            below = (alpha ** (j + 1) - Fraction(-1) ** (j + 1)) / (j + 1)
            above = (1 - alpha ** (j + 1)) / (j + 1)
            return Fraction(below + (-1) ** i * above)

        Z = {(i, j): moment(i, j) / (factorial(i) * factorial(j)) for i, j in orders}
        slope = {(i, j): moment(i, j + 1) / (factorial(i) * factorial(j)) for i, j in orders}
        error: dict[tuple[int, int], Fraction] = {}
        for i, j in orders:
            known = sum(
                (error[k, m] * Z[i - k, j - m] for k, m in error if k <= i and m <= j),
                Fraction(0),
            )
            error[i, j] = (slope[i, j] - alpha * Z[i, j] - known) / 2
        for i, j in orders:
            if (i + j) % 2 == 0:
                total[i, j] += weight * sum(
                    error[k, m] * error[i - k, j - m] for k in range(i + 1) for m in range(j + 1)
                )
    return {order: coefficient for order, coefficient in total.items() if coefficient}


def _interpolatory_rule(n: int) -> list[tuple[Fraction, Fraction]]:
    """Nodes and weights on `[-1, 1]`, total weight 1, exact for polynomials of degree below `n`."""
    nodes = [Fraction(2 * i - n + 1, n - 1) for i in range(n)]
    rule = []
    for node in nodes:
        polynomial = [Fraction(1)]  # the Lagrange polynomial of this node, lowest power first
        for other in nodes:
            if other != node:
                shifted = [Fraction(0), *polynomial]
                scaled = [*(other * c for c in polynomial), Fraction(0)]
                polynomial = [
                    (a - b) / (node - other) for a, b in zip(shifted, scaled, strict=True)
                ]
        weight = sum((c / (k + 1) for k, c in enumerate(polynomial) if k % 2 == 0), Fraction(0))
        rule.append((node, weight))
    return rule
