"""Runs do not disturb each other, nor the process they run in."""

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from toy_risks import QuadraticRisk, SpoiltRisk

from popdyn import ClosedFormRisk, Head, gradient_flow, hitting_time

BOWL = QuadraticRisk(((1.0, 0.0), (0.0, 0.1)), (2.0, 8.0))
STARTS = [Head.from_scores(0.3, scale) for scale in (-9.0, -4.0, -1.0, -0.1, 0.1, 1.0, 3.0, 7.0)]


def path(risk, start):
    trajectory = gradient_flow(risk, start, 50.0, scale_levels=[7.5])
    return trajectory.scale.tobytes(), trajectory.tube.tobytes(), trajectory.hits


@pytest.fixture
def busy_switching():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize("risk", [BOWL, ClosedFormRisk()], ids=["interpreted", "compiled"])
def test_eight_threads_give_the_bits_of_one(risk, busy_switching):
    serial = [path(risk, start) for start in STARTS]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(partial(path, risk), STARTS)) == serial


def test_a_run_inside_the_callback_of_another_changes_neither():
    alone = gradient_flow(BOWL, STARTS[0], 50.0)
    inner = []

    def nested(t, head):
        if len(inner) < 3:
            inner.append(hitting_time(BOWL, STARTS[1], scale=1.0).time)

    outer = gradient_flow(BOWL, STARTS[0], 50.0, callback=nested)
    np.testing.assert_array_equal(outer.scale, alone.scale)
    assert set(inner) == {hitting_time(BOWL, STARTS[1], scale=1.0).time}


def test_a_solver_that_gives_up_raises_and_leaves_the_warning_filters_alone():
    # Noise of order one: no step passes the error test.
    risk = SpoiltRisk(BOWL, noise=1e3)
    filters = list(warnings.filters)
    with pytest.raises(RuntimeError, match=r"LSODA gave up at t=.*Head.*rtol"):
        gradient_flow(risk, STARTS[1], 50.0)
    assert warnings.filters == filters
