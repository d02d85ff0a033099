"""Levels of the scale and of the tube coordinate, and every passage of a step through one."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy import float64
from numpy.typing import NDArray
from scipy.optimize import brentq

from popdyn.coordinates import Head
from popdyn.dynamics.charts import Chart
from popdyn.dynamics.integration import Integration, Step

__all__ = ["Level", "Passage", "ScaleLevel", "TubeLevel", "passages"]

_NEWTON_STEPS = 4  # quadratic from an interpolant good to 1e-3
_STRAIGHT = 1e-8  # part of a step over which the path is straight to rounding
_TINY = 1e-300  # roots are wanted to relative accuracy, next to time 0 too
_ROUNDING = 4 * np.finfo(float64).eps


class Level(Protocol):
    """A function of the head that vanishes on the level and is positive above it."""

    def above(self, chart: Chart, states: NDArray[float64]) -> Any:
        """Value of the function at one state or at many."""

    def rate(self, chart: Chart, state: NDArray[float64], velocity: NDArray[float64]) -> float:
        """Its derivative along a velocity of the state."""

    def head(self, chart: Chart, state: NDArray[float64]) -> Head:
        """Head of a state on the level, whose given coordinate is the level exactly."""


@dataclass(frozen=True)
class ScaleLevel:
    """`mu = scale`."""

    scale: float

    def above(self, chart: Chart, states: NDArray[float64]) -> Any:
        return chart.scale_above(states, self.scale)

    def rate(self, chart: Chart, state: NDArray[float64], velocity: NDArray[float64]) -> float:
        return chart.scale_rate(velocity)

    def head(self, chart: Chart, state: NDArray[float64]) -> Head:
        return chart.head_at_scale(state, self.scale)


@dataclass(frozen=True)
class TubeLevel:
    """`c = tube`; all of `mu <= 0` lies above it, since `c -> inf` as `mu -> 0`."""

    tube: float

    def above(self, chart: Chart, states: NDArray[float64]) -> Any:
        return chart.tube(states) - self.tube

    def rate(self, chart: Chart, state: NDArray[float64], velocity: NDArray[float64]) -> float:
        return chart.tube_rate(state, velocity)

    def head(self, chart: Chart, state: NDArray[float64]) -> Head:
        head = chart.head(state)
        return Head.from_tube(self.tube, head.scale, half_width=head.half_width)


@dataclass(frozen=True)
class Passage:
    """Passage through a level, upwards or not."""

    time: float
    head: Head
    upwards: bool


def passages(integration: Integration, step: Step, level: Level) -> list[Passage]:
    """All passages of a step through a level, in order of time, to the solver's accuracy.

    The step is sampled, its extrema between the samples are located by the sign of the exact time
    derivative, and between neighbours of different sign there is one root. A step that ends on
    the level has passed it; one that starts there has not.
    """
    times, values = _samples(integration, step, level)
    roots, ways = [], []
    for left, right, before, after in zip(
        times[:-1], times[1:], values[:-1], values[1:], strict=True
    ):
        if before < 0 <= after or before > 0 >= after:
            height = _height(step, level, {left: before, right: after})
            roots.append(right if after == 0 else _root(height, left, right))
            ways.append(before < 0)
    found = [_refined(integration, step, level, s) for s in roots]
    if any(late[0] < early[0] for early, late in pairwise(found)):
        # Two roots closer than the tolerance: only the interpolant has them in order.
        found = [(s, step.interpolant(s)) for s in roots]
    return [
        Passage(integration.time_at(s), level.head(step.chart, state), upwards)
        for (s, state), upwards in zip(found, ways, strict=True)
    ]


def _samples(integration: Integration, step: Step, level: Level) -> tuple[list[float], list[float]]:
    grid, states = step.samples
    times = grid.tolist()
    values = np.asarray(level.above(step.chart, states), dtype=float64).tolist()
    reach = max(values) - min(values)
    if min(abs(value) for value in values) > reach or not np.isfinite(reach):
        return times, values  # no extremum between the samples comes near the level

    slope = _slope(integration, step, level)
    slopes = [slope(s) for s in times]
    for i in reversed(range(len(grid) - 1)):
        if min(slopes[i], slopes[i + 1]) < 0 < max(slopes[i], slopes[i + 1]):
            s = _root(slope, times[i], times[i + 1])
            times.insert(i + 1, s)
            values.insert(i + 1, float(level.above(step.chart, step.interpolant(s))))
    return times, values


def _slope(integration: Integration, step: Step, level: Level) -> Callable[[float], float]:
    ends = {step.s_old: step.state_old, step.s: step.state}

    def slope(s: float) -> float:
        state = ends[s] if s in ends else step.interpolant(s)
        return level.rate(step.chart, state, integration.velocity(step.chart, s, state))

    return slope


def _height(step: Step, level: Level, known: dict[float, float]) -> Callable[[float], float]:
    def height(s: float) -> float:
        return known[s] if s in known else float(level.above(step.chart, step.interpolant(s)))

    return height


def _root(function: Callable[[float], float], left: float, right: float) -> float:
    root, _ = brentq(
        function, left, right, xtol=_TINY, rtol=_ROUNDING, full_output=True, disp=False
    )
    return float(root)


def _refined(
    integration: Integration, step: Step, level: Level, s: float
) -> tuple[float, NDArray[float64]]:
    if s == step.s:
        return s, step.state
    length = step.s - step.s_old
    state = integration.state_at(step, s)
    for _ in range(_NEWTON_STEPS):
        velocity = integration.velocity(step.chart, s, state)
        value = float(level.above(step.chart, state))
        rate = level.rate(step.chart, state, velocity)
        if value == 0 or not abs(value) < abs(rate) * length:  # at an extremum: as good as it gets
            break
        shift = -value / rate
        s = min(max(s + shift, step.s_old), step.s)
        near = abs(shift) <= _STRAIGHT * length
        state = state + shift * velocity if near else integration.state_at(step, s)
    return s, state
