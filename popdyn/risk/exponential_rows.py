"""Decaying exponentials without calls or branches, for loops of vector instructions."""

from math import log

from popdyn.compiled import kernel
from popdyn.machine_arithmetic import bits_of, double_of, fused_multiply_add

__all__ = ["LOG2_E", "exponential", "power_of_two"]

LOG2_E = 1.0 / log(2.0)
# log 2 in two parts, the first of 33 bits: its products with whole numbers up to 2^20 are exact.
_LOG_2_HIGH = float.fromhex("0x1.62e42feep-1")
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
# Added to a number below 2^51 it leaves the nearest whole number in the last bits.
_TO_WHOLE = 1.5 * 2.0**52
_SMALLEST = -1022.0  # 2^-1022 is the smallest normal double, and less counts as zero
# 2^f on |f| <= 1/2, interpolated at the zeros of the Chebyshev polynomial of degree 11, with the
# constant put to 1: within 3.1e-16. One degree more is worth 1e-16 and costs 6 % of the time.
_POWER = tuple(
    map(
        float.fromhex,
        (
            "0x1.0000000000000p+0",
            "0x1.62e42fefa3a19p-1",
            "0x1.ebfbdff82c598p-3",
            "0x1.c6b08d703ce49p-5",
            "0x1.3b2ab6fba1ddap-7",
            "0x1.5d87fe9d7a584p-10",
            "0x1.430913096fd9fp-13",
            "0x1.ffcb54062e698p-17",
            "0x1.62bfd47773353p-20",
            "0x1.b675bca4eeebbp-24",
            "0x1.e6063f7217bc6p-28",
        ),
    )
)


@kernel
def _two_to(fraction: float, shifted: float) -> float:
    """`2^(whole + fraction)` with the whole number in the last bits of `shifted`."""
    c, f = _POWER, fraction
    p = fused_multiply_add(c[10], f, c[9])
    p = fused_multiply_add(p, f, c[8])
    p = fused_multiply_add(p, f, c[7])
    p = fused_multiply_add(p, f, c[6])
    p = fused_multiply_add(p, f, c[5])
    p = fused_multiply_add(p, f, c[4])
    p = fused_multiply_add(p, f, c[3])
    p = fused_multiply_add(p, f, c[2])
    p = fused_multiply_add(p, f, c[1])
    p = fused_multiply_add(p, f, c[0])
    found = double_of(bits_of(p) + (bits_of(shifted) << 52))
    return found if shifted - _TO_WHOLE >= _SMALLEST else 0.0


@kernel
def power_of_two(distance: float, rate: float) -> float:
    """`2^(rate distance)` for a product `<= 0`, of any size; 0 below 2^-1022.

    Within 4e-16 for the double `rate`; a rate rounded from `mu log2(e)` stands for one scale
    within 1e-16 of `mu`, the same for all distances.
    """
    shifted = fused_multiply_add(distance, rate, _TO_WHOLE)
    fraction = fused_multiply_add(distance, rate, _TO_WHOLE - shifted)
    return _two_to(fraction, shifted)


@kernel
def exponential(exponent: float, tail: float) -> float:
    """`exp(exponent + tail)` for an exponent `<= 0` and its rounding error; 0 below 2^-1022.

    Within 4.3e-16.
    """
    shifted = fused_multiply_add(exponent, LOG2_E, _TO_WHOLE)
    whole = shifted - _TO_WHOLE
    rest = fused_multiply_add(
        whole, -_LOG_2_LOW, fused_multiply_add(whole, -_LOG_2_HIGH, exponent) + tail
    )
    return _two_to(LOG2_E * rest, shifted)
