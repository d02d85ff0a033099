"""The picture of the scope: small starts, other designs, corrupted labels (MODEL §5, §7)."""

import numpy as np
from matplotlib.axes import Axes
from numpy import float64
from numpy.typing import NDArray

from popdyn.asymptotics import risk_in_tube, scale_at
from popdyn.experiments.scope import Result
from popdyn.plotting.look import COLOURS, LIMIT, LINES, Figure, look, settle, tidy_log_axis

__all__ = ["draw", "draw_risk", "draw_scale", "draw_sweep"]

MARKERS = "osD^"
ROOM = 50.0  # above the largest scale, for the legend
LAW_FROM = 1e4  # time from which the start is forgotten
WIDTHS = (3.0, 1.3, 1.3, 1.3)  # the uniform line lies under the others


def draw(result: Result) -> Figure:
    """Risk at common times against the radius of the start; scale and risk of designs in time."""
    with look():
        figure = Figure(figsize=(7.4, 2.8), layout="constrained")
        sweep, scale, risk = figure.subplots(1, 3)
        draw_sweep(sweep, result)
        draw_scale(scale, result)
        draw_risk(risk, result)
        settle(figure)
    return figure


def draw_sweep(axes: Axes, result: Result) -> None:
    """Risk at common times, beside that of the origin, where a start stays for good."""
    order = np.argsort(result.radii)
    for index, time in enumerate(result.common_times):
        axes.plot(
            result.radii[order],
            result.common_risk[index, order],
            color=COLOURS[index % len(COLOURS)],
            linestyle=LINES[index % len(LINES)],
            marker=MARKERS[index % len(MARKERS)],
            markersize=3,
            label=f"$t = {time:g}$",
        )
    axes.axhline(result.origin_risk, label="zero start", **LIMIT)
    axes.set_xscale("log")
    axes.set_yscale("log")
    tidy_log_axis(axes, "x")
    tidy_log_axis(axes, "y")
    axes.set_xlabel(r"initial radius $|(\lambda, \mu)|$")
    axes.set_ylabel("risk $L$")
    axes.legend(loc="center left", bbox_to_anchor=(0.0, 0.72))


def draw_scale(axes: Axes, result: Result) -> None:
    """Scale of every design against time, and the law that clean designs share."""
    _draw_paths(axes, result, result.scale)
    t = np.geomspace(LAW_FROM, result.t[-1], 50)
    axes.plot(t, scale_at(t, order=0), label=r"$(8\,t/(1 + \ell^2))^{1/4}$", **LIMIT)
    axes.set_ylim(top=ROOM * result.scale.max())
    axes.set_ylabel(r"$\mu$")
    axes.legend(loc="upper left")


def draw_risk(axes: Axes, result: Result) -> None:
    """Risk that every design is trained on, and the law of the uniform one."""
    _draw_paths(axes, result, result.risk)
    t = np.geomspace(LAW_FROM, result.t[-1], 50)
    law = risk_in_tube(scale_at(t, order=0), order=0)
    axes.plot(t, law, **LIMIT)
    floor = result.risk[3, -1]
    axes.annotate(
        f"{floor:.6f}",
        (result.t[-1], floor),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        fontsize=7,
    )
    axes.set_ylabel("risk $L$ of the design")
    axes.legend([axes.lines[-1]], [r"$1/\mu^2$ at that law"], loc="lower left")


def _draw_paths(axes: Axes, result: Result, rows: NDArray[float64]) -> None:
    labels = (
        "uniform",
        rf"$(1 + {result.amplitude:g}\,x/\ell)/2\ell$",
        rf"$(1 + {result.amplitude:g}\,\cos\pi x/\ell)/2\ell$",
        rf"labels flipped, $p = {result.corruption:g}$",
    )
    later = result.t > 0
    for index, row in enumerate(rows):
        axes.plot(
            result.t[later],
            row[later],
            color=COLOURS[index] if index else "0.7",
            linestyle=LINES[index],
            linewidth=WIDTHS[index],
            label=labels[index],
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    tidy_log_axis(axes, "x")
    tidy_log_axis(axes, "y")
    axes.set_xlabel("$t$")
