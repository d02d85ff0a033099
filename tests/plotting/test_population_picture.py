"""The picture of the population dynamics: its data, its axes, its bytes."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from pictures import bytes_of, labelled_ticks, panel

from popdyn.coordinates import Head
from popdyn.dynamics.flow import gradient_flow
from popdyn.experiments.population import Config, Result, observe, run
from popdyn.plotting.population import draw
from popdyn.risk.closed_form import ClosedFormRisk

LABELS = (r"$k$", r"$c$", r"$\mu^4$", r"$\mu\,\mathrm{sup}\,|F - \alpha|$")
LAST_LABEL = r"$\mu^3\, \mathrm{d}\mu/\mathrm{d}t$"


def result_of(head: Head, t_end: float, n_times: int = 60) -> Result:
    risk = ClosedFormRisk(head.half_width)
    times = np.concatenate(([0.0], np.geomspace(min(1.0, t_end / 1e3), t_end, n_times)))
    return observe(risk, gradient_flow(risk, head, t_end, t_eval=times))


@pytest.fixture(scope="module")
def paper_start():
    return result_of(Head.from_ratio(1.5, 5.0), 1e12)


def test_the_panels_show_the_numbers_of_the_run(paper_start):
    figure = draw(paper_start)
    seen = paper_start
    rows = (seen.ratio, seen.tube, seen.scale**4, seen.scaled_error, seen.scaled_growth)
    for label, (row,) in zip((*LABELS, LAST_LABEL), rows, strict=True):
        t, drawn = panel(figure, label).lines[0].get_data()
        np.testing.assert_array_equal(t, seen.t[1:])
        np.testing.assert_array_equal(drawn, row[1:])


def test_predicted_lines_lie_on_the_run_in_the_end(paper_start):
    figure = draw(paper_start)
    t, predicted = panel(figure, r"$\mu^4$").lines[1].get_data()
    assert predicted[-1] == pytest.approx(paper_start.scale[0, -1] ** 4, rel=3e-3, abs=0)
    assert np.log(predicted[1] / predicted[0]) == pytest.approx(
        np.log(t[1] / t[0]), rel=1e-12, abs=0
    )


def test_a_run_to_the_reflected_head_says_so():
    reflected = result_of(Head.from_scores(-7.5, -5.0), 1e4)
    upright = result_of(Head.from_scores(7.5, 5.0), 1e4)
    assert draw(reflected).get_suptitle().startswith("reflected head")
    assert draw(upright).get_suptitle() == ""


STARTS = {
    "a small radius": (Head.from_scores(1e-6, 1e-6), 1e6),
    "a small radius that is reflected": (Head.from_scores(-1e-3, 1e-3), 1e6),
    "the origin": (Head.from_scores(0.0, 0.0), 1e3),
    "a scale that falls and rises": (Head.from_scores(0.0, 1.0), 1e6),
    "a scale that changes sign": (Head.from_scores(1.0, -0.5), 1e5),
    "below the tube": (Head.from_ratio(0.8, 6.0), 1e8),
    "a short time": (Head.from_ratio(1.5, 5.0), 1e-3),
    "a wide interval": (Head.from_ratio(55.0, 0.5, 50.0), 1e12),
    "a narrow interval": (Head.from_ratio(0.02, 500.0, 0.01), 1e16),
}


@pytest.mark.parametrize(("head", "t_end"), STARTS.values(), ids=STARTS)
def test_every_start_has_a_picture_with_sensible_axes(head, t_end):
    figure = draw(result_of(head, t_end))
    FigureCanvasAgg(figure).draw()
    for axes in figure.axes:
        assert np.isfinite([*axes.get_xlim(), *axes.get_ylim()]).all()
        assert axes.get_xlim()[1] == t_end
        assert len(labelled_ticks(axes.yaxis)) >= 2
    assert len(labelled_ticks(panel(figure, r"$\mu^4$").xaxis)) >= 2


def test_several_starts_are_told_apart_by_colour_and_by_line():
    figure = draw(run(Config.quick()))
    axes = panel(figure, r"$\mu^4$")
    *runs, _ = axes.lines
    assert len({line.get_color() for line in runs}) == 4
    assert len({str(line.get_linestyle()) + str(line._dash_pattern) for line in runs}) == 4
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels[:2] == ["from $(7.5, 5)$", "from $(8.4, 8)$"]
    assert labels[-1] == r"$8\,t / (1 + \ell^2)$"


@pytest.mark.parametrize("picture", ["pdf", "png", "svg"])
def test_a_file_is_the_same_byte_for_byte(paper_start, picture):
    files = []
    for _ in range(2):  # the order in which the layout is solved varies between drawings
        for size in (8, 20):  # of a user's settings
            with mpl.rc_context({"font.size": size, "lines.linewidth": size / 4}):
                files.append(bytes_of(draw(paper_start), picture))
    assert len(set(files)) == 1


def settings():
    """All settings but the backend, since asking for it would choose one."""
    return {name: mpl.rcParams[name] for name in mpl.rcParams if name != "backend"}


def test_drawing_leaves_the_settings_of_the_user_alone(paper_start):
    with mpl.rc_context({"font.size": 20}):
        before = settings()
        bytes_of(draw(paper_start), "png")
        assert settings() == before
