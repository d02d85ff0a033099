"""The picture of the starts near zero: slow escapes, small gradients, late risks (MODEL §5)."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from popdyn.asymptotics import gradient_slope, saddle_eigenvalues
from popdyn.experiments.initialization import Result
from popdyn.plotting.look import COLOURS, LIMIT, LINES, Figure, look, settle, tidy_log_axis

__all__ = ["draw", "draw_escape", "draw_final", "draw_gradient", "draw_risk"]

DOT: dict[str, Any] = {
    "marker": "o",
    "markersize": 3.0,
    "markerfacecolor": "none",
    "linestyle": "none",
}
ZERO: dict[str, Any] = {"color": "0.0", "linestyle": "-", "linewidth": 0.9}  # of the zero head
ROOM = 1.75  # height of the axis over what is drawn, for the legend


def draw(result: Result) -> Figure:
    """Risk against time and escape against radius, gradient and final risk against radius."""
    with look():
        figure = Figure(figsize=(7.4, 3.4), layout="constrained")
        panels: dict[str, Axes] = figure.subplot_mosaic(
            [["risk", "gradient", "final"], ["escape", "gradient", "final"]],
            width_ratios=[1.3, 1.0, 1.0],
        )
        draw_risk(panels["risk"], result)
        draw_escape(panels["escape"], result)
        draw_gradient(panels["gradient"], result)
        draw_final(panels["final"], result)
        settle(figure)
    return figure


def draw_risk(axes: Axes, result: Result) -> None:
    """Risk against time from several radii; that of the zero head stays where it is."""
    moving = 0
    for radius, risks in zip(result.shown, result.shown_risk, strict=True):
        if radius == 0.0:
            axes.plot(result.t, risks, label="$r = 0$", **ZERO)
            continue
        style = {"color": COLOURS[moving], "linestyle": LINES[moving]}
        axes.plot(result.t, risks, label=f"$r = {_power(radius)}$", **style)
        moving += 1
    axes.set_xlim(0.0, result.t[-1])
    axes.set_ylim(0.0, ROOM * result.shown_risk.max())
    axes.set_xlabel("$t$")
    axes.set_ylabel("$L$")
    axes.legend(loc="upper right", ncols=3, columnspacing=1.0, handlelength=2.0)


def draw_escape(axes: Axes, result: Result) -> None:
    """Time to reach radius 1, which grows by one over the rate of the saddle per factor e."""
    inside = np.isfinite(result.escape)
    radii, escape = result.radii[inside], result.escape[inside]
    axes.plot(radii, escape, color=COLOURS[0], **DOT)
    pace = 1.0 / saddle_eigenvalues()[0]
    law = escape[0] + pace * np.log(radii / radii[0])
    label = rf"${-pace:.3f}\,\log(1/r)$ + const"
    axes.plot(radii, law, label=label, **LIMIT)
    axes.set_xscale("log")
    tidy_log_axis(axes, "x")
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("$r$")
    axes.set_ylabel("$t$ to radius 1")
    axes.legend(loc="best")
    late = int((~inside & (result.radii < 1.0)).sum())
    if late:
        axes.set_title(f"{late} did not escape", fontsize=7)


def draw_gradient(axes: Axes, result: Result) -> None:
    """Norm of the gradient at the start against the radius, with its linear law."""
    axes.plot(result.radii, result.gradient_norm, color=COLOURS[0], **DOT)
    slope = gradient_slope(result.angle)
    label = f"${slope:.6f}\\,r$"
    axes.plot(result.radii, slope * result.radii, label=label, **LIMIT)
    axes.set_xscale("log")
    axes.set_yscale("log")
    tidy_log_axis(axes, "x")
    tidy_log_axis(axes, "y")
    axes.set_xlabel("$r$")
    axes.set_ylabel(r"$|\nabla L|$ at the start")
    axes.legend(loc="best")


def draw_final(axes: Axes, result: Result) -> None:
    """Risk at the common time against the radius, beside that of the zero head."""
    style = DOT | {"linestyle": "-", "linewidth": 0.8}
    axes.plot(result.radii, result.final_risk, color=COLOURS[0], **style)
    for radius, risks in zip(result.shown, result.shown_risk, strict=True):
        if radius == 0.0:
            axes.axhline(risks[-1], label="$r = 0$", **ZERO)
            axes.legend(loc="upper right", bbox_to_anchor=(1.0, 0.93))
    axes.set_xscale("log")
    tidy_log_axis(axes, "x")
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("$r$")
    axes.set_ylabel(f"$L$ at $t = {result.t[-1]:g}$")


def _power(radius: float) -> str:
    exponent = np.log10(radius)
    return (
        f"10^{{{exponent:.0f}}}" if radius < 0.1 and exponent == round(exponent) else f"{radius:g}"
    )
