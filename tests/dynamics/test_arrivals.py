"""Hitting times of many heads are those of each."""

import math

import numpy as np
import pytest
from toy_risks import QuadraticRisk

from popdyn import ClosedFormRisk, Head, hitting_time, hitting_times

# lam -> 2 at rate 1, mu -> 8 at rate 0.1.
BOWL = QuadraticRisk(((1.0, 0.0), (0.0, 0.1)), (2.0, 8.0))
TIME = 5e-11  # relative; worst measured 8e-12


def test_times_have_the_shape_of_the_heads_and_are_those_of_a_known_flow():
    scales = np.array([[-4.0, 0.5, 2.0], [3.0, 7.0, 9.0]])
    times = hitting_times(BOWL, Head.from_scores(0.3, scales), 3.0)
    assert times.shape == (2, 3) and times.dtype == np.float64
    exact = 10 * np.log((8 - scales) / 5, where=scales < 3, out=np.zeros((2, 3)))
    np.testing.assert_allclose(times, exact, rtol=TIME, atol=0)


def test_a_level_that_is_not_entered_has_time_infinity():
    times = hitting_times(BOWL, Head.from_scores(0.3, [-4.0, 1.0]), 3.0, t_end=5.0)
    assert times.tolist() == [math.inf, pytest.approx(10 * math.log(7 / 5), rel=TIME, abs=0)]


@pytest.mark.parametrize(
    "heads",
    [
        Head.from_ratio([1.2, 1.5], 5.0),
        Head.from_tube([0.1, 3.0], [4.0, 50.0]),
        Head.from_excess([0.1, -3.0], [-4.0, 5.0], 2.0),
        Head.from_scores([-50.0, 1.0], [30.0, -1e-3]),
    ],
    ids=repr,
)
def test_every_time_is_that_of_the_head_alone(heads):
    risk = ClosedFormRisk(heads.half_width)
    name, given = heads.given
    make = Head.from_scores if name == "label_score" else getattr(Head, f"from_{name}")
    alone = [
        hitting_time(risk, make(coordinate, scale, heads.half_width), scale=60.0).time
        for coordinate, scale in zip(given, heads.scale, strict=True)
    ]
    assert hitting_times(risk, heads, 60.0).tolist() == alone


def test_any_number_of_workers_gives_the_same_bits():
    heads = Head.from_ratio(np.linspace(0.3, 3.0, 7), np.geomspace(0.5, 200.0, 5)[:, np.newaxis])
    alone = hitting_times(ClosedFormRisk(), heads, 100.0, workers=1)
    assert np.isfinite(alone).all() and (alone == 0).sum() == 7
    for workers in (2, 3, 50):
        same = hitting_times(ClosedFormRisk(), heads, 100.0, workers=workers)
        np.testing.assert_array_equal(same, alone)


def test_no_heads_give_no_times():
    assert hitting_times(ClosedFormRisk(), Head.from_scores([], []), 5.0).shape == (0,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": np.nan}, "scale level must be one finite"),
        ({"scale": 5.0, "t_end": -1.0}, "t_end must be"),
        ({"scale": 5.0, "risk": ClosedFormRisk(2.0)}, "half width 2.0 of the risk"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    options = {"risk": ClosedFormRisk(), "heads": Head.from_scores([1.0], 2.0)} | options
    with pytest.raises(ValueError, match=message):
        hitting_times(**options)


def test_one_head_gives_one_time():
    assert hitting_times(BOWL, Head.from_scores(0.3, 4.0), 3.0).shape == ()


@pytest.mark.parametrize("workers", [0, -1, 1.5, None])
def test_a_number_of_workers_that_is_none_is_refused(workers):
    with pytest.raises(ValueError, match="workers must be a whole number from 1 on"):
        hitting_times(BOWL, Head.from_scores(0.3, [4.0]), 3.0, workers=workers)
