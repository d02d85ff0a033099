"""Risk and gradient by a graded rule (MODEL §2), at half width 1, as one would write it by hand.

One integrand for NumPy, JAX, mpmath and balls, and the rule of 80 nodes for NumPy and JAX and, as a
loop, for Numba. `1/mu^2` is integrated analytically, only the rest `R` by the rule.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

ORDER = 80  # one panel: on the tube 1e-15 up to mu = 1e6, at (ratio, scale) = (2.5, 20) 1e-7
REACH = 45.0  # in mu s: beyond it exp(-mu s) is below 1e-19


def integrand(
    exp: Callable[[Any], Any], expm1: Callable[[Any], Any], s: Any, delta: Any, mu: Any
) -> tuple[Any, Any, Any]:
    """What risk and gradient integrate over `s` beside `1/mu^2`, with density 1/2, for `mu > 0`."""
    r = 2 - s
    q, w = exp(-2 * delta), exp(-mu * s)
    far = expm1(-mu * r)
    below = -expm1(-mu * s) - q * w * far
    rest = w * (s + q * r) / below
    by_lam = (-2 * q * r * w - rest * 2 * q * w * far) / below
    by_mu = (2 * q * r * w - rest * (s + w * q * (r * (far + 1) - 2 * far))) / below
    error = rest - 1 / mu
    return (
        rest * (rest - 2 / mu) / 2,
        error * by_lam,
        rest / mu**2 + error * by_mu,
    )


@cache
def unit_nodes() -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(ORDER)
    return (nodes + 1) / 2, weights / 2


def graded(xp: Any, delta: Any, mu: Any) -> tuple[Any, Any, Any]:
    """Risk and gradient of one head with arrays of `xp`, NumPy or jax.numpy."""
    nodes, weights = unit_nodes()
    q = xp.exp(-2 * delta)
    top = xp.minimum(2 * mu, REACH + xp.maximum(0.0, -2 * delta))
    span = xp.log1p(top / q)
    s = q * xp.expm1(span * nodes) / mu
    weight = weights * (span * q / mu) * xp.exp(span * nodes)
    value, by_lam, by_mu = integrand(xp.exp, xp.expm1, s, delta, mu)
    return (
        mu**-2 + xp.sum(weight * value),
        xp.sum(weight * by_lam),
        -2 * mu**-3 + xp.sum(weight * by_mu),
    )


@cache
def compiled() -> Callable[[np.ndarray, np.ndarray, np.ndarray], None]:
    """The same as a loop over heads and nodes: fills rows of risk and gradient."""
    import numba

    unit, unit_weights = unit_nodes()
    options = {"error_model": "numpy"}
    terms = numba.njit(**options)(integrand)
    exp, expm1 = numba.njit(lambda x: math.exp(x)), numba.njit(lambda x: math.expm1(x))

    @numba.njit(**options)
    def fill(delta: np.ndarray, mu: np.ndarray, rows: np.ndarray) -> None:
        for i in range(mu.size):
            q = math.exp(-2.0 * delta[i])
            top = min(2.0 * mu[i], REACH + max(0.0, -2.0 * delta[i]))
            span = math.log1p(top / q)
            total, total_lam, total_mu = mu[i] ** -2, 0.0, -2.0 * mu[i] ** -3
            for node, unit_weight in zip(unit, unit_weights):  # noqa: B905, unknown to Numba
                grown = math.expm1(span * node)
                weight = unit_weight * span * q / mu[i] * (grown + 1.0)
                value, by_lam, by_mu = terms(exp, expm1, q * grown / mu[i], delta[i], mu[i])
                total += weight * value
                total_lam += weight * by_lam
                total_mu += weight * by_mu
            rows[i, 0], rows[i, 1], rows[i, 2] = total, total_lam, total_mu

    return fill
