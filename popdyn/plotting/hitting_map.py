"""The map of hitting times over ratio and scale of the start (MODEL §4, §5)."""

import numpy as np
from matplotlib.axes import Axes

from popdyn.experiments import phase_portrait
from popdyn.experiments.hitting_map import Result
from popdyn.plotting.look import Figure, look, settle, tidy_log_axis
from popdyn.plotting.phase_portrait import draw_flow

__all__ = ["draw", "draw_beside_portrait", "draw_times"]

NEVER = "0.85"  # grey of the starts that do not come to the level
COLOUR_MAP = "cividis"  # even in lightness, so that a grey print is ordered too
LINES_OF_TIME = 8


def draw(result: Result) -> Figure:
    """Time to the level, by colour and by lines of equal time."""
    with look():
        figure = Figure(figsize=(3.9, 2.8), layout="constrained")
        draw_times(figure.subplots(), result)
        settle(figure)
    return figure


def draw_beside_portrait(result: Result, portrait: phase_portrait.Result) -> Figure:
    """The map, and the flow in the plane `(c, 1/mu)` beside it."""
    with look():
        figure = Figure(figsize=(7.4, 2.9), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[1.15, 1.0])
        draw_times(left, result)
        draw_flow(right, portrait)
        settle(figure)
    return figure


def draw_times(axes: Axes, result: Result) -> None:
    """Time to the level in colour, grey where it is never reached, and the separatrix."""
    times = np.ma.masked_invalid(result.times)
    axes.set_facecolor(NEVER)
    axes.set_yscale("log")
    if times.count():
        mesh = axes.pcolormesh(
            result.ratios,
            result.scales,
            times,
            cmap=COLOUR_MAP,
            shading="nearest",
            rasterized=True,
        )
        if np.ptp(times) > 0:
            equal = axes.contour(
                result.ratios,
                result.scales,
                times,
                levels=LINES_OF_TIME,
                colors="1.0",
                linewidths=0.6,
            )
            axes.clabel(equal, fontsize=6)
        bar = axes.figure.colorbar(mesh, ax=axes)
        bar.set_label(rf"$t$ to $\mu = {result.level:g}$")
    axes.plot(result.separatrix, result.scales, color="0.0", linewidth=1.6, label="separatrix")
    axes.set_xlim(result.ratios[0], result.ratios[-1])
    axes.set_ylim(result.scales[0], result.scales[-1])
    tidy_log_axis(axes, "y")
    axes.set_xlabel("$k$")
    axes.set_ylabel(r"$\mu$")
    axes.plot([], [], color=NEVER, linewidth=6, label="never")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
