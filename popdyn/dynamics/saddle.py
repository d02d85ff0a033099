"""The saddle at the origin: the starts that flow into it part the two basins (MODEL §5)."""

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from popdyn.asymptotics import saddle_eigenvalues
from popdyn.coordinates import Head
from popdyn.dynamics.flow import gradient_flow
from popdyn.risk.closed_form import ClosedFormRisk

__all__ = ["separatrix"]

# Of mu l, below which the separatrix is taken for a straight line: the flow is odd, so what that
# leaves out is of the square of it.
_STRAIGHT = 1e-7
_END = 1e300  # time enough for any scale: the last level ends the run


def separatrix(scale: ArrayLike, half_width: float = 1.0) -> Head:
    """Heads whose population flow ends in the origin, one for each positive scale (MODEL §5).

    They are the stable manifold of the saddle. Starts of the same scale with a larger label score
    end at the upright head, those with a smaller one at the reflected head. The origin is left
    against the flow, whereby errors shrink: to 1e-9 of the label score, measured by bisection
    between the two ends for `mu l` from 0.001 to 30.

    Parameters
    ----------
    scale : array_like, shape (...)
        Positive.
    half_width : float

    Returns
    -------
    Head, fields of shape (...)
        Of negative label score.

    Raises
    ------
    ValueError
        If a scale is not positive and finite.

    Examples
    --------
    >>> print(separatrix([0.1, 1.0, 10.0]).label_score.round(4))
    [-0.0468 -0.4304 -1.1563]
    """
    mu = np.asarray(scale, dtype=float64)
    if not ((mu > 0) & np.isfinite(mu)).all():
        raise ValueError(f"scale must be positive and finite, got {scale!r}")
    uphill = _Uphill(half_width)
    low, high = saddle_eigenvalues(half_width)
    # (x, 1) with a positive eigenvalue: the Hessian is [[0, -a], [-a, b]], and a^2 = -low high.
    slope = -np.sqrt(-low * high) / high
    first = _STRAIGHT / half_width
    levels = np.unique(mu[mu > first])
    label_score = slope * mu
    if levels.size:
        path = gradient_flow(
            uphill,
            Head.from_scores(slope * first, first, half_width),
            _END,
            scale_levels=levels.tolist(),
            callback=lambda _, head: head.scale >= levels[-1],
        )
        found = np.array([hit.head.label_score for hit in path.hits])
        label_score = np.where(
            mu > first, found[np.searchsorted(levels, mu) % len(levels)], label_score
        )
    return Head.from_scores(label_score, mu, half_width)


class _Uphill:
    """Minus the population risk: its flow is the population's, backwards in time."""

    def __init__(self, half_width: float) -> None:
        self._risk = ClosedFormRisk(half_width)

    @property
    def half_width(self) -> float:
        return self._risk.half_width

    def value(self, head: Head) -> NDArray[float64]:
        return -self._risk.value(head)

    def gradient(self, head: Head) -> NDArray[float64]:
        return -self._risk.gradient(head)

    def value_and_gradient(self, head: Head) -> tuple[NDArray[float64], NDArray[float64]]:
        value, gradient = self._risk.value_and_gradient(head)
        return -value, -gradient

    def hessian(self, head: Head) -> NDArray[float64]:
        return -self._risk.hessian(head)
