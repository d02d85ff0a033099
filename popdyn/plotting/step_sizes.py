"""The picture of step sizes, and of what tasks and examples do to a gradient (MODEL §4, §6)."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy import float64
from numpy.typing import NDArray

from popdyn.asymptotics import fourth_power_increment, fourth_power_rate, stable_step
from popdyn.experiments.step_sizes import Result
from popdyn.plotting.look import COLOURS, LIMIT, LINES, Figure, look, settle, tidy_log_axis

__all__ = ["draw", "draw_increments", "draw_means", "draw_spreads"]

MARKERS = "osD^v"
LAW_POINTS = 100
ROOM = 1.25  # factor between an axis's end and the outermost point
APART = 1.09  # factor between the places of corpora with the same number of examples
STANDARD_ERRORS = 2.0
FAILED: dict[str, Any] = {"marker": "x", "color": "0.1", "linestyle": "none", "markersize": 6}


def draw(result: Result) -> Figure:
    """Increments against step size; mean against examples and spread against tasks of the grid."""
    with look():
        figure = Figure(figsize=(7.4, 2.7), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        draw_increments(left, result)
        draw_means(middle, result)
        draw_spreads(right, result)
        settle(figure)
    return figure


def draw_increments(axes: Axes, result: Result) -> None:
    """Normalized increment of `mu^4` against step size, its law and limit, and what fails."""
    going = ~result.failed
    eta = np.geomspace(result.step_sizes.min() / ROOM, result.step_sizes.max() * ROOM, LAW_POINTS)
    limit = fourth_power_rate()
    axes.plot(
        result.step_sizes[going],
        result.increments[going],
        color=COLOURS[0],
        linestyle="none",
        marker=MARKERS[0],
        markersize=4.5,
        label=f"after {result.n_steps:,} steps",
    )
    law = fourth_power_increment(eta, result.n_steps, result.start_scale)
    axes.plot(
        eta, law, color=COLOURS[0], linewidth=0.9, linestyle=LINES[1], label="law of the tube"
    )
    axes.axhline(limit, label=rf"limit $8/(1 + \ell^2) = {limit:g}$", **LIMIT)
    low = min(law.min(), np.nanmin(result.increments, initial=law.min()))
    gap = limit - low
    n_failed = np.count_nonzero(result.failed)
    if n_failed:
        axes.plot(
            result.step_sizes[result.failed],
            np.full(n_failed, low),
            label=f"{n_failed} of {going.size} failed",
            **FAILED,
        )
    for i in np.flatnonzero(result.failed):
        words = rf"$\mu = {result.stop_scales[i]:.0f}$" f"\nafter {result.steps_done[i]} steps"
        axes.annotate(
            words,
            (result.step_sizes[i], low),
            xytext=(-6, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=7,
        )
    stable = float(stable_step(result.start_scale))
    axes.vlines(stable, low + 0.2 * gap, limit + 0.2 * gap, color="0.6", linewidth=0.7)
    axes.text(
        stable / 1.06,
        limit,
        r"$\mu_0^3/(2\ell)$",
        ha="right",
        va="bottom",
        color="0.35",
        fontsize=7,
    )
    axes.set_xscale("log")
    axes.set_xlim(eta[0], eta[-1])
    axes.set_ylim(low - 1.1 * gap, limit + 0.2 * gap)  # the legend has its place below the points
    _name_ticks(axes, result.step_sizes, 1.5)
    axes.set_xlabel(r"step size $\eta$")
    axes.set_ylabel(r"$(\mu^4 - \mu_0^4)\,/\,(\eta\ \mathrm{steps})$")
    axes.legend(loc="lower center")


def draw_means(axes: Axes, result: Result) -> None:
    """Mean deviation of corpus gradients against examples, one point a number of tasks."""
    n_tasks, n_replicates = result.task_counts.size, result.deviations.shape[-1]
    means = result.deviations.mean(axis=-1)
    errors = result.deviations.std(axis=-1, ddof=1) / np.sqrt(n_replicates)
    places = APART ** (np.arange(n_tasks) - (n_tasks - 1) / 2)
    for s, shell in enumerate(result.shells):
        axes.plot(
            result.example_counts,
            result.means[s],
            color=COLOURS[s],
            linestyle=LINES[s],
            label=rf"exact, $\mu = {shell:g}$",
        )
        for i, m in enumerate(result.task_counts):
            axes.errorbar(
                result.example_counts * places[i],
                means[s, i],
                yerr=STANDARD_ERRORS * errors[s, i],
                color=COLOURS[s],
                linestyle="none",
                elinewidth=0.7,
                marker=MARKERS[i % len(MARKERS)],
                markersize=3.0,
                markerfacecolor="white" if s else COLOURS[s],
                markeredgewidth=0.7,
                label=None if s else f"$m = {m}$",
            )
    axes.axhline(0.0, **LIMIT)
    axes.set_xscale("log")
    _name_ticks(axes, result.example_counts)
    axes.set_xlabel("examples $n$ a task")
    axes.set_ylabel("mean deviation of the gradient")
    axes.legend(loc="lower right", handlelength=2.0)


def draw_spreads(axes: Axes, result: Result) -> None:
    """Spread over corpora against tasks, one line a number of examples: `m^(-1/2)`."""
    spreads = result.deviations.std(axis=-1, ddof=1)
    m = np.geomspace(result.task_counts.min() / ROOM, result.task_counts.max() * ROOM, LAW_POINTS)
    for j, n in enumerate(result.example_counts):
        for s in range(result.shells.size):
            axes.plot(
                m,
                result.task_spreads[s, j] / np.sqrt(m),
                color=COLOURS[j % len(COLOURS)],
                linestyle=LINES[s % len(LINES)],
                linewidth=0.9,
            )
            axes.plot(
                result.task_counts,
                spreads[s, :, j],
                color=COLOURS[j % len(COLOURS)],
                linestyle="none",
                marker=MARKERS[j % len(MARKERS)],
                markersize=3.5,
                markerfacecolor="white" if s else COLOURS[j % len(COLOURS)],
                markeredgewidth=0.8,
                label=None if s else f"$n = {n}$",
            )
    for s, shell in enumerate(result.shells):
        label = rf"exact, $\propto m^{{-1/2}}$, $\mu = {shell:g}$"
        axes.plot([], [], color="0.2", linestyle=LINES[s % len(LINES)], linewidth=0.9, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(m[0], m[-1])
    axes.set_ylim(bottom=axes.get_ylim()[0] / 10)  # the legend has its place below the lines
    _name_ticks(axes, result.task_counts)
    tidy_log_axis(axes, "y")
    axes.set_xlabel("tasks $m$")
    axes.set_ylabel("spread of the deviation")
    axes.legend(loc="lower left")


def _name_ticks(axes: Axes, numbers: NDArray[Any], apart: float = 1.0) -> None:
    """Label a horizontal axis at the numbers drawn, but not at those too close to one labelled."""
    kept: list[float] = []
    for number in np.sort(numbers).astype(float64):
        if not kept or number >= apart * kept[-1]:
            kept.append(float(number))
    axes.xaxis.set_major_locator(FixedLocator(kept))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
