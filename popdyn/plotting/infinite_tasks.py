"""The picture of infinitely many tasks with few examples each (MODEL §6)."""

from typing import Any

from matplotlib.axes import Axes

from popdyn.experiments.infinite_tasks import Result
from popdyn.limit_laws import prior_averaged_risks
from popdyn.plotting.look import COLOURS, LIMIT, LINES, Figure, look, settle, tidy_log_axis

__all__ = ["draw", "draw_minimum_scale", "draw_risk", "draw_time_power", "draw_valley"]

MARKERS = "osD^v"
GUIDE = LIMIT | {"linestyle": (0, (6, 2, 1, 2))}
ROOM = 1.6  # above the highest line, for the legend
SMALLEST_GAP = 1e-9  # of the risk above its smallest; rounding of the risk is a thousandth of it


def draw(result: Result) -> Figure:
    """Risk along the valley, its rise on both sides of the minimum, where that is, and the flow."""
    with look():
        figure = Figure(figsize=(7.0, 4.8), layout="constrained")
        panels = figure.subplots(2, 2)
        draw_risk(panels[0, 0], result)
        draw_valley(panels[0, 1], result)
        draw_minimum_scale(panels[1, 0], result)
        draw_time_power(panels[1, 1], result)
        settle(figure)
    return figure


def draw_risk(axes: Axes, result: Result) -> None:
    """Risk along the valley, its minimum, and `4 l^2/(n + 1)`."""
    for i in range(len(result.n_examples)):
        line = _line(i)
        axes.plot(result.scale[i], result.risk[i], **line)
        axes.plot(
            result.minimum_scale[i],
            result.minimum_risk[i],
            color=line["color"],
            marker=MARKERS[i % len(MARKERS)],
            markersize=5,
        )
    for i, n in enumerate(result.n_examples):
        label = r"$4\,\ell^2 / (n + 1)$" if i == 0 else None
        axes.axhline(4.0 / (n + 1.0), label=label, **LIMIT)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(top=ROOM * 4.0 / (result.n_examples[0] + 1.0))
    _finish(axes, r"$\mu$", r"risk $L$ along the valley")


def draw_valley(axes: Axes, result: Result) -> None:
    """How far the risk is above its minimum, on both sides of it, and its limit at large scale."""
    limits = prior_averaged_risks(result.n_examples.astype(float))[0] / result.minimum_risk - 1.0
    for i in range(len(limits)):
        gap = result.risk[i] / result.minimum_risk[i] - 1.0
        shown = gap > SMALLEST_GAP
        place = result.scale[i] / result.minimum_scale[i]
        axes.plot(place[shown], gap[shown], marker=".", **_line(i))
        label = r"$\mu \to \infty$" if i == 0 else None
        axes.plot([1.0, place[-1]], [limits[i], limits[i]], label=label, **LIMIT)
    axes.set_xscale("log")
    axes.set_yscale("log")
    _finish(axes, r"$\mu / \mu^*$", r"$L / L^* - 1$")


def draw_minimum_scale(axes: Axes, result: Result) -> None:
    """Scale of the minimum against the examples, beside powers of them through the first."""
    n, mu = result.n_examples.astype(float), result.minimum_scale
    for i, size in enumerate(result.n_examples):
        color = _line(i)["color"]
        marker = MARKERS[i % len(MARKERS)]
        axes.plot(size, mu[i], color=color, marker=marker, markersize=5, linestyle="none")
    axes.plot(n, mu, color="0.6", linewidth=0.7)
    axes.plot(n, mu[0] * (n / n[0]) ** 2, label="$n^2$", **LIMIT)
    axes.plot(n, mu[0] * (n / n[0]), label="$n$", **GUIDE)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(n, [f"{size:g}" for size in n], minor=False)
    axes.set_xlabel("$n$")
    axes.set_ylabel(r"scale $\mu^*$ of the minimum")
    tidy_log_axis(axes, "y")
    axes.legend(loc="best")


def draw_time_power(axes: Axes, result: Result) -> None:
    """Power of time in the scale: 1/4, about 1/5 from the scale n on, 0 at the minimum.

    Tells the sizes by their lines.
    """
    for i, n in enumerate(result.n_examples):
        axes.plot(result.scale[i] / n, result.time_power[i], label=f"$n = {n}$", **_line(i))
    axes.axhline(0.25, label="1/4", **LIMIT)
    axes.axhline(0.2, label="1/5", **GUIDE)
    axes.set_xscale("log")
    axes.set_ylim(0.0, 0.32)
    _finish(axes, r"$\mu / n$", r"$\mathrm{d}\log\mu\,/\,\mathrm{d}\log t$")


def _line(index: int) -> dict[str, Any]:
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": LINES[index % len(LINES)]}


def _finish(axes: Axes, x: str, y: str) -> None:
    tidy_log_axis(axes, "x")
    if axes.get_yscale() == "log":
        tidy_log_axis(axes, "y")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.legend(loc="best")
