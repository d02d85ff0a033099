"""The picture of training a reflected pair: its data, its axes, its bytes."""

import numpy as np
import pytest
from pictures import bytes_of

from popdyn.experiments.pair_training import Config, run
from popdyn.limit_laws import pair_fifth_power_rate, pair_layer, pair_risk_at
from popdyn.plotting.pair_training import draw

LABELS = (r"$\mu$", r"$\mu^5 / t$", r"$q\,\mu^3$", r"$L$")


@pytest.fixture(scope="module")
def quick():
    return run(Config.quick())


@pytest.fixture(scope="module")
def panels(quick):
    return {axes.get_ylabel(): axes for axes in draw(quick).axes}


def test_the_panels_show_the_numbers_of_the_runs(quick, panels):
    rows = {
        r"$\mu$": (quick.head_scale, quick.pair_scale),
        r"$\mu^5 / t$": (quick.pair_scale**5 / quick.t,),
        r"$q\,\mu^3$": (quick.pair_layer,),
        r"$L$": (quick.head_risk, quick.pair_risk, quick.averaged_risk),
    }
    assert set(panels) == set(LABELS)
    for label, drawn in rows.items():
        for line, row in zip(panels[label].lines, drawn, strict=False):
            np.testing.assert_array_equal(line.get_xdata(), quick.t)
            np.testing.assert_array_equal(line.get_ydata(), row)


def test_predicted_lines_are_the_laws(quick, panels):
    assert panels[r"$\mu^5 / t$"].lines[-1].get_ydata()[0] == pair_fifth_power_rate()
    assert panels[r"$q\,\mu^3$"].lines[-1].get_ydata()[0] == pair_layer()
    np.testing.assert_array_equal(panels[r"$L$"].lines[4].get_ydata(), pair_risk_at(quick.t))
    head_law = panels[r"$L$"].lines[3].get_ydata()
    np.testing.assert_allclose(head_law, np.sqrt(0.25 / quick.t), rtol=1e-12)


def test_the_limits_and_the_ends_of_the_runs_are_inside_the_axes(quick, panels):
    for label in LABELS:
        low, high = panels[label].get_ylim()
        for line in panels[label].lines:
            assert low < line.get_ydata()[-1] < high


def test_lines_are_told_apart_by_style_and_named_with_their_powers(panels):
    axes = panels[r"$L$"]
    dashes = {str(line._dash_pattern) for line in axes.lines}
    assert len(dashes) == 4  # three runs and the laws
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert [label.rpartition(", ")[2] for label in labels] == [
        r"$t^{-1/2}$",
        r"$t^{-3/5}$",
        r"$t^{-3/4}$",
        "predicted",
    ]


def test_a_file_is_the_same_byte_for_byte(quick):
    assert bytes_of(draw(quick), "png") == bytes_of(draw(quick), "png")
