"""The picture of matched label noise: its data, its axes, its bytes."""

import numpy as np
import pytest
from pictures import bytes_of

from popdyn.experiments.matched_noise import Config, run
from popdyn.limit_laws import boundary_limits
from popdyn.plotting.matched_noise import draw


@pytest.fixture(scope="module")
def result():
    return run(Config.quick())


def test_the_panels_show_the_errors(result):
    interior, scaled, boundary = draw(result).axes
    rows = ((interior, result.interior), (scaled, result.interior * result.context_sizes))
    for axes, panel in (*rows, (boundary, result.boundary)):
        for line, row in zip(axes.lines, panel, strict=False):
            np.testing.assert_array_equal(line.get_data(), (result.context_sizes, row))


def test_the_boundary_limits_are_drawn(result):
    boundary = draw(result).axes[2]
    drawn = [line.get_ydata()[0] for line in boundary.lines[2:]]
    assert tuple(drawn) == boundary_limits(8.0, 0.4)


def test_conditions_have_one_look_in_all_panels(result):
    interior, scaled, boundary = draw(result).axes
    for one, two in (
        *zip(interior.lines[:3], scaled.lines[:3], strict=True),
        *zip(interior.lines[:2], boundary.lines[:2], strict=True),
    ):
        assert (one.get_color(), one.get_marker()) == (two.get_color(), two.get_marker())
    assert len({line.get_marker() for line in interior.lines[:3]}) == 3


def test_axes_reach_from_zero_to_above_the_errors(result):
    _, scaled, boundary = draw(result).axes
    for axes, largest in ((scaled, 8.93), (boundary, 2.0)):
        low, high = axes.get_ylim()
        assert low == 0.0
        assert high > largest


def test_a_file_is_the_same_byte_for_byte(result):
    assert bytes_of(draw(result), "png") == bytes_of(draw(result), "png")
