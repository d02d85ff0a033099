"""A whole pretraining: constant-step descent on a corpus from scale 10 on (MODEL §6)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks.contest import Answer, Case, Goal, Row, Section, Way, Work, seconds_of
from benchmarks.corpus import SMALL, numpy_gradient, risk_of_size
from popdyn import CorpusRisk, Head, gradient_descent

ACCURACY = 1e-11
OURS, DIRECT, NUMPY = "popdyn, jumps", "popdyn, every step", "NumPy, every step"
START, STEP_SIZE = 10.0, 1.0
LEVELS = (20.0, 40.0, 100.0)
LAST = f"until mu = {LEVELS[-1]:g}"
SIZE = 1000
CHECKED = 10_000  # steps that are also taken one by one
PLACES, N_STEPS = 5, 2  # along the run, where steps are checked, and so many from each
TIMED = 100  # from each place for our own steps: a call of fewer would be all preparation
UNENDING = 10**9
POINTS = 600  # of a run, evenly in the logarithm of the step: places are right to 4 %
WANTED = 0.5  # seconds


@dataclass(frozen=True)
class Pretraining:
    """A run until a level: its number of steps, and heads evenly spaced in steps along it."""

    risk: CorpusRisk
    start: Head
    level: float
    n_steps: int
    checked: int
    places: tuple[Head, ...]


def _runs(quick: bool) -> list[Case]:
    risk = risk_of_size(SMALL if quick else SIZE)
    checked = CHECKED // 50 if quick else CHECKED
    cases = []
    for level in (12.0,) if quick else LEVELS:
        given = _pretraining(risk, level, checked)
        exact = {1: _steps(risk, given.start, checked), PLACES: _numpy(given, np.longdouble)()}
        cases.append(Case(f"until mu = {level:g}", given, exact, float(given.n_steps)))
    return cases


@cache
def _pretraining(risk: CorpusRisk, level: float, checked: int) -> Pretraining:
    start = Head.from_tube(math.log(2.0), START)
    path = gradient_descent(
        risk, start, STEP_SIZE, UNENDING, until_scale=level, record=POINTS, method="jumps"
    )
    n_steps = round(path.stop_time / STEP_SIZE)
    wanted = (np.arange(PLACES) + 0.5) / PLACES * path.stop_time
    nearest = np.abs(path.t[:, None] - wanted).argmin(axis=0)
    places = [Head.from_excess(path.excess[i], path.scale[i]) for i in nearest]
    return Pretraining(risk, start, level, n_steps, checked, tuple(places))


@cache
def _steps(risk: CorpusRisk, head: Head, n_steps: int) -> Answer:
    """Excess and scale after so many steps, each of them taken, shape (1, 2)."""
    end = gradient_descent(risk, head, STEP_SIZE, n_steps, record=[n_steps])
    return np.array([[end.excess[-1], end.scale[-1]]])


def distance(answer: Answer, exact: dict[int, Answer]) -> float:
    """Of the excess, absolute, and of the scale, relative.

    Of one row, after the checked steps of a run; of more, after two steps from each place.
    """
    wrong = np.abs(answer - exact[len(answer)])
    return float(np.max(wrong / np.array([1.0, START])))


# --- ways -----------------------------------------------------------------------------------------


def _ours(given: Pretraining) -> Work:
    def work() -> Answer:
        run = gradient_descent(
            given.risk,
            given.start,
            STEP_SIZE,
            UNENDING,
            until_scale=given.level,
            record=[given.checked],
            method="jumps",
        )
        return np.array([[run.excess[0], run.scale[0]]])

    return work


def _direct(given: Pretraining) -> Work:
    def after(head: Head) -> tuple[float, float]:
        run = gradient_descent(given.risk, head, STEP_SIZE, TIMED, record=[N_STEPS, TIMED])
        return run.excess[0], run.scale[0]

    return lambda: np.array([after(place) for place in given.places])


def _numpy(given: Pretraining, number: type = float) -> Work:
    gradient = numpy_gradient(given.risk, number)

    def after(head: Head) -> tuple[float, float]:
        lam, mu = number(head.label_score), number(head.scale)
        for _ in range(N_STEPS):
            _, by_lam, by_mu = gradient(lam, mu)
            lam, mu = lam - STEP_SIZE * by_lam, mu - STEP_SIZE * by_mu
        return float(lam - mu), float(mu)

    return lambda: np.array([after(place) for place in given.places])


# --- section --------------------------------------------------------------------------------------


def _whole_run(given: Pretraining) -> float:
    return 1.0


def _step_by_step(name: str, prepare: Callable[[Pretraining], Work], n_steps: int) -> Way:
    def part(given: Pretraining) -> float:
        return PLACES * n_steps / given.n_steps

    return Way(name, prepare, ACCURACY, pieces=part, extrapolated=True)


def _goals(rows: Sequence[Row]) -> list[Goal]:
    errors = [row.error for row in rows if row.way == OURS and row.error is not None]
    return [
        Goal("D", f"seconds for 44 million steps, m = n = {SIZE}", WANTED,
             seconds_of(rows, OURS, LAST), False, "s"),
        Goal("D", f"error after {CHECKED} steps", ACCURACY, max(errors, default=None), False),
    ]  # fmt: skip


RUNS = Section(
    "D",
    f"pretraining at m = n = {SIZE} from mu = {START:g} on, a run",
    "steps",
    _runs,
    (
        Way(OURS, _ours, ACCURACY, pieces=_whole_run),
        _step_by_step(DIRECT, _direct, TIMED),
        _step_by_step(NUMPY, _numpy, N_STEPS),
    ),
    distance,
    _goals,
)
SECTIONS = (RUNS,)
