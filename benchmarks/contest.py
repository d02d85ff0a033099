"""A contest: one piece of work, its right answer, and the ways to do it; answers before times."""

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import interleaved

Answer = NDArray[np.float64]
Work = Callable[[], Answer]

RIGHT, WRONG, ABSENT, FAILED = "right", "wrong", "absent", "failed"


@dataclass(frozen=True)
class Case:
    """A piece of work: what is given, the right answer, and where it stands on the axis."""

    name: str
    given: Any
    exact: Any
    x: float | None = None


@dataclass(frozen=True)
class Way:
    """A way to do it; `prepare(given)` imports and compiles what it needs, and returns the work.

    The work returns rows of an answer. A row is a piece of work, unless `pieces(given)` says how
    many pieces a call does; a way that does a part of one is extrapolated. `accuracy` is what the
    way states. A way that has other threads or processes work for it is timed by the `wall` clock.
    """

    name: str
    prepare: Callable[[Any], Work]
    accuracy: float
    needs: tuple[str, ...] = ()
    cases: tuple[str, ...] | None = None
    pieces: Callable[[Any], float] | None = None
    extrapolated: bool = False
    wall: bool = False

    @property
    def missing(self) -> list[str]:
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


@dataclass(frozen=True)
class Row:
    """What one way did in one case; seconds a piece, of all its turns the median and the least.

    A call does several pieces or a part of one; the first one imports and compiles as well.
    """

    section: str
    case: str
    x: float | None
    way: str
    verdict: str
    accuracy: float | None = None
    error: float | None = None
    seconds: float | None = None
    least: float | None = None
    first_call: float | None = None
    call: float | None = None
    extrapolated: bool = False
    note: str = ""


@dataclass(frozen=True)
class Goal:
    """A number that is wanted, at least (a ratio) or at most (an error, a time), and the number."""

    section: str
    text: str
    wanted: float
    measured: float | None
    at_least: bool = True
    unit: str = ""

    @property
    def met(self) -> bool:
        if self.measured is None:
            return False
        return self.measured >= self.wanted if self.at_least else self.measured <= self.wanted


@dataclass(frozen=True)
class Section:
    """Cases along one axis and the ways to do them; the first way is ours."""

    letter: str
    title: str
    axis: str
    cases: Callable[[bool], list[Case]]
    ways: tuple[Way, ...]
    distance: Callable[[Answer, Any], float]
    goals: Callable[[Sequence[Row]], list[Goal]] = lambda rows: []

    @property
    def name(self) -> str:
        return f"{self.letter}: {self.title}"


def compete(section: Section, quick: bool, seconds: float, say: Callable[[str], None]) -> list[Row]:
    """Rows of every case and way: all ways are checked, then those that answered are timed."""
    rows = []
    for case in section.cases(quick):
        entered = [way for way in section.ways if way.cases is None or case.name in way.cases]
        works: dict[str, Work] = {}
        checked: dict[str, dict[str, Any]] = {}
        say(f"{section.name}: {case.name}")
        for way in entered:
            checked[way.name] = _checked(section, case, way, works)
        walls = [way.wall for way in entered if way.name in works]
        taken = interleaved(list(works.values()), seconds, walls)
        times = dict(zip(works, taken, strict=True))
        for way in entered:
            facts = checked[way.name]
            pieces = facts.pop("pieces", None)
            if pieces is not None:
                each = np.array(times[way.name]) / pieces
                facts |= {
                    "seconds": float(np.median(each)),
                    "least": float(each.min()),
                    "call": float(np.median(times[way.name])),
                }
            rows.append(
                Row(section.name, case.name, case.x, way.name, accuracy=way.accuracy, **facts)
            )
    return rows


def _checked(section: Section, case: Case, way: Way, works: dict[str, Work]) -> dict[str, Any]:
    """Verdict, error and time of the first call; enters the work of a way that answers."""
    if way.missing:
        return {"verdict": ABSENT, "note": f"{' and '.join(way.missing)} not installed"}
    start = perf_counter()
    try:
        work = way.prepare(case.given)
        answer = work()
    except Exception as failure:  # whatever a peer raises is its result
        lines = str(failure).splitlines() or [""]
        return {"verdict": FAILED, "note": f"{type(failure).__name__}: {lines[0]}"}
    first_call = perf_counter() - start
    error = float(section.distance(answer, case.exact))
    works[way.name] = work
    return {
        "verdict": RIGHT if error <= way.accuracy else WRONG,
        "error": error if np.isfinite(error) else None,
        "first_call": first_call,
        "pieces": len(answer) if way.pieces is None else way.pieces(case.given),
        "extrapolated": way.extrapolated,
    }


def seconds_of(rows: Sequence[Row], way: str, case: str) -> float | None:
    """Median time of a way that answered right; None otherwise."""
    for row in rows:
        if (row.way, row.case) == (way, case) and row.verdict == RIGHT:
            return row.seconds
    return None


def mean_ratio(rows: Sequence[Row], way: str, ours: str) -> float | None:
    """Geometric mean over the cases that both answered right of the time of `way` over ours."""
    ratios = [
        theirs / mine
        for case in dict.fromkeys(row.case for row in rows)
        if (theirs := seconds_of(rows, way, case)) and (mine := seconds_of(rows, ours, case))
    ]
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else None


def worst_error(rows: Sequence[Row], way: str) -> float | None:
    """Largest error of a way over the cases; None if it never answered."""
    errors = [row.error for row in rows if row.way == way and row.error is not None]
    return max(errors, default=None)


def growth(rows: Sequence[Row], way: str) -> float | None:
    """Power of x in the cost of a way, by least squares over three cases or more."""
    points = [
        (row.x, row.seconds)
        for row in rows
        if row.way == way and row.verdict == RIGHT and row.x and row.seconds
    ]
    if len({x for x, _ in points}) < 3:
        return None
    x, cost = np.log(np.array(points)).T
    return float(np.polyfit(x, cost, 1)[0])
