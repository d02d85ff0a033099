"""The picture of infinitely many tasks: its data, its axes, its bytes."""

import numpy as np
import pytest
from pictures import bytes_of, panel

from popdyn.experiments.infinite_tasks import Config, run
from popdyn.plotting.infinite_tasks import draw

RISK, RISE = r"risk $L$ along the valley", r"$L / L^* - 1$"
PLACE, POWER = r"scale $\mu^*$ of the minimum", r"$\mathrm{d}\log\mu\,/\,\mathrm{d}\log t$"


@pytest.fixture(scope="module")
def result():
    return run(Config((16, 24), n_scales=9))


def test_the_panels_show_the_numbers_of_the_run(result):
    figure = draw(result)
    for i in range(2):
        np.testing.assert_array_equal(
            panel(figure, RISK).lines[2 * i].get_data(), (result.scale[i], result.risk[i])
        )
        place, power = panel(figure, POWER).lines[i].get_data()
        np.testing.assert_array_equal(place, result.scale[i] / result.n_examples[i])
        np.testing.assert_array_equal(power, result.time_power[i])
        place, rise = panel(figure, RISE).lines[2 * i].get_data()
        np.testing.assert_array_equal(place, result.scale[i] / result.minimum_scale[i])
        np.testing.assert_array_equal(rise, result.risk[i] / result.minimum_risk[i] - 1)


def test_the_minimum_is_marked_on_the_valley(result):
    (scale,), (risk,) = panel(draw(result), RISK).lines[1].get_data()
    assert (scale, risk) == (result.minimum_scale[0], result.minimum_risk[0])


def test_the_powers_of_n_start_at_the_first_minimum(result):
    lines = {line.get_label(): line for line in panel(draw(result), PLACE).lines}
    for label, power in (("$n^2$", 2), ("$n$", 1)):
        n, guide = lines[label].get_data()
        assert guide[0] == result.minimum_scale[0]
        assert guide[1] / guide[0] == pytest.approx((n[1] / n[0]) ** power, rel=1e-12, abs=0)


def test_sizes_and_laws_are_told_apart_in_the_legends(result):
    figure = draw(result)
    texts = {
        axes.get_ylabel(): [text.get_text() for text in axes.get_legend().get_texts()]
        for axes in figure.axes
    }
    assert texts[RISK] == [r"$4\,\ell^2 / (n + 1)$"]
    assert texts[POWER] == ["$n = 16$", "$n = 24$", "1/4", "1/5"]
    styles = {line.get_linestyle() for line in panel(figure, POWER).lines[:2]}
    assert len(styles) == 2


def test_a_file_is_the_same_byte_for_byte(result):
    assert bytes_of(draw(result), "png") == bytes_of(draw(result), "png")
