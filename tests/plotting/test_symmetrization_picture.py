"""The picture of the reflected pair on finite contexts: its data, its axes, its bytes."""

import numpy as np
import pytest
from pictures import bytes_of

from popdyn.experiments.symmetrization import Config, run
from popdyn.limit_laws import context_rms, pair_rms, prior_averaged_risks
from popdyn.plotting.symmetrization import draw

BY_N, BY_MU = "N", "mu"


@pytest.fixture(scope="module")
def small():
    return run(
        Config(
            n_examples=(8, 64, 512),
            scales=(8.0, 64.0, 512.0),
            size=32,
            n_contexts=40,
            prior_sizes=(2, 8, 32),
            n_tasks=200,
        )
    )


@pytest.fixture(scope="module")
def panels(small):
    names = [f"{name} by {by}" for name in ("bias", "rms", "ends") for by in (BY_N, BY_MU)]
    figure = draw(small)
    order = ["bias by N", "bias by mu", "prior", "rms by N", "rms by mu", "ends by N", "ends by mu"]
    assert set(order) == {*names, "prior"}
    return dict(zip(order, figure.axes, strict=True))


def points(result, by):
    if by == BY_N:
        return slice(None, result.n_sizes), result.sizes
    return slice(result.n_sizes, None), result.scales


def rows(axes):
    """Data of the lines that are no limits, and of the drawn means among them."""
    return [
        np.array(line.get_data()) for line in axes.lines if len(np.atleast_1d(line.get_xdata())) > 2
    ]


def holds(axes, x, y):
    return any(np.array_equal(row, [x, y]) for row in rows(axes))


@pytest.mark.parametrize("by", [BY_N, BY_MU])
def test_panels_show_the_numbers_of_the_sweep(small, panels, by):
    where, swept = points(small, by)
    x = swept[where]
    unit = 1.0 / small.scales[where] + 2.0 / small.sizes[where]
    for row in (small.head_bias, small.reflected_bias, small.pair_bias):
        assert holds(panels[f"bias by {by}"], x, row[0, where] / unit)
    for row in (small.head_rms, small.pair_rms, small.midpoint_rms, small.bayes_rms):
        assert holds(panels[f"rms by {by}"], x, row[0, where])
    for end in (1, 2):
        for row in (small.head_rms, small.pair_rms):
            assert holds(panels[f"ends by {by}"], x, row[end, where])


@pytest.mark.parametrize("by", [BY_N, BY_MU])
def test_laws_are_drawn_beside_the_rms(small, panels, by):
    where, swept = points(small, by)
    scales, sizes = small.scales[where], small.sizes[where]
    for law in (context_rms, pair_rms):
        assert holds(panels[f"rms by {by}"], swept[where], law(scales, sizes))


def test_drawn_means_carry_their_standard_errors(small, panels):
    where, _ = points(small, BY_N)
    (bars,) = panels["rms by N"].collections
    drawn = np.array([segment[:, 1] for segment in bars.get_segments()])
    mean, error = small.pair_rms[0, where], small.pair_rms_error[0, where]
    np.testing.assert_allclose(drawn, np.stack([mean - error, mean + error], axis=1), rtol=1e-12)
    assert len(panels["prior"].collections) == 3


def test_the_averaged_errors_lie_beside_their_laws(small, panels):
    laws = prior_averaged_risks(small.prior_sizes)
    for risk, law in zip(small.prior_risks, laws, strict=True):
        assert holds(panels["prior"], small.prior_sizes, risk)
        assert holds(panels["prior"], small.prior_sizes, law)


def test_everything_drawn_is_inside_the_axes(panels):
    for axes in panels.values():
        low, high = axes.get_ylim()
        for row in rows(axes):
            assert ((row[1] > low) & (row[1] < high)).all()


def test_the_legend_names_every_line_once(small):
    (legend,) = draw(small).legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == [
        "one head",
        "its reflection",
        "pair, drawn",
        "midpoint",
        "Bayes",
        "predicted",
        r"at $\alpha = -\ell$",
        r"at $\alpha = +\ell$",
    ]


def test_a_file_is_the_same_byte_for_byte(small):
    assert bytes_of(draw(small), "png") == bytes_of(draw(small), "png")
