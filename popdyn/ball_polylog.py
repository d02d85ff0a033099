"""Polylogarithms in ball arithmetic, for real arguments below 1 (MODEL §3).

A ball is a `flint.arb`, midpoint and radius; operations round outwards, so that the result of exact
numbers lies inside. An argument comes with its complement `1 - z`, since near 1 a ball of `z` does
not tell how far it is away.

flint's working precision, `flint.ctx.prec`, is global: `working_precision` sets it for the time of
a block and restores it, under a lock.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import RLock
from typing import Any

import flint
from flint import acb, acb_series, arb, arb_poly

__all__ = [
    "composed",
    "divided_polylogs",
    "polylogs",
    "polylogs_over_argument",
    "working_precision",
]

_precision_lock = RLock()


@contextmanager
def working_precision(bits: int) -> Iterator[None]:
    """Let flint compute with so many bits, then with as many as before."""
    with _precision_lock:
        before = flint.ctx.prec
        flint.ctx.prec = bits
        try:
            yield
        finally:
            flint.ctx.prec = before


def composed(inner: Any, value: Any, slope: Any) -> Any:
    """The series `f(inner)` of two terms, from `f` and `f'` at the constant term of `inner`."""
    return acb_series([value, slope * inner[1]], prec=2)


def polylogs(z: Any, complement: Any) -> tuple[Any, Any, Any]:
    """Balls of `Li_1, Li_2, Li_3` at a ball `z` of numbers below 1."""
    if z.abs_upper() <= 0.5:
        sums = [_power_sum(z, row)[0] for row in range(3)]
        return z * sums[0], z * sums[1], z * sums[2]
    one = -complement.log()
    if z > 0.5:
        two = arb.pi() ** 2 / 6 + (-complement).log1p() * one - _small_dilogarithm(complement)
        return one, two, _trilogarithm_near_one(z)
    if z < -2:
        inverse, logarithm = 1 / z, (-z).log()
        zeta2 = arb.pi() ** 2 / 6
        two = -zeta2 - logarithm**2 / 2 - inverse * _power_sum(inverse, 1)[0]
        three = inverse * _power_sum(inverse, 2)[0] - zeta2 * logarithm - logarithm**3 / 6
        return one, two, three
    return one, acb(z).polylog(2).real, acb(z).polylog(3).real


def divided_polylogs(z: Any, complement: Any) -> list[Any]:
    """`Li_j/z` and `(Li_j - Li_{j-1})/z^2`, `j = 1, 2, 3`, where `Li_0 = z/(1 - z)`.

    They are smooth at `z = 0`. The arguments and the results are series of two terms with real
    constant terms.
    """
    x, y = z[0].real, complement[0].real
    if x.abs_upper() <= 0.5:
        return [composed(z, *_power_sum(x, row)) for row in range(6)]
    values = polylogs(x, y)
    slopes = (1 / y, values[0] / x, values[1] / x)
    li = [
        z / complement,
        *(composed(z, value, slope) for value, slope in zip(values, slopes, strict=True)),
    ]
    square = z * z
    return [li[j] / z for j in (1, 2, 3)] + [(li[j] - li[j - 1]) / square for j in (1, 2, 3)]


def polylogs_over_argument(z: Any) -> tuple[Any, Any, Any]:
    """Balls of `Li_j(z)/z`, `j = 1, 2, 3`, where `|z| <= 1/2`; else balls without bounds."""
    if not z.abs_upper() <= 0.5:
        return arb.nan(), arb.nan(), arb.nan()
    return _power_sum(z, 0)[0], _power_sum(z, 1)[0], _power_sum(z, 2)[0]


def _small_dilogarithm(x: Any) -> Any:
    """`Li_2` at a ball around a number of `(0, 1/2)`."""
    return x * _power_sum(x, 1)[0] if x.abs_upper() <= 0.5 else acb(x).polylog(2).real


def _trilogarithm_near_one(z: Any) -> Any:
    """`Li_3` on the part below 1 of a ball above 1/2: it grows there with slopes in (0, 2)."""
    low, high = arb(z.lower()), arb(z.upper())
    return acb(low).polylog(3).real + (high - low) * arb(1, 1)


@lru_cache(maxsize=64)
def _coefficients(row: int, bits: int) -> tuple[Any, Any]:
    """A power series with coefficients in [-1, 1], cut where `2^-k` is below the precision."""
    j = row % 3 + 1
    one = arb(1)
    if row < 3:
        series = [one / (k + 1) ** j for k in range(bits)]
    else:
        series = [one / (k + 2) ** j - one / (k + 2) ** (j - 1) for k in range(bits)]
    polynomial = arb_poly(series)
    return polynomial, polynomial.derivative()


def _power_sum(x: Any, row: int) -> tuple[Any, Any]:
    """`sum z^k/(k+1)^j` (rows 0 to 2) or `sum z^k ((k+2)^-j - (k+2)^(1-j))` and its slope.

    With coefficients of size 1 at most and `|x| <= 1/2`, the terms from `K` on sum to at most
    `2 |x|^K`, and their slopes to `(2 K + 2) |x|^(K-1)`.
    """
    terms = flint.ctx.prec
    polynomial, derivative = _coefficients(row, terms)
    rest = arb(x.abs_upper()) ** (terms - 1)
    return (
        polynomial(x) + rest * arb(0, 1),
        derivative(x) + rest * arb(0, 2 * terms + 2),
    )
