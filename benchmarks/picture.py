"""The picture of a record: what the work costs, how the cost grows, and what error it buys."""

import math
import re
from collections.abc import Iterable

import matplotlib as mpl
from matplotlib.axes import Axes

from benchmarks.contest import RIGHT, WRONG, Row
from benchmarks.record import Record
from popdyn.plotting.look import COLOURS, Figure, look, settle, tidy_log_axis

# What the ways build on, told by a word of their names: (word, name, colour, marker).
_FAMILIES = (
    ("popdyn", "popdyn", COLOURS[0], "o"),
    ("Numba", "Numba", COLOURS[1], "s"),
    ("mpmath", "mpmath", "0.65", "X"),
    ("quadax", "JAX", COLOURS[4], "D"),
    ("quad", "scipy", COLOURS[2], "^"),
    ("LSODA", "scipy", COLOURS[2], "^"),
    ("scipy", "scipy", COLOURS[2], "^"),
    ("CVODE", "CVODE", COLOURS[3], "v"),
    ("diffrax", "JAX", COLOURS[4], "D"),
    ("JAX", "JAX", COLOURS[4], "D"),
    ("arb", "arb", "0.45", "P"),
    ("torch", "torch", COLOURS[5], "<"),
    ("NumPy", "NumPy", "black", "x"),
    ("Monte Carlo", "NumPy", "black", "x"),
)
_COLUMNS = 3
_LEAST_ERROR = 1e-17  # what is smaller is drawn here


def draw(record: Record) -> Figure:
    """Cost in every section that has an axis; error against cost in the first of three letters."""
    sections = [name for name, axis in record.axes.items() if axis and _shown(record, name)]
    firsts = {name.partition(":")[0]: name for name in reversed(sections)}
    compared = sorted(firsts.values())[:_COLUMNS]
    n_rows = math.ceil((len(sections) + len(compared)) / _COLUMNS)
    with look():
        figure = Figure(figsize=(7.2, 2.3 * n_rows + 0.5), layout="constrained")
        panels = iter(figure.subplots(n_rows, _COLUMNS, squeeze=False).ravel())
        for section in sections:
            _cost(next(panels), record, section)
        for section in compared:
            _error(next(panels), record, section)
        for axes in panels:
            axes.set_axis_off()
        _legend(figure, {_family(row.way) for row in record.rows if row.seconds is not None})
        settle(figure)
    return figure


def _shown(record: Record, section: str) -> list[Row]:
    return [row for row in record.of_section(section) if row.seconds is not None]


def _family(way: str) -> tuple[str, str, str]:
    for word, *family in _FAMILIES:
        if word in way:
            return tuple(family)
    return "other", "0.3", "."


def _cost(axes: Axes, record: Record, section: str) -> None:
    """Seconds a piece, right answers joined; ours is the thick line; wrong answers are faint."""
    rows = _shown(record, section)
    ways = list(dict.fromkeys(row.way for row in rows))
    for way in ways:
        _, colour, marker = _family(way)
        right = [row for row in rows if row.way == way and row.verdict == RIGHT]
        wrong = [row for row in rows if row.way == way and row.verdict == WRONG]
        width = 2.2 if way == ways[0] else 0.8
        style = {"color": colour, "marker": marker, "markersize": 4.0}
        axes.plot(*_points(right), linewidth=width, **style)
        axes.plot(*_points(wrong), linestyle="none", alpha=0.3, **style)
    axis = record.axes[section]
    if axis != "log t":
        axes.set_xscale("log")
        tidy_log_axis(axes, "x")
    axes.set_yscale("log")
    tidy_log_axis(axes, "y")
    axes.set_xlabel({"mu": r"$\mu$", "log t": r"$\log_{10} t$", "m n": "$m n$"}.get(axis, axis))
    axes.set_ylabel("seconds")
    axes.set_title(_title(section), fontsize=7, loc="left")


def _title(section: str) -> str:
    """Without the unit and the start."""
    return re.split(", | from ", section)[0]


def _points(rows: Iterable[Row]) -> tuple[list[float | None], list[float | None]]:
    rows = list(rows)
    return [row.x for row in rows], [row.seconds for row in rows]


def _error(axes: Axes, record: Record, section: str) -> None:
    """Error against cost of every answer, wrong ones faint."""
    for row in _shown(record, section):
        if row.error is None:
            continue
        _, colour, marker = _family(row.way)
        axes.plot(
            row.seconds,
            max(row.error, _LEAST_ERROR),
            color=colour,
            marker=marker,
            markersize=4.0,
            linestyle="none",
            alpha=1.0 if row.verdict == RIGHT else 0.3,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    tidy_log_axis(axes, "x")
    tidy_log_axis(axes, "y")
    axes.set_xlabel("seconds")
    axes.set_ylabel("error")
    axes.set_title(_title(section), fontsize=7, loc="left")


def _legend(figure: Figure, present: set[tuple[str, str, str]]) -> None:
    families = dict.fromkeys(tuple(family) for _, *family in _FAMILIES)
    handles = [
        mpl.lines.Line2D([], [], label=name, color=colour, marker=marker, markersize=4.0)
        for name, colour, marker in families
        if (name, colour, marker) in present
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
