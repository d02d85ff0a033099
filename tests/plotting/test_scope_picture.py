"""The picture of the scope: its data, its axes, its bytes."""

import numpy as np
import pytest
from pictures import bytes_of

from popdyn.experiments.scope import Config, run
from popdyn.plotting.scope import draw


@pytest.fixture(scope="module")
def result():
    return run(Config.quick())


def test_the_panels_show_the_numbers_of_the_run(result):
    sweep, scale, risk = draw(result).axes
    for i in range(len(result.common_times)):
        np.testing.assert_array_equal(
            sweep.lines[i].get_data(), (result.radii, result.common_risk[i])
        )
    for axes, rows in ((scale, result.scale), (risk, result.risk)):
        for line, row in zip(axes.lines[:4], rows, strict=True):
            np.testing.assert_array_equal(line.get_data(), (result.t[1:], row[1:]))


def test_the_zero_start_is_drawn_above_the_sweep(result):
    sweep = draw(result).axes[0]
    (line,) = (line for line in sweep.lines if line.get_label() == "zero start")
    assert set(line.get_ydata()) == {result.origin_risk}
    assert sweep.get_ylim()[1] > result.origin_risk > result.common_risk.max()


def test_the_law_of_clean_designs_meets_their_paths(result):
    _, scale, risk = draw(result).axes
    t, law = scale.lines[4].get_data()
    assert t[-1] == result.t[-1]
    # 2.6/(4 mu) of the scale and twice that of the risk at mu = 386: 0.2 %
    assert law[-1] == pytest.approx(result.scale[0, -1], rel=4e-3)
    assert risk.lines[4].get_ydata()[-1] == pytest.approx(result.risk[0, -1], rel=8e-3)


def test_the_floor_of_corrupted_labels_is_written_beside_it(result):
    risk = draw(result).axes[2]
    assert [text.get_text() for text in risk.texts] == [f"{result.risk[3, -1]:.6f}"]


def test_designs_are_told_apart_in_grey(result):
    scale = draw(result).axes[1]
    widths_and_dashes = {
        (line.get_linewidth(), str(line.get_linestyle()), line.get_color())
        for line in scale.lines[:4]
    }
    assert len(widths_and_dashes) == 4
    texts = [text.get_text() for text in scale.get_legend().get_texts()]
    assert texts[0] == "uniform"
    assert texts[3] == "labels flipped, $p = 0.01$"


def test_a_file_is_the_same_byte_for_byte(result):
    assert bytes_of(draw(result), "png") == bytes_of(draw(result), "png")
