"""Population risk of a reflected pair: the average of a head and its reflection (MODEL §7).

The reflected head errs at a threshold by minus what the head errs at the mirrored one, so that the
pair's error `(E(s, r) - E(r, s)) / 2` is odd under exchange of the distances `s` and `r` to the two
ends, and its mean square over one half of the interval is that over all of it. From a moderate
scale on the two `1/mu` are left out of the difference before anything is computed: with
`E = R - 1/mu` (MODEL §2) it is that of two remainders, which are exponentially small inside.
"""

from dataclasses import dataclass

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.arguments import one_width
from popdyn.attention import first_derivatives, group_weights, second_derivatives, uniform_groups
from popdyn.compiled import kernel
from popdyn.coordinates import Head
from popdyn.quadrature import boundary_graded, unit_scores
from popdyn.risk.infinite_context import change_from_origin
from popdyn.risk.protocol import require_half_width

__all__ = ["ReflectedPairRisk"]

# Of `mu l`. Below it `1/mu` would be the larger part of a remainder; above, the rounding of whole
# errors, `1e-16/mu` inside, would grow like `mu^(1/2)` beside the root of the risk.
_REMAINDERS_FROM = 1.0
# Radius below which the gradient is averaged as the change from the origin, where it is zero.
_SMALL_RADIUS = 0.25
# Nodes a panel of the graded rule. The bulk cancels, all of the risk is in the layers: 20 nodes
# leave 2e-14 of the gradient, 24 leave rounding.
_ORDER = 24
_BLOCK = 256  # heads whose nodes are held in memory at a time

_Groups = tuple[float, float, float, float, float, float, float, float]


@dataclass(frozen=True)
class ReflectedPairRisk:
    """Risk of `(F(lam, mu) + F(-lam, -mu)) / 2` over infinite contexts and thresholds (MODEL §7).

    Features and thresholds are uniform, labels clean. Valid at every head, of either sign, zero
    included; a head and its reflection have the same risk, bit for bit.

    Measured against arbitrary precision, derivatives relative to the largest component: value,
    gradient and Hessian 2e-15 at scales up to 1e6, on the tube of the pair, far above it, and
    around the origin down to radius 1e-12; where the layers are thinner than 1e-80, 1e-14. Only
    for `0 < lam < mu l` the integrals of second derivatives cancel, and `1e-16 mu l` of the Hessian
    is left. 0.2 ms for one head.

    Parameters
    ----------
    half_width : float
        `l`; features and thresholds live on `[-l, l]`.

    Raises
    ------
    ValueError
        If the half width is not positive and finite. Methods: if the head has another one or a
        scale beyond `1e300 / half_width`.

    Examples
    --------
    >>> from popdyn import Head, ReflectedPairRisk
    >>> value, gradient = ReflectedPairRisk().value_and_gradient(Head.from_ratio(1.5, 5))
    >>> print(f"{value:.10f}", gradient.round(10))
    0.0038667623 [-0.0037102   0.00212564]
    """

    half_width: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "half_width", one_width(self.half_width))

    def value(self, head: Head) -> NDArray[float64]:
        """Risk, shape `(...)`."""
        return self.value_and_gradient(head)[0]

    def gradient(self, head: Head) -> NDArray[float64]:
        """Gradient by (label score, scale), shape `(..., 2)`."""
        return self.value_and_gradient(head)[1]

    def value_and_gradient(self, head: Head) -> tuple[NDArray[float64], NDArray[float64]]:
        """Risk and gradient from one pass, shapes `(...)` and `(..., 2)`."""
        width = self.half_width
        found = self._integrate(head, hessian=False)
        value: NDArray[float64] = (width**2 * found[..., 0])[()]
        return value, found[..., 1:] * np.array([width**2, width**3])

    def hessian(self, head: Head) -> NDArray[float64]:
        """Hessian by (label score, scale), shape `(..., 2, 2)`."""
        width = self.half_width
        found = self._integrate(head, hessian=True) * np.array([width**2, width**3, width**4])
        entries: NDArray[float64] = found[..., [0, 1, 1, 2]]
        return entries.reshape(*head.shape, 2, 2)

    def _integrate(self, head: Head, *, hessian: bool) -> NDArray[float64]:
        """Risk and gradient, or the three entries of the Hessian, on `[-1, 1]`: `(..., 3)`."""
        require_half_width(self, head)
        scores = np.stack([np.ravel(score) for score in unit_scores(head)])
        lam, _, mu = scores
        sign = np.where((mu < 0.0) | ((mu == 0.0) & (lam < 0.0)), -1.0, 1.0)
        scores *= sign
        sums = np.empty((sign.size, 3))
        for start in range(0, sign.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            lam, delta, mu = scores[:, block]
            fill = _hessian_sums if hessian else _gradient_sums
            fill(*_half_nodes(lam, delta, mu), lam, mu, sums[block])
        if not hessian:
            sums[:, 1:] *= sign[:, None]
        return sums.reshape(*head.shape, 3)


def _half_nodes(
    lam: NDArray[float64], delta: NDArray[float64], mu: NDArray[float64]
) -> tuple[NDArray[float64], NDArray[float64], NDArray[float64], NDArray[float64]]:
    """Distances to the near end, weights, and exponents of `E(s, r)` and `E(r, s)`: `(heads, n)`.

    The lower half as an interval of its own, graded for the head whose labels lose to its features
    at the same distance, or whose layer is of the same width: of excess `delta` where that happens
    to `E(s, r)`, of excess `-lam` where it happens to `E(r, s)`.
    """
    lower, _, weights, exponent = boundary_graded(_ORDER)(
        Head.from_excess(np.maximum(delta, -lam), mu, half_width=0.5)
    )
    assert exponent is not None
    own = (delta > -lam)[:, None]
    both = -2.0 * (delta + lam)[:, None]  # their sum, at every threshold
    return (
        lower,
        weights,
        np.where(own, exponent, both + exponent),
        np.where(own, both - exponent, -exponent),
    )


@kernel
def _groups(s: float, r: float, exponent: float, mu: float) -> _Groups:
    """The numbers of `uniform_groups`, of `R` in place of `E` from a moderate scale on.

    Without the `1/mu` in the mean distances, `1/mu^2` in the variances and `-2/mu^3` in their
    slopes: what is left comes from the group's other end and is exponentially small far from it.
    """
    if mu < _REMAINDERS_FROM:
        return uniform_groups(s, r, exponent, mu)
    tail_s, rest_s = np.exp(-mu * s), -np.expm1(-mu * s)
    tail_r, rest_r = np.exp(-mu * r), -np.expm1(-mu * r)
    positive, negative = group_weights(rest_s, rest_r, exponent)
    ratio_s, ratio_r = s / rest_s, r / rest_r
    square_s, square_r = tail_s * ratio_s * ratio_s, tail_r * ratio_r * ratio_r
    return (
        positive,
        negative,
        -tail_s * ratio_s,
        ratio_r,
        -square_s,
        -square_r,
        square_s * ratio_s * (1.0 + tail_s),
        square_r * ratio_r * (1.0 + tail_r),
    )


@kernel
def _gradient_sums(
    distances: NDArray[float64],
    weights: NDArray[float64],
    own_exponents: NDArray[float64],
    mirrored_exponents: NDArray[float64],
    label_scores: NDArray[float64],
    scales: NDArray[float64],
    sums: NDArray[float64],
) -> None:
    for i in range(scales.size):
        lam, mu = label_scores[i], scales[i]
        small = max(abs(lam), mu) < _SMALL_RADIUS
        value, d_lam, d_mu = 0.0, 0.0, 0.0
        for j in range(distances.shape[1]):
            weight = weights[i, j]
            if weight == 0.0:
                continue
            s = distances[i, j]
            r = 2.0 - s
            p, n, below, above, v_plus, v_minus, _, _ = _groups(s, r, own_exponents[i, j], mu)
            here, cov, var = first_derivatives(p, n, below, above, v_plus, v_minus)
            p, n, below, above, v_plus, v_minus, _, _ = _groups(r, s, mirrored_exponents[i, j], mu)
            there, other_cov, other_var = first_derivatives(p, n, below, above, v_plus, v_minus)
            if small:
                _, cov, var = change_from_origin(s, r, lam, mu)
                _, other_cov, other_var = change_from_origin(r, s, lam, mu)
                # plus the covariances and variances at the origin, which mirroring leaves alike
            error = 0.5 * (here - there)
            value += weight * error * error
            d_lam += weight * error * (cov - other_cov)
            d_mu += weight * error * (var - other_var)
        sums[i] = value, d_lam, d_mu


@kernel
def _hessian_sums(
    distances: NDArray[float64],
    weights: NDArray[float64],
    own_exponents: NDArray[float64],
    mirrored_exponents: NDArray[float64],
    label_scores: NDArray[float64],
    scales: NDArray[float64],
    sums: NDArray[float64],
) -> None:
    for i in range(scales.size):
        mu = scales[i]
        ll, lm, mm = 0.0, 0.0, 0.0
        for j in range(distances.shape[1]):
            weight = weights[i, j]
            if weight == 0.0:
                continue
            s = distances[i, j]
            r = 2.0 - s
            p, n, a, b, v, w, x, y = _groups(s, r, own_exponents[i, j], mu)
            here, cov, var = first_derivatives(p, n, a, b, v, w)
            f_ll, f_lm, f_mm = second_derivatives(p, n, a, b, v, w, x, y)
            p, n, a, b, v, w, x, y = _groups(r, s, mirrored_exponents[i, j], mu)
            there, other_cov, other_var = first_derivatives(p, n, a, b, v, w)
            g_ll, g_lm, g_mm = second_derivatives(p, n, a, b, v, w, x, y)
            error = 0.5 * (here - there)
            e_l, e_m = 0.5 * (cov - other_cov), 0.5 * (var - other_var)
            ll += weight * (e_l * e_l + 0.5 * error * (f_ll - g_ll))
            lm += weight * (e_l * e_m + 0.5 * error * (f_lm - g_lm))
            mm += weight * (e_m * e_m + 0.5 * error * (f_mm - g_mm))
        sums[i] = 2.0 * ll, 2.0 * lm, 2.0 * mm
