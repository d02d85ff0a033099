"""Polylogarithms divided by powers of a small argument, by their power series.

Near the origin the closed forms of `Li2(z) / z`, of its derivatives and of
`H(z) = Li2''(z) = (z / (1 - z) + log(1 - z)) / z^2` cancel; the series do not.
"""

import numpy as np

from popdyn.compiled import kernel

__all__ = ["reduced_polylogs", "second_polylogs"]

_n = np.arange(1.0, 72.0)
_LI2 = 1.0 / _n**2
_LI3 = 1.0 / _n**3
_LI2_1 = _n / (_n + 1.0) ** 2
_LI2_2 = _n * (_n + 1.0) / (_n + 2.0) ** 2
_H = _n / (_n + 1.0)
_H_1 = _n * (_n + 1.0) / (_n + 2.0)
_H_2 = _n * (_n + 1.0) * (_n + 2.0) / (_n + 3.0)
# Terms below this share of the first one are left out; the largest coefficient used is 2e3.
_NEGLIGIBLE = 1e-20


@kernel
def reduced_polylogs(z: float) -> tuple[float, float, float, float, float]:
    """`M = Li2(z) / z`, `dM/dz`, `Li3(z)`, `H` and `dH/dz` for `|z| <= 1/2`."""
    m = m_1 = three = h = h_1 = 0.0
    power = 1.0
    for i in range(_n.size):
        m += power * _LI2[i]
        m_1 += power * _LI2_1[i]
        three += power * _LI3[i]
        h += power * _H[i]
        h_1 += power * _H_1[i]
        power *= z
        if abs(power) < _NEGLIGIBLE:
            break
    return m, m_1, z * three, h, h_1


@kernel
def second_polylogs(z: float) -> tuple[float, float]:
    """Second derivatives of `M = Li2(z) / z` and of `H`, for `|z| <= 1/2`."""
    m_2 = h_2 = 0.0
    power = 1.0
    for i in range(_n.size):
        m_2 += power * _LI2_2[i]
        h_2 += power * _H_2[i]
        power *= z
        if abs(power) < _NEGLIGIBLE:
            break
    return m_2, h_2
