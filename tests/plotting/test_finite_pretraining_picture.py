"""The picture of pretraining and transfer: its data, its labels, its bytes."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from pictures import bytes_of, labelled_ticks

from popdyn.experiments.finite_pretraining import Config, Result, run
from popdyn.plotting.finite_pretraining import draw

CONFIG = Config(sizes=(64, 128), n_replicates=(16, 2), n_points=20)
N_CORPORA = 18


@pytest.fixture(scope="module")
def result() -> Result:
    return run(CONFIG)


@pytest.fixture(scope="module")
def figure(result):
    drawn = draw(result)
    FigureCanvasAgg(drawn).draw()
    return drawn


def crosses(axes):
    return [line for line in axes.lines if line.get_marker() == "x" and line.get_xdata().size]


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize(
    ("panel", "across", "upward"),
    [(0, "steps", "radius_ratios"), (1, "scales", "scaled_errors")],
)
def test_every_corpus_is_a_path(result, figure, panel, across, upward):
    paths = figure.axes[panel].lines[:N_CORPORA]
    for i, path in enumerate(paths):
        later = result.steps[i] > 0
        x, y = path.get_data()
        np.testing.assert_array_equal(x, getattr(result, across)[i, later])
        np.testing.assert_array_equal(y, getattr(result, upward)[i, later])


def test_limits_are_one_and_the_root_of_two(figure):
    left, middle = figure.axes[:2]
    (one,) = (line for line in left.lines if list(line.get_ydata()) == [1.0, 1.0])
    assert one.get_linestyle() != "-"
    (root,) = (line for line in middle.lines if line.get_label() == r"$\sqrt{1 + \ell^2}$")
    assert root.get_ydata()[0] == pytest.approx(2**0.5, rel=1e-15, abs=0)


def test_the_stopping_scale_of_each_size_is_marked(result, figure):
    marks = [line for line in figure.axes[1].lines if line.get_marker() == "^"]
    places = [line.get_xdata()[0] for line in marks if len(line.get_xdata())]
    assert places == [result.stopping_scales[0], result.stopping_scales[-1]]


def test_corpora_that_fell_short_are_crosses_and_counted(result, figure):
    (short,) = np.flatnonzero(~result.reached)
    for axes, name in zip(figure.axes[:2], ("radius_ratios", "scaled_errors"), strict=True):
        (cross,) = crosses(axes)
        row = getattr(result, name)[short]
        assert cross.get_ydata()[0] == row[np.isfinite(row)][-1]
    (cross,) = crosses(figure.axes[2])
    np.testing.assert_array_equal(cross.get_ydata(), result.root_mean_squares[short])
    assert "1 of 18 short of scale" in labels(figure.axes[1])
    assert "1 of 18 short of scale" in labels(figure.axes[2])


def test_frozen_heads_are_points_on_the_two_terms(result, figure):
    axes = figure.axes[2]
    points = [
        line.get_ydata()
        for line in axes.lines
        if line.get_marker() in ("o", "s") and len(line.get_xdata())
    ]
    np.testing.assert_array_equal(points, result.root_mean_squares[result.reached])
    lines = [line for line in axes.lines if line.get_linestyle() != "None"]
    drawn = [line.get_ydata() for line in lines if len(line.get_xdata())]
    np.testing.assert_array_equal(drawn, result.fitted_errors[[0, -1]])
    assert any(f"{result.A:.2f}" in label and f"{result.B:.2f}" in label for label in labels(axes))


def test_axes_carry_the_symbols_of_the_model_and_labelled_ticks(figure):
    left, middle, right = figure.axes
    assert left.get_ylabel() == r"$|(\lambda, \mu)|$ over the population's"
    assert middle.get_xlabel() == r"$\mu$"
    assert middle.get_ylabel() == r"$|(\lambda, \mu)|\,\mathrm{sup}\,|F - \alpha|$"
    assert (right.get_xlabel(), right.get_ylabel()) == ("$N$", r"RMS of $F - \alpha$")
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            assert len(labelled_ticks(axis, minor=False)) >= 2


@pytest.mark.parametrize("picture", ["pdf", "png"])
def test_a_file_is_the_same_byte_for_byte(result, picture):
    assert bytes_of(draw(result), picture) == bytes_of(draw(result), picture)
