"""The picture of the population dynamics: capture, growth, settled quantities (MODEL §4)."""

from typing import Protocol

import numpy as np
from matplotlib.axes import Axes
from numpy import float64
from numpy.typing import NDArray

from popdyn.asymptotics import growth_rate, scale_at, tube_center
from popdyn.experiments.population import Result
from popdyn.plotting.look import COLOURS, LIMIT, LINES, Figure, look, settle, tidy_log_axis

__all__ = [
    "draw",
    "draw_error",
    "draw_growth",
    "draw_ratio",
    "draw_runs",
    "draw_scale",
    "draw_tube",
]

BAND = 0.1  # half width of the band shown around the centre of the tube
# A start far from the tube moves so fast that it would flatten the rest: axes reach this many
# limits (units, for the tube coordinate) above and below a limit.
REACH = 3.0
SPAN = 0.2  # of the limit: an axis shows no less, or rounding would look like motion
MARGIN = 0.07  # above and below what an axis shows


class Paths(Protocol):
    """What the panels of ratio, tube coordinate and scale read of a `Result`."""

    @property
    def half_width(self) -> float: ...
    @property
    def starts(self) -> NDArray[float64]: ...
    @property
    def t(self) -> NDArray[float64]: ...
    @property
    def ratio(self) -> NDArray[float64]: ...
    @property
    def tube(self) -> NDArray[float64]: ...
    @property
    def scale(self) -> NDArray[float64]: ...


def draw(result: Result) -> Figure:
    """Ratio and tube coordinate, fourth power of the scale, scaled error and growth against time.

    Drawn are the points after time 0, one line a run. Predicted lines are those of
    `popdyn.asymptotics` at leading order.
    """
    with look():
        figure = Figure(figsize=(7.4, 2.8), layout="constrained")
        panels: dict[str, Axes] = figure.subplot_mosaic(
            [["ratio", "scale", "error"], ["tube", "scale", "growth"]],
            width_ratios=[1.0, 1.1, 1.0],
        )
        draw_ratio(panels["ratio"], result)
        draw_tube(panels["tube"], result)
        draw_scale(panels["scale"], result)
        draw_error(panels["error"], result)
        draw_growth(panels["growth"], result)
        for name in ("ratio", "error"):
            panels[name].set_xlabel("")
            panels[name].tick_params(labelbottom=False)
        figure.align_ylabels()
        if result.reflected.all():
            figure.suptitle(r"reflected head $(-\lambda, -\mu)$")
        settle(figure)
    return figure


def draw_ratio(axes: Axes, result: Paths) -> None:
    """Ratio `k`, which tends to the half width."""
    width = result.half_width
    draw_runs(axes, result, result.ratio)
    _show_near(axes, REACH * width, width)
    _draw_limit(axes, width, r"$\ell$")
    axes.set_ylabel(r"$k$")


def draw_tube(axes: Axes, result: Paths) -> None:
    """Tube coordinate `c` and the band around the centre of the tube."""
    centre = float(tube_center(1.0, result.half_width, order=0))
    axes.axhspan(centre - BAND, centre + BAND, color="0.88", linewidth=0)
    draw_runs(axes, result, result.tube)
    _show_near(axes, REACH, centre - BAND, centre + BAND)
    _draw_limit(axes, centre, rf"$c^* \pm {BAND:g}$")
    axes.set_ylabel(r"$c$")


def draw_scale(axes: Axes, result: Paths) -> None:
    """`mu^4`, which grows with the predicted slope; tells the runs by their starts."""
    draw_runs(axes, result, result.scale**4)
    if len(result.starts) > 1:
        for line, (label_score, scale) in zip(axes.lines, result.starts, strict=True):
            line.set_label(rf"from $({label_score:g}, {scale:g})$")
    t = np.array(axes.get_xlim())
    predicted = scale_at(t, result.half_width, order=0) ** 4
    axes.plot(t, predicted, label=r"$8\,t / (1 + \ell^2)$", **LIMIT)
    axes.set_yscale("log")
    tidy_log_axis(axes, "y")
    axes.set_ylabel(r"$\mu^4$")
    axes.legend(loc="best")


def draw_error(axes: Axes, result: Result) -> None:
    """Scaled interior error, which tends to 1."""
    draw_runs(axes, result, result.scaled_error)
    _show_near(axes, REACH, 1.0)
    _draw_limit(axes, 1.0, "$1$")
    axes.set_ylabel(r"$\mu\,\mathrm{sup}\,|F - \alpha|$")


def draw_growth(axes: Axes, result: Result) -> None:
    """Scaled growth of the scale, which tends to a constant."""
    limit = float(growth_rate(1.0, result.half_width, order=0))
    draw_runs(axes, result, result.scaled_growth)
    _show_near(axes, REACH * limit, limit)
    _draw_limit(axes, limit, r"$2 / (1 + \ell^2)$")
    axes.set_ylabel(r"$\mu^3\, \mathrm{d}\mu/\mathrm{d}t$")


def draw_runs(axes: Axes, result: Paths, rows: NDArray[float64]) -> None:
    """One line a run on a logarithmic axis of time."""
    later = result.t > 0
    first, last = result.t[later].min(), result.t.max()
    for index, row in enumerate(rows):
        axes.plot(
            result.t[later],
            row[later],
            color=COLOURS[index % len(COLOURS)],
            linestyle=LINES[index % len(LINES)],
            marker="o" if first == last else None,  # of one point there is no line to see
        )
    if not np.isfinite(rows).any():
        axes.text(0.5, 0.2, r"undefined at $\mu \leq 0$", ha="center", transform=axes.transAxes)
    axes.set_xscale("log")
    if first < last:
        axes.set_xlim(first, last)
    tidy_log_axis(axes, "x")
    axes.set_xlabel("$t$")


def _draw_limit(axes: Axes, limit: float, label: str) -> None:
    axes.axhline(limit, label=label, **LIMIT)
    axes.legend(loc="best")


def _show_near(axes: Axes, reach: float, *limits: float) -> None:
    """Fit the vertical axis to its limits and to the data no further than `reach` from them."""
    low, high = min(limits), max(limits)
    drawn = np.concatenate([np.asarray(line.get_ydata(), dtype=float64) for line in axes.lines])
    near = drawn[(drawn >= low - reach) & (drawn <= high + reach)]
    low, high = min(low, near.min(initial=low)), max(high, near.max(initial=high))
    room = max(MARGIN * (high - low), (SPAN * max(limits) - (high - low)) / 2)
    axes.set_ylim(low - room, high + room)
