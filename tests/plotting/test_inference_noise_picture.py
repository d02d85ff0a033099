"""The picture of flipped labels at inference: its data, its axes, its bytes."""

import numpy as np
import pytest
from pictures import bytes_of

from popdyn.experiments.inference_noise import Config, run
from popdyn.plotting.inference_noise import draw


@pytest.fixture(scope="module")
def result():
    return run(Config.quick())


def test_the_panel_shows_the_errors_and_their_floors(result):
    (axes,) = draw(result).axes
    for i in range(3):
        sizes, row = axes.lines[2 * i].get_data()
        np.testing.assert_array_equal(sizes, result.context_sizes)
        np.testing.assert_array_equal(row, result.root_mean_square[i])
        np.testing.assert_array_equal(axes.lines[2 * i + 1].get_ydata(), [result.floor[i]] * 2)
        assert axes.lines[2 * i + 1].get_color() == axes.lines[2 * i].get_color()


def test_everything_drawn_is_inside_the_axes(result):
    (axes,) = draw(result).axes
    low, high = axes.get_ylim()
    assert low < result.floor.min()
    assert high > result.root_mean_square.max()


def test_conditions_are_told_apart_in_grey(result):
    (axes,) = draw(result).axes
    lines = axes.lines[0:6:2]
    assert len({line.get_marker() for line in lines}) == 3
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts == [
        "clean",
        r"localized, $p = 0.25$, $w = 1/\mu$",
        "Massart, $p = 0.01$",
        r"floors, $N = \infty$",
        r"$\sqrt{1/\mu^2 + 8\,\ell^2/N^2}$",
    ]


def test_a_file_is_the_same_byte_for_byte(result):
    assert bytes_of(draw(result), "png") == bytes_of(draw(result), "png")
