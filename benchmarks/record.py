"""The record of a run: machine, rows and goals; as JSON, as tables, in the README."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from importlib import metadata
from pathlib import Path

from benchmarks.contest import ABSENT, FAILED, WRONG, Goal, Row, growth, worst_error

QUICK = "A quick run, of smaller work than the titles say: its times say nothing. "
COMPILING = 1.0  # seconds; compilation that takes longer is named
BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"
DISTRIBUTIONS = (
    "popdyn-attention",
    "numpy",
    "scipy",
    "numba",
    "mpmath",
    "python-flint",
    "jax",
    "quadax",
    "diffrax",
    "scikit-sundae",
    "torch",
)
_UNITS = ((86400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


@dataclass(frozen=True)
class Record:
    """What one run measured, and where. `axes` are those of the sections, by their names."""

    quick: bool
    machine: dict[str, str]
    axes: dict[str, str]
    rows: tuple[Row, ...]
    goals: tuple[Goal, ...]

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Record":
        stored = json.loads(path.read_bytes())
        rows = tuple(Row(**row) for row in stored["rows"])
        goals = tuple(Goal(**goal) for goal in stored["goals"])
        return cls(stored["quick"], stored["machine"], stored["axes"], rows, goals)

    def of_section(self, section: str) -> list[Row]:
        return [row for row in self.rows if row.section == section]


def machine() -> dict[str, str]:
    """What the program finds of the processor, the system and the versions of all contestants."""
    model, flags = platform.processor() or platform.machine(), ""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line.partition(":") for line in cpuinfo.read_text().splitlines()]
        facts = {key.strip(): value.strip() for key, _, value in lines}
        model, flags = facts.get("model name", model), facts.get("flags", "")
    found = {
        "processor": model + (" with AVX-512" if "avx512f" in flags.split() else ""),
        "cores": str(os.cpu_count()),
        "load before": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown",
        "system": f"{platform.system()} {platform.machine()}",
        "date": date.today().isoformat(),
        "Python": platform.python_version(),
    }
    for name in DISTRIBUTIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = ABSENT
    return found


# --- tables ---------------------------------------------------------------------------------------


def headline(record: Record) -> str:
    """The machine in a line, and the goals."""
    facts = dict(record.machine)
    place = (
        f"{QUICK if record.quick else ''}Measured on {facts.pop('date')}: "
        f"{facts.pop('processor')}, {facts.pop('cores')} cores "
        f"(load {facts.pop('load before')} before), {facts.pop('system')}; "
    )
    return (
        place
        + ", ".join(f"{name} {version}" for name, version in facts.items())
        + f".\n\n{goal_table(record.goals)}"
    )


def goal_table(goals: Sequence[Goal]) -> str:
    """A line a goal: wanted, measured, and by how much it is missed."""
    lines = ["| | goal | wanted | measured | |", "|---|---|---|---|---|"]
    for goal in goals:
        bound = "at least" if goal.at_least else "at most"
        verdict = "met" if goal.met else "not measured"
        if goal.measured and not goal.met:
            missed = goal.wanted / goal.measured if goal.at_least else goal.measured / goal.wanted
            verdict = f"not met, by a factor of {missed:.2g}"
        wanted, measured = (_quantity(goal, number) for number in (goal.wanted, goal.measured))
        lines.append(
            f"| {goal.section} | {goal.text} | {bound} {wanted} | {measured} | {verdict} |"
        )
    return "\n".join(lines)


def _quantity(goal: Goal, number: float | None) -> str:
    if number is None:
        return "none"
    if goal.unit == "s":
        return duration(number)
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def section_table(record: Record, section: str) -> str:
    """A line a way, a column a case: the time of ours, and of the others the ratio to it."""
    rows = record.of_section(section)
    cases = list(dict.fromkeys(row.case for row in rows))
    ways = list(dict.fromkeys(row.way for row in rows))
    axis = record.axes[section]
    ours = {row.case: row.seconds for row in rows if row.way == ways[0]}
    grows = any(growth(rows, way) is not None for way in ways)
    columns = ["way", *cases, "worst error", *([f"power of {axis}"] * grows)]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for way in ways:
        by_case = {row.case: row for row in rows if row.way == way}
        cells = [_cell(by_case.get(case), None if way == ways[0] else ours[case]) for case in cases]
        error = worst_error(rows, way)
        cells.append("" if error is None else f"{error:.0e}")
        if grows:
            power = growth(rows, way)
            cells.append("" if power is None else f"{power:.2f}")
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(row: Row | None, ours: float | None) -> str:
    if row is None:
        return ""
    if row.verdict in (ABSENT, FAILED):
        return f"{row.verdict}: {row.note}"
    if row.verdict == WRONG:
        return "wrong" if row.error is None else f"wrong by {row.error:.0e}"
    assert row.seconds is not None
    time = duration(row.seconds) + (", extrapolated" if row.extrapolated else "")
    return time if ours is None else f"{_times(row.seconds / ours)} ({time})"


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} x" if ratio >= 10 else f"{ratio:.2g} x"


def duration(seconds: float) -> str:
    """Three digits, in the unit that suits."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def report(record: Record) -> str:
    """Everything in Markdown: the headline, then a table a section."""
    parts = [headline(record)]
    parts += [f"## {section}\n\n{section_table(record, section)}" for section in record.axes]
    compiled = _compiling(record.rows)
    if compiled:
        named = ", ".join(f"{way} {duration(seconds)}" for way, seconds in compiled.items())
        parts.append(f"Imports and compilation at first calls, in no time above: {named}.")
    return "\n\n".join(parts) + "\n"


def _compiling(rows: Sequence[Row]) -> dict[str, float]:
    """What the longest first call of a way takes beyond a call, where that is most of it."""
    found: dict[str, float] = {}
    for row in rows:
        if row.first_call is None or row.call is None:
            continue
        beyond = row.first_call - row.call
        if beyond > max(COMPILING, row.call):
            found[row.way] = max(beyond, found.get(row.way, 0.0))
    return found


def with_table(text: str, content: str) -> str:
    """A text with other content between the marks."""
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(
            f"the README must have the marks {BEGIN} and {END}; put them where it goes"
        )
    return f"{before}{BEGIN}\n{content}\n{END}{after}"
