"""Collocation at the Radau points: coefficients, interpolation and the linear systems.

The polynomial of degree `STAGES` through the start of a step whose derivative is right at the
nodes; the last node is the end of the step. Lengths are in units of the step.
"""

import numpy as np
from numpy import float64
from numpy.polynomial import Legendre, Polynomial
from numpy.polynomial.legendre import legvander
from numpy.typing import NDArray

from popdyn.compiled import kernel

__all__ = [
    "INTEGRAL",
    "MIDDLE",
    "MISSED_AT_MIDDLE",
    "MISSED_AT_START",
    "NODES",
    "STAGES",
    "factor",
    "interpolated",
    "solve",
]

# Fewer make shorter steps, more make larger systems: 9, 11 and 13 take the same time.
STAGES = 9


def _nodes() -> NDArray[float64]:
    """Zeros of `P_s - P_(s-1)`, carried from [-1, 1] to [0, 1]."""
    difference = Legendre.basis(STAGES) - Legendre.basis(STAGES - 1)
    x = np.sort(difference.roots().real)
    for _ in range(2):  # Newton: the roots of the companion matrix are good to 1e-15
        x = x - difference(x) / difference.deriv()(x)
    x[-1] = 1.0
    return np.asarray(0.5 * (1.0 + x), dtype=float64)


def _integral() -> NDArray[float64]:
    """Takes values at the nodes to the integrals of their polynomial from 0 to each node."""
    x = 2.0 * NODES - 1.0
    legendre = legvander(x, STAGES)
    integrals = np.empty((STAGES, STAGES))
    integrals[:, 0] = NODES
    for k in range(1, STAGES):
        integrals[:, k] = (legendre[:, k + 1] - legendre[:, k - 1]) / (4 * k + 2)
    return np.asarray(np.linalg.solve(legendre[:, :STAGES].T, integrals.T).T, dtype=float64)


def _weights() -> NDArray[float64]:
    """Barycentric weights of the nodes."""
    differences = 4.0 * (NODES[:, np.newaxis] - NODES)
    np.fill_diagonal(differences, 1.0)
    return np.asarray(1.0 / differences.prod(axis=1), dtype=float64)


# The derivative of the collocation polynomial misses the right hand side by a multiple of the node
# polynomial: from what it misses at one place follows by how much the polynomial is off at most.
def _missed(place: float) -> float:
    nodal = Polynomial.fromroots(NODES)
    return float(np.abs(nodal.integ()(NODES)).max() / abs(nodal(place)))


NODES = _nodes()
INTEGRAL = _integral()
_WEIGHTS = _weights()
MIDDLE = float(0.5 * (NODES[STAGES // 2 - 1] + NODES[STAGES // 2]))
MISSED_AT_START, MISSED_AT_MIDDLE = _missed(0.0), _missed(MIDDLE)


@kernel
def interpolated(values: NDArray[float64], place: float) -> float:
    """Polynomial through values at the nodes."""
    above = below = 0.0
    for j in range(STAGES):
        distance = place - NODES[j]
        if distance == 0.0:
            return float(values[j])
        weight = _WEIGHTS[j] / distance
        above += weight * values[j]
        below += weight
    return above / below


@kernel
def factor(matrix: NDArray[float64], pivots: NDArray[np.int64], n: int) -> bool:
    """LU factors of the leading n rows and columns in place; False if there are none."""
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        pivots[k] = pivot
        if not abs(matrix[pivot, k]) > 0.0:
            return False
        if pivot != k:
            for j in range(k, n):
                matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
        inverse = 1.0 / matrix[k, k]
        for i in range(k + 1, n):
            ratio = matrix[i, k] * inverse
            matrix[i, k] = ratio
            for j in range(k + 1, n):
                matrix[i, j] -= ratio * matrix[k, j]
    return True


@kernel
def solve(
    matrix: NDArray[float64], pivots: NDArray[np.int64], right: NDArray[float64], n: int
) -> None:
    """The solution, from the factors, in place of the right hand side."""
    for k in range(n):
        pivot = pivots[k]
        right[k], right[pivot] = right[pivot], right[k]
        for i in range(k + 1, n):
            right[i] -= matrix[i, k] * right[k]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            right[k] -= matrix[k, j] * right[j]
        right[k] /= matrix[k, k]
