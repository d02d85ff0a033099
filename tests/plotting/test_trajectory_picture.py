"""The picture that a path draws of itself: its data, its laws, its refusals."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from pictures import bytes_of, panel

from popdyn import ClosedFormRisk, Head, gradient_descent, gradient_flow

RISK = ClosedFormRisk()
START = Head.from_ratio(1.5, 5)
LATE = 0.02  # of the laws at leading order at t = 1e12; measured 4e-3 (risk), 8e-3 (mu^4)


@pytest.fixture(scope="module")
def to_1e12():
    return gradient_flow(RISK, START, 1e12).plot()


def test_what_a_person_types_first_shows_the_path():
    flow = gradient_flow(ClosedFormRisk(), Head.from_ratio(1.5, 5), 1e12)
    figure = flow.plot()
    columns = {"$k$": flow.ratio, "$c$": flow.tube, r"$\mu^4$": flow.scale**4, "$L$": flow.risk}
    for label, column in columns.items():
        t, drawn = panel(figure, label).lines[0].get_data()
        np.testing.assert_array_equal(t, flow.t[1:])
        np.testing.assert_allclose(drawn, column[1:], rtol=1e-14)
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("label", [r"$\mu^4$", "$L$"])
def test_the_law_lies_on_the_path_in_the_end(to_1e12, label):
    run, law = panel(to_1e12, label).lines
    late = np.interp(11.5, np.log10(law.get_xdata()), np.log10(law.get_ydata()))
    there = np.interp(11.5, np.log10(run.get_xdata()), np.log10(run.get_ydata()))
    assert 10**late == pytest.approx(10**there, rel=LATE, abs=0)


def test_a_path_to_the_reflected_head_says_so_and_is_reflected():
    upright, reflected = gradient_flow(RISK, START, 1e4), gradient_flow(RISK, START.reflected, 1e4)
    figures = upright.plot(), reflected.plot()
    for label in ("$k$", "$c$", r"$\mu^4$"):
        mine, other = (panel(figure, label).lines[0] for figure in figures)
        np.testing.assert_allclose(mine.get_ydata(), other.get_ydata(), rtol=1e-12)
    assert [figure.get_suptitle()[:14] for figure in figures] == ["", "reflected head"]


PATHS = {
    "a descent": lambda: gradient_descent(RISK, START, 1.0, 10),
    "the origin": lambda: gradient_flow(RISK, Head.from_scores(0.0, 0.0), 10.0),
    "a scale that changes sign": lambda: gradient_flow(RISK, Head.from_scores(1.0, -0.5), 1e5),
    "one point": lambda: gradient_flow(RISK, START, 5.0, t_eval=[5.0]),
    "a wide interval": lambda: gradient_flow(
        ClosedFormRisk(50.0), Head.from_ratio(55.0, 0.5, 50.0), 1e6
    ),
}


@pytest.mark.parametrize("make", PATHS.values(), ids=PATHS)
def test_every_path_has_a_picture_with_sensible_axes(make):
    figure = make().plot()
    FigureCanvasAgg(figure).draw()
    for axes in figure.axes:
        assert np.isfinite([*axes.get_xlim(), *axes.get_ylim()]).all()


def test_a_path_without_points_is_refused_in_one_line():
    with pytest.raises(ValueError, match=r"points after time 0 .* t_eval") as refusal:
        gradient_flow(RISK, START, 5.0, t_eval=[]).plot()
    assert "\n" not in str(refusal.value)


def test_a_file_is_the_same_byte_for_byte():
    first, second = (bytes_of(gradient_flow(RISK, START, 1e6).plot(), "pdf") for _ in range(2))
    assert first == second
