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


def with_times(times, level=3.0):
    ratios, scales = np.linspace(-1.0, 3.0, times.shape[1]), np.geomspace(0.01, 2.0, times.shape[0])
    return hitting_map.Result(1.0, level, ratios, scales, times, np.full(scales.size, -0.4))


def test_times_that_hardly_differ_are_shown_less_what_they_share():
    times = 25_704_838.0 + np.add.outer([300.0, 200.0, 0.0], [310.0, 160.0, 0.0, 20.0])
    times[0, 0] = np.inf
    axes, bar = draw(with_times(times, level=1e-5)).axes
    shown = axes.collections[0].get_array()
    np.testing.assert_array_equal(shown.compressed(), times[np.isfinite(times)] - 25_704_000.0)
    assert bar.get_ylabel() == r"$t - 25704000$ to $\mu = 10^{-5}$"


def test_times_that_differ_by_their_errors_are_one_colour():
    times = 2.5e23 * (1.0 + 1e-12 * np.arange(12.0).reshape(3, 4))
    axes, bar = draw(with_times(times)).axes
    assert np.ptp(axes.collections[0].get_array()) == 0.0
    assert [tick.get_text() for tick in bar.get_yticklabels()] == [r"$2.5 \times 10^{23}$"]


def test_labels_of_lines_of_time_stand_inside_and_apart():
    x, y = np.meshgrid(np.linspace(0.0, 1.0, 41), np.linspace(0.0, 1.0, 31))
    figure = draw(with_times(100.0 * (1.0 - y) ** 3 + 30.0 * x * y))
    axes = figure.axes[0]
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) >= 3
    frame = axes.get_window_extent()
    for i, box in enumerate(boxes):
        assert frame.x0 < box.x0 < box.x1 < frame.x1 and frame.y0 < box.y0 < box.y1 < frame.y1
        assert not any(box.overlaps(other) for other in boxes[:i])
