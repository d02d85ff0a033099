"""What the picture of robustness and convergence says in numbers (MODEL §2, §4)."""

import json
import warnings
from dataclasses import asdict, replace

import numpy as np
import pytest

from popdyn.experiments.convergence import ORDER_LAWS, Config, findings, order_needed, run


@pytest.fixture(scope="module")
def quick():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return run(Config.quick())


def test_the_scaled_error_settles_at_1_for_every_interior_and_start(quick):
    # what is left is of order exp(-mu (1 - a)) with mu = 1413: rounding, measured 2e-16
    assert quick.scaled_error.shape == (4, 4, 60)
    np.testing.assert_allclose(quick.scaled_error[..., -1], 1.0, rtol=1e-14)


def test_a_wide_interior_is_far_from_it_before_the_tube_is_reached(quick):
    below = quick.scaled_error[2, :, 0]  # from (0.8, 6), at a = 0.25, 0.5, 0.75, 0.9
    assert (np.diff(below) > 0).all()
    # given to five digits
    assert below == pytest.approx([0.9686, 2.3948, 7.0832, 9.6596], abs=0.06)


def test_hitting_times_are_those_of_the_flow(quick):
    # scale 10 from (1.5, 5), of tests/reference/flow.json
    assert quick.hit_time[0] == pytest.approx(3116.789421863881, rel=1e-9, abs=0)


@pytest.mark.parametrize("error", ["hit_error", "ratio_error", "gradient_error"])
def test_errors_fall_with_the_order_of_a_plain_rule(quick, error):
    errors = getattr(quick, error)
    # by a factor of 20 or more for 4 mu^1.5 nodes more, until rounding at the last order
    assert (errors[:, 2:6] < errors[:, 1:5] / 20).all()
    assert (errors[:, 0] > 1e-3).all()
    assert (errors[:, -1] < 1e-11).all()  # measured 2e-12


@pytest.mark.parametrize(("tolerance", "law"), ORDER_LAWS)
def test_the_order_needed_is_near_its_law(quick, tolerance, law):
    # measured 24.82 and 13.31: the laws are rounded up
    ratio = order_needed(quick, tolerance) / (law * quick.levels**1.5)
    assert ((ratio > 0.94) & (ratio < 1.0)).all()


def test_the_order_needed_grows_like_the_power_three_halves(quick):
    needed = order_needed(quick, 1e-12)
    power = np.log(needed[1] / needed[0]) / np.log(quick.levels[1] / quick.levels[0])
    assert power == pytest.approx(1.5, abs=2e-3)  # measured 1.4999


def test_an_order_that_was_not_tried_is_not_known(quick):
    assert np.isnan(order_needed(quick, 1e-20)).all()


def test_the_order_needed_is_read_between_the_orders_tried(quick):
    straight = replace(
        quick,
        levels=np.array([1.0]),
        orders=np.array([[10, 20, 40]]),
        gradient_error=np.array([[1e-2, 1e-4, 1e-8]]),
    )
    assert order_needed(straight, 1e-6) == pytest.approx([30.0], rel=1e-14, abs=0)
    assert order_needed(straight, 1e-1) == pytest.approx([5.0], rel=1e-14, abs=0)


def test_the_graded_rule_needs_no_growth(quick):
    assert (quick.graded_nodes < 150).all()
    assert (quick.graded_gradient_error < 1e-14).all()  # measured 1.2e-15
    assert (quick.graded_hit_error < 1e-10).all()  # measured 1e-14; the flow promises 6e-11
    assert (quick.graded_ratio_error < 1e-12).all()  # measured 1e-14


def test_a_scale_that_a_rule_does_not_hit_is_kept_and_flagged():
    # one node asks for one threshold alone, and a head that finds it stays where it is
    result = run(replace(Config.quick(), levels=(20.0,), factors=(0.01, 10.0), n_times=3))
    assert result.orders[0, 0] == 1
    assert np.isnan(result.hit_error).tolist() == [[True, False]]


def test_the_cells_of_a_store_are_not_computed_again(quick, tmp_path, monkeypatch):
    config = replace(Config.quick(), levels=(10.0,), factors=(2.0,), n_times=3)
    first = run(config, store=tmp_path)
    monkeypatch.setattr("popdyn.experiments.convergence._errors", None)
    second = run(config, store=tmp_path)
    np.testing.assert_array_equal(first.hit_error, second.hit_error)


def test_findings_are_near_what_was_predicted(quick):
    said = [finding for finding in findings(quick) if isinstance(finding.predicted, float)]
    assert len(said) == 6
    for finding in said:
        assert finding.measured == pytest.approx(finding.predicted, rel=0.06, abs=1e-10)


def test_parameters_are_plain_numbers():
    for config in (Config.quick(), Config.paper()):
        assert json.loads(json.dumps(asdict(config)))["interiors"] == [0.25, 0.5, 0.75, 0.9]
