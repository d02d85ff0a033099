"""The pictures of a checkpoint and of a certificate: their data and their laws."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from popdyn import (
    Checkpoint,
    ClosedFormRisk,
    Design,
    Head,
    certificate,
    context_moments,
    default_start,
    hitting_time,
    sample_corpus,
    transfer,
)

CORPUS = sample_corpus(Design(), 256, 256, rng=0)


def checkpoint(head=None, **changes):
    fields = {
        "head": Head.from_excess(2.0, 10.0) if head is None else head,
        "start": default_start() if head is None else default_start(head.half_width),
        "n_tasks": 64,
        "n_examples": 64,
        "step_size": 100.0,
        "n_steps": 30,
        "step_budget": 100,
        "stopping_scale": 9.25,
        "reached": True,
        "message": "reached",
    }
    return Checkpoint(**(fields | changes))


def lines_of(axes):
    return {line.get_label(): line.get_data() for line in axes.lines}


def test_a_checkpoint_is_drawn_beside_the_flow_of_all_tasks():
    left, _ = checkpoint().plot().axes
    drawn = lines_of(left)
    scales, tube = drawn["all tasks"]
    assert (scales[0], tube[0]) == (8.0, default_start().tube)
    end = hitting_time(ClosedFormRisk(), default_start(), scale=10.0)
    assert scales[-1] == pytest.approx(10.0, rel=1e-9, abs=0)
    assert tube[-1] == pytest.approx(end.head.tube, abs=1e-9)
    (scale,), (c,) = drawn["frozen, $m = 64$, $n = 64$"]
    assert (scale, c) == (10.0, 2.0 - np.log(10.0))
    assert drawn["stopping scale"][0][0] == 9.25


def test_its_errors_are_the_exact_ones():
    _, right = checkpoint().plot().axes
    sizes, errors = lines_of(right)[r"$\alpha = 0.5$"]
    exact = context_moments(checkpoint().head, 0.5, sizes.astype(int))
    np.testing.assert_array_equal(errors, exact.root_mean_square)


CHECKPOINTS = {
    "no step": checkpoint(default_start(), n_steps=0),
    "short of its scale": checkpoint(reached=False, stopping_scale=200.0),
    "another half width": checkpoint(Head.from_tube(1.0, 5.0, 3.0)),
    "a start that is lost": checkpoint(start=Head.from_scores(-20.0, 0.2)),
}


@pytest.mark.parametrize("made", CHECKPOINTS.values(), ids=CHECKPOINTS)
def test_every_checkpoint_has_a_picture(made):
    figure = made.plot()
    FigureCanvasAgg(figure).draw()
    for axes in figure.axes:
        assert np.isfinite([*axes.get_xlim(), *axes.get_ylim()]).all()


def test_a_transfer_draws_itself():
    curve = transfer(checkpoint(), 0.25, [8, 64])
    (axes,) = curve.plot().axes
    np.testing.assert_array_equal(lines_of(axes)[r"$\alpha = 0.25$"][1], curve.root_mean_square[0])


def test_a_certificate_shows_its_levels_and_the_last_that_holds():
    of = certificate(CORPUS, scales=[8.0, 20.0, 50.0])
    (axes,) = of.plot().axes
    drawn = lines_of(axes)
    np.testing.assert_array_equal(drawn["corpus, $m = 256$, $n = 256$"], [of.scales, of.deviation])
    np.testing.assert_array_equal(drawn["expected"][1], of.expected_deviation)
    ((scale,), (deviation,)) = drawn[r"certified to $\mu = 20$"]
    assert (scale, deviation) == (20.0, of.deviation[1])


def test_a_certificate_of_nothing_has_a_picture_without_that_mark():
    of = certificate(CORPUS, scales=[200.0, 400.0])
    assert of.certified_scale == 0.0
    (axes,) = of.plot().axes
    assert not [label for label in lines_of(axes) if label.startswith("certified")]
