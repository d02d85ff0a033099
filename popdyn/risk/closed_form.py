"""The population risk in closed form, on the whole plane of heads (MODEL §3)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.compiled import kernel
from popdyn.coordinates import Head
from popdyn.risk.form_in_y import hessian_in_y, risk_in_y
from popdyn.risk.form_in_z import hessian_in_z, risk_in_z
from popdyn.risk.near_origin import (
    hessian_at_moderate_scale,
    hessian_near_origin,
    risk_at_moderate_scale,
    risk_near_origin,
)
from popdyn.risk.protocol import require_half_width
from popdyn.risk.small_scale import hessian_at_small_scale, risk_at_small_scale

__all__ = ["ClosedFormRisk", "closed_form_risk"]

# Scales are times the half width. The polylogarithm forms lose digits like an inverse power of the
# scale, mostly where the boundary layer is wide: from here on they serve everywhere,
_LARGE_SCALE = 2.0
# and from here on where it is thin.
_MODERATE_SCALE = 1.5
# The layer is wide where the label score or the excess is below `1.05 - 0.35 scale`, at least 0.42:
# there a Gauss rule of fixed order resolves it, elsewhere separating it by hand loses few digits.
_THIN, _THIN_SLOPE, _THIN_LEAST = 1.05, 0.35, 0.42
# Up to here the Gauss rule averages changes since the origin, whose gradient is 0.
_ORIGIN_SCALE = 1.0
# Below this ratio the risk is near 4/3, and the form in y gives it without cancellation; the one
# in z loses digits like the inverse square of the ratio, the one in y like 1 / (1 - ratio).
_LOW_RATIO = 0.5

_NEAR_ORIGIN, _MODERATE, _SMALL, _IN_Y, _IN_Z = range(5)


@kernel
def _sign(label_score: float, scale: float) -> float:
    """-1 where `_regime` knows the reflected head `(-lam, -mu)` instead."""
    if abs(scale) < _MODERATE_SCALE:
        return -1.0 if label_score < 0.0 else 1.0
    return -1.0 if scale < 0.0 else 1.0


@kernel
def _regime(lam: float, delta: float, mu: float) -> int:
    """Which formula holds at a head with `mu >= 1.5`, or with `lam >= 0` and `-1.5 < mu < 1.5`."""
    thin = max(_THIN - _THIN_SLOPE * abs(mu), _THIN_LEAST)
    wide = _NEAR_ORIGIN if abs(mu) <= _ORIGIN_SCALE else _MODERATE
    if mu < _MODERATE_SCALE:
        return _SMALL if min(lam, delta) >= thin else wide
    if mu < _LARGE_SCALE and lam > -thin and delta < thin:
        return wide
    return _IN_Y if lam < _LOW_RATIO * mu else _IN_Z


@kernel
def _risk(label_score: float, excess: float, scale: float) -> tuple[float, float, float]:
    """Risk and gradient at unit half width."""
    sign = _sign(label_score, scale)
    lam, delta, mu = sign * label_score, sign * excess, sign * scale
    regime = _regime(lam, delta, mu)
    if regime == _IN_Z:
        value, g_lam, g_mu = risk_in_z(lam, delta, mu)
    elif regime == _IN_Y:
        value, g_lam, g_mu = risk_in_y(lam, delta, mu)
    elif regime == _SMALL:
        value, g_lam, g_mu = risk_at_small_scale(lam, delta, mu)
    elif regime == _MODERATE:
        value, g_lam, g_mu = risk_at_moderate_scale(lam, mu)
    else:
        value, g_lam, g_mu = risk_near_origin(lam, mu)
    return value, sign * g_lam, sign * g_mu


@kernel
def _hessian(label_score: float, excess: float, scale: float) -> tuple[float, float, float]:
    """Hessian at unit half width: its entries lam lam, lam mu, mu mu."""
    sign = _sign(label_score, scale)
    lam, delta, mu = sign * label_score, sign * excess, sign * scale
    regime = _regime(lam, delta, mu)
    if regime == _IN_Z:
        return hessian_in_z(lam, delta, mu)
    if regime == _IN_Y:
        return hessian_in_y(lam, delta, mu)
    if regime == _SMALL:
        return hessian_at_small_scale(lam, delta, mu)
    if regime == _MODERATE:
        return hessian_at_moderate_scale(lam, mu)
    return hessian_near_origin(lam, mu)


@kernel
def _fill_risk(
    label_score: NDArray[float64],
    excess: NDArray[float64],
    scale: NDArray[float64],
    width: float,
    value: NDArray[float64],
    gradient: NDArray[float64],
) -> None:
    square = width * width
    for i in range(scale.size):
        risk, g_lam, g_mu = _risk(label_score[i], excess[i], scale[i] * width)
        value[i] = square * risk
        gradient[i, 0] = square * g_lam
        gradient[i, 1] = square * (width * g_mu)


@kernel
def _fill_hessian(
    label_score: NDArray[float64],
    excess: NDArray[float64],
    scale: NDArray[float64],
    width: float,
    hessian: NDArray[float64],
) -> None:
    square = width * width
    for i in range(scale.size):
        lam_lam, lam_mu, mu_mu = _hessian(label_score[i], excess[i], scale[i] * width)
        hessian[i, 0, 0] = square * lam_lam
        hessian[i, 0, 1] = hessian[i, 1, 0] = square * (width * lam_mu)
        hessian[i, 1, 1] = square * (square * mu_mu)


@dataclass(frozen=True)
class ClosedFormRisk:
    """Risk of a head averaged over infinite contexts and all thresholds, in closed form (MODEL §3).

    Features and thresholds are uniform, labels clean. Valid at every head, of either sign, zero
    included: nothing overflows, and results that are too small for a double are 0.

    Parameters
    ----------
    half_width : float
        `l`; features and thresholds live on `[-l, l]`.

    Raises
    ------
    ValueError
        If the half width is not positive and finite, or a head has another one.

    Notes
    -----
    Worst errors, each relative to the largest component (in units of the half width), by the
    formula in use: of the risk and its gradient over 65,000 heads or more against balls that
    provably contain them (`popdyn.enclosures`), of the Hessian over 5,000 or more against high
    precision. Many of the heads lie along the borders between the formulas.

    =========================== ======= ======== =======
    formula                       value gradient Hessian
    =========================== ======= ======== =======
    `risk_near_origin`          1.2e-15  4.2e-15 1.5e-14
    `risk_at_moderate_scale`    1.1e-15  4.8e-15 1.3e-14
    `risk_at_small_scale`       1.8e-15  9.4e-15   3e-14
    `risk_in_y` (low ratio)     1.8e-15  6.5e-15   4e-14
    `risk_in_z`                 2.3e-15  1.2e-14   8e-14
    `risk_in_z`, on the tube    4.9e-16  1.4e-15   2e-15
    =========================== ======= ======== =======

    Two places are worse, and their reflections, where all three second derivatives come close to 0
    together: near `(lam, mu) = (3.17, 4.36)`, where they are 6e-4 and the absolute error of the
    Hessian, 5e-16, is relatively up to 5e-13; and along `mu = -0.797` from `lam = 5` on, where they
    are 1e-5 and less and the absolute error of 1e-17 is relatively up to 2e-12.

    The gradient keeps its relative accuracy down to the smallest radius around the origin. At
    large scale, the excess that a head carries decides: one spacing of it shifts `q`, so that a
    head given by its tube coordinate at scale 1e12 has its gradient to 7e-15.

    Examples
    --------
    >>> from popdyn import ClosedFormRisk, Head
    >>> value, gradient = ClosedFormRisk().value_and_gradient(Head.from_ratio(1.5, 5))
    >>> print(f"{value:.10f}", gradient.round(10))
    0.0322261753 [-0.00358791 -0.00688081]
    """

    half_width: float = 1.0

    def __post_init__(self) -> None:
        width = self.half_width
        if not (isinstance(width, float | int | np.floating) and 0 < width < np.inf):
            raise ValueError(f"half_width must be one positive finite number, got {width!r}")
        object.__setattr__(self, "half_width", float(width))

    def value(self, head: Head) -> NDArray[float64]:
        """Risk, shape `(...)`."""
        return self.value_and_gradient(head)[0]

    def gradient(self, head: Head) -> NDArray[float64]:
        """Gradient by (label score, scale), shape `(..., 2)`."""
        return self.value_and_gradient(head)[1]

    def value_and_gradient(self, head: Head) -> tuple[NDArray[float64], NDArray[float64]]:
        """Risk and gradient in one pass, shapes `(...)` and `(..., 2)`."""
        require_half_width(self, head)
        value, gradient = closed_form_risk(
            head.label_score, head.excess, head.scale, self.half_width
        )
        return value.reshape(head.shape)[()], gradient.reshape(*head.shape, 2)

    def hessian(self, head: Head) -> NDArray[float64]:
        """Hessian by (label score, scale), shape `(..., 2, 2)`."""
        require_half_width(self, head)
        label_score, excess, scale = _frozen(head.label_score, head.excess, head.scale)
        hessian = np.empty((scale.size, 2, 2))
        _fill_hessian(label_score, excess, scale, self.half_width, hessian)
        return hessian.reshape(*head.shape, 2, 2)


def closed_form_risk(
    label_score: NDArray[float64], excess: NDArray[float64], scale: NDArray[float64], width: float
) -> tuple[NDArray[float64], NDArray[float64]]:
    """Risk and gradient at heads of a half width, by their scores: shapes `(n)` and `(n, 2)`."""
    value, gradient = np.empty(scale.size), np.empty((scale.size, 2))
    label_score, excess, scale = _frozen(label_score, excess, scale)
    _fill_risk(label_score, excess, scale, width, value, gradient)
    return value, gradient


def _frozen(label_score: Any, excess: Any, scale: Any) -> tuple[Any, Any, Any]:
    """Scores in one dimension that no one may write to, so that the kernels compile once."""
    scores = np.ravel(label_score)[:], np.ravel(excess)[:], np.ravel(scale)[:]
    for score in scores:
        score.setflags(write=False)
    return scores
