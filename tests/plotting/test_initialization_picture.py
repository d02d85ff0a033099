"""The picture of the starts near zero: its data, its axes, its bytes."""

from dataclasses import replace

import numpy as np
import pytest
from pictures import bytes_of, labelled_ticks, panel

from popdyn.experiments.initialization import Result
from popdyn.plotting.initialization import draw


@pytest.fixture(scope="module")
def result():
    """Numbers of the size of the true ones, none of them computed."""
    radii = np.geomspace(1e-8, 10.0, 10)
    t = np.linspace(0.0, 300.0, 31)
    shown = np.array([0.0, 1e-6, 0.1])
    return Result(
        angle=45.0,
        t=t,
        shown=shown,
        shown_risk=np.array([np.full(31, 1 / 3), 0.33 - t / 2000, 0.33 / (1 + t / 30)]),
        radii=radii,
        gradient_norm=0.11 * radii,
        escape=np.where(radii < 1, 2.5 - 16.0 * np.log(radii), np.nan),
        final_risk=np.linspace(0.3, 0.03, 10),
    )


def test_risks_are_drawn_in_time_and_told_apart(result):
    axes = panel(draw(result), "$L$")
    for line, risks in zip(axes.lines, result.shown_risk, strict=True):
        np.testing.assert_array_equal(line.get_data(), [result.t, risks])
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["$r = 0$", "$r = 10^{-6}$", "$r = 0.1$"]
    assert len({(line.get_color(), str(line._dash_pattern)) for line in axes.lines}) == 3


def test_escapes_are_drawn_beside_their_law(result):
    points, law = panel(draw(result), "$t$ to radius 1").lines
    inside = result.radii < 1
    np.testing.assert_array_equal(points.get_data(), [result.radii[inside], result.escape[inside]])
    slope = np.diff(law.get_ydata()) / np.diff(np.log(law.get_xdata()))
    # one over the eigenvalue (5 - sqrt(61))/45
    np.testing.assert_allclose(slope, 45 / (5 - 61**0.5), rtol=1e-12)
    assert law.get_label() == r"$16.013\,\log(1/r)$ + const"


def test_gradients_are_drawn_beside_their_law(result):
    points, law = panel(draw(result), r"$|\nabla L|$ at the start").lines
    np.testing.assert_array_equal(points.get_data(), [result.radii, result.gradient_norm])
    np.testing.assert_allclose(law.get_ydata() / law.get_xdata(), 0.113312, rtol=1e-5)


def test_final_risks_are_drawn_beside_that_of_the_zero_head(result):
    risks, zero = panel(draw(result), "$L$ at $t = 300$").lines
    np.testing.assert_array_equal(risks.get_data(), [result.radii, result.final_risk])
    assert set(zero.get_ydata()) == {1 / 3}


def test_starts_that_did_not_escape_are_counted(result):
    escape = result.escape.copy()
    escape[:2] = np.nan
    figure = draw(replace(result, escape=escape))
    assert panel(figure, "$t$ to radius 1").get_title() == "2 did not escape"
    assert panel(draw(result), "$t$ to radius 1").get_title() == ""


def test_every_axis_has_labels(result):
    for axes in draw(result).axes:
        assert axes.get_xlabel() and axes.get_ylabel()
        assert len(labelled_ticks(axes.xaxis)) >= 2
        assert len(labelled_ticks(axes.yaxis)) >= 2


@pytest.mark.parametrize("picture", ["pdf", "png"])
def test_a_file_is_the_same_byte_for_byte(result, picture):
    assert bytes_of(draw(result), picture) == bytes_of(draw(result), picture)
