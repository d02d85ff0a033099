"""Sums and products of doubles together with their rounding errors, for numbers and for arrays."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["product_plus", "two_product", "two_sum"]

_SPLITTER = 2.0**27 + 1.0  # Veltkamp's constant: cuts a double into two halves of 26 bits
_BEYOND = 2.0**200  # a term so much larger than a product of order one that it absorbs it


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Sum of two doubles and its rounding error (Knuth's two-sum)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """Product of two doubles of order one and its rounding error (Dekker's two-product)."""
    product = a * b
    high_a = _SPLITTER * a - (_SPLITTER * a - a)
    high_b = _SPLITTER * b - (_SPLITTER * b - b)
    low_a, low_b = a - high_a, b - high_b
    return product, low_a * low_b - (
        ((product - high_a * high_b) - low_a * high_b) - high_a * low_b
    )


def product_plus(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> Any:
    """`a b + c` rounded once from the exact product, at any magnitude."""
    mantissa_a, exponent_a = np.frexp(a)
    mantissa_b, exponent_b = np.frexp(b)
    exponent = exponent_a + exponent_b
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        shifted = np.ldexp(c, -exponent)
        product, product_tail = two_product(mantissa_a, mantissa_b)
        total, total_tail = two_sum(product, shifted)
        small = np.ldexp(total + (total_tail + product_tail), exponent)
        # The exponent of a product of 0 means nothing, and shifting by it may lose bits of `c`.
        return np.where((np.abs(shifted) > _BEYOND) | (product == 0.0), c, small)
