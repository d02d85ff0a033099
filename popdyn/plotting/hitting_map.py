"""The map of hitting times over ratio and scale of the start (MODEL §4, §5)."""

import numpy as np
from matplotlib.axes import Axes

from popdyn.experiments import phase_portrait
from popdyn.experiments.hitting_map import Result
from popdyn.plotting.look import Figure, look, settle, tidy_log_axis
from popdyn.plotting.phase_portrait import draw_flow

__all__ = ["draw", "draw_beside_portrait", "draw_times"]

NEVER = "0.85"  # grey of the starts that do not come to the level
COLOUR_MAP = "cividis"  # even in lightness, so that a grey print is ordered too
LINES_OF_TIME = 8
NOISE = 1e-9  # of the times, which are good to 1e-10: smaller differences are none
# Where labels of lines may stand, in parts of the axes: so far inside and off the separatrix, at
# best at this part of the width, and so far from each other that none covers another.
INSIDE, AT, APART = 0.08, 0.75, (0.2, 0.07)


def draw(result: Result) -> Figure:
    """Time to the level, by colour and by lines of equal time."""
    with look():
        figure = Figure(figsize=(3.9, 2.8), layout="constrained")
        draw_times(figure.subplots(), result)
        settle(figure)
    return figure


def draw_beside_portrait(result: Result, portrait: phase_portrait.Result) -> Figure:
    """The map, and the flow in the plane `(c, 1/mu)` beside it."""
    with look():
        figure = Figure(figsize=(7.4, 2.9), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[1.15, 1.0])
        draw_times(left, result)
        draw_flow(right, portrait)
        settle(figure)
    return figure


def draw_times(axes: Axes, result: Result) -> None:
    """Time to the level in colour, grey where it is never reached, and the separatrix."""
    times = np.ma.masked_invalid(result.times)
    axes.set_facecolor(NEVER)
    axes.set_yscale("log")
    axes.set_xlim(result.ratios[0], result.ratios[-1])
    axes.set_ylim(result.scales[0], result.scales[-1])
    if times.count():
        spread = float(times.max() - times.min())
        varied = spread > NOISE * float(times.max())
        if not varied:
            times = np.ma.array(np.full(times.shape, times.min()), mask=times.mask)
        base = _common(float(times.min()), spread) if varied else 0.0
        mesh = axes.pcolormesh(
            result.ratios,
            result.scales,
            times - base,
            cmap=COLOUR_MAP,
            shading="nearest",
            rasterized=True,
        )
        bar = axes.figure.colorbar(mesh, ax=axes)
        from_base = f"t - {base:.0f}" if base else "t"
        bar.set_label(rf"${from_base}$ to $\mu = {_in_math(result.level)}$")
        if varied:
            equal = axes.contour(
                result.ratios,
                result.scales,
                times - base,
                levels=LINES_OF_TIME,
                colors="1.0",
                linewidths=0.6,
            )
            axes.clabel(equal, fontsize=6, manual=_label_places(axes, result, equal.allsegs))
        else:
            bar.set_ticks([times.min()], labels=[f"${_in_math(float(times.min()))}$"])
    axes.plot(result.separatrix, result.scales, color="0.0", linewidth=1.6, label="separatrix")
    tidy_log_axis(axes, "y")
    axes.set_xlabel("$k$")
    axes.set_ylabel(r"$\mu$")
    axes.plot([], [], color=NEVER, linewidth=6, label="never")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _common(first: float, spread: float) -> float:
    """A round number to take off times that have more digits in common than they differ in."""
    if first < 10.0 * spread:
        return 0.0
    unit = 10.0 ** np.ceil(np.log10(spread))
    return float(np.floor(first / unit) * unit)


def _label_places(
    axes: Axes, result: Result, lines: list[list[np.ndarray]]
) -> list[tuple[float, float]]:
    """A point on every line of time that has room for its label."""
    to_parts = axes.transData + axes.transAxes.inverted()
    places: list[tuple[float, float]] = []
    taken: list[np.ndarray] = []
    for pieces in lines:
        points = np.concatenate([np.empty((0, 2)), *pieces])
        parts = to_parts.transform(points)
        free = ((parts > INSIDE) & (parts < 1.0 - INSIDE)).all(axis=1)
        border = np.interp(points[:, 1], result.scales, result.separatrix)
        beside = np.stack([border, points[:, 1]], axis=1)
        free &= np.abs(parts - to_parts.transform(beside))[:, 0] > INSIDE
        for other in taken:
            free &= (np.abs(parts - other) > APART).any(axis=1)
        if free.any():
            best = np.argmin(np.where(free, np.abs(parts[:, 0] - AT), np.inf))
            places.append((float(points[best, 0]), float(points[best, 1])))
            taken.append(parts[best])
    return places


def _in_math(number: float) -> str:
    """A number as in a formula, with its power of ten written out."""
    digits, _, exponent = f"{number:g}".partition("e")
    if not exponent:
        return digits
    power = f"10^{{{int(exponent)}}}"
    return power if digits == "1" else rf"{digits} \times {power}"
