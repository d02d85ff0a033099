"""The picture of a checkpoint: where descent led it, and its errors (MODEL §6)."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from popdyn.asymptotics import tube_center
from popdyn.experiments.frozen_head import Result
from popdyn.plotting.finite_pretraining import name_steps
from popdyn.plotting.look import COLOURS, LIMIT, Figure, look, settle
from popdyn.plotting.transfer import draw_error

__all__ = ["draw", "draw_place"]

LAW_POINTS = 100
ROOM = 1.25  # factor between the ends of the axis of scales and what is drawn
DOT: dict[str, Any] = {"linestyle": "none", "markersize": 4.5, "color": "0.1"}


def draw(result: Result) -> Figure:
    """The frozen head beside the population flow, and its errors against the context size."""
    with look():
        figure = Figure(figsize=(7.4, 2.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw_place(left, result)
        draw_error(right, result.curve)
        settle(figure)
    return figure


def draw_place(axes: Axes, result: Result) -> None:
    """Tube coordinate against scale: start and frozen head, and the flow that all tasks give."""
    checkpoint, upright = result.checkpoint, result.flow.scale > 0
    scales, tube = result.flow.scale[upright], result.flow.tube[upright]
    m, n = checkpoint.n_tasks, checkpoint.n_examples
    ends = [checkpoint.start.scale, checkpoint.head.scale, checkpoint.stopping_scale]
    low, high = min(*ends, scales.min()) / ROOM, max(*ends, scales.max()) * ROOM
    law = np.geomspace(low, high, LAW_POINTS)
    axes.plot(scales, tube, color=COLOURS[0], label="all tasks")
    axes.plot(law, tube_center(law, checkpoint.half_width), label="$c^* + b/\\mu$", **LIMIT)
    axes.axvline(
        checkpoint.stopping_scale, color="0.6", linewidth=0.8, label="stopping scale", zorder=0
    )
    start, head = checkpoint.start, checkpoint.head
    axes.plot(start.scale, start.tube, marker="o", markerfacecolor="none", label="start", **DOT)
    axes.plot(head.scale, head.tube, marker="D", label=f"frozen, $m = {m}$, $n = {n}$", **DOT)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    name_steps(axes.xaxis)
    axes.set_xlabel(r"$\mu$")
    axes.set_ylabel("$c$")
    axes.legend(loc="best")
