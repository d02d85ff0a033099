"""The picture of training a reflected pair beside one head: scales, limits, risks (MODEL §7)."""

import numpy as np
from matplotlib.axes import Axes
from numpy import float64
from numpy.typing import NDArray

from popdyn.asymptotics import risk_in_tube, scale_at
from popdyn.experiments.pair_training import Result
from popdyn.limit_laws import averaged_risk_at, pair_fifth_power_rate, pair_layer, pair_risk_at
from popdyn.plotting.look import COLOURS, LIMIT, LINES, Figure, look, settle, tidy_log_axis

__all__ = ["draw", "draw_fifth_power", "draw_layer", "draw_risk", "draw_scale"]

PAIR, HEAD, AVERAGED = ({"color": COLOURS[i], "linestyle": LINES[i]} for i in range(3))
REACH = 0.35  # of a limit: what an axis shows on either side at most; the start is far outside
MARGIN = 0.07


def draw(result: Result) -> Figure:
    """Scales, `mu^5/t` and `q mu^3` of the pair, and risks, against time.

    Predicted lines are those of `popdyn.limit_laws` and `popdyn.asymptotics` at leading order.
    """
    with look():
        figure = Figure(figsize=(7.4, 2.9), layout="constrained")
        panels: dict[str, Axes] = figure.subplot_mosaic(
            [["scale", "fifth", "risk"], ["scale", "layer", "risk"]], width_ratios=[1.0, 0.9, 1.1]
        )
        draw_scale(panels["scale"], result)
        draw_fifth_power(panels["fifth"], result)
        draw_layer(panels["layer"], result)
        draw_risk(panels["risk"], result)
        panels["fifth"].set_xlabel("")
        panels["fifth"].tick_params(labelbottom=False)
        figure.align_ylabels()
        settle(figure)
    return figure


def draw_scale(axes: Axes, result: Result) -> None:
    """Both scales and the powers of time they grow like."""
    t, width = result.t, result.half_width
    axes.plot(t, result.head_scale, label=r"one head, $t^{1/4}$", **HEAD)
    axes.plot(t, result.pair_scale, label=r"reflected pair, $t^{1/5}$", **PAIR)
    pair_law = (pair_fifth_power_rate(width) * t) ** 0.2
    _draw_laws(axes, t, scale_at(t, width, order=0), pair_law)
    axes.set_yscale("log")
    lines = np.concatenate([result.head_scale, result.pair_scale])
    axes.set_ylim(lines.min() / 2.0, lines.max() * 2.0)
    _finish(axes, t, r"$\mu$")
    tidy_log_axis(axes, "y")
    axes.legend(loc="upper left")


def draw_fifth_power(axes: Axes, result: Result) -> None:
    """`mu^5/t` of the pair, whose limit is the slope of `mu^5`."""
    _draw_limit(
        axes,
        result.t,
        result.pair_scale**5 / result.t,
        pair_fifth_power_rate(result.half_width),
    )
    axes.set_ylabel(r"$\mu^5 / t$")


def draw_layer(axes: Axes, result: Result) -> None:
    """`q mu^3` of the pair."""
    _draw_limit(
        axes,
        result.t,
        result.pair_layer,
        pair_layer(result.half_width),
    )
    axes.set_ylabel(r"$q\,\mu^3$")


def draw_risk(axes: Axes, result: Result) -> None:
    """The risks of both trainings, and of the trained head averaged with its reflection."""
    t, width = result.t, result.half_width
    axes.plot(t, result.head_risk, label=r"one head, $t^{-1/2}$", **HEAD)
    axes.plot(t, result.pair_risk, label=r"reflected pair, $t^{-3/5}$", **PAIR)
    axes.plot(t, result.averaged_risk, label=r"averaged head, $t^{-3/4}$", **AVERAGED)
    head_law = risk_in_tube(scale_at(t, width, order=0), width, order=0)
    _draw_laws(axes, t, head_law, pair_risk_at(t, width), averaged_risk_at(t, width))
    axes.set_yscale("log")
    lines = np.concatenate([result.head_risk, result.averaged_risk, result.pair_risk])
    axes.set_ylim(lines.min() / 3.0, lines.max() * 3.0)
    _finish(axes, t, r"$L$")
    tidy_log_axis(axes, "y")
    axes.legend(loc="lower left")


def _draw_laws(axes: Axes, t: NDArray[float64], *laws: NDArray[float64]) -> None:
    for i, law in enumerate(laws):
        axes.plot(t, law, label="" if i else "predicted", **LIMIT)


def _draw_limit(axes: Axes, t: NDArray[float64], row: NDArray[float64], limit: float) -> None:
    axes.plot(t, row, **PAIR)
    axes.axhline(limit, label=f"limit {limit:.4f}", **LIMIT)
    near = row[np.abs(row - limit) <= REACH * limit]
    low, high = min(near.min(initial=limit), limit), max(near.max(initial=limit), limit)
    room = MARGIN * max(high - low, REACH * limit)
    axes.set_ylim(low - room, high + room)
    _finish(axes, t, "")
    axes.legend(loc="upper right")


def _finish(axes: Axes, t: NDArray[float64], label: str) -> None:
    axes.set_xscale("log")
    axes.set_xlim(t[0], t[-1])
    tidy_log_axis(axes, "x")
    axes.set_xlabel("$t$")
    axes.set_ylabel(label)
