"""Steps of the gradient flow: scipy's solvers driven in log time, chart after chart."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy import float64
from numpy.typing import NDArray
from scipy import integrate

from popdyn.coordinates import Head
from popdyn.dynamics.arguments import LAST_TIME, MAX_STEPS
from popdyn.dynamics.charts import Chart, Clock, Field, LinearChart, TubeChart, chart_at
from popdyn.risk.protocol import Risk

__all__ = [
    "Integration",
    "Path",
    "Run",
    "Step",
    "step_limit_message",
]

# Points at which a step is looked at before extrema are searched for between them: interpolants
# are polynomials of degree 12 at most, and a step follows far fewer of their turns.
_SAMPLES = 12

_IMPLICIT = ("LSODA", "Radau", "BDF")
# Their interpolant is the polynomial that the step is made of, and as good as the step; to start
# them again inside a step takes a hundred steps. The others interpolate at lower order.
_MULTISTEP = ("LSODA", "BDF")

# Where a step is a smaller part of the log time gone by the clock starts anew: from (lam, mu) =
# (-50, 1e6) the scale falls for a time of 1e17, and then through 0 within a few units.
_FINE = 1e-6

# A head is stationary where the risk is convex, the way to its minimum is below this part of the
# head, and this many relaxation times of the slowest mode have passed.
_STATIONARY_DISTANCE = 1e-12
_STATIONARY_AGE = 30.0
_SLOW = 1e-9  # relative motion per unit of log time below which these are looked at


@dataclass(frozen=True)
class Step:
    """One step of the solver in one chart, with the interpolant between its ends."""

    chart: Chart
    clock: Clock
    s_old: float
    s: float
    state_old: NDArray[float64]
    state: NDArray[float64]
    interpolant: Callable[[Any], NDArray[float64]]

    @cached_property
    def samples(self) -> tuple[NDArray[float64], NDArray[float64]]:
        """Evenly spaced log times of the step and the states there, the ends without rounding."""
        times = np.linspace(self.s_old, self.s, _SAMPLES + 1)
        inner = self.interpolant(times[1:-1])
        return times, np.column_stack([self.state_old, inner, self.state])

    def head(self, s: float) -> Head:
        s = min(max(s, self.s_old), self.s)
        return self.chart.head(self.interpolant(s))


@dataclass(frozen=True)
class Path:
    """All steps of a run: a head at every time from 0 to the stop."""

    start: Head
    steps: tuple[Step, ...]

    def head(self, time: float) -> Head:
        if time == 0 or not self.steps:
            return self.start
        index = bisect_left(self.steps, time, key=lambda step: step.clock.time(step.s))
        step = self.steps[min(index, len(self.steps) - 1)]
        return step.head(step.clock.log_time(time))


@dataclass(frozen=True)
class _Constant:
    """Interpolant of a head that has come to rest."""

    state: NDArray[float64]

    def __call__(self, s: Any) -> NDArray[float64]:
        return np.multiply.outer(self.state, np.ones(np.shape(s)))


class Run(Protocol):
    """What is known of a run when it has stopped, by whichever method."""

    method: str
    rtol: float
    t_end: float
    start: Head

    @property
    def time(self) -> float: ...
    @property
    def head(self) -> Head: ...
    @property
    def stationary(self) -> bool: ...
    @property
    def rest_time(self) -> float: ...
    @property
    def exhausted(self) -> bool: ...
    @property
    def nfev(self) -> int: ...
    @property
    def njev(self) -> int: ...
    @property
    def n_steps(self) -> int: ...


def step_limit_message(run: Run) -> str:
    return (
        f"{run.n_steps} steps of {run.method} led to t={run.time:.6g} only, short of "
        f"t_end={run.t_end:.6g}; raise max_steps, or rtol (now {run.rtol!r}) if the risk is "
        "no more accurate"
    )


class Integration:
    """The flow from one head, as an iterator over steps.

    Attributes
    ----------
    clock : Clock
    chart : Chart
    s, state : float, ndarray
        Log time and state reached.
    rest_time : float
        Time from which on the head is at rest, if it is; one step then reaches to the end.
    nfev, njev, n_steps : int
    """

    def __init__(
        self,
        risk: Risk,
        head: Head,
        t_end: float,
        *,
        method: str,
        rtol: float,
        atol: float,
        max_steps: int | None = None,
    ) -> None:
        self.method, self.rtol, self.atol = method, rtol, atol
        self.max_steps = MAX_STEPS if max_steps is None else max_steps
        self.t_end = min(t_end, LAST_TIME)
        self.chart = chart_at(head)
        self.state = self.chart.state(head)
        self.start = head
        self.n_steps = 0
        self.clock = Clock(1.0)
        self.s = self.s_end = 0.0
        self._field = Field(risk, self.clock, self.chart)
        pace = self._start_clock(0.0)
        self.rest_time = 0.0 if pace == 0.0 else math.inf

    @property
    def nfev(self) -> int:
        return self._field.nfev

    @property
    def njev(self) -> int:
        return self._field.njev

    @property
    def stationary(self) -> bool:
        return self.rest_time < math.inf

    @property
    def time(self) -> float:
        return self.time_at(self.s)

    def time_at(self, s: float) -> float:
        return self.t_end if s >= self.s_end else min(self.clock.time(s), self.t_end)

    @property
    def head(self) -> Head:
        return self.start if self.n_steps == 0 else self.chart.head(self.state)

    @property
    def exhausted(self) -> bool:
        """Whether the step limit was reached before the end."""
        return self.s < self.s_end and self.n_steps >= self.max_steps

    def steps(self) -> Iterator[Step]:
        """Steps to the end; stops early at the step limit.

        Raises
        ------
        RuntimeError
            If the solver gives up or the risk is not finite, with the last head.
        """
        solver = None
        while self.s < self.s_end and self.n_steps < self.max_steps:
            if self.stationary:
                yield self._rest()
                return
            if solver is None:
                solver = self._solver(self.s, self.state, self.s_end)
            s_old, state_old = self.s, self.state
            self._advance(solver)
            self.s, self.state = float(solver.t), np.array(solver.y, dtype=float64)
            self.n_steps += 1
            yield Step(
                self.chart, self.clock, s_old, self.s, state_old, self.state, solver.dense_output()
            )
            if self._at_rest(s_old, state_old):
                self.rest_time = self.time
            if self.chart.left_by(self.state):
                self._switch()
                solver = None
            elif self.s - s_old < _FINE * self.s:
                # What is fast after a long slow phase is not resolved by the log of all the time.
                self._start_clock(self.time)
                solver = None

    def velocity(self, chart: Chart, s: float, state: NDArray[float64]) -> NDArray[float64]:
        """Derivative of a state of one of the charts with respect to log time."""
        field = Field(self._field.risk, self.clock, chart)
        velocity = field.velocity(s, state)
        self._field.nfev += field.nfev
        return velocity

    def state_at(self, step: Step, s: float) -> NDArray[float64]:
        """State inside a step to the solver's accuracy, which its interpolant may not have."""
        if self.method in _MULTISTEP:
            return step.interpolant(s)
        current = self._field.chart
        self._field.chart = step.chart
        try:
            solver = self._solver(step.s_old, step.state_old, s)
            while solver.status == "running":
                self._advance(solver)
            return np.array(solver.y, dtype=float64)
        finally:
            self._field.chart = current

    def _rest(self) -> Step:
        s_old, self.s = self.s, self.s_end
        rest = _Constant(self.state)
        return Step(self.chart, self.clock, s_old, self.s, self.state, self.state, rest)

    def _solver(self, s: float, state: NDArray[float64], s_end: float) -> Any:
        options: dict[str, Any] = {"rtol": self.rtol, "atol": self.atol}
        if self.method in _IMPLICIT:
            options["jac"] = self._field.jacobian
        solver = getattr(integrate, self.method)(self._field.velocity, s, state, s_end, **options)
        if self.method == "LSODA":
            _raise_instead_of_warning(solver)
        return solver

    def _advance(self, solver: Any) -> None:
        try:
            message = solver.step()
        except _SolverGaveUp as failure:
            message = str(failure)
        else:
            if solver.status != "failed" and solver.t > solver.t_old:
                return
            message = message or "The step is below the spacing of log times."
        raise RuntimeError(
            f"{self.method} gave up at t={self.time!r}, {self.head!r}: {message} "
            f"Use a larger rtol (now {self.rtol!r}) or a more accurate risk"
        )

    def _start_clock(self, origin: float) -> float:
        """Count log time from here on; returns the pace of the state per unit of time."""
        self._field.clock = Clock(1.0, origin)
        pace = float(np.max(np.abs(self._field.velocity(0.0, self.state))))
        # The natural time of the state, so that the first e-folding of log time resolves it.
        left = self.t_end - origin
        unit = left if left * pace <= 1.0 else 1.0 / pace
        self.clock = self._field.clock = Clock(unit if unit > 0 else 1.0, origin)
        self.s, self.s_end = 0.0, self.clock.log_time(self.t_end)
        return pace

    def _switch(self) -> None:
        time, head = self.time, self.chart.head(self.state)
        kind = TubeChart if isinstance(self.chart, LinearChart) else LinearChart
        self.chart = kind.around(head)
        self.state = self.chart.state(head)
        self._field.chart = self.chart
        self._start_clock(time)

    def _at_rest(self, s_old: float, state_old: NDArray[float64]) -> bool:
        pace = float(np.abs(self.state - state_old).max()) / (self.s - s_old)
        if pace > _SLOW * max(1.0, float(np.abs(self.state).max())):
            return False
        gradient = self._field.gradient(self.s, self.state)
        if not gradient.any():
            return True
        head = self.head
        hessian = self._field.hessian(self.state)
        if not float(np.linalg.eigvalsh(hessian)[0]) * self.time >= _STATIONARY_AGE:
            return False
        way = np.linalg.solve(hessian, gradient)
        return math.hypot(way[0], way[1] * head.half_width) <= _STATIONARY_DISTANCE * math.hypot(
            head.label_score, head.scale * head.half_width
        )


class _SolverGaveUp(Exception):
    pass


def _raise_instead_of_warning(solver: Any) -> None:
    # scipy tells of LSODA's failures by a warning, and warning filters belong to the whole process.
    integrator = getattr(getattr(solver, "_lsoda_solver", None), "_integrator", None)
    run = getattr(integrator, "runner", None)
    if integrator is None or run is None:  # another scipy: its warning has to do
        return

    def runner(*arguments: Any) -> Any:
        state, time, istate = run(*arguments)
        if istate < 0:
            raise _SolverGaveUp(integrator.messages.get(istate, f"istate {istate}."))
        return state, time, istate

    integrator.runner = runner
