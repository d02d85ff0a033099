"""The capture by the tube: proved where it holds, refused where not, checked cell by cell."""

import math

import numpy as np
import pytest

flint = pytest.importorskip("flint")

from popdyn import ClosedFormRisk, Head, gradient_flow  # noqa: E402
from popdyn.ball_polylog import working_precision  # noqa: E402
from popdyn.enclosures import (  # noqa: E402
    NotProven,
    risk_balls,
    smallest_trapping_scale,
    trapping_region,
)
from popdyn.trapping import _velocity  # noqa: E402

SETTINGS = [(0.5, 0.2, 20.0), (1.0, 0.2, 20.0), (2.0, 0.1, 20.0), (1.0, 0.05, 60.0)]


def centre(half_width):
    return math.log(2 * (1 + half_width**2)) / 2


def velocities(half_width, scale, offset):
    """`mu^3 dc/dt` and `mu^3 dmu/dt` from the balls of the gradient."""
    head = Head.from_tube(centre(half_width) + offset, scale, half_width)
    by_lam, by_mu = (float(ball.mid()) for ball in risk_balls(head).gradient)
    return scale**3 * (-by_lam + (half_width + 1 / scale) * by_mu), -(scale**3) * by_mu


@pytest.mark.parametrize("offset", [-0.2, 0.1])
@pytest.mark.parametrize("scale", [1.1, 3.0, 10.0, 1000.0])
@pytest.mark.parametrize("half_width", [0.5, 1.0, 2.0])
def test_velocities_on_a_point_are_those_of_the_gradient(half_width, scale, offset):
    with working_precision(128):
        balls = _velocity(half_width, (1 / scale, 1 / scale), (offset, offset))
    for ball, number in zip(balls, velocities(half_width, scale, offset), strict=True):
        # Measured 2e-15: the head's tube coordinate is rounded, and so is 1 / scale.
        assert abs(float(ball.mid()) - number) < 1e-13
        assert ball.rad() < 1e-30


@pytest.mark.parametrize(("half_width", "width", "scale"), SETTINGS)
def test_cells_tile_the_region_and_hold_the_velocities_inside(half_width, width, scale):
    region = trapping_region(half_width, width, scale)
    rng = np.random.default_rng(1)
    parts = ((region.lower_edge, 0), (region.upper_edge, 0), (region.growth, 1))
    for cells, part in parts:
        spans = [(*cell.inverse_scale, *cell.offset) for cell in cells]
        covered = sum((b - a) * ((d - c) or 1.0) for a, b, c, d in spans)
        whole = np.nextafter(1 / scale, 1) * (2 * width if part else 1.0)
        assert covered == pytest.approx(whole, rel=1e-12)  # disjoint halves of halves of it
        for cell in [cells[i] for i in rng.integers(len(cells), size=8)]:
            eta = max(rng.uniform(*cell.inverse_scale), 1e-6)
            offset = rng.uniform(*cell.offset)
            low, high = cell.enclosure
            assert low <= velocities(half_width, 1 / eta, offset)[part] <= high
    assert all(cell.enclosure[0] > 0 for cell in (*region.lower_edge, *region.growth))
    assert all(cell.enclosure[1] < 0 for cell in region.upper_edge)


@pytest.mark.parametrize(("half_width", "width", "scale"), SETTINGS)
def test_slopes_hold_the_limit(half_width, width, scale):
    low, high = trapping_region(half_width, width, scale).slopes
    assert 0 < low < 8 / (1 + half_width**2) < high


def test_a_run_in_the_region_stays_there_between_the_affine_functions():
    region = trapping_region(1.0, 0.2, 20.0)
    times = np.geomspace(1e2, 1e10, 30)
    start = Head.from_tube(centre(1.0) + 0.19, 20.0)
    run = gradient_flow(ClosedFormRisk(), start, 1e10, t_eval=times)
    low, high = region.slopes
    growth = run.scale**4 - 20.0**4
    assert (np.abs(run.tube - centre(1.0)) <= 0.2).all()
    assert (growth >= low * run.t).all() and (growth <= high * run.t).all()


def test_where_the_scale_shrinks_at_the_edge_the_proof_is_refused():
    # At half width 2 it does so from c - c* = -log(1.25)/2 = -0.1116 on, at all large scales.
    with pytest.raises(NotProven, match=r"not proven: at scale .* another width"):
        trapping_region(2.0, 0.12, 1000.0)


def test_where_a_velocity_points_outwards_the_proof_is_refused():
    assert velocities(1.0, 5.8, -0.05)[0] < 0
    with pytest.raises(NotProven, match="not proven"):
        trapping_region(1.0, 0.05, 5.7)


def test_the_smallest_scale_is_proven_and_2_percent_less_is_not():
    scale = smallest_trapping_scale(1.0, 0.05)
    trapping_region(1.0, 0.05, scale)
    with pytest.raises(NotProven):
        trapping_region(1.0, 0.05, scale / 1.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 0.1, 10.0), "half_width must be one positive finite number, got 0.0"),
        ((1.0, math.nan, 10.0), "width must be one positive finite number, got nan"),
        ((1.0, 0.1, math.inf), "scale must be one positive finite number, got inf"),
        ((1.0, 0.1, 0.5), "scale must be above 0.51/half_width, got 0.5; give a larger one"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        trapping_region(*arguments)
