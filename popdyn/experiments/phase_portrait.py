"""The flow in the plane of tube coordinate and inverse scale, `(c, 1/mu)` (MODEL §4, §5).

Large scales are at the bottom, where the logarithmic tube ends in the point `(c*, 0)`. The
separatrix of the saddle at the origin parts the starts that come there from those that leave
through scale 0 for the reflected head.
"""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.archive import PathLike
from popdyn.asymptotics import escape_time, time_at
from popdyn.coordinates import Head
from popdyn.dynamics.flow import gradient_flow
from popdyn.dynamics.saddle import separatrix
from popdyn.experiments.finding import Finding
from popdyn.risk.closed_form import ClosedFormRisk

__all__ = ["Config", "Result", "findings", "run"]

_POINTS = 200  # of the separatrix
_NEARBY = 0.03  # of the label score, from the separatrix to the starts beside it
# Paths are followed for as long as the law takes to this 1/(mu l) and an escape from this radius,
# in units of 1/l, with room for what starts far from the tube.
_LOWEST, _NEAREST, _ROOM = 0.02, 1e-6, 4.0


@dataclass(frozen=True)
class Config:
    """The window, and the starts on its border; two more lie beside the separatrix at its left end.

    Attributes
    ----------
    tubes : (float, float)
        Tube coordinates at the left and at the right border.
    top : float
        Inverse scale at the upper border, in half widths; the lower one is 0.
    n_side, n_top : int
        Starts on the left and the right border each, and on the upper one.
    half_width : float
    """

    tubes: tuple[float, float] = (-8.0, 4.0)
    top: float = 1.0
    n_side: int = 14
    n_top: int = 13
    half_width: float = 1.0

    @classmethod
    def paper(cls) -> "Config":
        """43 paths."""
        return cls()

    @classmethod
    def quick(cls) -> "Config":
        """17 paths."""
        return cls(n_side=4, n_top=7)


@dataclass(frozen=True)
class Result:
    """Paths through the window, a row each, with nan after their ends and outside of it.

    Attributes
    ----------
    half_width : float
    window : ndarray, shape (3,)
        Tube coordinates of the left and the right border, inverse scale of the upper one.
    tubes, inverse_scales : ndarray, shape (n_paths, n_points)
    upright : ndarray of bool, shape (n_paths,)
        Whether the path ends at the upright head.
    predicted : ndarray of bool, shape (n_paths,)
        Whether it should, by the side of the separatrix on which it starts.
    separatrix_tubes, separatrix_inverse_scales : ndarray, shape (n,)
    """

    half_width: float
    window: NDArray[float64]
    tubes: NDArray[float64]
    inverse_scales: NDArray[float64]
    upright: NDArray[np.bool_]
    predicted: NDArray[np.bool_]
    separatrix_tubes: NDArray[float64]
    separatrix_inverse_scales: NDArray[float64]


def run(
    config: Config, *, executor: Executor | None = None, store: PathLike | None = None
) -> Result:
    """Flows in closed form from starts around the window; some seconds, so in this process."""
    width = config.half_width
    (left, right), top = config.tubes, config.top * width
    sides = top * (np.arange(config.n_side) + 0.5) / config.n_side
    across = np.linspace(left, right, config.n_top)
    border = separatrix(1.0 / np.linspace(top / _POINTS, top, _POINTS), width)
    end = np.argmax(border.tube > left)
    near = Head.from_scores(
        border.label_score[end] * np.array([1.0 - _NEARBY, 1.0 + _NEARBY]),
        border.scale[end],
        width,
    )
    tubes = np.concatenate(
        [np.full_like(sides, left), np.full_like(sides, right), across, near.tube]
    )
    inverse = np.concatenate([sides, sides, np.full_like(across, top), 1.0 / near.scale])
    paths = [_path(Head.from_tube(c, 1.0 / u, width)) for c, u in zip(tubes, inverse, strict=True)]
    rows = np.full((2, len(paths), max(len(c) for c, _, _ in paths)), np.nan)
    for i, (c, u, _) in enumerate(paths):
        inside = (u > 0) & (u <= top * (1 + 1e-12))
        rows[0, i, : len(c)] = np.where(inside, c, np.nan)
        rows[1, i, : len(u)] = np.where(inside, u, np.nan)
    starts = Head.from_tube(tubes, 1.0 / inverse, width)
    at_start = separatrix(starts.scale, width).label_score
    return Result(
        half_width=width,
        window=np.array([left, right, top]),
        tubes=rows[0],
        inverse_scales=rows[1],
        upright=np.array([upright for _, _, upright in paths]),
        predicted=np.asarray(starts.label_score > at_start),
        separatrix_tubes=np.asarray(border.tube),
        separatrix_inverse_scales=1.0 / np.asarray(border.scale),
    )


def _path(start: Head) -> tuple[NDArray[float64], NDArray[float64], bool]:
    """Tube coordinates and inverse scales of one flow, and whether it ends upright."""
    width = start.half_width
    end = _ROOM * float(time_at(1.0 / (_LOWEST * width), width, order=0))
    end += float(escape_time(_NEAREST / width, width))
    flow = gradient_flow(ClosedFormRisk(width), start, end)
    with np.errstate(divide="ignore"):
        inverse = 1.0 / flow.scale
    return flow.tube, inverse, bool(flow.stop_head.scale > 0)


def findings(result: Result) -> tuple[Finding, ...]:
    """Whether every path ends where the side of the separatrix says."""
    return (
        Finding(
            "paths that end at the upright head",
            int(result.predicted.sum()),
            int(result.upright.sum()),
        ),
        Finding(
            "paths that cross the separatrix", 0, int((result.predicted != result.upright).sum())
        ),
    )
