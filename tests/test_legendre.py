"""Gauss-Legendre rules against polynomials and 40 digits."""

import mpmath
import pytest

from popdyn.legendre import legendre_rule


@pytest.mark.parametrize("order", [1, 2, 3, 10, 47, 120, 1001])
def test_gauss_legendre_integrates_polynomials_of_degree_two_n_minus_one(order):
    distances, weights = legendre_rule(order)
    for degree in {0, 1, order, 2 * order - 1}:
        mean = 0.5 * weights @ (0.5 * distances) ** degree
        # powers of rounded nodes: measured 2e-14 at degree 2001
        assert mean == pytest.approx(1 / (degree + 1), rel=1e-15 * (2 + degree), abs=0)


@pytest.mark.parametrize("order", [2, 20, 101, 2000])
def test_the_first_node_keeps_its_distance_and_weight_to_full_precision(order):
    ctx = mpmath.mp.clone()
    ctx.dps = 40
    distances, weights = legendre_rule(order)
    gap = ctx.mpf(float(distances[0]))
    for _ in range(3):  # Newton's method on the same recurrence, in 40 digits
        polynomial, difference = ctx.mpf(1), ctx.mpf(0)
        for k in range(order):
            difference = (k * difference - (2 * k + 1) * gap * polynomial) / (k + 1)
            polynomial += difference
        slope = order * (gap * polynomial - difference) / (gap * (2 - gap))
        gap += polynomial / slope
    assert abs(distances[0] / gap - 1) < 1e-15  # measured 4e-16
    assert abs(weights[0] * slope**2 * gap * (2 - gap) / 2 - 1) < 1e-14  # measured 6e-15
