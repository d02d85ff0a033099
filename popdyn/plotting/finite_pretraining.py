"""The picture of pretraining on finite corpora and of frozen transfer (MODEL §6)."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from popdyn.experiments.finite_pretraining import Result
from popdyn.plotting.look import COLOURS, LIMIT, LINES, Figure, look, settle, tidy_log_axis

__all__ = ["draw", "draw_prediction_control", "draw_radius_control", "draw_transfer", "name_steps"]

MARKERS = "osD^v"
FEW, MANY = (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)  # where log axes are labelled
DECADE = 5.0  # a span that surely has two of the few
SHORT: dict[str, Any] = {"marker": "x", "color": "0.1", "markersize": 5, "linestyle": "none"}
PROXY: dict[str, Any] = {"marker": "^", "markersize": 5, "linestyle": "none"}
PATH: dict[str, Any] = {"linewidth": 0.7}


def draw(result: Result) -> Figure:
    """Radius control, prediction-error control, and the error of the frozen heads in two terms."""
    with look():
        figure = Figure(figsize=(7.4, 2.8), layout="constrained")
        left, middle, right = figure.subplots(1, 3, width_ratios=[1.0, 1.0, 1.15])
        draw_radius_control(left, result)
        draw_prediction_control(middle, result)
        draw_transfer(right, result)
        settle(figure)
    return figure


def draw_radius_control(axes: Axes, result: Result) -> None:
    """Radius of every corpus run over the population's, against the step; without a legend."""
    _draw_paths(axes, result, "steps", "radius_ratios")
    axes.axhline(1.0, **LIMIT)
    axes.set_xlabel("step")
    axes.set_ylabel(r"$|(\lambda, \mu)|$ over the population's")
    tidy_log_axis(axes, "x")


def draw_prediction_control(axes: Axes, result: Result) -> None:
    """Radius times the largest interior error of every corpus run, against the scale; at the foot
    the scale at which each size was to stop."""
    _draw_paths(axes, result, "scales", "scaled_errors")
    axes.axhline(np.sqrt(2.0), label=r"$\sqrt{1 + \ell^2}$", **LIMIT)
    foot = axes.get_ylim()[0]
    for i, size in enumerate(np.unique(result.corpus_sizes)):
        axes.plot(
            result.stopping_scales[result.corpus_sizes == size][0],
            foot,
            color=COLOURS[i % len(COLOURS)],
            clip_on=False,
            **PROXY,
        )
    axes.set_ylim(bottom=foot)
    axes.plot([], [], color="0.2", label=r"proxy $2.5\,M/(\ell\,\log^2 M)$", **PROXY)
    name_steps(axes.xaxis)
    axes.set_xlabel(r"$\mu$")
    axes.set_ylabel(r"$|(\lambda, \mu)|\,\mathrm{sup}\,|F - \alpha|$")
    _count_short(axes, result)
    axes.legend(loc="upper right")


def draw_transfer(axes: Axes, result: Result) -> None:
    """Error of each frozen head against the size of a fresh context, and the fit of two terms."""
    for i, size in enumerate(np.unique(result.corpus_sizes)):
        of_size = result.corpus_sizes == size
        colour = COLOURS[i % len(COLOURS)]
        for errors in result.root_mean_squares[of_size & result.reached]:
            axes.plot(
                result.context_sizes,
                errors,
                color=colour,
                linestyle="none",
                marker=MARKERS[i % len(MARKERS)],
                markersize=2.5,
                markeredgewidth=0.5,
                markerfacecolor="none",
            )
        axes.plot(
            result.context_sizes,
            result.fitted_errors[of_size][0],
            color=colour,
            linestyle=LINES[i % len(LINES)],
            linewidth=1.0,
        )
    for errors in result.root_mean_squares[~result.reached]:
        axes.plot(result.context_sizes, errors, **SHORT | {"markersize": 3.5})
    axes.plot(
        [],
        [],
        color="0.2",
        label=rf"${result.A:.2f}\,\log^2 M\,/\,M + {result.B:.2f}\,/\,N$",
    )
    axes.plot(
        [],
        [],
        color="0.2",
        linestyle="none",
        marker=MARKERS[0],
        markersize=3,
        markerfacecolor="none",
        label="frozen heads",
    )
    _count_short(axes, result)
    axes.set_xscale("log")
    axes.set_yscale("log")
    tidy_log_axis(axes, "x")
    name_steps(axes.yaxis)
    axes.set_xlabel("$N$")
    axes.set_ylabel(r"RMS of $F - \alpha$")
    axes.legend(loc="upper right")


def _draw_paths(axes: Axes, result: Result, across: str, upward: str) -> None:
    """One line a corpus, coloured by its size, and a cross where one ended short of its scale."""
    across_all, upward_all = getattr(result, across), getattr(result, upward)
    for i, size in enumerate(np.unique(result.corpus_sizes)):
        for j, index in enumerate(np.flatnonzero(result.corpus_sizes == size)):
            later = result.steps[index] > 0
            axes.plot(
                across_all[index, later],
                upward_all[index, later],
                color=COLOURS[i % len(COLOURS)],
                linestyle=LINES[i % len(LINES)],
                label=None if j else f"$m = n = {size}$",
                **PATH,
            )
    for index in np.flatnonzero(~result.reached):
        end = np.flatnonzero(np.isfinite(result.steps[index]))[-1]
        axes.plot(across_all[index, end], upward_all[index, end], **SHORT)
    axes.set_xscale("log")


def _count_short(axes: Axes, result: Result) -> None:
    """An entry of the legend for corpora that fell short, where there are any."""
    n_short = np.count_nonzero(~result.reached)
    if n_short:
        axes.plot([], [], label=f"{n_short} of {result.reached.size} short of scale", **SHORT)


def name_steps(axis: Axis) -> None:
    """Label a log axis of about a decade at 1, 2 and 5, a shorter one more densely."""
    low, high = sorted(axis.get_view_interval())
    axis.set_major_locator(LogLocator(subs=FEW if high / low > DECADE else MANY))
    axis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}"))
    axis.set_minor_formatter(NullFormatter())
