"""Exponentials of a row against the mathematical library."""

import math

import numpy as np
import pytest

from popdyn.risk.exponential_rows import fill_exponentials

SPACINGS = 2.0  # measured 1.0


def exponentials(rate, origin, points):
    distances, found, powers = np.empty((3, points.size))
    fill_exponentials(rate, origin, points, distances, found, powers)
    return distances, found


@pytest.mark.parametrize("size", [0, 1, 7, 16, 64, 1001])
def test_they_are_exponentials_of_the_distances_to_the_last_digit(size):
    points = np.random.default_rng(size).uniform(-1.0, 1.0, size)
    for rate in (0.0, 1e-300, 1.0, 40.0, 350.0):
        distances, found = exponentials(rate, 0.9, points)
        np.testing.assert_array_equal(distances, np.abs(points - 0.9))
        exact = np.array([math.exp(-rate * d) for d in distances])
        assert (np.abs(found - exact) <= SPACINGS * np.spacing(exact)).all()


def test_those_too_small_for_a_normal_double_are_zero():
    # Whatever the last bits of the power of two: some of them are those of nan and infinity.
    _, found = exponentials(
        1.0, 0.0, np.append(np.arange(709.0, 6000.0, 0.5), [1e12, 1e200, 1e308])
    )
    assert not found.any()


def test_an_overflowing_exponent_is_zero():
    assert exponentials(1e308, -1.0, np.ones(9))[1].tolist() == [0.0] * 9
