"""The picture of the reflected pair on finite contexts: biases, RMS errors, ends (MODEL §7)."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from popdyn.experiments.symmetrization import Result
from popdyn.limit_laws import context_rms, pair_rms, prior_averaged_risks
from popdyn.plotting.look import COLOURS, LIMIT, LINES, Figure, look, settle, tidy_log_axis

__all__ = ["draw", "draw_bias", "draw_ends", "draw_prior", "draw_rms"]

HEAD, PAIR, MIDPOINT, BAYES, REFLECTED = (
    {"color": COLOURS[i], "linestyle": LINES[j]}
    for i, j in ((1, 1), (0, 0), (2, 2), (3, 5), (4, 3))
)
DRAWN: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 2.6, "capsize": 1.8}
INTERIOR, LOWER, UPPER = range(3)
# At the ends the pair errs alike, so that one marker must be seen through the other.
END: dict[int, dict[str, Any]] = {
    LOWER: {"marker": "v", "markersize": 4.0},
    UPPER: {"marker": "^", "markersize": 4.0, "markerfacecolor": "none", "markeredgewidth": 0.8},
}


def draw(result: Result) -> Figure:
    """By context size at one scale and by scale at one context size: bias, RMS, RMS at the ends.

    Beside them the squared error averaged over thresholds. Of the pair the drawn means are shown
    with their standard errors, of all others the exact values. Predicted lines are those of
    `popdyn.limit_laws`.
    """
    with look():
        figure = Figure(figsize=(7.4, 5.2), layout="constrained")
        panels: dict[str, Axes] = figure.subplot_mosaic(
            [[f"{name} by N", f"{name} by mu", "prior"] for name in ("bias", "rms", "ends")]
        )
        for by in ("N", "mu"):
            draw_bias(panels[f"bias by {by}"], result, by)
            draw_rms(panels[f"rms by {by}"], result, by)
            draw_ends(panels[f"ends by {by}"], result, by)
            for name in ("bias", "rms"):
                panels[f"{name} by {by}"].set_xlabel("")
                panels[f"{name} by {by}"].tick_params(labelbottom=False)
        draw_prior(panels["prior"], result)
        panels["bias by N"].set_title(rf"$\mu = {result.scales[0]:g}$", fontsize=8)
        panels["bias by mu"].set_title(rf"$N = {result.sizes[-1]}$", fontsize=8)
        for name in ("bias", "rms", "ends"):
            panels[f"{name} by mu"].sharey(panels[f"{name} by N"])
            panels[f"{name} by mu"].set_ylabel("")
        _explain(figure, panels["bias by N"], panels["rms by N"])
        figure.align_ylabels([panels[f"{name} by N"] for name in ("bias", "rms", "ends")])
        settle(figure)
    return figure


def draw_bias(axes: Axes, result: Result, by: str) -> None:
    """Bias inside the interval, of the head, its reflection and the pair.

    In units of `1/mu + 2 l/N`: of one head it is `-1/mu` on many examples and `-2 l/N` on few.
    """
    points, x = _sweep(result, by)
    unit = 1.0 / result.scales[points] + 2.0 * result.half_width / result.sizes[points]
    axes.plot(x, result.head_bias[INTERIOR, points] / unit, label="one head", **HEAD)
    reflected = result.reflected_bias[INTERIOR, points] / unit
    axes.plot(x, reflected, label="its reflection", **REFLECTED)
    axes.errorbar(
        x,
        result.pair_bias[INTERIOR, points] / unit,
        result.pair_bias_error[INTERIOR, points] / unit,
        label="pair, drawn",
        color=PAIR["color"],
        **DRAWN,
    )
    for limit in (-1.0, 0.0, 1.0):
        axes.axhline(limit, **LIMIT)
    axes.set_ylim(-1.4, 1.4)
    _finish(axes, by)
    axes.set_ylabel(r"$E[F - \alpha]\,/\,(1/\mu + 2\ell/N)$")


def draw_rms(axes: Axes, result: Result, by: str) -> None:
    """RMS error inside the interval, with the laws of the head and of the pair."""
    points, x = _sweep(result, by)
    mu, n = result.scales[points], result.sizes[points]
    axes.plot(x, result.head_rms[INTERIOR, points], label="one head", **HEAD)
    axes.plot(x, result.midpoint_rms[INTERIOR, points], label="midpoint", **MIDPOINT)
    axes.plot(x, result.bayes_rms[INTERIOR, points], label="Bayes", **BAYES)
    _draw_pair(axes, result, by, INTERIOR)
    axes.plot(x, context_rms(mu, n, result.half_width), label="predicted", **LIMIT)
    axes.plot(x, pair_rms(mu, n, result.half_width), **LIMIT)
    axes.set_yscale("log")
    _finish(axes, by)
    axes.set_ylabel("RMS error, interior")


def draw_ends(axes: Axes, result: Result, by: str) -> None:
    """RMS error at the two ends: of the pair `l` at both, of a head `2 l` at one."""
    points, x = _sweep(result, by)
    width = result.half_width
    for end, marker in END.items():
        axes.plot(x, result.head_rms[end, points], **HEAD, **marker)
        _draw_pair(axes, result, by, end)
    axes.plot(x, result.bayes_rms[LOWER, points], **BAYES)
    for limit, name, va in ((2 * width, r"$2\ell$", "bottom"), (width, r"$\ell$", "top")):
        axes.axhline(limit, **LIMIT)
        axes.annotate(
            name,
            (1.0, limit),
            (-2, 3 if va == "bottom" else -3),
            ha="right",
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va=va,
        )
    axes.set_yscale("log")
    low = min(result.head_rms[UPPER].min(), result.bayes_rms[LOWER].min())
    axes.set_ylim(low / 2.0, 10.0 * width)  # room for the names
    _finish(axes, by)
    axes.set_ylabel(r"RMS error at $\alpha = \pm\ell$")


def draw_prior(axes: Axes, result: Result) -> None:
    """Squared error averaged over thresholds, as `mu -> oo`, of the head, the pair and Bayes."""
    laws = prior_averaged_risks(result.prior_sizes, result.half_width)
    names = (
        r"one head, $4\ell^2 N / (N + 1)(N + 2)$",
        r"pair, $2\ell^2 / (N + 2)$",
        r"Bayes, $2\ell^2 / (N + 2)(N + 3)$",
    )
    styles = (HEAD, PAIR, BAYES)
    for i, (marker, style) in enumerate(zip("s^o", styles, strict=True)):
        drawn = DRAWN | {"marker": marker, "markersize": 3.2}
        risks, errors = result.prior_risks[i], result.prior_errors[i]
        axes.errorbar(
            result.prior_sizes, risks, errors, color=style["color"], label=names[i], **drawn
        )
        axes.plot(result.prior_sizes, laws[i], **LIMIT)
    axes.set_xscale("log")
    axes.set_yscale("log")
    low, high = laws.min(), laws.max()
    axes.set_ylim(low / (high / low) ** 0.35, 2.0 * high)  # room for the names
    tidy_log_axis(axes, "x")
    tidy_log_axis(axes, "y")
    axes.set_xlabel("$N$")
    axes.set_title(r"averaged over $\alpha$, $\mu \to \infty$", fontsize=8)
    axes.set_ylabel(r"$E\,(F - \alpha)^2$")
    axes.legend(loc="lower left", handletextpad=0.2)


def _draw_pair(axes: Axes, result: Result, by: str, threshold: int) -> None:
    points, x = _sweep(result, by)
    drawn = DRAWN | END.get(threshold, {})
    axes.errorbar(
        x,
        result.pair_rms[threshold, points],
        result.pair_rms_error[threshold, points],
        color=PAIR["color"],
        **drawn,
    )


def _sweep(result: Result, by: str) -> tuple[slice, np.ndarray[Any, Any]]:
    """The points of one sweep and what is swept."""
    if by == "N":
        points = slice(None, result.n_sizes)
        return points, result.sizes[points]
    points = slice(result.n_sizes, None)
    return points, result.scales[points]


def _finish(axes: Axes, by: str) -> None:
    axes.set_xscale("log")
    tidy_log_axis(axes, "x")
    if axes.get_yscale() == "log":
        tidy_log_axis(axes, "y")
    axes.set_xlabel("$N$" if by == "N" else r"$\mu$")


def _explain(figure: Figure, *panels: Axes) -> None:
    """One legend for the six panels of the sweeps."""
    handles: dict[str, Any] = {}
    for axes in panels:
        handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    for end, name in ((LOWER, r"at $\alpha = -\ell$"), (UPPER, r"at $\alpha = +\ell$")):
        handles[name] = Line2D([], [], color="0.25", linestyle="none", **END[end])
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
