"""The picture of label noise matched to the resolution (MODEL §7)."""

import numpy as np
from matplotlib.axes import Axes
from numpy import float64
from numpy.typing import NDArray

from popdyn.experiments.matched_noise import Result
from popdyn.limit_laws import boundary_limits, context_rms
from popdyn.plotting.look import COLOURS, LIMIT, LINES, Figure, look, settle, tidy_log_axis

__all__ = ["draw", "draw_boundary", "draw_interior", "draw_scaled"]

MARKERS = "osD"


def draw(result: Result) -> Figure:
    """Interior errors, the same times N, and boundary errors against the size of a context."""
    with look():
        figure = Figure(figsize=(7.4, 2.7), layout="constrained")
        interior, scaled, boundary = figure.subplots(1, 3)
        draw_interior(interior, result)
        draw_scaled(scaled, result)
        draw_boundary(boundary, result)
        settle(figure)
    return figure


def draw_interior(axes: Axes, result: Result) -> None:
    """Error at the interior threshold, which falls like `1/N` whatever the noise."""
    sizes = _draw_rows(axes, result, result.interior)
    axes.plot(sizes, _clean_law(result, sizes), label=r"$\sqrt{1/\mu^2 + 8\,\ell^2/N^2}$", **LIMIT)
    axes.set_yscale("log")
    tidy_log_axis(axes, "y")
    axes.set_ylabel(rf"RMS of $F - \alpha$ at $\alpha = {result.threshold:g}$")
    axes.legend(loc="lower left")


def draw_scaled(axes: Axes, result: Result) -> None:
    """The same times `N`, nearly constant."""
    sizes = _draw_rows(axes, result, result.interior * result.context_sizes)
    axes.plot(sizes, sizes * _clean_law(result, sizes), **LIMIT)
    axes.set_ylim(0.0, 1.15 * (result.interior * result.context_sizes).max())
    axes.set_ylabel(rf"$N\,$RMS at $\alpha = {result.threshold:g}$")


def draw_boundary(axes: Axes, result: Result) -> None:
    """Error at the threshold `-l`, which stays of order one, and its limits."""
    _draw_rows(axes, result, result.boundary)
    limits = boundary_limits(result.examples_per_scale, result.localized_probability)
    for limit in limits:
        line = axes.axhline(limit, **LIMIT)
    axes.set_ylim(0.0, 2.3)
    axes.set_ylabel(r"RMS of $F - \alpha$ at $\alpha = -\ell$")
    axes.legend([line], [r"$2\,\ell$, $2\,\ell\,e^{-pN/(4\ell\mu)}$"], loc="lower left")


def _draw_rows(axes: Axes, result: Result, rows: NDArray[float64]) -> NDArray[float64]:
    """One line a condition on a logarithmic axis of sizes, which are returned in their order."""
    order = np.argsort(result.context_sizes)
    sizes = result.context_sizes[order].astype(float64)
    labels = (
        "clean",
        rf"localized, $p = {result.localized_probability:g}$",
        rf"Tsybakov, $b = {result.tsybakov_exponent:g}$",
    )
    for index, row in enumerate(rows):
        axes.plot(
            sizes,
            row[order],
            color=COLOURS[index],
            linestyle=LINES[index],
            marker=MARKERS[index],
            markersize=4,
            markerfacecolor="none",
            label=labels[index],
        )
    axes.set_xscale("log")
    tidy_log_axis(axes, "x")
    axes.set_xlabel(rf"$N = {result.examples_per_scale:g}\,\mu$")
    return sizes


def _clean_law(result: Result, sizes: NDArray[float64]) -> NDArray[float64]:
    return context_rms(sizes / result.examples_per_scale, sizes)
