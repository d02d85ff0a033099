"""The picture of robustness and convergence: interiors, starts, orders of rules (MODEL §2, §4)."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy import float64
from numpy.typing import NDArray

from popdyn.experiments.convergence import ORDER_LAWS, Result, order_needed
from popdyn.plotting.look import COLOURS, LIMIT, LINES, Figure, look, settle, tidy_log_axis

__all__ = ["draw", "draw_deviation", "draw_error", "draw_hit", "draw_order", "draw_ratio"]

MARKERS = "os^D"
WIDTHS = (0.6, 0.9, 1.3, 1.8)  # of the interiors, told apart by them in a grey print
FLOOR = 1e-16  # what is smaller is drawn here: a logarithmic axis has no zero
LOW, HIGH = 3e-17, 1e4  # ends of an axis of errors; the legend is above 1
ORDER_COLOURS = (COLOURS[4], COLOURS[5], "0.0")  # the others stand for scales
ORDER_ROOM = 30.0  # height of the axis over what is drawn, for the legend


def draw(result: Result) -> Figure:
    """Scaled errors by interior and start; errors of hits and ratios, and orders, of the rules."""
    with look():
        figure = Figure(figsize=(7.4, 4.6), layout="constrained")
        panels: dict[str, Axes] = figure.subplot_mosaic(
            [["error", "hit", "ratio"], ["deviation", "order", "order"]]
        )
        draw_error(panels["error"], result)
        draw_deviation(panels["deviation"], result)
        draw_hit(panels["hit"], result)
        draw_ratio(panels["ratio"], result)
        draw_order(panels["order"], result)
        settle(figure)
    return figure


def draw_error(axes: Axes, result: Result) -> None:
    """Scaled error against time: a colour an interior, a line style a start."""
    _draw_errors(axes, result, result.scaled_error)
    axes.set_yscale("log")
    axes.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
    axes.minorticks_off()
    axes.set_ylabel(r"$\mu\,\mathrm{sup}_{|\alpha| \leq a}\,|F - \alpha|$")
    keys = [
        Line2D([], [], color=COLOURS[i], linewidth=WIDTHS[i]) for i in range(len(result.interiors))
    ]
    axes.legend(keys, [f"$a = {a:g}$" for a in result.interiors], loc="upper right")


def draw_deviation(axes: Axes, result: Result) -> None:
    """How far the scaled error is from 1, against time."""
    _draw_errors(axes, result, np.maximum(np.abs(result.scaled_error - 1.0), FLOOR))
    axes.set_yscale("log")
    tidy_log_axis(axes, "y")
    axes.set_ylabel(r"$|\,\mu\,\mathrm{sup}\,|F - \alpha| - 1\,|$")
    keys = [Line2D([], [], color="0.3", linestyle=LINES[i]) for i in range(len(result.starts))]
    names = [f"from $({lam:g}, {mu:g})$" for lam, mu in result.starts]
    axes.legend(keys, names, loc="upper right")


def draw_hit(axes: Axes, result: Result) -> None:
    """Error of the hitting time against the order, a line a scale."""
    _draw_rules(axes, result, result.hit_error, result.graded_hit_error)
    axes.set_ylabel("relative error of $t$ at the hit")
    axes.legend(loc="upper right", ncols=2, columnspacing=1.0)
    missed = int(np.isnan(result.hit_error).sum() + np.isnan(result.graded_hit_error).sum())
    if missed:
        axes.set_title(f"{missed} rules did not hit", fontsize=7)


def draw_ratio(axes: Axes, result: Result) -> None:
    """Largest error of the ratio until the hit against the order, a line a scale."""
    _draw_rules(axes, result, result.ratio_error, result.graded_ratio_error)
    axes.set_ylabel("error of $k$ until the hit")
    key = Line2D([], [], color="0.3", marker="x", linestyle="none", markersize=5)
    axes.legend([key], ["graded rule"], loc="upper right")


def draw_order(axes: Axes, result: Result) -> None:
    """Order that a gradient on the tube needs against the scale, with its laws; graded nodes."""
    ends = np.array([0.9, 1.1]) * result.levels[[0, -1]]
    for index, (tolerance, _) in enumerate(ORDER_LAWS):
        axes.plot(
            result.levels,
            order_needed(result, tolerance),
            color=ORDER_COLOURS[index],
            marker=MARKERS[index],
            markerfacecolor="none",
            linestyle="none",
            label=f"plain rule, error of the gradient ${_power(tolerance)}$",
        )
    axes.plot(
        result.levels,
        result.graded_nodes,
        color=ORDER_COLOURS[2],
        linewidth=0.9,
        marker="x",
        label=f"graded rule, at most ${_power(result.graded_gradient_error.max())}$",
    )
    for index, (_, law) in enumerate(ORDER_LAWS):
        style = LIMIT | {"linestyle": LINES[index]}
        axes.plot(ends, law * ends**1.5, label=rf"${law:g}\,\mu^{{3/2}}$", **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(result.levels, [f"{level:g}" for level in result.levels])
    axes.minorticks_off()
    tidy_log_axis(axes, "y")
    axes.set_ylim(10.0, ORDER_ROOM * ORDER_LAWS[0][1] * ends[1] ** 1.5)
    axes.set_xlabel(r"$\mu$")
    axes.set_ylabel("nodes needed")
    axes.legend(loc="upper left", ncols=2)


def _power(error: float) -> str:
    digit, _, exponent = f"{error:.0e}".partition("e")
    power = f"10^{{{int(exponent)}}}"
    return power if digit == "1" else rf"{digit} \times {power}"


def _draw_errors(axes: Axes, result: Result, errors: NDArray[float64]) -> None:
    later = result.t > 0.0
    for start, rows in enumerate(errors):
        for interior, row in enumerate(rows):
            axes.plot(
                result.t[later],
                row[later],
                color=COLOURS[interior],
                linestyle=LINES[start],
                linewidth=WIDTHS[interior],
            )
    axes.set_xscale("log")
    axes.set_xlim(result.t[later][0], result.t[-1])
    tidy_log_axis(axes, "x")
    axes.set_xlabel("$t$")


def _draw_rules(
    axes: Axes, result: Result, errors: NDArray[float64], graded: NDArray[float64]
) -> None:
    """Errors of plain rules as lines, of the graded rule as crosses at its number of nodes."""
    for i, level in enumerate(result.levels):
        style = {"color": COLOURS[i], "linestyle": LINES[i], "marker": MARKERS[i % len(MARKERS)]}
        axes.plot(
            result.orders[i],
            np.maximum(errors[i], FLOOR),
            markersize=2.5,
            linewidth=0.9,
            label=rf"$\mu = {level:g}$",
            **style,
        )
        axes.plot(
            result.graded_nodes[i],
            max(graded[i], FLOOR),
            color=COLOURS[i],
            marker="x",
            markersize=5,
            linestyle="none",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(LOW, HIGH)
    tidy_log_axis(axes, "x")
    tidy_log_axis(axes, "y")
    axes.set_xlabel("order of the rule")
