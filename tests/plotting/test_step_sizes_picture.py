"""The picture of step sizes and the grid: its data, its labels, its bytes."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from pictures import bytes_of

from popdyn.experiments.step_sizes import Config, run
from popdyn.plotting.step_sizes import draw

CONFIG = Config(n_steps=4000, task_counts=(16, 64, 256), example_counts=(16, 64), n_replicates=8)


@pytest.fixture(scope="module")
def result():
    return run(CONFIG)


@pytest.fixture(scope="module")
def figure(result):
    drawn = draw(result)
    FigureCanvasAgg(drawn).draw()
    return drawn


def line(axes, label):
    (found,) = (line for line in axes.lines if line.get_label() == label)
    return found.get_data()


def test_step_sizes_that_hold_are_points_and_the_failed_one_is_a_cross(result, figure):
    axes = figure.axes[0]
    eta, increments = line(axes, "after 4,000 steps")
    np.testing.assert_array_equal(eta, [20, 50, 100, 200, 400])
    np.testing.assert_array_equal(increments, result.increments[:5])
    assert line(axes, "1 of 6 failed")[0].tolist() == [512]
    assert any("after 3 steps" in text.get_text() for text in axes.texts)


def test_the_law_passes_through_the_points_below_its_limit(result, figure):
    axes = figure.axes[0]
    eta, law = line(axes, "law of the tube")
    # 4000 steps see more of the start below the tube than 40,000
    np.testing.assert_allclose(
        np.interp(np.log([100, 400]), np.log(eta), law), result.increments[[2, 4]], rtol=5e-3
    )
    assert line(axes, r"limit $8/(1 + \ell^2) = 4$")[1] == [4.0, 4.0]


def test_every_cell_of_the_grid_is_a_mean_with_its_error(result, figure):
    axes = figure.axes[1]
    bars = axes.containers
    assert len(bars) == result.shells.size * result.task_counts.size
    drawn = np.array([bar.lines[0].get_ydata() for bar in bars])
    np.testing.assert_array_equal(drawn, result.deviations.mean(axis=-1).reshape(6, 2))
    np.testing.assert_array_equal(line(axes, r"exact, $\mu = 8$")[1], result.means[0])
    np.testing.assert_array_equal(line(axes, r"exact, $\mu = 16$")[1], result.means[1])


def test_spreads_are_drawn_with_lines_of_power_minus_one_half(result, figure):
    axes = figure.axes[2]
    m, spread = line(axes, "$n = 64$")
    np.testing.assert_array_equal(m, result.task_counts)
    wanted = result.deviations[0, :, 1].std(axis=-1, ddof=1)
    np.testing.assert_allclose(spread, wanted, rtol=1e-14)  # sums in another order
    laws = [line for line in axes.lines if len(line.get_xdata()) > 10]
    assert len(laws) == result.shells.size * result.example_counts.size
    for law in laws:
        x, y = law.get_data()
        assert np.log(y[-1] / y[0]) == pytest.approx(-0.5 * np.log(x[-1] / x[0]), rel=1e-12, abs=0)


def test_axes_carry_the_symbols_of_the_model(figure):
    left, middle, right = figure.axes
    assert left.get_xlabel() == r"step size $\eta$"
    assert left.get_ylabel() == r"$(\mu^4 - \mu_0^4)\,/\,(\eta\ \mathrm{steps})$"
    assert middle.get_xlabel() == "examples $n$ a task"
    assert right.get_xlabel() == "tasks $m$"
    for axes in figure.axes:
        assert sum(bool(tick.get_text()) for tick in axes.get_xticklabels()) >= 2
        assert sum(bool(tick.get_text()) for tick in axes.get_yticklabels()) >= 2


def test_nothing_failed_is_no_cross():
    small = run(
        Config(
            step_sizes=(50.0, 100.0),
            n_steps=100,
            task_counts=(4, 16),
            example_counts=(8, 16),
            shells=(8.0,),
            n_replicates=2,
        )
    )
    labels = [line.get_label() for line in draw(small).axes[0].lines]
    assert not any("failed" in str(label) for label in labels)


@pytest.mark.parametrize("picture", ["pdf", "png"])
def test_a_file_is_the_same_byte_for_byte(result, picture):
    assert bytes_of(draw(result), picture) == bytes_of(draw(result), picture)
