"""The picture of frozen heads: its data, its labels, its bytes."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from pictures import bytes_of, labelled_ticks

from popdyn.experiments.freeze_transfer import Config, Result, run
from popdyn.plotting.freeze_transfer import draw

CONFIG = Config(sizes=(64, 128), n_replicates=(16, 2), context_sizes=(8, 64, 512, 65536))


@pytest.fixture(scope="module")
def result() -> Result:
    return run(CONFIG)


@pytest.fixture(scope="module")
def figure(result):
    drawn = draw(result)
    FigureCanvasAgg(drawn).draw()
    return drawn


def drawn_points(axes):
    """Data of the lines that are points, without the entries of legends."""
    marked = [
        line for line in axes.lines if line.get_linestyle() == "None" and line.get_xdata().size
    ]
    return [line.get_data() for line in marked]


def line(axes, label):
    (found,) = (line for line in axes.lines if line.get_label() == label)
    return found


def test_the_first_head_of_every_size_is_drawn_at_every_threshold(result, figure):
    points = drawn_points(figure.axes[0])
    first = [0, 16]
    wanted = result.root_mean_squares[first].reshape(6, 4)
    for (n, errors), row in zip(points, wanted, strict=True):
        np.testing.assert_array_equal(n, result.context_sizes)
        np.testing.assert_array_equal(errors, row)


def test_the_law_is_drawn_for_the_scale_of_each_head(result, figure):
    scale = result.scales[16]
    n, law = line(figure.axes[0], rf"$m = n = 128$, $\mu = {scale:.3g}$").get_data()
    np.testing.assert_allclose(law, np.sqrt(scale**-2 + 8 / n**2), rtol=1e-14)


def test_floors_of_all_heads_are_drawn_and_short_ones_as_crosses(result, figure):
    axes = figure.axes[1]
    x, y = line(axes, r"$\alpha = 0.5$").get_data()
    np.testing.assert_array_equal(x, result.stopping_scales[result.reached])
    np.testing.assert_array_equal(y, result.floors[result.reached, 1])
    n_short = int((~result.reached).sum())
    assert n_short > 0
    cross = line(axes, f"{n_short} of 18 short of their scale")
    np.testing.assert_array_equal(cross.get_ydata(), result.floors[~result.reached].ravel())
    assert cross.get_marker() == "x"


def test_the_predicted_line_has_slope_minus_one(figure):
    x, y = line(figure.axes[1], "its inverse (slope $-1$)").get_data()
    np.testing.assert_allclose(x * y, 1.0, rtol=1e-15)


def test_axes_are_logarithmic_with_labelled_ticks_and_symbols(figure):
    left, right = figure.axes
    assert (left.get_xlabel(), left.get_ylabel()) == ("$N$", r"RMS of $F - \alpha$")
    assert r"\log^2 M" in right.get_xlabel()
    for axes in figure.axes:
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        for axis in (axes.xaxis, axes.yaxis):
            assert len(labelled_ticks(axis, minor=False)) >= 2


@pytest.mark.parametrize("picture", ["pdf", "png"])
def test_a_file_is_the_same_byte_for_byte(result, picture):
    assert bytes_of(draw(result), picture) == bytes_of(draw(result), picture)
