"""The pictures of the map and of the phase portrait: their data, their signs, their bytes."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from pictures import bytes_of

from popdyn.experiments import hitting_map, phase_portrait
from popdyn.plotting.hitting_map import draw, draw_beside_portrait
from popdyn.plotting.phase_portrait import draw as draw_portrait

# Made up: the pictures draw what they are given.
MAP = hitting_map.Result(
    half_width=1.0,
    level=3.0,
    ratios=np.array([-1.0, 0.0, 1.0]),
    scales=np.array([0.1, 3.0]),
    times=np.array([[np.inf, 100.0, 90.0], [0.0, 0.0, 0.0]]),
    separatrix=np.array([-0.5, -0.2]),
)
PORTRAIT = phase_portrait.Result(
    half_width=1.0,
    window=np.array([-8.0, 4.0, 1.0]),
    tubes=np.array([[4.0, 1.0, 0.7], [-8.0, -7.0, np.nan]]),
    inverse_scales=np.array([[0.5, 0.3, 0.02], [0.9, 1.0, np.nan]]),
    upright=np.array([True, False]),
    predicted=np.array([True, False]),
    separatrix_tubes=np.array([-8.0, -1.5]),
    separatrix_inverse_scales=np.array([0.2, 1.0]),
)


def lines_of(axes):
    return {line.get_label(): np.array(line.get_data()) for line in axes.lines}


def test_the_map_shows_the_times_and_leaves_out_what_never_comes():
    axes, bar = draw(MAP).axes
    shown = axes.collections[0].get_array()
    assert shown.mask.tolist() == [[True, False, False], [False] * 3]
    np.testing.assert_array_equal(shown.compressed(), [100.0, 90.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(lines_of(axes)["separatrix"], [MAP.separatrix, MAP.scales])
    assert bar.get_ylabel() == r"$t$ to $\mu = 3$"


def test_the_portrait_shows_the_paths_the_separatrix_and_the_tube():
    (axes,) = draw_portrait(PORTRAIT).axes
    drawn = lines_of(axes)
    for i, label in enumerate(("to the upright head", "to the reflected head")):
        np.testing.assert_array_equal(drawn[label], [PORTRAIT.tubes[i], PORTRAIT.inverse_scales[i]])
    np.testing.assert_array_equal(drawn["separatrix"][0], PORTRAIT.separatrix_tubes)
    assert drawn["tube"][0, 0] == pytest.approx(np.log(2), abs=0.01)  # b/mu = -0.3 at mu = 100
    assert len(axes.texts) == 2  # an arrow a path


@pytest.mark.parametrize("times", [np.inf, 0.0, 7.0])
def test_a_map_of_one_time_has_a_picture(times):
    result = hitting_map.Result(
        1.0, 3.0, MAP.ratios, MAP.scales, np.full((2, 3), times), MAP.separatrix
    )
    FigureCanvasAgg(draw(result)).draw()


def test_a_file_is_the_same_byte_for_byte():
    files = []
    for size in (8, 20):  # of a user's settings
        with mpl.rc_context({"font.size": size}):
            files.append(bytes_of(draw_beside_portrait(MAP, PORTRAIT), "pdf"))
    assert files[0] == files[1]
