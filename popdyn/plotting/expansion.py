"""The expansion of the tube against one flow, order by order (MODEL §4)."""

import numpy as np
from matplotlib.axes import Axes

from popdyn.asymptotics import scale_at, time_offset, tube_center
from popdyn.dynamics.trajectory import Trajectory
from popdyn.plotting.look import COLOURS, LINES, Figure, look, settle, tidy_log_axis

__all__ = ["draw", "draw_scale", "draw_tube"]

ORDERS = (0, 1, 2, 3, 5, 8)
LATE = 15.0  # of mu l, from which on a flow is in the tube
LOWEST = 1e-15


def draw(flow: Trajectory) -> Figure:
    """What each order leaves out, of the tube coordinate and of the scale.

    Raises
    ------
    ValueError
        If the flow does not come to `mu l = 15`.
    """
    if not (flow.scale * flow.half_width > LATE).any():
        raise ValueError(
            f"flow must come to a scale above {LATE / flow.half_width:g} to be held against the "
            f"expansion, got {flow!r}; run it to a later time"
        )
    with look():
        figure = Figure(figsize=(7.4, 2.9), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw_tube(left, flow)
        draw_scale(right, flow)
        settle(figure)
    return figure


def draw_tube(axes: Axes, flow: Trajectory) -> None:
    """Distance of the tube coordinate from its expansion against the scale."""
    late = flow.scale * flow.half_width > LATE
    mu, c = flow.scale[late], flow.tube[late]
    for index, order in enumerate(ORDERS):
        off = np.abs(c - tube_center(mu, flow.half_width, order=order))
        axes.plot(mu, off, color=COLOURS[index], linestyle=LINES[index], label=f"order {order}")
    _tidy(axes)
    axes.set_xlabel(r"$\mu$")
    axes.set_ylabel("$|c - $expansion$|$")
    axes.legend(loc="upper right", ncols=2)


def draw_scale(axes: Axes, flow: Trajectory) -> None:
    """Relative error of the law for the scale against the time, with the offset of this flow."""
    late = flow.scale * flow.half_width > LATE
    t, mu = flow.t[late], flow.scale[late]
    offset = float(time_offset(flow.t, flow.scale, flow.half_width))
    for index, order in enumerate(ORDERS):
        off = np.abs(scale_at(t - offset, flow.half_width, order=order) / mu - 1.0)
        axes.plot(t, off, color=COLOURS[index], linestyle=LINES[index])
    _tidy(axes)
    axes.set_xlabel("$t$")
    axes.set_ylabel(r"$|\mu_\mathrm{law}/\mu - 1|$")


def _tidy(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(LOWEST, 1.0)
    tidy_log_axis(axes, "x")
    tidy_log_axis(axes, "y")
