"""The picture of one path: ratio, tube coordinate, scale and risk against time (MODEL §4)."""

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy import float64
from numpy.typing import NDArray

from popdyn.asymptotics import risk_in_tube, scale_at
from popdyn.dynamics.trajectory import Trajectory
from popdyn.plotting.look import LIMIT, Figure, look, settle, tidy_log_axis
from popdyn.plotting.population import draw_ratio, draw_runs, draw_scale, draw_tube

__all__ = ["draw", "draw_risk"]


class _Path(NamedTuple):
    """One path as the panels of the population dynamics want it, a row an entry."""

    half_width: float
    starts: NDArray[float64]
    t: NDArray[float64]
    ratio: NDArray[float64]
    tube: NDArray[float64]
    scale: NDArray[float64]


def draw(trajectory: Trajectory) -> Figure:
    """Ratio and tube coordinate, fourth power of the scale, and risk against time.

    Drawn are the points after time 0, of the reflected head where the path ends at a negative
    scale. Predicted lines are those of `popdyn.asymptotics` at leading order, for the population.

    Raises
    ------
    ValueError
        If there is no point after time 0.
    """
    if not (trajectory.t > 0).any():
        raise ValueError(
            f"trajectory must have points after time 0 to be drawn, got {trajectory!r}; ask for "
            "times with t_eval, or leave it out"
        )
    reflected = bool(trajectory.scale[-1] < 0)
    path = _path(trajectory, reflected)
    with look():
        figure = Figure(figsize=(7.4, 2.8), layout="constrained")
        panels: dict[str, Axes] = figure.subplot_mosaic(
            [["ratio", "scale", "risk"], ["tube", "scale", "risk"]]
        )
        draw_ratio(panels["ratio"], path)
        draw_tube(panels["tube"], path)
        draw_scale(panels["scale"], path)
        draw_risk(panels["risk"], trajectory)
        panels["ratio"].set_xlabel("")
        panels["ratio"].tick_params(labelbottom=False)
        figure.align_ylabels()
        if reflected:
            figure.suptitle(r"reflected head $(-\lambda, -\mu)$")
        settle(figure)
    return figure


def draw_risk(axes: Axes, trajectory: Trajectory) -> None:
    """Risk against time, with its law at leading order."""
    path = _path(trajectory, reflected=False)
    draw_runs(axes, path, trajectory.risk[np.newaxis])
    low, high = axes.get_ylim()
    t = np.geomspace(*axes.get_xlim(), 200)
    law = risk_in_tube(scale_at(t, path.half_width, order=0), path.half_width, order=0)
    axes.plot(t, law, label=r"$\mu^{-2} = \sqrt{(1 + \ell^2)/(8\,t)}$", **LIMIT)
    axes.set_yscale("log")
    axes.set_ylim(max(low, trajectory.risk.min() / 2), high)
    tidy_log_axis(axes, "y")
    axes.set_ylabel("$L$")
    axes.legend(loc="best")


def _path(trajectory: Trajectory, reflected: bool) -> _Path:
    heads = [trajectory.head(i) for i in range(len(trajectory))]
    if reflected:
        heads = [head.reflected for head in heads]

    def row(name: str) -> NDArray[float64]:
        return np.array([[getattr(head, name) for head in heads]], dtype=float64)

    start = trajectory.start
    return _Path(
        half_width=trajectory.half_width,
        starts=np.array([[start.label_score, start.scale]], dtype=float64),
        t=trajectory.t,
        ratio=row("ratio"),
        tube=row("tube"),
        scale=row("scale"),
    )
