"""The gradient flow of the closed form by collocation: what can be asked of a run."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.coordinates import Head
from popdyn.dynamics.arguments import COLLOCATION, LAST_TIME, MAX_STEPS
from popdyn.dynamics.charts import TUBE_FROM
from popdyn.dynamics.collocation.march import (
    AT_END,
    AT_LEVEL,
    COUNTS,
    FULL,
    N_STEPS,
    NFEV,
    NJEV,
    ON_OTHER_SIDE,
    STATES,
    advance,
    first_state,
)
from popdyn.dynamics.collocation.passages import find_passages
from popdyn.dynamics.collocation.pieces import END, FIELDS, TIME, fill_nodes, fill_points
from popdyn.dynamics.collocation.radau import NODES, STAGES
from popdyn.dynamics.levels import Passage, ScaleLevel, TubeLevel

__all__ = ["Collocation", "CollocationPath", "tolerances"]

# Below these the rounding of the gradient is taken for an error of the step.
_LEAST_RTOL, _LEAST_ATOL = 1e-13, 1e-14

_ROOM = 64  # for steps, at first: a run to time 1e12 takes 30
_PASSAGES = 8  # room for passages at first: few paths of this flow pass a level more than twice


def tolerances(rtol: float, atol: float) -> NDArray[float64]:
    """Tolerances as the compiled run takes them."""
    return np.array([max(rtol, _LEAST_RTOL), max(atol, _LEAST_ATOL)])


@dataclass(frozen=True, eq=False)
class CollocationPath:
    """All steps of a run: a head at every time from 0 to the stop.

    A point is a time, label score, excess, scale and tube coordinate (of the reflected head where
    the scale is negative); points have shape (5, n).
    """

    start: Head
    stop: float
    steps: NDArray[float64]
    rows: NDArray[float64]

    def head(self, time: float) -> Head:
        if time == 0 or not len(self.steps):
            return self.start
        return self.head_of(self.points(np.array([time]))[:, 0])

    @cached_property
    def stop_head(self) -> Head:
        return self.head(self.stop)

    def points(self, times: NDArray[float64]) -> NDArray[float64]:
        """Points at increasing times."""
        points = np.empty((5, len(times)))
        fill_points(self.steps, self.rows, self.start.half_width, self.stop, times, points)
        return points

    def nodes(self) -> NDArray[float64]:
        """Points at the nodes of all steps."""
        points = np.empty((5, (STAGES + 1) * len(self.steps)))
        n = fill_nodes(self.steps, self.rows, self.start.half_width, points)
        return points[:, :n]

    def heads_at_nodes(self) -> Iterator[tuple[float, Head]]:
        """Times and heads of the nodes."""
        for point in self.nodes().T:
            yield float(point[0]), self.head_of(point)

    def until(self, node: int) -> "CollocationPath":
        """The path up to one of the nodes, counted over all steps."""
        last, place = divmod(node, STAGES)
        steps = self.steps[: last + 1].copy()
        steps[last, END] = min(steps[last, END], NODES[place])
        return CollocationPath(
            self.start, float(self.nodes()[0, node]), steps, self.rows[: last + 1]
        )

    def passages(
        self, level: ScaleLevel | TubeLevel, *, way: int = 0, first: bool = False
    ) -> list[Passage]:
        """Passages through a level in order of time: of one way (1 is up, -1 down), or of both."""
        if not len(self.steps):
            return []
        scale = level.scale if isinstance(level, ScaleLevel) else None
        tube = level.tube if isinstance(level, TubeLevel) else None
        of_scale, of_tube = (math.nan if value is None else value for value in (scale, tube))
        room = 1 if first else _PASSAGES
        while True:
            found = np.empty((6, room))
            n = find_passages(
                self.steps, self.rows, self.start.half_width, of_scale, of_tube, float(way), found
            )
            if n < room or first:
                break
            room *= 4
        return [
            Passage(
                min(float(point[0]), self.stop),
                self.head_of(point, scale=scale, tube=tube),
                bool(point[5] > 0),
            )
            for point in found[:, :n].T
        ]

    def charts(self, points: NDArray[float64]) -> NDArray[np.str_]:
        """Names of the charts that keep the digits of points."""
        scale = points[3]
        names = np.where(scale > 0, "tube", "reflected tube")
        names[np.abs(scale) * self.start.half_width < TUBE_FROM] = "linear"
        return names

    def head_of(
        self, point: NDArray[float64], *, scale: float | None = None, tube: float | None = None
    ) -> Head:
        """Head of one point, with a coordinate that is known more exactly."""
        width = self.start.half_width
        near = abs(point[3]) * width < TUBE_FROM
        if scale is None:
            scale = point[3]
        if near and tube is None:
            return Head.from_scores(point[1], scale, width)
        upright = Head.from_tube(point[4] if tube is None else tube, abs(scale), width)
        return upright if scale > 0 else upright.reflected


class Collocation:
    """A run of the flow of `ClosedFormRisk` from one head, to an end or to a scale.

    Attributes
    ----------
    path : CollocationPath
        All steps, or the last one alone.
    time : float
        Time at which the run stopped.
    gave_up : bool
        Whether no step led on: another method has to try.
    entered : bool
        Whether the run stopped because the level was entered.
    """

    method = COLLOCATION
    stationary, rest_time = False, math.inf

    def __init__(
        self,
        head: Head,
        t_end: float,
        *,
        rtol: float,
        atol: float,
        max_steps: int | None = None,
        level: float = math.nan,
        keep: bool = True,
    ) -> None:
        width = head.half_width
        self.start, self.rtol = head, rtol
        self.t_end = min(t_end, LAST_TIME)
        self._most_steps = MAX_STEPS if max_steps is None else int(max_steps)
        state, self._counts = np.empty(STATES), np.zeros(COUNTS, dtype=np.int64)
        first_state(head.label_score, head.excess, head.scale, width, state)
        self._entrance = np.empty((6, 1))
        parts = []
        room, why = _ROOM if keep else 1, FULL
        while why == FULL and self._counts[N_STEPS] < self._most_steps:
            before = int(self._counts[N_STEPS])
            steps, rows = np.empty((room, FIELDS)), np.empty((room, 2, STAGES))
            why = advance(
                state, self._counts, width, self.t_end, level, tolerances(rtol, atol),
                self._most_steps, keep, steps, rows, self._entrance,
            )  # fmt: skip
            n = min(int(self._counts[N_STEPS]) - before, room)
            parts.append((steps[:n], rows[:n]))
            room *= 4
        steps, rows = (np.concatenate(part) for part in zip(*parts, strict=True))
        self.time = float(state[TIME])
        self.path = CollocationPath(head, self.time, steps, rows)
        self.entered = why == AT_LEVEL
        self.exhausted = why == FULL
        self.gave_up = why not in (AT_END, AT_LEVEL, ON_OTHER_SIDE, FULL)

    def entrance(self, level: ScaleLevel) -> Passage:
        """The passage at which a run stopped, through its level."""
        point = self._entrance[:, 0]
        return Passage(
            float(point[0]), self.path.head_of(point, scale=level.scale), level.scale >= 0
        )

    def cut_off(self, node: int) -> None:
        """Stop at one of the nodes instead."""
        self.path = self.path.until(node)
        self.time = self.path.stop
        self._counts[N_STEPS] = len(self.path.steps)

    @property
    def head(self) -> Head:
        return self.path.stop_head

    @property
    def nfev(self) -> int:
        return int(self._counts[NFEV])

    @property
    def njev(self) -> int:
        return int(self._counts[NJEV])

    @property
    def n_steps(self) -> int:
        return int(self._counts[N_STEPS])
