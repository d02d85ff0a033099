"""Gradient descent of a risk with a constant step size, from one head."""

import math
from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np
from numpy import float64, int64
from numpy.typing import ArrayLike, NDArray

from popdyn.arguments import count
from popdyn.coordinates import Head
from popdyn.dynamics.arguments import checked_number, require_one_head
from popdyn.dynamics.descent_steps import FELL, GOING, LOST, NOT_FINITE, REACHED, State, steps_of
from popdyn.dynamics.jumps import Jumps
from popdyn.dynamics.trajectory import Trajectory
from popdyn.risk.protocol import Risk

__all__ = ["gradient_descent"]

_POINTS = 100
_METHODS = ("steps", "jumps")

# Steps between two looks for a stall, and the most that are taken in one compiled call.
_STRIDE = 1024
# Wanted time of a compiled call in seconds: after it an interrupt is heard and the callback called.
_CALL = 0.1
_CANCELLING = 0.5  # a head has stalled once updates that are lost, over a stride, cancel by half
_RISING = 1e-12  # relative rise of the risk over the last step that is more than rounding

# What `Trajectory.status` says.
_STATUS = {GOING: 0, REACHED: 2, FELL: -2, NOT_FINITE: -3}
_ENDED_BY_CALLBACK, _STALLED = 1, 3


def gradient_descent(
    risk: Risk,
    head: Head,
    step_size: float,
    n_steps: int,
    *,
    until_scale: float | None = None,
    record: int | ArrayLike = _POINTS,
    callback: Callable[[float, Head], object] | None = None,
    method: str = "steps",
) -> Trajectory:
    """Path of the map `(lam, mu) -> (lam, mu) - step_size grad L` from one head (MODEL §6).

    Iterated on excess and scale in compensated sums: measured, after 1e5 steps both are those of
    exact sums to the last digit. (Plain sums of label score and scale leave 8e-9 in the excess
    after 1e5 steps of size 1 at scale 1000.) For `ClosedFormRisk` and `CorpusRisk` the loop is
    compiled, with the numbers of the plain loop bit for bit.

    Parameters
    ----------
    risk : Risk
    head : Head
        One head to start from, of the half width of the risk.
    step_size : float
        Positive. A step above the local stability limit, `2 / h` with `h` the largest eigenvalue of
        the Hessian (`mu^3 / (2 l)` on the tube), does not end the run; some such runs converge.
    n_steps : int
        Steps after which to stop, from 0 on.
    until_scale : float, optional
        Positive scale to stop at: after the first step to this scale or beyond.
    record : int or array_like of int
        Number of points to return, spaced evenly in the logarithm of the step number, with start
        and end among them; or the increasing step numbers to return, from 0 to `n_steps`.
    callback : callable, optional
        Called as `callback(t, head)` after every tenth of a second or 1024 steps, whichever is
        sooner (and at least after every step), and after every jump; the run stops when it returns
        a true value.
    method : {"steps", "jumps"}
        "steps" takes every step. "jumps" follows the same map without that: patches stand in for
        the gradient, and the generator of the map is integrated on them. A run of 1e13 steps down
        the population risk takes two seconds. `error_estimate` of the result is its estimated
        error, relative in the scale and absolute in the excess: measured from 1800 starts, above
        the true one but for roundings, 2e-14 of the largest scale and excess on the way. No jump
        is made where it would exceed 1e-11; it may grow beyond in later steps, if they are unstable
        or the scale falls to zero. Where the steps are not smooth or above half the stability
        limit, too, they are taken one by one, and the message says how many. A head has stalled
        where its updates are lost and below the noise of the patches, which may be some thousand
        steps from where plain steps find it.

    Returns
    -------
    Trajectory
        `t` is step size times steps. Why the run stopped is in `message` and `status`: 0, all
        steps were taken; 1, the callback ended the run; 2, `until_scale` was reached; 3, the head
        stalled, its updates lost in rounding; -2, a scale that was positive fell to zero or below;
        -3, a step would not be finite. `success` tells whether what was asked for was reached,
        `until_scale` if it was given.

    Raises
    ------
    ValueError
        On bad arguments.

    Examples
    --------
    >>> from popdyn import ClosedFormRisk
    >>> start = Head.from_ratio(1.5, 8)
    >>> run = gradient_descent(ClosedFormRisk(), start, 100.0, 100_000, until_scale=20)
    >>> print(run.message)
    scale 20 reached after 443 steps
    """
    require_one_head(risk, head)
    eta = _positive("step_size", step_size)
    n_steps = count("n_steps", n_steps, least=0)
    level = math.inf if until_scale is None else _positive("until_scale", until_scale)
    wanted, with_end = _wanted_steps(record, n_steps)

    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(_METHODS)}, got {method!r}")

    run = _Run(risk, head, eta, n_steps, level, jumps=method == "jumps")
    stopped = False
    for _ in run.calls(wanted):
        stopped = callback is not None and bool(callback(eta * run.done, run.head))
        if stopped:
            break
    points = run.points + ([run.point] if with_end and run.points[-1][0] != run.done else [])
    columns = np.array(points, dtype=float64).reshape(-1, 3).T
    path = Head.from_excess(columns[1], columns[2], head.half_width)
    label_score, tube = np.array(path.label_score), np.array(path.tube)
    from_start = columns[0] == 0
    label_score[from_start], tube[from_start] = head.label_score, head.tube
    status = _ENDED_BY_CALLBACK if stopped else run.status
    return Trajectory(
        t=eta * columns[0],
        label_score=label_score,
        scale=columns[2],
        excess=columns[1],
        tube=tube,
        risk=np.array(risk.value(path)),
        chart=np.full(len(points), "excess"),
        half_width=head.half_width,
        start=head,
        stop_time=eta * run.done,
        stop_head=run.head,
        hits=(),
        success=status >= 0 and (until_scale is None or status in (1, 2)),
        status=status,
        message=run.message(status) + run.rise() + (run.jumps.message() if run.jumps else ""),
        nfev=run.n_evaluations,
        njev=0,
        n_steps=run.done,
        path=None,
        error_estimate=run.jumps.error_estimate if run.jumps else None,
    )


class _Run:
    """The iteration from one head: how far it has come, and why it went no further."""

    def __init__(
        self,
        risk: Risk,
        head: Head,
        step_size: float,
        n_steps: int,
        level: float,
        jumps: bool,
    ) -> None:
        self.risk, self.start, self.step_size = risk, head, step_size
        self.n_steps, self.level = n_steps, level
        self.state: State = np.zeros(7)
        self.state[0], self.state[2] = head.excess, head.scale
        self.done, self.jumped = 0, 0
        self.jumps = Jumps(risk, step_size) if jumps else None
        self.outcome = REACHED if head.scale >= level else GOING
        self.stalled = False
        self.points: list[tuple[int, float, float]] = []

    @property
    def point(self) -> tuple[int, float, float]:
        return self.done, float(self.state[0]), float(self.state[2])

    @property
    def head(self) -> Head:
        if self.done == 0:
            return self.start
        return Head.from_excess(self.state[0], self.state[2], self.start.half_width)

    @property
    def status(self) -> int:
        return _STALLED if self.stalled else _STATUS[self.outcome]

    @property
    def n_evaluations(self) -> int:
        """Gradients of the risk: of the steps, of the one that was not finite, of the jumps."""
        stepped = self.done - self.jumped + (self.outcome == NOT_FINITE)
        return stepped + (self.jumps.n_evaluations if self.jumps else 0)

    def calls(self, wanted: NDArray[int64]) -> Iterator[None]:
        """Run, with a pause after every call of the loop; collects the points on the way."""
        steps = self.jumps.steps if self.jumps else steps_of(self.risk)
        lowest = 0.0 if self.start.scale > 0 else -math.inf
        pace = 1
        looked, looked_at = self.state.copy(), 0
        while True:
            while len(wanted) and wanted[0] == self.done:
                self.points.append(self.point)
                wanted = wanted[1:]
            if self.done == self.n_steps or self.outcome != GOING or self.stalled:
                return
            left = self.n_steps - self.done
            ahead = min(left, int(wanted[0]) - self.done) if len(wanted) else left
            room = min(ahead, _STRIDE - (self.done - looked_at), pace)
            if self.jumps is not None:
                # The last step is a plain one: it tells whether the risk rose.
                jumped = self.jumps.jump(self.state, min(ahead, left - 1), left, self.level)
                self.stalled = self.jumps.at_rest
                if jumped or self.stalled:
                    self.done += jumped
                    self.jumped += jumped
                    self.state[4:] = 0.0, 0.0, math.inf
                    looked, looked_at = self.state.copy(), self.done
                    yield
                    continue
                if self.jumps.wait:
                    room = min(room, self.jumps.wait)
            began = perf_counter()
            taken, self.outcome = steps(self.state, self.step_size, room, lowest, self.level)
            spent = perf_counter() - began
            self.done += taken
            if spent > _CALL:
                pace = max(pace // 2, 1)
            elif spent < _CALL / 2 and room == pace:
                pace = min(2 * pace, _STRIDE)
            if self.outcome == GOING and self.done - looked_at == _STRIDE:
                self.stalled = self._stalled_since(looked)
                self.state[4:6] = 0.0
                looked, looked_at = self.state.copy(), self.done
            yield

    def _stalled_since(self, looked: State) -> bool:
        """Whether the updates of the last stride were rounding errors around one head."""
        moved = self.state - looked
        unit = np.array([1.0, self.start.half_width])
        ways = self.state[4:6] * unit
        net = np.abs(moved[[0, 2]] + moved[[1, 3]]) * unit
        size = np.abs(self.state[[0, 2]]) * unit
        return bool(ways.max() <= _STRIDE * LOST * size.max() and (net <= _CANCELLING * ways).all())

    def message(self, status: int) -> str:
        scale = f"{float(self.state[2]):.6g}"
        steps = f"{self.done} step{'s' * (self.done != 1)}"
        if status == _ENDED_BY_CALLBACK:
            return f"the callback ended the run after {steps}"
        if status == _STALLED:
            return f"stalled at scale {scale} after {steps}: the updates are lost in rounding"
        if self.outcome == REACHED:
            return f"scale {self.level:.6g} reached after {steps}"
        if self.outcome == FELL:
            return (
                f"the scale fell to {scale} after {steps}; take a smaller step size than "
                f"{self.step_size!r}, or a start closer to the tube"
            )
        if self.outcome == NOT_FINITE:
            return (
                f"the step after {steps} is not finite, at {self.head!r}; take a smaller step size "
                f"than {self.step_size!r}, or check the risk there"
            )
        if self.level < math.inf:
            return (
                f"{steps} led to scale {scale} only, short of until_scale={self.level:.6g}; raise "
                "n_steps or step_size"
            )
        return f"{steps} taken"

    def rise(self) -> str:
        """What to say of a risk that rose in the last step."""
        before = float(self.state[6])
        if self.done == 0 or not float(self.risk.value(self.head)) > before * (1.0 + _RISING):
            return ""
        largest = float(np.linalg.eigvalsh(self.risk.hessian(self.head))[-1])
        if largest <= 0:
            return "; the risk rose in the last step"
        limit = f"{2.0 / largest:.6g}"
        return (
            f"; the risk rose in the last step: the local stability limit of the step size is "
            f"{limit} there, and the step size {self.step_size!r}"
        )


def _positive(name: str, number: float) -> float:
    as_float = checked_number(name, number)
    if as_float <= 0:
        raise ValueError(f"{name} must be positive, got {number!r}")
    return as_float


def _wanted_steps(record: int | ArrayLike, n_steps: int) -> tuple[NDArray[int64], bool]:
    """Increasing step numbers, and whether the end of the run is to be added to them."""
    if np.ndim(record) == 0:
        n_points = count("record", record, least=2)  # type: ignore[arg-type]
        spaced = np.geomspace(1.0, max(n_steps, 1), n_points - 1).round()
        return np.unique(np.append(spaced, 0.0).astype(int64)), True
    wanted = np.asarray(record)
    if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
        raise ValueError(f"record must be a number of points or a list of steps, got {record!r}")
    if len(wanted) and not (wanted[0] >= 0 and wanted[-1] <= n_steps):
        raise ValueError(f"record must lie in [0, {n_steps}], got {wanted[0]} to {wanted[-1]}")
    if (np.diff(wanted.astype(int64)) <= 0).any():
        raise ValueError("record must be increasing, got unsorted or repeated steps; use np.unique")
    return wanted.astype(int64), False
