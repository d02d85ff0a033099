"""Marked operations give the numbers of plain arithmetic up to its rounding."""

from fractions import Fraction

import numpy as np
import pytest

from popdyn.compiled import kernel
from popdyn.machine_arithmetic import multiply_add, reordered_add

RANDOM = np.random.default_rng(3)


@kernel
def fused(a, b, c):
    return multiply_add(a, b, c)


@kernel
def total(values):
    result = 0.0
    for value in values:
        result = reordered_add(result, value)
    return result


@pytest.mark.parametrize("a, b, c", RANDOM.normal(size=(20, 3)))
def test_a_product_and_a_sum_are_rounded_once_or_twice(a, b, c):
    once = float(Fraction(a) * Fraction(b) + Fraction(c))
    assert fused(a, b, c) in (once, a * b + c)


@pytest.mark.parametrize("size", [0, 1, 5, 64, 1001])
def test_a_reordered_sum_is_the_sum(size):
    values = RANDOM.uniform(1, 2, size)
    exact = float(sum(map(Fraction, values)))
    assert total(values) == pytest.approx(exact, rel=2.0**-53 * max(size, 1), abs=0)


def test_whole_numbers_are_added_without_an_error():
    assert total(np.arange(1000.0)) == 499500.0
