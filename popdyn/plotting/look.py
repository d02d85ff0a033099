"""One look for all figures: sizes, colours that survive printing in grey, stable files."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import IO, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as PlainFigure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

__all__ = ["COLOURS", "LIMIT", "LINES", "Figure", "look", "save", "settle", "tidy_log_axis"]

# Okabe and Ito's colours, told apart by colour-blind readers; beside each a line style, so that
# a grey print tells them apart as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
LINES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (3, 1.2, 1, 1.2)),
    (0, (1, 1)),
    (0, (7, 2)),
    (0, (5, 1, 1, 1, 1, 1)),
)
LIMIT: dict[str, Any] = {"color": "0.25", "linestyle": (0, (1.5, 1.5)), "linewidth": 0.9}

_STYLE: dict[str, Any] = {
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.labelsize": 8,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # ships with Matplotlib, so files agree between machines
    "figure.titlesize": 8,
    "font.size": 8,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "lines.linewidth": 1.3,
    "mathtext.fontset": "dejavusans",
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
    "svg.fonttype": "path",
    "svg.hashsalt": "popdyn",
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
}
# A date in a file would make every run differ.
_METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None},
    "png": {"Software": None},
    "svg": {"Date": None},
}


@contextmanager
def look() -> Iterator[None]:
    """Draw with this look and the defaults of Matplotlib, whatever the user's settings are."""
    with mpl.rc_context():
        defaults = {name: mpl.rcParamsDefault[name] for name in mpl.rcParamsDefault}
        del defaults["backend"]
        mpl.rcParams.update(defaults | _STYLE)
        yield


def tidy_log_axis(axes: Axes, which: str) -> None:
    """Give a log axis at least two labelled ticks and not too many."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    decades = np.floor(np.log10(high) + 1e-9) - np.ceil(np.log10(low) - 1e-9)
    if decades >= 1:
        axis.set_major_locator(LogLocator(numticks=6))
        axis.set_minor_formatter(NullFormatter())
    else:
        axis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:.6g}"))
        axis.set_minor_locator(NullLocator())


class Figure(PlainFigure):
    """A figure outside of pyplot, which notebooks show all the same."""

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        save(self, stream, "png")
        return stream.getvalue()

    def _ipython_display_(self) -> None:
        # Without this the inline backend, once anybody has loaded pyplot, takes over the drawing of
        # all figures, at half the dots and with the user's settings. IPython is there if it calls.
        display = import_module("IPython.display")
        display.display(display.Image(self._repr_png_(), retina=True))


def settle(figure: PlainFigure) -> None:
    """Lay a figure out once for all, in places of four digits.

    The solver of the layout goes through sets in an order that varies from run to run, and the last
    digits of its places with it.
    """
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = (round(place, 4) for place in axes.get_position().bounds)
        axes.set_position((left, bottom, width, height))


def save(figure: PlainFigure, stream: IO[bytes], picture: str) -> None:
    """Write a figure as "pdf", "png" or "svg", byte for byte the same from run to run."""
    with look():
        figure.savefig(stream, format=picture, metadata=_METADATA[picture])
