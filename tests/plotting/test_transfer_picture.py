"""The picture of a transfer: its data, its predicted lines, its bytes."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from pictures import bytes_of

from popdyn import Head, transfer
from popdyn.plotting.transfer import draw

THRESHOLDS = [0.0, 0.5, -0.5]
SIZES = [65536, 8, 32, 512]  # in any order


@pytest.fixture(scope="module")
def curve():
    return transfer(Head.from_tube(0.7, 20.8), THRESHOLDS, SIZES)


def lines_of(figure):
    (axes,) = figure.axes
    return {line.get_label(): line.get_data() for line in axes.lines}


def test_each_threshold_has_its_line_from_small_to_large_contexts(curve):
    drawn = lines_of(draw(curve))
    order = np.argsort(SIZES)
    for index, label in enumerate((r"$\alpha = 0$", r"$\alpha = 0.5$", r"$\alpha = -0.5$")):
        sizes, errors = drawn[label]
        np.testing.assert_array_equal(sizes, np.sort(SIZES))
        np.testing.assert_array_equal(errors, curve.root_mean_square[index, order])


def test_the_floor_and_the_law_are_those_of_the_scale(curve):
    drawn = lines_of(draw(curve))
    np.testing.assert_allclose(drawn[r"$1/\mu$"][1], 1 / 20.8, rtol=1e-15)
    n, law = drawn[r"$\sqrt{1/\mu^2 + 8\,\ell^2/N^2}$"]
    assert (n[0], n[-1]) == (8.0, pytest.approx(65536.0))
    np.testing.assert_allclose(law, np.hypot(1 / 20.8, 8**0.5 / n), rtol=1e-14)


def test_the_curves_meet_the_law_and_end_on_the_floor(curve):
    drawn = lines_of(draw(curve))
    _, errors = drawn[r"$\alpha = 0$"]
    assert errors[-1] == pytest.approx(drawn[r"$1/\mu$"][1][0], rel=1e-3, abs=0)
    # the law is good to 7 % from 32 examples on
    assert errors[1] == pytest.approx(np.hypot(1 / 20.8, 8**0.5 / 32), rel=0.07, abs=0)


def test_drawn_contexts_show_two_standard_errors():
    curve = transfer(Head.from_tube(0.7, 20.8), 0.0, [8, 32], n_contexts=50, rng=1)
    (axes,) = draw(curve).axes
    (bars,) = axes.containers
    low, high = np.array(bars[2][0].get_segments())[:, :, 1].T
    sampled = curve.sampled
    wanted = 2 * sampled.mean_square_error_standard_error / (2 * sampled.root_mean_square)
    np.testing.assert_allclose((high - low) / 2, wanted[0], rtol=1e-12)
    np.testing.assert_allclose((high + low) / 2, sampled.root_mean_square[0], rtol=1e-12)


SHAPES = {
    "one point": ([0.0], [64]),
    "a boundary": ([-1.0, 0.0, 1.0], [8, 4096]),
    "many thresholds": (np.linspace(-0.9, 0.9, 9), [1, 10, 100]),
}


@pytest.mark.parametrize(("thresholds", "sizes"), SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("head", [Head.from_tube(0.7, 20.8), Head.from_scores(-40.0, -10.0, 3.0)])
def test_every_curve_has_a_picture_with_sensible_axes(thresholds, sizes, head):
    figure = draw(transfer(head, thresholds, sizes))
    FigureCanvasAgg(figure).draw()
    (axes,) = figure.axes
    assert np.isfinite([*axes.get_xlim(), *axes.get_ylim()]).all()
    labels = [tick.label1.get_text() for tick in axes.yaxis.get_major_ticks()]
    assert sum(map(bool, labels)) >= 1


@pytest.mark.parametrize("picture", ["pdf", "png", "svg"])
def test_a_file_is_the_same_byte_for_byte(curve, picture):
    first = bytes_of(draw(curve), picture)
    with mpl.rc_context({"font.size": 20, "lines.linewidth": 5.0}):  # a user's settings
        second = bytes_of(draw(curve), picture)
    assert first == second
