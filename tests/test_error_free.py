"""Sums and products with their rounding errors, against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from popdyn.error_free import product_plus, two_product, two_sum

RNG = np.random.default_rng(5)
PAIRS = RNG.uniform(-2.0, 2.0, (200, 2)).tolist()
FAR_APART = (RNG.normal(size=(200, 3)) * 10.0 ** RNG.uniform(-90, 90, (200, 3))).tolist()


@pytest.mark.parametrize(("a", "b"), [*PAIRS, (1.0, 2.0**-60), (1e300, -1e280), (0.1, -0.1)])
def test_a_sum_and_its_error_are_the_exact_sum(a, b):
    total, tail = two_sum(a, b)
    assert total == a + b
    assert Fraction(total) + Fraction(tail) == Fraction(a) + Fraction(b)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_a_product_and_its_error_are_the_exact_product(a, b):
    product, tail = two_product(a, b)
    assert product == a * b
    assert Fraction(product) + Fraction(tail) == Fraction(a) * Fraction(b)


@pytest.mark.parametrize(("a", "b", "c"), [*FAR_APART, (3.0, 1 / 3, -1.0), (0.0, 5.0, 0.1)])
def test_a_product_plus_a_number_is_rounded_once(a, b, c):
    assert product_plus(a, b, c) == float(Fraction(a) * Fraction(b) + Fraction(c))


def test_rows_are_taken_number_by_number():
    rows = np.array(FAR_APART).T
    np.testing.assert_array_equal(
        product_plus(*rows), [product_plus(*numbers) for numbers in FAR_APART]
    )
