"""Operations asked for by name: what they round, and what they leave to the compiler."""

from fractions import Fraction

import numpy as np
import pytest

from popdyn.compiled import kernel
from popdyn.machine_arithmetic import (
    bits_of,
    double_of,
    fusable_product,
    fused_multiply_add,
    multiply_add,
    reordered_add,
)

SIZE = 1003  # no multiple of the vectors' lengths
SPACINGS_OF_SUM = 30.0  # measured 2.1 in vectors, 11 one after the other


@kernel
def fused_rows(a, b, c):
    found = np.empty_like(a)
    for i in range(a.size):
        found[i] = fused_multiply_add(a[i], b[i], c[i])
    return found


@kernel
def sum_of_products(a, b):
    total = 0.0
    for i in range(a.size):
        total = reordered_add(total, fusable_product(a[i], b[i]))
    return total


@kernel
def maybe_fused(a, b, c):
    return multiply_add(a, b, c)


@kernel
def there_and_back(numbers):
    found = np.empty_like(numbers)
    for i in range(numbers.size):
        found[i] = double_of(bits_of(numbers[i]) + 1)
    return found


def test_a_fused_product_and_sum_is_rounded_once():
    a, b = np.random.default_rng(0).uniform(0.5, 2.0, (2, SIZE))
    left = fused_rows(a, b, -a * b)  # what the rounded product lacks
    exact = [Fraction(x) * Fraction(y) - Fraction(x * y) for x, y in zip(a, b, strict=True)]
    assert [Fraction(one) for one in left] == exact
    assert np.count_nonzero(left) > SIZE // 2


@pytest.mark.parametrize(("a", "b", "c"), np.random.default_rng(3).normal(size=(20, 3)))
def test_a_product_and_a_sum_are_rounded_once_or_twice(a, b, c):
    once = float(Fraction(a) * Fraction(b) + Fraction(c))
    assert maybe_fused(a, b, c) in (once, a * b + c)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 33, SIZE])
def test_a_sum_in_any_order_has_all_its_terms(size):
    a, b = np.random.default_rng(1).uniform(0.5, 1.0, (2, size))
    exact = sum((Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)), Fraction(0))
    off = abs(Fraction(sum_of_products(a, b)) - exact)
    assert off <= SPACINGS_OF_SUM * np.spacing(float(exact))


def test_bits_count_the_doubles_of_one_sign():
    numbers = np.random.default_rng(2).uniform(0.0, 10.0, SIZE)
    np.testing.assert_array_equal(there_and_back(numbers), np.nextafter(numbers, np.inf))
