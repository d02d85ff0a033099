"""Real dilogarithm and trilogarithm, compiled, for arguments up to 1.

Three expansions cover the half line, each in the variable in which it converges fastest:
`-log(1 - z)` on [-1, 1/2], `-log z` on [1/2, 1], and inversion, which leads `z < -1` back.
"""

from fractions import Fraction
from math import comb, factorial, inf, log, log1p, nan, pi

import numpy as np

from popdyn.compiled import kernel
from popdyn.machine_arithmetic import multiply_add

__all__ = [
    "ZETA2",
    "ZETA3",
    "bernoulli",
    "li2",
    "li2_and_li3",
    "li2_and_li3_inverted",
    "li3",
    "trilogarithm_series",
]

ZETA2 = pi**2 / 6
ZETA3 = 1.2020569031595942854
_TERMS = 20  # the expansions have radius 2 pi and are used up to log 2: 0.11**20 is 7e-20


def bernoulli(count: int) -> list[Fraction]:
    """The first Bernoulli numbers, with `B_1 = -1/2`."""
    numbers = [Fraction(1)]
    for n in range(1, count):
        total = sum((comb(n + 1, k) * numbers[k] for k in range(n)), Fraction(0))
        numbers.append(-total / (n + 1))
    return numbers


def trilogarithm_series(count: int) -> list[Fraction]:
    """The first coefficients `a_n` of `Li3(z) = w (a_0 + a_1 w + ...)`, `w = -log(1 - z)`.

    `Li2(z)` is `w sum_n B_n w^n / (n + 1)!` and `dLi3/dw = Li2(z) / expm1(w)`, whose second factor
    has the coefficients `B_n / n!` after division by `w`.
    """
    b = bernoulli(count)
    return [
        sum(
            (b[k] * b[n - k] / (factorial(k + 1) * factorial(n - k)) for k in range(n + 1)),
            Fraction(0),
        )
        / (n + 1)
        for n in range(count)
    ]


_B = bernoulli(_TERMS)
# Beyond B_1 only even Bernoulli numbers are left.
_LI2_EVEN = np.array([float(_B[n] / factorial(n + 1)) for n in range(2, _TERMS, 2)])
_LI3 = np.array([float(a) for a in trilogarithm_series(_TERMS)])
# Li3(e^-u) = zeta(3) - zeta(2) u + u^2 (3/2 - log u) / 2 + u^3 / 12 + u^4 sum_j t_j u^(2 j), with
# t_j = zeta(-1 - 2 j) / (2 j + 4)!; Li2 is minus its derivative.
_NEAR_ONE = [-_B[2 * j + 2] / (2 * j + 2) / factorial(2 * j + 4) for j in range(_TERMS // 2 - 1)]
_NEAR_ONE_ITSELF = 0.02  # -log z up to which three terms suffice: 0.003^6 is 1e-15 of u^4 / 288
_LI3_NEAR_ONE = np.array([float(t) for t in _NEAR_ONE])
_LI2_NEAR_ONE = np.array([float((2 * j + 4) * t) for j, t in enumerate(_NEAR_ONE)])


@kernel
def li2_and_li3(z: float, one_minus_z: float, log_one_minus_z: float) -> tuple[float, float]:
    """`Li2(z)` and `Li3(z)` for `-1 <= z <= 1`, from `z`, `1 - z` and `log(1 - z)` as known best.

    Relative errors below 4e-16 (Li2) and 5e-16 (Li3), small `z` included.
    """
    if z <= 0.5:
        w = -log_one_minus_z
        square = w * w
        even = 0.0
        for a in _LI2_EVEN[::-1]:
            even = multiply_add(even, square, a)
        three = 0.0
        for a in _LI3[::-1]:
            three = multiply_add(three, w, a)
        return w * (1.0 - 0.25 * w + square * even), w * three
    if one_minus_z <= 0.0:
        return ZETA2, ZETA3
    u = -log1p(-one_minus_z)
    log_u = log(u)
    square = u * u
    two, three = 0.0, 0.0
    for j in range((_LI3_NEAR_ONE.size if u > _NEAR_ONE_ITSELF else 3) - 1, -1, -1):
        two = multiply_add(two, square, _LI2_NEAR_ONE[j])
        three = multiply_add(three, square, _LI3_NEAR_ONE[j])
    li2_z = ZETA2 - u * (1.0 - log_u + 0.25 * u + square * two)
    li3_z = ZETA3 - u * (ZETA2 - u * (0.75 - 0.5 * log_u + u / 12.0 + square * three))
    return li2_z, li3_z


@kernel
def li2_and_li3_inverted(log_minus_z: float, inverse: float) -> tuple[float, float]:
    """`Li2(z)` and `Li3(z)` for `z <= -1`, from `log(-z)` and `1 / z`: no size is too large."""
    two, three = li2_and_li3(inverse, 1.0 - inverse, log1p(-inverse))
    square = log_minus_z * log_minus_z
    return -ZETA2 - 0.5 * square - two, three - log_minus_z * (ZETA2 + square / 6.0)


@kernel
def _both(z: float) -> tuple[float, float]:
    if z > 1.0 or z != z:
        return nan, nan
    if z >= -1.0:
        return li2_and_li3(z, 1.0 - z, log1p(-z) if z < 1.0 else -inf)
    return li2_and_li3_inverted(log(-z), 1.0 / z)


@kernel
def li2(z: float) -> float:
    """Dilogarithm `Li2(z) = sum_n z^n / n^2` of a real `z <= 1`; nan beyond."""
    return _both(z)[0]


@kernel
def li3(z: float) -> float:
    """Trilogarithm `Li3(z) = sum_n z^n / n^3` of a real `z <= 1`; nan beyond."""
    return _both(z)[1]
