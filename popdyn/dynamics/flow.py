"""The gradient flow of a risk from one head."""

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from popdyn.coordinates import Head
from popdyn.dynamics.arguments import (
    ATOL,
    COLLOCATION,
    METHOD,
    RTOL,
    checked_method,
    checked_time,
)
from popdyn.dynamics.charts import Chart, chart_at
from popdyn.dynamics.collocation import Collocation, CollocationPath
from popdyn.dynamics.hitting import ScaleEntrance
from popdyn.dynamics.integration import Integration, Path, Run, Step, step_limit_message
from popdyn.dynamics.trajectory import Hit, Trajectory
from popdyn.risk.closed_form import closed_form_risk
from popdyn.risk.protocol import Risk

__all__ = ["gradient_flow"]

_LAST_ULPS = 4  # a last time that the caller computed may be so many roundings past the end

Point = tuple[float, Chart, NDArray[float64]]
# Times; label score, scale, excess, tube and risk, shape (5, n); names of the charts.
Columns = tuple[NDArray[float64], NDArray[float64], NDArray[np.str_]]


def gradient_flow(
    risk: Risk,
    head: Head,
    t_end: float,
    *,
    t_eval: ArrayLike | None = None,
    scale_levels: Sequence[float] = (),
    method: str | None = None,
    rtol: float = RTOL,
    atol: float = ATOL,
    dense_output: bool = False,
    max_steps: int | None = None,
    callback: Callable[[float, Head], object] | None = None,
) -> Trajectory:
    """Path of the gradient flow `d(lam, mu)/dt = -grad L` from one head (MODEL §1, §4, §5).

    `ClosedFormRisk` is followed by compiled collocation at nine Radau points a step, error and all:
    in the scale, with the tube coordinate as the unknown and time as a quadrature, wherever
    `mu l >= 1` grows and `lam` not much faster, and in time elsewhere; the same reflected where
    `mu < 0`. Where no step leads on, LSODA does the run.

    Any other risk is left to one of scipy's solvers in log time, in the chart that suits: the tube
    chart `(c, log mu)` from `|mu| l = 2` on (of the reflected head where `mu < 0`), until `|mu| l`
    falls below 1, and the linear chart elsewhere; the exact Hessian of the risk is its Jacobian.

    Parameters
    ----------
    risk : Risk
    head : Head
        One head at time 0, of the half width of the risk.
    t_end : float
        Time to end at, from 0 to 1e300.
    t_eval : array_like, shape (n,), optional
        Increasing times in `[0, t_end]` of the points to return; the last one may lie a few
        roundings beyond the end. By default the start and every step of the solver; of
        collocation, whose steps are long, all nodes of every step.
    scale_levels : sequence of float
        Scales whose first entrance is returned in `hits`, as by `hitting_time`.
    method : {"collocation", "LSODA", "Radau", "BDF", "DOP853", "RK45", "RK23"}, optional
        By default collocation for `ClosedFormRisk`, which alone it is for, and LSODA for any other
        risk. The last three are explicit and slow once `mu` is large.
    rtol, atol : float
        Relative and absolute tolerance of one step in the coordinates of the chart; where the
        radius is below one, `atol` counts in units of it (by scipy's solvers of that of the start).
        Collocation holds the whole polynomial of a step to them, down to 1e-13 and 1e-14: measured,
        `tube` is good to `rtol` and the scores to a few times it, from 1e-10 down, everywhere on
        the path, and to far less at the ends of steps.
    dense_output : bool
        Whether to keep the solver's interpolants for `Trajectory.sol`.
    max_steps : int, optional
        Steps after which to stop; 50000 by default, far more than a smooth risk needs.
    callback : callable, optional
        Called as `callback(t, head)` at every point that is returned by default, after the start;
        the run stops there when it returns a true value.

    Returns
    -------
    Trajectory
        Measured at the default tolerances against references of two other solvers. Collocation:
        1e-15 relative in `scale`, 3e-13 absolute in `tube`, 4e-14 relative in hitting times, 2e-12
        from radius 1e-6 on; a flow to time 1e12 takes 0.4 ms. LSODA: 1e-11, 1e-12, 6e-11 (1e-10
        after long slow phases), and 0.1 s.

    Raises
    ------
    ValueError
        On bad arguments.
    RuntimeError
        If the solver gives up or the risk is not finite, with the last head.
    """
    end = checked_time("t_end", t_end)
    times = None if t_eval is None else _checked_times(t_eval, end)
    if np.ndim(scale_levels) != 1:
        raise ValueError(f"scale_levels must be a list of scales, got {scale_levels!r}")
    if callback is not None and not callable(callback):
        raise ValueError(f"callback must be callable as callback(t, head), got {callback!r}")
    entrances = [ScaleEntrance(level) for level in scale_levels]
    method = checked_method(risk, head, method, rtol, atol, max_steps)
    if method == COLLOCATION:
        run = Collocation(head, end, rtol=rtol, atol=atol, max_steps=max_steps)
        if not run.gave_up:
            return _collocated(run, times, entrances, dense_output, callback)
        method = METHOD
    integration = Integration(
        risk, head, end, method=method, rtol=rtol, atol=atol, max_steps=max_steps
    )
    steps_kept: list[Step] = []
    hits: list[Hit | None] = [entrance.at_start(head) for entrance in entrances]
    points = _Points(integration, times)
    stopped = False
    for step in integration.steps():
        points.add(step)
        for index, entrance in enumerate(entrances):
            if hits[index] is None:
                hits[index] = entrance.in_step(integration, step)
        if dense_output:
            steps_kept.append(step)
        stopped = callback is not None and bool(callback(integration.time, integration.head))
        if stopped:
            break
    path = Path(head, tuple(steps_kept)) if dense_output else None
    return _trajectory(integration, points.columns(risk), entrances, hits, stopped, path)


def _collocated(
    run: Collocation,
    times: NDArray[float64] | None,
    entrances: Sequence[ScaleEntrance],
    dense_output: bool,
    callback: Callable[[float, Head], object] | None,
) -> Trajectory:
    """Trajectory of a run that is over already; a callback that ends it cuts it off."""
    stopped = False
    if callback is not None:
        for index, (time, head) in enumerate(run.path.heads_at_nodes()):
            if callback(time, head):
                stopped = True
                run.cut_off(index)
                break
    path, stop = run.path, run.head
    hits = [entrance.at_start(run.start) or entrance.on_path(path, stop) for entrance in entrances]
    columns = _columns(path, times)
    return _trajectory(run, columns, entrances, hits, stopped, path if dense_output else None)


def _trajectory(
    run: Run,
    columns: Columns,
    entrances: Sequence[ScaleEntrance],
    hits: Sequence[Hit | None],
    stopped: bool,
    path: Path | CollocationPath | None,
) -> Trajectory:
    status, message = _outcome(run, stopped)
    t, (label_score, scale, excess, tube, values), charts = columns
    return Trajectory(
        t=t,
        label_score=label_score,
        scale=scale,
        excess=excess,
        tube=tube,
        risk=values,
        chart=charts,
        half_width=run.start.half_width,
        start=run.start,
        stop_time=run.time,
        stop_head=run.head,
        hits=tuple(
            hit or entrance.missed(run) for hit, entrance in zip(hits, entrances, strict=True)
        ),
        success=status >= 0,
        status=status,
        message=message,
        nfev=run.nfev,
        njev=run.njev,
        n_steps=run.n_steps,
        path=path,
    )


def _columns(path: CollocationPath, times: NDArray[float64] | None) -> Columns:
    """As `_Points.columns`, of a run of collocation."""
    start = path.start
    later = (
        path.nodes() if times is None else path.points(times[(times > 0) & (times <= path.stop)])
    )
    n_start = 1 if times is None else int(np.count_nonzero(times == 0))
    n = n_start + later.shape[1]
    t, columns, names = np.zeros(n), np.empty((5, n)), np.empty(n, dtype="<U14")
    names[:n_start], names[n_start:] = chart_at(start).name, path.charts(later)
    t[n_start:], label_score, excess, scale, tube = later
    for column, first, others in (
        (columns[0], start.label_score, label_score),
        (columns[1], start.scale, scale),
        (columns[2], start.excess, excess),
        (columns[3], start.tube, np.where(scale > 0, tube, np.nan)),
    ):
        column[:n_start], column[n_start:] = first, others
    columns[4] = closed_form_risk(columns[0], columns[2], columns[1], start.half_width)[0]
    return t, columns, names


class _Points:
    """The points of a trajectory, collected step by step in the charts they were computed in."""

    def __init__(self, integration: Integration, times: NDArray[float64] | None) -> None:
        self._integration = integration
        self._times = times
        self._points: list[Point] = []
        if times is None:
            self._points.append((0.0, integration.chart, integration.state))
            return
        for time in times[times == 0]:
            self._points.append((float(time), integration.chart, integration.state))

    def add(self, step: Step) -> None:
        if self._times is None:
            self._points.append((self._integration.time, step.chart, step.state))
            return
        first = len(self._points)
        last = int(np.searchsorted(self._times, self._integration.time, side="right"))
        if last > first:
            times = self._times[first:last]
            log_times = np.array([min(step.clock.log_time(time), step.s) for time in times])
            states = step.interpolant(log_times)
            states[:, times == self._integration.time] = step.state[:, np.newaxis]
            self._points += [
                (float(time), step.chart, state)
                for time, state in zip(times, states.T, strict=True)
            ]

    def columns(self, risk: Risk) -> Columns:
        columns = [np.empty((5, 0))]
        for (chart, at_start), group in groupby(self._points, key=lambda p: (p[1], p[0] == 0)):
            states = np.transpose([state for _, _, state in group])
            head = self._integration.start if at_start else chart.head(states)
            values = np.asarray(risk.value(head))
            if not np.isfinite(values).all():
                raise RuntimeError(f"the risk is {values!r} at {head!r}; the gradient was finite")
            rows = (head.label_score, head.scale, head.excess, head.tube, values)
            columns.append(np.array([np.broadcast_to(row, states.shape[1]) for row in rows]))
        t = np.array([time for time, _, _ in self._points], dtype=float64)
        names = np.array([chart.name for _, chart, _ in self._points], dtype=np.str_)
        return t, np.concatenate(columns, axis=1), names


def _outcome(run: Run, stopped: bool) -> tuple[int, str]:
    if stopped:
        return 1, f"the callback ended the run at t={run.time:.6g}"
    if run.exhausted:
        return -1, step_limit_message(run)
    if run.stationary:
        return 0, f"t_end reached; the head is stationary from t={run.rest_time:.6g} on"
    return 0, "t_end reached"


def _checked_times(t_eval: ArrayLike, t_end: float) -> NDArray[float64]:
    try:
        times = np.array(t_eval, dtype=float64)
    except (TypeError, ValueError):
        times = np.array(np.nan)
    if times.ndim != 1 or not np.isfinite(times).all():
        raise ValueError(f"t_eval must be a list of finite times, got {t_eval!r}")
    if (np.diff(times) < 0).any():
        raise ValueError("t_eval must be increasing, got unsorted times; sort them")
    if len(times) and times[-1] > t_end and times[-1] <= t_end + _LAST_ULPS * np.spacing(t_end):
        times[-1] = t_end
    if len(times) and not (times[0] >= 0 and times[-1] <= t_end):
        raise ValueError(
            f"t_eval must lie in [0, {t_end!r}], got {times[0].item()!r} to {times[-1].item()!r}"
        )
    return times
