"""The saddle at the origin: the starts that flow into it part the two basins (MODEL §5)."""

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp

from popdyn.arguments import positive
from popdyn.asymptotics import saddle_eigenvalues
from popdyn.coordinates import Head
from popdyn.risk.closed_form import ClosedFormRisk

__all__ = ["separatrix"]

# Of mu l, below which the separatrix is taken for a straight line: the flow is odd, so what that
# leaves out is of the square of it.
_STRAIGHT = 1e-7
_TOLERANCE = 1e-12  # of the ratio in a step


def separatrix(scale: ArrayLike, half_width: float = 1.0) -> Head:
    """Heads whose population flow ends in the origin, one for each positive scale (MODEL §5).

    They are the stable manifold of the saddle. Starts of the same scale with a larger label score
    end at the upright head, those with a smaller one at the reflected head. The curve is followed
    against the flow, out of the origin, whereby errors shrink: to 1.5e-10 of the label score, by
    bisection between the two ends for `mu l` from 1e-8 to 100 and half widths 0.3, 1 and 4.

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
    mu = positive("scale", scale)
    risk = ClosedFormRisk(half_width)
    low, high = saddle_eigenvalues(half_width)
    # (x, 1) with a positive eigenvalue: the Hessian is [[0, -a], [-a, b]], and a^2 = -low high.
    slope = -np.sqrt(-low * high) / high
    first = _STRAIGHT / half_width
    levels, places = np.unique(np.maximum(mu, first), return_inverse=True)

    def bend(log_scale: float, ratio: NDArray[float64]) -> NDArray[float64]:
        at = np.exp(log_scale)
        by_label_score, by_scale = risk.gradient(Head.from_scores(ratio[0] * at, at, half_width))
        return np.array([by_label_score / by_scale - ratio[0]])

    path = solve_ivp(
        bend,
        (np.log(first) - 1.0, np.log(levels[-1])),
        [slope],
        method="LSODA",
        t_eval=np.log(levels),
        rtol=_TOLERANCE,
        atol=_TOLERANCE,
    )
    if not path.success:
        raise RuntimeError(f"the separatrix was lost: {path.message}")
    ratio = path.y[0][places].reshape(mu.shape)
    return Head.from_scores(ratio * mu, mu, half_width)
