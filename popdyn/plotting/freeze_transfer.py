"""The picture of frozen heads: errors on fresh contexts, and their floors (MODEL §6)."""

import numpy as np
from matplotlib.axes import Axes

from popdyn.experiments.freeze_transfer import Result
from popdyn.limit_laws import context_rms
from popdyn.plotting.finite_pretraining import name_steps
from popdyn.plotting.look import COLOURS, LIMIT, LINES, Figure, look, settle, tidy_log_axis

__all__ = ["draw", "draw_errors", "draw_floors"]

# Open and of several sizes: the errors of interior thresholds lie on one another.
MARKERS = "osD^v"
SIZES = (2.5, 4.0, 5.5)
LAW_POINTS = 200
ROOM = 1.2  # factor between an axis's end and the outermost point


def draw(result: Result) -> Figure:
    """Errors against the size of a context, and floors against the stopping scale."""
    with look():
        figure = Figure(figsize=(7.4, 3.0), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1.0])
        draw_errors(left, result)
        draw_floors(right, result)
        settle(figure)
    return figure


def draw_errors(axes: Axes, result: Result) -> None:
    """Error against context size of the first head of each size, with the law of its scale."""
    n = np.geomspace(result.context_sizes.min(), result.context_sizes.max(), LAW_POINTS)
    for i, size in enumerate(np.unique(result.corpus_sizes)):
        index = np.flatnonzero(result.corpus_sizes == size)[0]
        short = "" if result.reached[index] else ", short"
        axes.plot(
            n,
            context_rms(result.scales[index], n),
            color=COLOURS[i % len(COLOURS)],
            linestyle=LINES[i % len(LINES)],
            linewidth=0.8,
            label=rf"$m = n = {size}$, $\mu = {result.scales[index]:.3g}${short}",
        )
        for k in range(result.thresholds.size):
            axes.plot(
                result.context_sizes,
                result.root_mean_squares[index, k],
                color=COLOURS[i % len(COLOURS)],
                linestyle="none",
                marker=MARKERS[k % len(MARKERS)],
                markersize=SIZES[k % len(SIZES)],
                markerfacecolor="none",
                markeredgewidth=0.7,
            )
    for k, alpha in enumerate(result.thresholds):
        axes.plot(
            [],
            [],
            color="0.2",
            linestyle="none",
            marker=MARKERS[k % len(MARKERS)],
            markersize=SIZES[k % len(SIZES)],
            markerfacecolor="none",
            markeredgewidth=0.7,
            label=rf"$\alpha = {alpha:g}$",
        )
    axes.plot([], [], color="0.2", linewidth=0.8, label=r"$\sqrt{1/\mu^2 + 8\,\ell^2/N^2}$")
    axes.set_xscale("log")
    axes.set_yscale("log")
    tidy_log_axis(axes, "x")
    name_steps(axes.yaxis)
    axes.set_xlabel("$N$")
    axes.set_ylabel(r"RMS of $F - \alpha$")
    axes.legend(loc="upper right", ncols=2, columnspacing=1.0)


def draw_floors(axes: Axes, result: Result) -> None:
    """Floors of all heads against the stopping scale, and its inverse; crosses fell short of it."""
    for k, alpha in enumerate(result.thresholds):
        axes.plot(
            result.stopping_scales[result.reached],
            result.floors[result.reached, k],
            color=COLOURS[k % len(COLOURS)],
            linestyle="none",
            marker=MARKERS[k % len(MARKERS)],
            markersize=SIZES[k % len(SIZES)],
            markerfacecolor="none",
            markeredgewidth=0.7,
            label=rf"$\alpha = {alpha:g}$",
        )
    short = ~result.reached
    if short.any():
        places = np.repeat(result.stopping_scales[short], result.thresholds.size)
        axes.plot(
            places,
            result.floors[short].ravel(),
            color="0.1",
            linestyle="none",
            marker="x",
            markersize=5,
            label=f"{np.count_nonzero(short)} of {short.size} short of their scale",
        )
    proxies = np.array([result.stopping_scales.min() / ROOM, result.stopping_scales.max() * ROOM])
    axes.plot(proxies, 1.0 / proxies, label="its inverse (slope $-1$)", **LIMIT)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*proxies)
    name_steps(axes.xaxis)
    name_steps(axes.yaxis)
    axes.set_xlabel(r"stopping scale $2.5\,M/(\ell\,\log^2 M)$, $M = \min(m, n)$")
    axes.set_ylabel(r"RMS for $N \to \infty$")
    axes.legend(loc="upper right")
