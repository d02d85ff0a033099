"""How a run is looked at: at given times, over an interior, by the power of its growth."""

from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.attention import limit_error
from popdyn.coordinates import Head
from popdyn.dynamics.flow import gradient_flow
from popdyn.dynamics.trajectory import Trajectory
from popdyn.risk.protocol import Risk

__all__ = ["flow_at", "largest_error", "power_of_time"]

_THRESHOLDS = 101  # of an interior; the largest error is at an end of it or is flat inside
_DECADE = 10.0 * (1.0 + 1e-9)  # with room for the rounding of times that are evenly spaced


def flow_at(risk: Risk, start: Head, times: NDArray[float64], **options: Any) -> Trajectory:
    """The flow at increasing times, followed to the last one; options are those of `gradient_flow`.

    Raises
    ------
    RuntimeError
        If the solver does not come to the last time, with its message.
    """
    trajectory = gradient_flow(risk, start, float(times[-1]), t_eval=times, **options)
    if not trajectory.success:
        raise RuntimeError(trajectory.message)
    return trajectory


def largest_error(head: Head, interior: float) -> float:
    """`sup |F - alpha|` of one head over thresholds in `[-interior l, interior l]` (MODEL §2)."""
    edge = interior * head.half_width
    return float(np.abs(limit_error(head, np.linspace(-edge, edge, _THRESHOLDS))).max())


def power_of_time(times: NDArray[float64], rows: NDArray[float64]) -> NDArray[float64]:
    """Power of time in rows of shape `(..., n_times)`, over the last decade, shape `(...)`."""
    first = int(np.searchsorted(times, times[-1] / _DECADE))
    growth = np.log(rows[..., -1] / rows[..., first])
    return np.asarray(growth / np.log(times[-1] / times[first]))
