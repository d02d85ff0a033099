"""Polylogarithms divided by powers of their argument, regular at 0.

`M = Li2(z) / z` and `H = (z / (1 - z) + log(1 - z)) / z^2` enter the risk as `T M` and `T^2 H`, with
a `T` that changes with the label score as `1 - z` does. Their derivatives in this direction, `P = (1
- z) dM/dz - M` and `Q = (1 - z) dH/dz - 2 H`, and the same of these, have series of their own with
coefficients of order one, where the terms of the differences grow like `1 / (1 - z)^4`.
"""

from math import log, log1p

import numpy as np

from popdyn.compiled import kernel
from popdyn.polylog import li2_and_li3, li2_and_li3_inverted

__all__ = ["reduced_polylogs", "twice_along_label_score"]

_SERIES = 0.5  # largest |z| of the power series; beyond, nothing is lost by dividing by z
_NEGLIGIBLE = 1e-19  # a power of z so small ends its series
_n = np.arange(70.0)  # 0.5**64 is below
_M = 1.0 / (_n + 1.0) ** 2
_LI3 = 1.0 / (_n + 1.0) ** 3
_H = (_n + 1.0) / (_n + 2.0)
_P = -(2.0 * _n + 3.0) / ((_n + 1.0) * (_n + 2.0) ** 2)
_Q = -(_n + 1.0) / (_n + 3.0)
_P_P = (4.0 * _n**2 + 17.0 * _n + 17.0) / ((_n + 2.0) ** 2 * (_n + 3.0) ** 2)
_Q_Q = (_n + 1.0) * (_n + 2.0) / ((_n + 3.0) * (_n + 4.0))


@kernel
def reduced_polylogs(z: float) -> tuple[float, float, float, float, float]:
    """`M`, `P`, `Li3(z)`, `H` and `Q` for `z <= 1/2`."""
    if z < -_SERIES:
        if z < -1.0:
            logarithm = log(-z) + log1p(-1.0 / z)
            two, three = li2_and_li3_inverted(log(-z), 1.0 / z)
        else:
            logarithm = log1p(-z)
            two, three = li2_and_li3(z, 1.0 - z, logarithm)
        m = two / z
        ratio = z / (1.0 - z)
        h = (ratio + logarithm) / (z * z)
        p = (z - 1.0) * (logarithm / z + m) / z - m
        return m, p, three, h, (1.0 / (1.0 - z) - 2.0 * (1.0 - z) * h) / z - 2.0 * h
    m = p = three = h = q = 0.0
    power = 1.0
    for i in range(_n.size):
        m += power * _M[i]
        p += power * _P[i]
        three += power * _LI3[i]
        h += power * _H[i]
        q += power * _Q[i]
        power *= z
        if abs(power) < _NEGLIGIBLE:
            break
    return m, p, z * three, h, q


@kernel
def twice_along_label_score(
    z: float, m: float, p: float, h: float, q: float
) -> tuple[float, float]:
    """`(1 - z) dP/dz - P` and `(1 - z) dQ/dz - 2 Q` for `z <= 1/2`, from the values at `z`."""
    if z < -_SERIES:
        w = 1.0 - z
        m_1, h_1 = (p + m) / w, (q + 2.0 * h) / w
        ratio = z / w
        m_2 = (h - 2.0 * m_1) / z
        h_2 = ((1.0 + 2.0 * ratio) / (w * w) - 4.0 * z * h_1 - 2.0 * h) / (z * z)
        return w * (w * m_2 - 2.0 * m_1) - p, w * (w * h_2 - 3.0 * h_1) - 2.0 * q
    p_p = q_q = 0.0
    power = 1.0
    for i in range(_n.size):
        p_p += power * _P_P[i]
        q_q += power * _Q_Q[i]
        power *= z
        if abs(power) < _NEGLIGIBLE:
            break
    return p_p, q_q
