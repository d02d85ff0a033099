"""The picture of a record: what the work costs, how the cost grows, and what error it buys."""

from collections.abc import Iterable

import matplotlib as mpl
from matplotlib.axes import Axes

from benchmarks.contest import RIGHT, WRONG, Row
from benchmarks.record import Record
from popdyn.plotting.look import COLOURS, Figure, look, settle

# What the ways build on, told by a word of their names: (word, name, colour, marker).
_FAMILIES = (
    ("popdyn", "popdyn", COLOURS[0], "o"),
    ("Numba", "Numba", COLOURS[1], "s"),
    ("quad", "scipy", COLOURS[2], "^"),
    ("LSODA", "scipy", COLOURS[2], "^"),
    ("scipy", "scipy", COLOURS[2], "^"),
    ("CVODE", "CVODE", COLOURS[3], "v"),
    ("diffrax", "JAX", COLOURS[4], "D"),
    ("JAX", "JAX", COLOURS[4], "D"),
    ("arb", "arb", "0.45", "P"),
    ("mpmath", "mpmath", "0.65", "X"),
    ("torch", "torch", COLOURS[5], "<"),
    ("NumPy", "NumPy", "black", "x"),
)
_LEAST_ERROR = 1e-17  # what is smaller is drawn here


def draw(record: Record) -> Figure:
    """A panel a section with an axis, cost against it; then error against cost of them all."""
    sections = [name for name, axis in record.axes.items() if axis and _shown(record, name)]
    n_rows = -(-(len(sections) + 1) // 3)
    with look():
        figure = Figure(figsize=(7.2, 2.4 * n_rows + 0.5), layout="constrained")
        panels = figure.subplots(n_rows, 3, squeeze=False).ravel()
        for axes, section in zip(panels, sections, strict=False):
            _cost(axes, record, section)
        _error(panels[len(sections)], record)
        for axes in panels[len(sections) + 1 :]:
            axes.set_axis_off()
        _legend(figure)
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
    axes.set_yscale("log")
    axes.set_xlabel({"mu": r"$\mu$", "log t": r"$\log_{10} t$", "m n": "$m n$"}.get(axis, axis))
    axes.set_ylabel("seconds")
    letter, title = section.split(": ", 1)
    axes.set_title(f"{letter}: {title.split(',')[0]}", fontsize=7, loc="left", wrap=True)


def _points(rows: Iterable[Row]) -> tuple[list[float | None], list[float | None]]:
    rows = list(rows)
    return [row.x for row in rows], [row.seconds for row in rows]


def _error(axes: Axes, record: Record) -> None:
    """Error against cost of every answer, right or wrong."""
    for row in record.rows:
        if row.seconds is None or row.error is None or row.section.startswith("F"):
            continue
        _, colour, marker = _family(row.way)
        error = max(row.error, _LEAST_ERROR)
        axes.plot(row.seconds, error, color=colour, marker=marker, markersize=3.0, linestyle="none")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("seconds")
    axes.set_ylabel("error")
    axes.set_title("all answers, right and wrong", fontsize=7, loc="left")


def _legend(figure: Figure) -> None:
    families = {tuple(family) for _, *family in _FAMILIES}
    handles = [
        mpl.lines.Line2D([], [], label=name, color=colour, marker=marker, markersize=4.0)
        for name, colour, marker in sorted(families)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
