"""Pictures of named curves beside one another: tubes, errors by context size and by threshold."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from popdyn.asymptotics import tube_center
from popdyn.dynamics.trajectory import Trajectory
from popdyn.plotting.look import COLOURS, LIMIT, LINES, Figure, look, settle, tidy_log_axis

__all__ = [
    "compare_profiles",
    "compare_sizes",
    "compare_tubes",
    "draw_profiles",
    "draw_sizes",
    "draw_tubes",
]

SIZE = (4.6, 2.9)
REACH = 1.0  # of tube coordinates above and below the limits that are shown
LAW_POINTS = 200
LAW_ORDER = 4
LAW_FROM = 3.0  # of mu l, below which the expansion means nothing


def compare_tubes(
    paths: Mapping[str, Trajectory],
    limits: Mapping[str, float] | None = None,
    scales: Mapping[str, float] | None = None,
) -> Figure:
    """Tube coordinate against scale of several paths, beside the expansion of the tube (MODEL §4).

    Parameters
    ----------
    paths : mapping of str to Trajectory
        By what the legend calls them; of one half width.
    limits, scales : mapping of str to float, optional
        Tube coordinates and scales to mark, by their names.
    """
    return _figure_of(draw_tubes, paths, limits or {}, scales or {})


def compare_sizes(context_sizes: ArrayLike, errors: Mapping[str, ArrayLike]) -> Figure:
    """Errors against the size of a context, a line a name."""
    return _figure_of(draw_sizes, context_sizes, errors)


def compare_profiles(thresholds: ArrayLike, errors: Mapping[str, ArrayLike]) -> Figure:
    """Magnitudes of errors against the threshold of the task, a line a name."""
    return _figure_of(draw_profiles, thresholds, errors)


def _figure_of(draw: Callable[..., None], *drawn: Any) -> Figure:
    with look():
        figure = Figure(figsize=SIZE, layout="constrained")
        draw(figure.subplots(), *drawn)
        settle(figure)
    return figure


def draw_tubes(
    axes: Axes,
    paths: Mapping[str, Trajectory],
    limits: Mapping[str, float],
    scales: Mapping[str, float],
) -> None:
    """Tube coordinate against scale, where the scale is positive; no further than the tube's
    neighbourhood."""
    (half_width,) = {path.half_width for path in paths.values()}
    curves = {
        name: (path.scale[path.scale > 0], path.tube[path.scale > 0])
        for name, path in paths.items()
    }
    _draw_curves(axes, curves)
    top = max(mu.max() for mu, _ in curves.values())
    law = np.geomspace(LAW_FROM / half_width, top, LAW_POINTS)
    centre = tube_center(law, half_width, order=LAW_ORDER)
    axes.plot(law, centre, label=f"expansion, order {LAW_ORDER}", **LIMIT)
    for name, c in limits.items():
        axes.axhline(c, color="0.6", linewidth=0.8, label=name, zorder=0)
    for name, mu in scales.items():
        axes.axvline(mu, color="0.6", linewidth=0.8, linestyle=LINES[3], label=name, zorder=0)
    shown = [*centre, *limits.values()]
    axes.set_ylim(min(shown) - REACH, max(shown) + REACH)
    axes.set_xscale("log")
    tidy_log_axis(axes, "x")
    axes.set_xlabel(r"$\mu$")
    axes.set_ylabel("$c$")
    axes.legend(loc="best")


def draw_sizes(axes: Axes, context_sizes: ArrayLike, errors: Mapping[str, ArrayLike]) -> None:
    """Errors against the size of a context, on logarithmic axes."""
    sizes = np.asarray(context_sizes, dtype=float64)
    _draw_curves(axes, {name: (sizes, np.asarray(row)) for name, row in errors.items()})
    axes.set_xscale("log")
    axes.set_yscale("log")
    tidy_log_axis(axes, "x")
    tidy_log_axis(axes, "y")
    axes.set_xlabel("$N$")
    axes.set_ylabel(r"RMS of $F - \alpha$")
    axes.legend(loc="best")


def draw_profiles(axes: Axes, thresholds: ArrayLike, errors: Mapping[str, ArrayLike]) -> None:
    """Magnitudes of errors against the threshold."""
    alpha = np.asarray(thresholds, dtype=float64)
    _draw_curves(axes, {name: (alpha, np.abs(row)) for name, row in errors.items()})
    axes.set_yscale("log")
    tidy_log_axis(axes, "y")
    axes.set_xlabel(r"$\alpha$")
    axes.set_ylabel(r"$|F - \alpha|$")
    axes.legend(loc="best")


def _draw_curves(
    axes: Axes, curves: Mapping[str, tuple[NDArray[float64], NDArray[float64]]]
) -> None:
    for index, (name, (x, y)) in enumerate(curves.items()):
        axes.plot(
            x,
            y,
            color=COLOURS[index % len(COLOURS)],
            linestyle=LINES[index % len(LINES)],
            label=name,
        )
