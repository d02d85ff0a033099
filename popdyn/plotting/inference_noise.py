"""The picture of flipped labels at inference (MODEL §6, §7)."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from popdyn.experiments.inference_noise import Result
from popdyn.limit_laws import context_rms
from popdyn.plotting.look import COLOURS, LIMIT, LINES, Figure, look, settle, tidy_log_axis

__all__ = ["draw", "draw_errors"]

MARKERS = "osD"
LAW_POINTS = 200
FLOOR: dict[str, Any] = {"linestyle": "-", "linewidth": 0.6}


def draw(result: Result) -> Figure:
    """Root mean square error against the size of a context, with floors, one line a condition."""
    with look():
        figure = Figure(figsize=(4.6, 3.2), layout="constrained")
        draw_errors(figure.subplots(), result)
        settle(figure)
    return figure


def draw_errors(axes: Axes, result: Result) -> None:
    """Exact errors, the floors they approach, and the law of a clean context."""
    order = np.argsort(result.context_sizes)
    sizes = result.context_sizes[order]
    labels = (
        "clean",
        rf"localized, $p = {result.localized_probability:g}$, $w = 1/\mu$",
        rf"Massart, $p = {result.massart_probability:g}$",
    )
    for index, label in enumerate(labels):
        color = COLOURS[index]
        axes.plot(
            sizes,
            result.root_mean_square[index, order],
            color=color,
            linestyle=LINES[index],
            marker=MARKERS[index],
            markersize=4,
            markerfacecolor="none",
            label=label,
        )
        axes.axhline(result.floor[index], color=color, **FLOOR)
    axes.plot([], [], color="0.4", label=r"floors, $N = \infty$", **FLOOR)
    n = np.geomspace(sizes[0], sizes[-1], LAW_POINTS)
    law = context_rms(result.scale, n)
    axes.plot(n, law, label=r"$\sqrt{1/\mu^2 + 8\,\ell^2/N^2}$", **LIMIT)
    axes.set_xscale("log")
    axes.set_yscale("log")
    tidy_log_axis(axes, "x")
    tidy_log_axis(axes, "y")
    axes.set_ylim(0.5 * result.floor.min(), 2.0)
    axes.set_xlabel("$N$")
    axes.set_ylabel(r"RMS of $F - \alpha$")
    axes.set_title(
        rf"frozen head, $\mu = {result.scale:g}$, $\alpha = {result.threshold:g}$", fontsize=8
    )
    axes.legend(loc="center right", bbox_to_anchor=(1.0, 0.62))
