"""Population dynamics of one head: capture into the tube and growth of the scale (MODEL §4).

The claim of the paper's Figure 2: the tube coordinate settles, the fourth power of the scale
becomes affine in time, and the scaled interior error and the scaled growth tend to constants.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.attention import limit_error
from popdyn.coordinates import Head
from popdyn.dynamics.flow import gradient_flow
from popdyn.dynamics.trajectory import Trajectory
from popdyn.risk.closed_form import ClosedFormRisk
from popdyn.risk.protocol import Risk

__all__ = ["Config", "Result", "Run", "observe", "run"]

_THRESHOLDS = 101  # of the interior grid; the largest error is at an end of it or is flat inside


@dataclass(frozen=True)
class Config:
    """Starts of the runs and the times at which they are looked at.

    Attributes
    ----------
    heads : tuple of Head
    t_end : float
        Time to stop.
    first_time : float
        First time after 0; the others follow evenly in log time.
    n_times : int
    interior : float
        The error is taken over thresholds in `[-interior l, interior l]`.
    """

    heads: tuple[Head, ...]
    t_end: float
    first_time: float = 1.0
    n_times: int = 400
    interior: float = 0.5

    @classmethod
    def paper(cls) -> "Config":
        """Four starts, one below and three above the tube, to time 1e12."""
        starts = ((1.5, 5.0), (1.05, 8.0), (0.8, 6.0), (2.5, 4.0))
        return cls(tuple(Head.from_ratio(*start) for start in starts), t_end=1e12)

    @classmethod
    def quick(cls) -> "Config":
        """The first two of them to time 1e8."""
        return cls(cls.paper().heads[:2], t_end=1e8, n_times=100)


@dataclass(frozen=True)
class Run:
    """One path with what is claimed of it. Arrays are of shape (n,).

    Attributes
    ----------
    trajectory : Trajectory
    reflected : bool
        Whether the path ends at a negative scale; `ratio`, `tube` and `scale` are then those of
        the reflected head.
    ratio, tube, scale : ndarray
    scaled_error : ndarray
        `|mu| sup |F - alpha|` over the interior thresholds.
    scaled_growth : ndarray
        `mu^3 dmu/dt`.
    """

    trajectory: Trajectory
    reflected: bool
    ratio: NDArray[float64]
    tube: NDArray[float64]
    scale: NDArray[float64]
    scaled_error: NDArray[float64]
    scaled_growth: NDArray[float64]


@dataclass(frozen=True)
class Result:
    """The runs, one a start, all of one half width."""

    runs: tuple[Run, ...]

    @property
    def half_width(self) -> float:
        return self.runs[0].trajectory.half_width


def run(config: Config) -> Result:
    """Run the flow in closed form from every start."""
    times = np.geomspace(config.first_time, config.t_end, config.n_times - 1)
    times = np.concatenate(([0.0], times))
    runs = []
    for head in config.heads:
        risk = ClosedFormRisk(head.half_width)
        trajectory = gradient_flow(risk, head, config.t_end, t_eval=times)
        runs.append(observe(risk, trajectory, config.interior))
    return Result(tuple(runs))


def observe(risk: Risk, trajectory: Trajectory, interior: float = 0.5) -> Run:
    """What is claimed of a path, computed at its points.

    Parameters
    ----------
    risk : Risk
        Whose gradient drove the path.
    trajectory : Trajectory
    interior : float
        In half widths, between 0 and 1.
    """
    reflected = len(trajectory) > 0 and bool(trajectory.scale[-1] < 0)
    heads = [trajectory.head(i) for i in range(len(trajectory))]
    if reflected:
        heads = [head.reflected for head in heads]
    edge = interior * trajectory.half_width
    thresholds = np.linspace(-edge, edge, _THRESHOLDS)
    scale = _field(heads, "scale")
    # By symmetry of the design the reflected head has the reflected gradient.
    growth = np.array([-risk.gradient(head)[1] for head in heads])
    error = np.array([np.abs(limit_error(head, thresholds)).max() for head in heads])
    return Run(
        trajectory=trajectory,
        reflected=reflected,
        ratio=_field(heads, "ratio"),
        tube=_field(heads, "tube"),
        scale=scale,
        scaled_error=np.abs(scale) * error,
        scaled_growth=scale**3 * growth,
    )


def _field(heads: Sequence[Head], name: str) -> NDArray[float64]:
    return np.array([getattr(head, name) for head in heads], dtype=float64)
