"""Coefficients of the collocation against the defining equations in high precision."""

import mpmath
import numpy as np
import pytest

from popdyn.dynamics.collocation.radau import (
    INTEGRAL,
    MIDDLE,
    MISSED_AT_MIDDLE,
    MISSED_AT_START,
    NODES,
    STAGES,
    factor,
    interpolated,
    solve,
)

NODE = 2e-16  # absolute; worst measured 1.1e-16
INTEGRAL_ENTRY = 5e-16  # absolute; worst measured 1.5e-16
INTERPOLATED = 2e-14  # of the largest value; worst measured 1.5e-15


@pytest.fixture(scope="module")
def exact():
    """Nodes and the integrals of their Lagrange polynomials, in 40 digits."""
    ctx = mpmath.mp.clone()
    ctx.dps = 40

    def difference(x):
        return ctx.legendre(STAGES, x) - ctx.legendre(STAGES - 1, x)

    nodes = [(1 + ctx.findroot(difference, 2 * ctx.mpf(float(c)) - 1)) / 2 for c in NODES]
    powers = ctx.matrix(STAGES, STAGES)
    integrals = ctx.matrix(STAGES, STAGES)
    for i, node in enumerate(nodes):
        for k in range(STAGES):
            powers[i, k] = node**k
            integrals[i, k] = node ** (k + 1) / (k + 1)
    integral = integrals * powers**-1
    return nodes, integral, integral**-1


def largest(matrix, exact):
    return max(
        abs(float(exact[i, j] - entry))
        for i, row in enumerate(matrix.tolist())
        for j, entry in enumerate(row)
    )


def test_the_nodes_are_the_zeros_of_the_radau_polynomial(exact):
    assert max(abs(float(x - c)) for x, c in zip(exact[0], NODES.tolist(), strict=True)) < NODE
    assert NODES[-1] == 1.0


def test_integrals_are_exact_on_polynomials(exact):
    assert largest(INTEGRAL, exact[1]) < INTEGRAL_ENTRY


def test_the_last_row_integrates_to_the_double_order():
    degrees = np.arange(2 * STAGES - 1)
    sums = [INTEGRAL[-1] @ NODES**k for k in degrees]
    np.testing.assert_allclose(sums, 1.0 / (degrees + 1), rtol=1e-14, atol=0)
    assert abs(INTEGRAL[-1] @ NODES ** (2 * STAGES - 1) - 0.5 / STAGES) > 1e-12


@pytest.mark.parametrize("place", [0.0, 1e-9, 0.3, 0.5, 0.99, 1.0])
def test_a_polynomial_is_interpolated_exactly(place):
    coefficients = np.array([0.3, -1.0, 0.5, 2.0, -0.7, 0.1, 1.1, -0.2, 0.4])
    polynomial = np.polynomial.Polynomial(coefficients)
    values = polynomial(NODES)
    assert interpolated(values, place) == pytest.approx(
        polynomial(place), rel=0, abs=INTERPOLATED * np.abs(values).max()
    )


@pytest.mark.parametrize(("place", "part"), [(0.0, MISSED_AT_START), (MIDDLE, MISSED_AT_MIDDLE)])
def test_what_the_slope_misses_at_one_place_bounds_the_error_of_the_polynomial(place, part):
    # y' = t^STAGES: the slope of the polynomial misses it by the node polynomial exactly
    missed = place**STAGES - interpolated(NODES**STAGES, place)
    error = [
        t ** (STAGES + 1) / (STAGES + 1) - t * interpolated(INTEGRAL @ NODES**STAGES / NODES, t)
        for t in np.linspace(0.0, 1.0, 2001)
    ]
    assert np.abs(error).max() == pytest.approx(part * abs(missed), rel=1e-3, abs=0)


def test_systems_are_solved_with_interchanges_of_rows():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(12, 12))
    matrix[0, 0] = 0.0
    right = rng.normal(size=12)
    factors, solution = matrix.copy(), right.copy()
    pivots = np.empty(12, dtype=np.int64)
    assert factor(factors, pivots, 12)
    solve(factors, pivots, solution, 12)
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, right), rtol=1e-12, atol=0)


def test_a_singular_system_is_refused():
    matrix = np.ones((3, 3))
    assert not factor(matrix, np.empty(3, dtype=np.int64), 3)
