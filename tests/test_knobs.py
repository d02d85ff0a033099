"""Pictures by a few numbers: what a knob changes is what it says."""

import inspect

import numpy as np
import pytest

from popdyn import Head, context_moments, knobs, limit_error, midpoint_moments, pair_moments
from popdyn.asymptotics import tube_center, tube_limit
from popdyn.limit_laws import density_tube_center

SETTLED = 5e-3  # of the tube coordinate, of order 1/mu; measured 2.5e-3 at tilt -0.5, mu = 250


def lines_of(figure, panel=0):
    return {line.get_label(): np.array(line.get_data()) for line in figure.axes[panel].lines}


@pytest.mark.parametrize("name", knobs.__all__)
def test_every_knob_has_a_default_and_the_picture_shows_itself(name):
    function = getattr(knobs, name)
    for parameter in inspect.signature(function).parameters.values():
        assert isinstance(parameter.default, float | int)
    assert function()._repr_png_().startswith(b"\x89PNG")


def test_the_path_starts_where_the_knobs_say():
    ratio = next(iter(lines_of(knobs.path_picture(2.0, 6.0, 4.0)).values()))
    assert ratio[0, -1] == 1e4 and ratio[1, 0] == pytest.approx(2.0, abs=0.01)


def test_the_portrait_goes_with_the_half_width():
    (axes,) = knobs.portrait_picture(2.0).axes
    assert axes.get_ylim() == (0.0, 2.0)
    dot = axes.lines[-1]
    assert dot.get_xdata()[0] == tube_limit(2.0)


@pytest.mark.parametrize("half_width", [0.5, 1.0])
def test_each_order_of_the_expansion_is_nearer_to_the_flow(half_width):
    drawn = lines_of(knobs.expansion_picture(half_width))
    at_100 = [np.interp(100.0, *drawn[f"order {order}"]) for order in (0, 1, 2, 3)]
    assert (np.diff(np.log(at_100)) < -1).all()


def test_a_rule_of_too_low_an_order_leaves_the_tube_beyond_its_mark():
    drawn = lines_of(knobs.rule_picture(100, 6.0))
    mark = next(x[0] for name, (x, _) in drawn.items() if name.startswith("order is"))
    assert mark == pytest.approx(4.0 ** (2 / 3))
    mu, c = drawn["order 100"]
    assert abs(c[-1] - tube_center(mu[-1])) > 0.5
    mu, c = drawn["closed form"]
    assert abs(c[-1] - tube_center(mu[-1])) < SETTLED


@pytest.mark.parametrize("tilt", [-0.5, 0.3])
def test_a_tilted_density_moves_the_tube_to_its_limit(tilt):
    drawn = lines_of(knobs.density_picture(tilt))
    limit = float(density_tube_center((1 + tilt) / (1 - tilt)))
    assert drawn[f"tilted by {tilt:g}"][1, -1] == pytest.approx(limit, abs=SETTLED)
    assert drawn[f"limit $c^* = {limit:.3f}$"][1, 0] == limit


def test_transfer_noise_and_pair_draw_the_exact_errors():
    sizes, errors = lines_of(knobs.transfer_picture(16.0, 0.5))[r"$\alpha = 0$"]
    head = Head.from_tube(0.5, 16.0)
    np.testing.assert_array_equal(
        errors, context_moments(head, 0.0, sizes.astype(int)).root_mean_square
    )
    alpha, errors = lines_of(knobs.noise_picture(0.05, 16.0, 0.5))["clean"]
    np.testing.assert_array_equal(errors, np.abs(limit_error(head, alpha)))
    drawn = lines_of(knobs.pair_picture(16.0, 0.1))
    sizes = drawn["one head"][0].astype(int)
    head = Head.from_tube(0.7, 16.0)
    for name, moments in {
        "one head": context_moments(head, 0.1, sizes),
        "reflected pair": pair_moments(head, 0.1, sizes),
        "midpoint": midpoint_moments(0.1, sizes),
    }.items():
        np.testing.assert_array_equal(drawn[name][1], moments.root_mean_square)
