"""The picture of robustness and convergence: its data, its axes, its bytes."""

from dataclasses import replace

import numpy as np
import pytest
from pictures import bytes_of, labelled_ticks

from popdyn.experiments.convergence import Result
from popdyn.plotting.convergence import draw


@pytest.fixture(scope="module")
def result():
    """Numbers of the size of the true ones, none of them computed."""
    levels = np.array([10.0, 20.0])
    orders = np.round(np.outer(levels**1.5, [2, 10, 18, 26])).astype(int)
    errors = np.exp(-1.3 * orders / levels[:, None] ** 1.5)
    t = np.concatenate(([0.0], np.geomspace(1.0, 1e12, 20)))
    sizes = np.outer([1.0, 2.0], [0.1, 8.0])
    return Result(
        starts=np.array([[7.5, 5.0], [8.4, 8.0]]),
        interiors=np.array([0.5, 0.9]),
        t=t,
        scaled_error=1.0 + sizes[..., None] * np.exp(-t / 100.0),
        levels=levels,
        hit_time=np.array([3e3, 5e4]),
        orders=orders,
        hit_error=errors / 30,
        ratio_error=errors / 40,
        gradient_error=errors,
        graded_nodes=np.array([80, 100]),
        graded_hit_error=np.array([1e-14, 0.0]),
        graded_ratio_error=np.array([1e-14, 1e-15]),
        graded_gradient_error=np.array([1e-15, 1e-16]),
    )


def panel(figure, label):
    (axes,) = (axes for axes in figure.axes if label in axes.get_ylabel())
    return axes


def test_every_error_is_drawn_for_each_start_and_interior(result):
    lines = panel(draw(result), "alpha| \\leq a").lines
    drawn = np.array([line.get_ydata() for line in lines]).reshape(
        result.scaled_error[..., 1:].shape
    )
    np.testing.assert_array_equal(drawn, result.scaled_error[..., 1:])
    assert len({(line.get_color(), str(line._dash_pattern)) for line in lines}) == 4


@pytest.mark.parametrize(
    ("label", "name"), [("at the hit", "hit_error"), ("until the hit", "ratio_error")]
)
def test_errors_of_rules_are_drawn_against_their_orders(result, label, name):
    lines = panel(draw(result), label).lines
    for i in range(2):
        plain, graded = lines[2 * i : 2 * i + 2]
        np.testing.assert_array_equal(plain.get_xdata(), result.orders[i])
        np.testing.assert_allclose(
            plain.get_ydata(), np.maximum(getattr(result, name)[i], 1e-16), rtol=1e-15
        )
        assert graded.get_xdata()[0] == result.graded_nodes[i]
        assert graded.get_ydata()[0] == max(getattr(result, f"graded_{name}")[i], 1e-16)


def test_orders_needed_are_drawn_beside_their_laws(result):
    axes = panel(draw(result), "nodes")
    lines = {line.get_label(): line for line in axes.lines}
    x, law = lines[r"$25\,\mu^{3/2}$"].get_data()
    np.testing.assert_allclose(law, 25 * x**1.5, rtol=1e-14)
    needed = lines["plain rule, error of the gradient $10^{-12}$"].get_ydata()
    # of the errors above: log(1e12)/1.3 = 21.26 times mu^1.5
    np.testing.assert_allclose(needed, 21.255 * result.levels**1.5, rtol=3e-3)
    assert lines["graded rule, at most $10^{-15}$"].get_ydata().tolist() == [80, 100]


def test_rules_that_did_not_hit_are_counted(result):
    missed = result.hit_error.copy()
    missed[1, :2] = np.nan
    figure = draw(replace(result, hit_error=missed))
    assert panel(figure, "at the hit").get_title() == "2 rules did not hit"
    assert panel(draw(result), "at the hit").get_title() == ""


def test_every_axis_has_labels(result):
    for axes in draw(result).axes:
        assert axes.get_xlabel() and axes.get_ylabel()
        assert len(labelled_ticks(axes.xaxis)) >= 2
        assert len(labelled_ticks(axes.yaxis)) >= 2


@pytest.mark.parametrize("picture", ["pdf", "png"])
def test_a_file_is_the_same_byte_for_byte(result, picture):
    assert bytes_of(draw(result), picture) == bytes_of(draw(result), picture)
