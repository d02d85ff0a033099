"""Bad input gets one line that says what was wanted and what was got."""

import math

import numpy as np
import pytest
from toy_risks import LinearRisk

from popdyn import Head, crossings, gradient_flow, hitting_time, tube_entrance

RISK = LinearRisk((0.3, 0.2))
HEAD = Head.from_scores(1.0, 1.5)


def refused(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("t_end", [math.nan, math.inf, -1.0, 1e301, "soon", None, [1.0, 2.0]])
def test_the_flow_refuses_an_end_that_is_no_time(t_end):
    refused(lambda: gradient_flow(RISK, HEAD, t_end), "t_end must be one time from 0 to 1e")
    refused(lambda: crossings(RISK, HEAD, scale=2.0, t_end=t_end), "t_end must be")
    refused(lambda: tube_entrance(RISK, HEAD, width=0.1, t_end=t_end), "t_end must be")


@pytest.mark.parametrize("t_end", [math.nan, -1.0, "soon"])
def test_the_search_refuses_an_end_that_is_no_time(t_end):
    refused(lambda: hitting_time(RISK, HEAD, scale=2.0, t_end=t_end), "from 0 to inf")


@pytest.mark.parametrize(
    ("t_eval", "message"),
    [
        ([1.0, 3.0, 2.0], "increasing"),
        ([-1.0, 2.0], r"lie in \[0, 5.0\]"),
        ([1.0, 5.1], r"lie in \[0, 5.0\]"),
        ([1.0, math.nan], "finite"),
        (["a"], "finite"),
        (2.0, "list"),
        ([[1.0], [2.0]], "list"),
    ],
)
def test_times_to_evaluate_at_are_checked(t_eval, message):
    refused(lambda: gradient_flow(RISK, HEAD, 5.0, t_eval=t_eval), f"t_eval must .*{message}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "lsoda"}, "method must be one of LSODA"),
        ({"rtol": 0}, "rtol must be"),
        ({"rtol": 1e-15}, "rtol must be one number from 2.3e-14"),
        ({"rtol": math.nan}, "rtol must be"),
        ({"atol": 0}, "atol must be one positive number"),
        ({"atol": -1.0}, "atol must be"),
        ({"atol": [1e-9, 1e-9]}, "atol must be"),
        ({"max_steps": 0}, "max_steps must be"),
        ({"max_steps": 1.5}, "max_steps must be"),
        ({"scale_levels": [math.nan]}, "scale level must be one finite number"),
    ],
)
def test_options_are_checked(options, message):
    refused(lambda: gradient_flow(RISK, HEAD, 5.0, **options), message)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ((1.0, 2.0), "head must be a popdyn.Head"),
        (Head.from_scores([1.0, 2.0], 3.0), r"one head, got heads of shape \(2,\)"),
        (Head.from_scores(1.0, 3.0, 2.0), "half width 1.0 of the risk, got 2.0"),
    ],
)
def test_the_head_is_checked(head, message):
    refused(lambda: gradient_flow(RISK, head, 5.0), message)
    refused(lambda: hitting_time(RISK, head, scale=9.0), message)


@pytest.mark.parametrize("scale", [math.nan, math.inf, [1.0], None])
def test_the_level_of_an_entrance_is_one_finite_number(scale):
    refused(lambda: hitting_time(RISK, HEAD, scale=scale), "scale level must be one finite")


@pytest.mark.parametrize("direction", ["upp", "UP", "", None, 1])
def test_a_misspelt_direction_is_refused(direction):
    refused(
        lambda: crossings(RISK, HEAD, scale=2.0, t_end=5.0, direction=direction),
        "direction must be 'up', 'down' or 'both'",
    )


@pytest.mark.parametrize("levels", [{}, {"scale": 1.0, "tube": 1.0}])
def test_crossings_want_one_level(levels):
    refused(lambda: crossings(RISK, HEAD, t_end=5.0, **levels), "one of scale and tube")


@pytest.mark.parametrize("levels", [{"scale": math.nan}, {"tube": math.inf}, {"tube": [1.0]}])
def test_the_level_of_a_crossing_is_one_finite_number(levels):
    refused(lambda: crossings(RISK, HEAD, t_end=5.0, **levels), "must be one finite number")


@pytest.mark.parametrize("width", [0.0, -1.0, math.nan, math.inf, np.array([1.0])])
def test_the_width_of_the_tube_is_positive(width):
    refused(lambda: tube_entrance(RISK, HEAD, width=width, t_end=5.0), "width must be")
