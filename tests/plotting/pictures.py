"""What the tests of pictures look at."""

import io

from popdyn.plotting.look import save


def panel(figure, label):
    """The one panel with this label of its vertical axis."""
    (axes,) = (axes for axes in figure.axes if axes.get_ylabel() == label)
    return axes


def labelled_ticks(axis, minor=True):
    """Ticks in view that carry a text."""
    low, high = sorted(axis.get_view_interval())
    ticks = [*axis.get_major_ticks(), *(axis.get_minor_ticks() if minor else ())]
    return [tick for tick in ticks if low <= tick.get_loc() <= high and tick.label1.get_text()]


def bytes_of(figure, picture):
    """The file that a figure makes."""
    stream = io.BytesIO()
    save(figure, stream, picture)
    return stream.getvalue()
