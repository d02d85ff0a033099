"""The picture of a certificate: deviation from the population's progress by scale (MODEL §6)."""

from typing import Any

from matplotlib.axes import Axes

from popdyn.certification import Certificate
from popdyn.plotting.finite_pretraining import name_steps
from popdyn.plotting.look import COLOURS, LIMIT, LINES, Figure, look, settle

__all__ = ["draw", "draw_deviation"]

SPREADS = 2.0  # half width of the band, in standard deviations over corpora
LAST: dict[str, Any] = {
    "marker": "o",
    "markersize": 7,
    "markerfacecolor": "none",
    "color": COLOURS[1],
    "linestyle": "none",
}
REACH = 2.5  # the axis ends so far from 0: beyond, the corpus says nothing of the population


def draw(certificate: Certificate) -> Figure:
    """Deviation of one corpus, level by level, in the band of corpora of its size."""
    with look():
        figure = Figure(figsize=(3.7, 2.8), layout="constrained")
        draw_deviation(figure.subplots(), certificate)
        settle(figure)
    return figure


def draw_deviation(axes: Axes, certificate: Certificate) -> None:
    """Error of the projected gradient over the progress, with the fraction that a level allows."""
    scales, expected = certificate.scales, certificate.expected_deviation
    spread = SPREADS * certificate.expected_spread
    m, n = certificate.n_tasks, certificate.n_examples
    axes.fill_between(scales, expected - spread, expected + spread, color="0.88", linewidth=0)
    axes.plot(scales, expected, color="0.45", linestyle=LINES[1], linewidth=0.9, label="expected")
    axes.plot(
        scales,
        certificate.deviation,
        color=COLOURS[0],
        marker="o",
        markersize=2.5,
        label=f"corpus, $m = {m}$, $n = {n}$",
    )
    last = certificate.certified_scale
    if last:
        axes.plot(
            last,
            certificate.deviation[scales == last],
            label=rf"certified to $\mu = {last:.3g}$",
            **LAST,
        )
    for side, label in ((-1, None), (1, f"$\\pm {certificate.fraction:g}$")):
        axes.axhline(side * certificate.fraction, label=label, **LIMIT)
    axes.set_xscale("log")
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, -REACH), min(high, REACH))
    name_steps(axes.xaxis)
    axes.set_xlabel(r"$\mu$")
    axes.set_ylabel(r"error of $u \cdot \nabla L$ over progress")
    axes.legend(loc="upper left")
