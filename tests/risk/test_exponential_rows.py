"""Exponentials for rows of numbers against extended precision."""

import mpmath
import numpy as np
import pytest

from popdyn.compiled import kernel
from popdyn.risk.exponential_rows import exponential, power_of_two

TOLERANCE = 5e-16  # measured 4.0e-16 and 4.3e-16, of which 3.1e-16 are the polynomial's
SIZE = 1001  # no multiple of the vectors' lengths: the last ones are computed one by one


@kernel
def powers(distances, rate):
    found = np.empty_like(distances)
    for i in range(distances.size):
        found[i] = power_of_two(distances[i], rate)
    return found


@kernel
def exponentials(exponents, tails):
    found = np.empty_like(exponents)
    for i in range(exponents.size):
        found[i] = exponential(exponents[i], tails[i])
    return found


def worst(found, exact):
    """Largest relative error, against numbers in extended precision."""
    return max(abs(float(one / right - 1)) for one, right in zip(found, exact, strict=True))


@pytest.mark.parametrize("rate", [0.0, 1e-300, 1.0, 57.0, 500.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_powers_of_two_are_those_of_the_exact_products(rate, sign):
    distances = -sign * np.random.default_rng(0).uniform(0.0, 2.0, SIZE)
    with mpmath.workdps(40):
        exact = [mpmath.mpf(2) ** (mpmath.mpf(d) * mpmath.mpf(sign * rate)) for d in distances]
        assert worst(powers(distances, sign * rate), exact) <= TOLERANCE


@pytest.mark.parametrize("reach", [1e-300, 1e-3, 1.0, 50.0, 700.0])
def test_exponentials_are_those_of_the_exponents_and_their_rounding_errors(reach):
    rng = np.random.default_rng(1)
    exponents = -rng.uniform(0.0, reach, SIZE)
    tails = rng.uniform(-0.5, 0.5, SIZE) * np.spacing(exponents)
    with mpmath.workdps(40):
        pairs = zip(map(mpmath.mpf, exponents), map(mpmath.mpf, tails), strict=True)
        exact = [mpmath.exp(a + b) for a, b in pairs]
        assert worst(exponentials(exponents, tails), exact) <= TOLERANCE


def test_the_power_of_zero_is_one():
    assert power_of_two(0.0, 3.0) == power_of_two(-1.0, 0.0) == exponential(0.0, 0.0) == 1.0


# Whatever the last bits of the whole power of two: some of them are those of nan and infinity.
TINY = -np.concatenate((np.arange(1023.5, 9000.0, 0.5), [1e12, 1e200, 1e308]))


def test_those_too_small_for_a_normal_double_are_zero():
    assert not powers(TINY, 1.0).any()
    assert not exponentials(TINY, np.zeros(TINY.size)).any()


def test_the_power_of_an_overflowing_product_is_zero():
    assert powers(np.full(9, -1e308), 1e308).tolist() == [0.0] * 9
