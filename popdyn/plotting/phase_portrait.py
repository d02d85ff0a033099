"""The picture of the flow in the plane `(c, 1/mu)`: tube, separatrix, basins (MODEL §4, §5)."""

import numpy as np
from matplotlib.axes import Axes

from popdyn.asymptotics import tube_center, tube_limit
from popdyn.experiments.phase_portrait import Result
from popdyn.plotting.look import COLOURS, LIMIT, LINES, Figure, look, settle

__all__ = ["draw", "draw_flow"]

LAW_POINTS = 100
LAW_FROM = 3.0  # of mu l, below which the expansion of the tube means nothing
ENDS = ("to the reflected head", "to the upright head")


def draw(result: Result) -> Figure:
    """Paths by where they end, with the separatrix and the tube."""
    with look():
        figure = Figure(figsize=(3.7, 2.8), layout="constrained")
        draw_flow(figure.subplots(), result)
        settle(figure)
    return figure


def draw_flow(axes: Axes, result: Result) -> None:
    """Paths in `(c, 1/mu)`, an arrow on each; scales grow downwards."""
    left, right, top = result.window
    for upright in (True, False):
        indices = np.flatnonzero(result.upright == upright).tolist()
        for index in indices:
            c, u = result.tubes[index], result.inverse_scales[index]
            axes.plot(
                c,
                u,
                color=COLOURS[0 if upright else 1],
                linestyle=LINES[0 if upright else 1],
                linewidth=0.7,
                label=ENDS[upright] if index == indices[0] else None,
            )
            _draw_arrow(axes, result, index)
    axes.plot(
        result.separatrix_tubes,
        result.separatrix_inverse_scales,
        color="0.0",
        linewidth=1.6,
        label="separatrix",
    )
    u = np.linspace(top / LAW_POINTS, result.half_width / LAW_FROM, LAW_POINTS)
    style = LIMIT | {"linewidth": 1.6}
    axes.plot(tube_center(1.0 / u, result.half_width, order=4), u, label="tube", **style)
    axes.plot(
        tube_limit(result.half_width), 0.0, marker="o", color="0.0", markersize=4, clip_on=False
    )
    axes.set_xlim(left, right)
    axes.set_ylim(0.0, top)
    axes.set_xlabel("$c$")
    axes.set_ylabel(r"$1/\mu$")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _draw_arrow(axes: Axes, result: Result, index: int) -> None:
    """An arrow in the middle of what the window shows of a path."""
    left, right, top = result.window
    x = (result.tubes[index] - left) / (right - left)
    y = result.inverse_scales[index] / top
    inside = (x >= 0) & (x <= 1) & (y >= 0) & (y <= 1)
    # Where a path leaves the window it has a gap, in which no arrow belongs.
    pieces = np.where(inside[1:] & inside[:-1], np.hypot(np.diff(x), np.diff(y)), 0.0)
    length = np.cumsum(pieces)
    if not length[-1] > 0:
        return
    tail = int(np.searchsorted(length, length[-1] / 2))
    tip = tail + 1
    axes.annotate(
        "",
        (result.tubes[index, tip], result.inverse_scales[index, tip]),
        (result.tubes[index, tail], result.inverse_scales[index, tail]),
        arrowprops={
            "arrowstyle": "-|>",
            "color": COLOURS[0 if result.upright[index] else 1],
            "linewidth": 0.7,
            "mutation_scale": 7,
        },
    )
