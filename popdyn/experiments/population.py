"""Population dynamics of one head: capture into the tube and growth of the scale (MODEL §4).

The claim of the paper's Figure 2: the tube coordinate settles, the fourth power of the scale
becomes affine in time, and the scaled interior error and the scaled growth tend to constants.
"""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.archive import PathLike
from popdyn.asymptotics import fourth_power_rate, growth_rate, tube_limit
from popdyn.coordinates import Head
from popdyn.dynamics.trajectory import Trajectory
from popdyn.experiments.finding import Finding
from popdyn.experiments.observation import flow_at, largest_error, power_of_time
from popdyn.risk.closed_form import ClosedFormRisk
from popdyn.risk.protocol import Risk

__all__ = ["Config", "Result", "findings", "observe", "run"]


@dataclass(frozen=True)
class Config:
    """Starts of the runs and the times at which they are looked at.

    Attributes
    ----------
    starts : tuple of (float, float)
        Ratio and scale of each.
    t_end : float
        Time to stop.
    half_width : float
    first_time : float
        First time after 0; the others follow evenly in log time.
    n_times : int
    interior : float
        The error is taken over thresholds in `[-interior l, interior l]`.
    """

    starts: tuple[tuple[float, float], ...]
    t_end: float
    half_width: float = 1.0
    first_time: float = 1.0
    n_times: int = 400
    interior: float = 0.5

    @classmethod
    def paper(cls) -> "Config":
        """Two starts above the tube and two below it, to time 1e12."""
        return cls(((1.5, 5.0), (1.05, 8.0), (0.8, 6.0), (2.5, 4.0)), t_end=1e12)

    @classmethod
    def quick(cls) -> "Config":
        """The same at fewer times."""
        return cls(cls.paper().starts, cls.paper().t_end, n_times=100)


@dataclass(frozen=True)
class Result:
    """Paths at the same times, a row each, and what is claimed of them.

    Attributes
    ----------
    half_width : float
    starts : ndarray, shape (n_runs, 2)
        Label score and scale at time 0.
    reflected : ndarray of bool, shape (n_runs,)
        Whether the path ends at a negative scale; its row in the following arrays is then that of
        the reflected head.
    t : ndarray, shape (n_times,)
    ratio, tube, scale : ndarray, shape (n_runs, n_times)
    scaled_error : ndarray, shape (n_runs, n_times)
        `|mu| sup |F - alpha|` over the interior thresholds.
    scaled_growth : ndarray, shape (n_runs, n_times)
        `mu^3 dmu/dt`.
    """

    half_width: float
    starts: NDArray[float64]
    reflected: NDArray[np.bool_]
    t: NDArray[float64]
    ratio: NDArray[float64]
    tube: NDArray[float64]
    scale: NDArray[float64]
    scaled_error: NDArray[float64]
    scaled_growth: NDArray[float64]


def run(
    config: Config, *, executor: Executor | None = None, store: PathLike | None = None
) -> Result:
    """Run the flow in closed form from every start; a second, so in this process."""
    times = np.geomspace(config.first_time, config.t_end, config.n_times - 1)
    times = np.concatenate(([0.0], times))
    risk = ClosedFormRisk(config.half_width)
    paths = []
    for ratio, scale in config.starts:
        head = Head.from_ratio(ratio, scale, config.half_width)
        paths.append(observe(risk, flow_at(risk, head, times), config.interior))
    names = ("starts", "reflected", "ratio", "tube", "scale", "scaled_error", "scaled_growth")
    rows = {name: np.concatenate([getattr(path, name) for path in paths]) for name in names}
    return Result(half_width=config.half_width, t=times, **rows)


def observe(risk: Risk, trajectory: Trajectory, interior: float = 0.5) -> Result:
    """What is claimed of one path, computed at its points.

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

    def row(of: list[float]) -> NDArray[float64]:
        return np.array([of], dtype=float64)

    scale = row([head.scale for head in heads])
    # By symmetry of the design the reflected head has the reflected gradient.
    growth = row([-risk.gradient(head)[1] for head in heads])
    error = row([largest_error(head, interior) for head in heads])
    return Result(
        half_width=trajectory.half_width,
        starts=row([trajectory.start.label_score, trajectory.start.scale]),
        reflected=np.array([reflected]),
        t=trajectory.t,
        ratio=row([head.ratio for head in heads]),
        tube=row([head.tube for head in heads]),
        scale=scale,
        scaled_error=np.abs(scale) * error,
        scaled_growth=scale**3 * growth,
    )


def findings(result: Result) -> tuple[Finding, ...]:
    """Limits at the last time, each of the path that is farthest from it, and the power of time."""
    width = result.half_width
    end = f"at t = {result.t[-1]:g}"
    limits = {
        f"tube coordinate c {end}": (tube_limit(width), result.tube[:, -1]),
        f"mu^4 / t {end}": (fourth_power_rate(width), result.scale[:, -1] ** 4 / result.t[-1]),
        "power of t in mu, last decade": (0.25, power_of_time(result.t, result.scale)),
        f"mu sup|F - alpha| {end}": (1.0, result.scaled_error[:, -1]),
        f"mu^3 dmu/dt {end}": (
            float(growth_rate(1.0, width, order=0)),
            result.scaled_growth[:, -1],
        ),
    }
    return tuple(
        Finding(claim, limit, float(measured[np.argmax(np.abs(measured - limit))]))
        for claim, (limit, measured) in limits.items()
    )
