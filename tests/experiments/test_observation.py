"""How runs are looked at: flows that do not end, errors over an interior, powers of time."""

import numpy as np
import pytest

from popdyn.asymptotics import boundary_error
from popdyn.coordinates import Head
from popdyn.dynamics.flow import gradient_flow
from popdyn.experiments.observation import flow_at, largest_error, power_of_time
from popdyn.risk.closed_form import ClosedFormRisk

START = Head.from_ratio(1.5, 5.0)


def test_a_flow_is_asked_for_at_the_times_given():
    times = np.array([0.0, 1.0, 100.0])
    plain = gradient_flow(ClosedFormRisk(), START, 100.0, t_eval=times)
    found = flow_at(ClosedFormRisk(), START, times)
    np.testing.assert_array_equal(found.scale, plain.scale)


def test_a_flow_that_does_not_come_to_its_end_is_an_error():
    with pytest.raises(RuntimeError, match="max_steps"):
        flow_at(ClosedFormRisk(), START, np.array([1e12]), max_steps=2)


def test_the_largest_error_over_all_thresholds_is_the_one_at_the_boundary():
    head = Head.from_ratio(3.0, 4.0, 2.0)
    assert largest_error(head, 1.0) == boundary_error(4.0, 2.0)


def test_the_largest_interior_error_is_the_inverse_of_a_large_scale():
    # exp(-mu l / 2) = 1e-22 beside it, and rounding: measured 2e-16
    assert largest_error(Head.from_ratio(3.0, 50.0, 2.0), 0.5) == pytest.approx(
        0.02, rel=1e-15, abs=0
    )


def test_powers_of_time_are_read_over_the_last_decade_alone():
    times = np.geomspace(1.0, 1e6, 61)
    rows = np.stack([times**0.25, np.where(times < 9e4, 1.0, times**-0.6)])
    np.testing.assert_allclose(power_of_time(times, rows), [0.25, -0.6], rtol=1e-12)
