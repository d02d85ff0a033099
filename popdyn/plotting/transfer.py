"""The picture of a transfer: error of a frozen head against size of a context (MODEL §6)."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator

from popdyn.limit_laws import context_rms
from popdyn.plotting.look import COLOURS, LIMIT, LINES, Figure, look, settle, tidy_log_axis
from popdyn.transfer_curve import TransferCurve

__all__ = ["draw", "draw_error"]

LAW_POINTS = 200
# Open and of several shapes: the errors of interior thresholds lie on one another.
MARKERS = "osD^v"
FEW, MANY = 5.0, 500.0  # heights between which an axis is labelled at 1, 2 and 5
FLOOR = LIMIT | {"linestyle": "-", "linewidth": 0.7}


def draw(curve: TransferCurve) -> Figure:
    """Root mean square error against context size, one line a threshold, with its law and floor."""
    with look():
        figure = Figure(figsize=(3.7, 2.8), layout="constrained")
        draw_error(figure.subplots(), curve)
        settle(figure)
    return figure


def draw_error(axes: Axes, curve: TransferCurve) -> None:
    """Exact errors; the law of an interior threshold and its floor `1/mu`; sampled errors, if any,
    with two standard errors."""
    order = np.argsort(curve.context_sizes)
    sizes = curve.context_sizes[order]
    for index, threshold in enumerate(curve.thresholds):
        axes.plot(
            sizes,
            curve.root_mean_square[index, order],
            color=COLOURS[index % len(COLOURS)],
            linestyle=LINES[index % len(LINES)],
            marker=MARKERS[index % len(MARKERS)],
            markersize=3.0 + 1.5 * (index % len(MARKERS)),
            markerfacecolor="none",
            markeredgewidth=0.8,
            label=rf"$\alpha = {threshold:g}$",
        )
        if curve.sampled is not None:
            sampled = curve.sampled.root_mean_square[index, order]
            spread = curve.sampled.mean_square_error_standard_error[index, order] / sampled
            axes.errorbar(
                sizes, sampled, yerr=spread, color=COLOURS[index % len(COLOURS)], linestyle="none"
            )
    scale, width = abs(float(curve.head.scale)), curve.head.half_width
    n = np.geomspace(sizes[0], sizes[-1], LAW_POINTS)
    label = r"$\sqrt{1/\mu^2 + 8\,\ell^2/N^2}$"
    axes.plot(n, context_rms(scale, n, width), label=label, **LIMIT)
    axes.axhline(1.0 / scale, label=r"$1/\mu$", **FLOOR)
    axes.set_xscale("log")
    axes.set_yscale("log")
    tidy_log_axis(axes, "x")
    tidy_log_axis(axes, "y")
    low, high = axes.get_ylim()
    if FEW < high / low < MANY:
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}"))
    axes.set_xlabel("$N$")
    axes.set_ylabel(r"RMS of $F - \alpha$")
    axes.legend(loc="best")
