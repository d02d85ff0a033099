"""The gradient flow with a hitting time on the way, and hitting times of many starts (MODEL §4)."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contest import Answer, Case, Goal, Row, Section, Way, Work, seconds_of
from benchmarks.graded_rule import compiled, graded
from popdyn import ClosedFormRisk, Head, gradient_flow, hitting_times

REFERENCE = Path(__file__).parent.parent / "tests" / "reference" / "flow.json"
ACCURACY = 1e-10  # of ours
LOOSE = 1e-7  # of the peers, at tolerances that bring most of them to 1e-10
RTOL, ATOL = 1e-10, 1e-12
OURS = "popdyn"
LSODA, CVODE = "LSODA, graded rule in NumPy", "CVODE (scikit-sundae), graded rule in NumPy"
FAR = "t = 1e12, mu = 1000 on the way"
MAPPED = 10_000
MAP_LEVEL = 1000.0
SEED = 2


@dataclass(frozen=True)
class Run:
    """From `(delta, mu)` to a time, with the hitting time of a scale in between."""

    delta: float
    scale: float
    t_end: float
    level: float


def _runs(quick: bool) -> list[Case]:
    reference = json.loads(REFERENCE.read_text())[0]
    start = Head.from_ratio(reference["ratio"], reference["scale"])
    cases = []
    for hit, t_end in zip(reference["hitting"], (1e4, 1e8, 1e12), strict=True):
        name = FAR if t_end == 1e12 else f"t = {t_end:g}, mu = {hit['scale']:g} on the way"
        run = Run(float(start.excess), float(start.scale), t_end, hit["scale"])
        end = reference["end"] if t_end == reference["end"]["time"] else None
        exact = [hit["time"], hit["tube_coordinate"]]
        exact += [end["scale"], end["tube_coordinate"]] if end else [np.nan, np.nan]
        cases.append(Case(name, run, np.array(exact), math.log10(t_end)))
    return cases[:1] if quick else cases


def distance(answer: Answer, exact: Answer) -> float:
    """Worst of hitting time and scale, relative, and the tube coordinate, where they are known."""
    wrong = np.abs(answer[0] - exact) / np.where([True, False, True, False], np.abs(exact), 1.0)
    unknown = np.isnan(exact)
    if np.isnan(answer[0][~unknown]).any():
        return math.inf
    return float(np.max(wrong[~unknown]))


# --- ways -----------------------------------------------------------------------------------------


def _ours(run: Run, **options: Any) -> Work:
    risk, head = ClosedFormRisk(), Head.from_excess(run.delta, run.scale)

    def work() -> Answer:
        flow = gradient_flow(risk, head, run.t_end, scale_levels=[run.level], **options)
        (hit,) = flow.hits
        return np.array([[hit.time, hit.head.tube, flow.scale[-1], flow.tube[-1]]])

    return work


def velocity(xp: Any, risk: Callable[..., Any], clock: Any, state: Any) -> tuple[Any, Any]:
    """Of `(c, log mu)` in the clock `log(1 + t)`."""
    mu = xp.exp(state[1])
    _, by_lam, by_mu = risk(state[0] + state[1], mu)
    pace = xp.exp(clock)
    return pace * (by_mu * (1.0 + 1.0 / mu) - by_lam), -pace * by_mu / mu


def _state(run: Run) -> list[float]:
    return [run.delta - math.log(run.scale), math.log(run.scale)]


def _row(clock: float, at_hit: Any, at_end: Any) -> Answer:
    return np.array([[math.expm1(clock), at_hit[0], math.exp(at_end[1]), at_end[0]]])


def _scipy(run: Run, method: str, rtol: float = RTOL, atol: float = ATOL) -> Work:
    from scipy.integrate import solve_ivp

    def slope(clock: float, state: Any) -> tuple[float, float]:
        return velocity(np, partial(graded, np), clock, state)

    def reached(_: float, state: Any) -> float:
        return float(state[1] - math.log(run.level))

    def work() -> Answer:
        found = solve_ivp(
            slope,
            (0.0, math.log1p(run.t_end)),
            _state(run),
            method=method,
            rtol=rtol,
            atol=atol,
            events=reached,
        )
        return _row(found.t_events[0][0], found.y_events[0][0], found.y[:, -1])

    return work


def _cvode(run: Run) -> Work:
    from sksundae.cvode import CVODE

    level = math.log(run.level)

    def slope(clock: float, state: Any, out: Any) -> None:
        out[:] = velocity(np, partial(graded, np), clock, state)

    def reached(_: float, state: Any, events: Any) -> None:
        events[0] = state[1] - level

    reached.terminal = [False]  # type: ignore[attr-defined]
    solver = CVODE(
        slope, rtol=RTOL, atol=ATOL, eventsfn=reached, num_events=1, max_num_steps=100_000
    )

    def work() -> Answer:
        found = solver.solve(np.array([0.0, math.log1p(run.t_end)]), np.array(_state(run)))
        return _row(found.t_events[0], found.y_events[0], found.y[-1])

    return work


@cache
def _jitted(solver: str, rtol: float) -> Callable[..., Any]:
    """State at the hit, its clock, and state at the end; compiled once for all runs."""
    import diffrax
    import jax
    import optimistix

    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    term = diffrax.ODETerm(
        lambda t, y, _: jnp.stack(velocity(jnp, lambda *head: graded(jnp, *head), t, y))
    )
    reached = diffrax.Event(
        lambda t, y, args, **_: y[1] - args, optimistix.Newton(rtol=1e-13, atol=1e-13)
    )

    def solve(clock: Any, end: Any, state: Any, level: Any, event: Any) -> Any:
        return diffrax.diffeqsolve(
            term,
            getattr(diffrax, solver)(),
            clock,
            end,
            None,
            state,
            level,
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=0.01 * rtol),
            event=event,
            max_steps=100_000,
        )

    @jax.jit
    def both(state: Any, end: Any, level: Any) -> Any:
        first = solve(0.0, end, state, level, reached)
        second = solve(first.ts[-1], end, first.ys[-1], level, None)
        return first.ts[-1], first.ys[-1], second.ys[-1]

    return both


def _diffrax(run: Run, solver: str, rtol: float) -> Work:
    both = _jitted(solver, rtol)
    state, end, level = np.array(_state(run)), math.log1p(run.t_end), math.log(run.level)
    return lambda: _row(*(np.asarray(part) for part in both(state, end, level)))


def _solver(name: str, prepare: Callable[[Run], Work], *needs: str) -> Way:
    return Way(name, prepare, LOOSE, needs)


# --- many starts ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Map:
    """Starts, and the scale that each is to reach."""

    heads: Head
    level: float


PROBES = 4  # starts that the peers do, and the oracle


def _maps(quick: bool) -> list[Case]:
    """Starts over ratios 0.7 to 1.5 and scales 2 to 8; the oracle has a tolerance of 1e-13."""
    rng = np.random.default_rng(SEED)
    n, level = (50, 20.0) if quick else (MAPPED, MAP_LEVEL)
    ratio, scale = rng.uniform(0.7, 1.5, n), rng.uniform(2.0, 8.0, n)
    given = Map(Head.from_ratio(ratio, scale), level)
    return [Case(f"{n} starts to mu = {level:g}", given, _by_dop853(given))]


def _by_dop853(given: Map) -> Answer:
    return _each_by_scipy(given, "DOP853", 1e-13, 1e-14)()


def _each_by_scipy(given: Map, method: str, rtol: float, atol: float) -> Work:
    """Hitting times of the first starts, one by one, with the compiled graded rule."""
    from scipy.integrate import solve_ivp

    fill, rows = compiled(), np.empty((1, 3))

    def risk(delta: float, mu: float) -> Answer:
        fill(np.array([delta]), np.array([mu]), rows)
        return rows[0]

    def reached(_: float, state: Any) -> float:
        return float(state[1] - math.log(given.level))

    reached.terminal = True  # type: ignore[attr-defined]

    def one(delta: float, mu: float) -> float:
        found = solve_ivp(
            lambda clock, state: velocity(np, risk, clock, state),
            (0.0, 100.0),
            [delta - math.log(mu), math.log(mu)],
            method=method,
            rtol=rtol,
            atol=atol,
            events=reached,
        )
        return math.expm1(found.t_events[0][0])

    starts = zip(given.heads.excess[:PROBES], given.heads.scale[:PROBES], strict=True)
    pairs = [(float(delta), float(mu)) for delta, mu in starts]
    return lambda: np.array([one(*pair) for pair in pairs])


def _distance_of_times(answer: Answer, exact: Answer) -> float:
    return float(np.max(np.abs(answer[: len(exact)] / exact - 1.0)))


def _our_map(given: Map, **options: Any) -> Work:
    risk = ClosedFormRisk()
    return lambda: hitting_times(risk, given.heads, given.level, **options)


def _runs_goals(rows: Sequence[Row]) -> list[Goal]:
    ours = seconds_of(rows, OURS, FAR)

    def over(way: str) -> float | None:
        theirs = seconds_of(rows, way, FAR)
        return theirs / ours if theirs and ours else None

    errors = [row.error for row in rows if row.way == OURS and row.error is not None]
    return [
        Goal("B", f"flow to t = 1e12 with a hitting time: {LSODA}, over ours", 500.0, over(LSODA)),
        Goal("B", f"the same: {CVODE}, over ours", 500.0, over(CVODE)),
        Goal("B", "error in scale, tube and hitting time", ACCURACY, max(errors, default=None),
             at_least=False),
    ]  # fmt: skip


def _maps_goals(rows: Sequence[Row]) -> list[Goal]:
    seconds = [row.seconds for row in rows if row.way == TWO_THREADS and row.seconds is not None]
    total = MAPPED * seconds[0] if seconds else None
    return [Goal("B", "seconds for 10,000 starts on two cores", 5.0, total, False, "s")]


TWO_THREADS = "popdyn, two threads"
_JAX = ("jax", "diffrax", "optimistix")
RUNS = Section(
    "B",
    "gradient flow from (ratio, scale) = (1.5, 5), a run",
    "log t",
    _runs,
    (
        Way(OURS, _ours, ACCURACY),
        _solver(LSODA, partial(_scipy, method="LSODA")),
        Way("popdyn, method LSODA (closed form)", partial(_ours, method="LSODA"), 1e-8),
        _solver("Radau (scipy), graded rule in NumPy", partial(_scipy, method="Radau")),
        _solver("BDF (scipy), graded rule in NumPy", partial(_scipy, method="BDF")),
        _solver("DOP853 (scipy), graded rule in NumPy", partial(_scipy, method="DOP853")),
        _solver(CVODE, _cvode, "sksundae"),
        _solver("Tsit5 (diffrax)", partial(_diffrax, solver="Tsit5", rtol=RTOL), *_JAX),
        # at 1e-8 it is as exact as the others at 1e-10
        _solver("Kvaerno5 (diffrax)", partial(_diffrax, solver="Kvaerno5", rtol=1e-8), *_JAX),
    ),
    distance,
    _runs_goals,
)
MAPS = Section(
    "B",
    "hitting times of many starts, a start",
    "",
    _maps,
    (
        Way("popdyn, one thread", partial(_our_map, workers=1), 1e-9),
        Way(TWO_THREADS, partial(_our_map, workers=2), 1e-9, wall=True),
        Way(
            "LSODA, compiled graded rule",
            partial(_each_by_scipy, method="LSODA", rtol=RTOL, atol=ATOL),
            LOOSE,
        ),
    ),
    _distance_of_times,
    _maps_goals,
)
SECTIONS = (RUNS, MAPS)
