"""The neighbours of the reported faults: other routes, coordinates, signs and methods; arrays in
place of numbers; the command line; and what a call leaves behind in the process."""

import json
import math
import random
import sys
import warnings

import numpy as np
import pytest
from mpmath import mp

from popdyn import (
    ArbitraryPrecisionRisk,
    ClosedFormRisk,
    Corpus,
    CorpusRisk,
    Design,
    Head,
    InfiniteContextRisk,
    boundary_graded,
    context_moments,
    context_moments_sampled,
    crossings,
    gradient_descent,
    gradient_flow,
    hitting_time,
    limit_error,
    predictions,
    sample_corpus,
    tube_entrance,
)
from popdyn.cli import main
from popdyn.cli.parsing import METHODS

RISK = ClosedFormRisk()
START = Head.from_ratio(1.5, 5.0)

# --- risks: the same number by every way ----------------------------------------------------------

# (excess, scale, risk) at half width 1; the numbers are those of the reports.
VALUES = {
    "label score overwhelmed": (-1000.0, 1000.0, 1.3313343333333333),
    "negative label score": (-30.0, 20.0, 1.2359835904458045),
    "low label score": (-10.0, 20.0, 1.0650543376763604),
    "tube at 1000": (math.log(2) + math.log(1000), 1e3, 9.9929711926763319e-7),
    "tube at 100": (math.log(2) + math.log(100), 1e2, 9.9289640826357806e-5),
    "another half width": (-1.0, 4.0, 1.697972687692126 / 4),
    "origin": (0.0, 0.0, 1 / 3),
}
each_value = pytest.mark.parametrize("case", VALUES.values(), ids=VALUES)
ROUTES = {
    "closed form": RISK,
    "graded": InfiniteContextRisk(Design(), boundary_graded()),
    "mpmath": ArbitraryPrecisionRisk(digits=20),
}
each_route = pytest.mark.parametrize("risk", ROUTES.values(), ids=ROUTES)
# The last digit of a coordinate of order 1e3 is 1e-13 of an excess; measured at most 1.1e-14.
DIGITS = 4e-14


def in_all_coordinates(excess, scale):
    yield Head.from_excess(excess, scale)
    yield Head.from_scores(excess + scale, scale)
    if scale > 0:
        yield Head.from_ratio(1 + excess / scale, scale)
        yield Head.from_tube(excess - math.log(scale), scale)


@each_route
@each_value
def test_a_risk_is_the_same_in_every_coordinate_of_either_sign_and_in_arrays(risk, case):
    *place, exact = case
    heads = list(in_all_coordinates(*place))
    for head in heads + [head.reflected for head in heads]:
        assert risk.value(head) == pytest.approx(exact, rel=DIGITS, abs=0)
    together = Head.from_excess([[one.excess, -one.excess] for one in heads], [place[1], -place[1]])
    np.testing.assert_allclose(risk.value(together), exact, rtol=DIGITS)


@each_value
@pytest.mark.parametrize("route", ["closed-form", "graded"])
def test_the_command_prints_the_same_risk(capsys, route, case):
    excess, scale, exact = case
    words = ["risk", "--gradient", route, "--json"]
    for sign in (1, -1):
        head = ["--excess", repr(sign * excess), "--scale", repr(sign * scale)]
        assert main([*words, *head]) == 0
        record = json.loads(capsys.readouterr().out)
        assert record["risk"] == pytest.approx(exact, rel=DIGITS, abs=0)


@each_route
@pytest.mark.parametrize("radius", [1e-8, 1e-12, 1e-100])
def test_a_tiny_head_keeps_all_digits_of_its_gradient_of_either_sign(risk, radius):  # numpy #14019
    # The Hessian at the origin is [[0, -2/15], [-2/15, 2/9]] (MODEL §5).
    exact = np.array([-2 / 15, 2 / 9 - 2 / 15]) * radius
    for sign in (1, -1):
        gradient = risk.gradient(Head.from_scores(sign * radius, sign * radius))
        np.testing.assert_allclose(gradient, sign * exact, rtol=3e-8)  # the next order: radius


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["ratio", "label-score", "excess", "tube", "scale", "half-width"])
def test_no_command_computes_with_what_is_no_number(capsys, name, bad):  # mpmath #505, #473
    options = {"ratio": 1.5, "scale": 5.0, name: bad}
    if name in ("label-score", "excess", "tube"):
        del options["ratio"]
    words = [word for key, entry in options.items() for word in (f"--{key}", repr(entry))]
    for command in (["risk"], ["flow", "--t-end", "1"], ["hit", "--scale-level", "9"]):
        assert main([*command, *words]) == 2
        captured = capsys.readouterr()
        assert captured.out == "" and captured.err.count("\n") == 1
        assert name.replace("-", "_") in captured.err


@pytest.mark.parametrize("at", range(3))
def test_one_bad_number_of_an_array_is_refused_like_one_alone(at):
    numbers = np.array([1.5, 0.5, 2.0])
    numbers[at] = math.nan
    for make in (Head.from_scores, Head.from_excess, Head.from_ratio, Head.from_tube):
        with pytest.raises(ValueError, match="must be finite"):
            make(numbers, 5.0)
    with pytest.raises(ValueError, match="threshold"):
        limit_error(START, numbers / 2)
    with pytest.raises(ValueError, match="threshold"):
        context_moments(START, numbers / 2, 4)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.longdouble, int])
def test_risks_of_every_kind_of_number_are_double(kind):  # jax #3444
    for numbers in (kind(7), [kind(7), kind(3)]):
        head = Head.from_scores(numbers, kind(5))
        value, gradient = RISK.value_and_gradient(head)
        assert np.asarray(value).dtype == gradient.dtype == np.float64
        assert (
            value.tolist() == RISK.value(Head.from_scores(np.array(numbers, float), 5.0)).tolist()
        )


# --- finite contexts ------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("size", [1e3, 1.5e6, 1e12, 1e300])
def test_a_softmax_of_scores_of_any_size_picks_its_example(sign, size):  # scipy #23225
    # The largest score is that of 0.3 with a label of +1; mirrored, of the mirrored example.
    features, labels = sign * np.array([[-0.5, 0.3, 0.9]]), sign * np.array([[1, 1, -1]])
    corpus = Corpus.from_arrays(features, labels, [0.0])
    heads = Head.from_scores([1.5 * sign * size] * 2, sign * size)
    np.testing.assert_array_equal(CorpusRisk(corpus).value(heads), 0.3**2)
    np.testing.assert_array_equal(CorpusRisk(corpus).gradient(heads), 0.0)
    alone = Head.from_scores(1.5 * sign * size, sign * size)
    assert predictions(alone, corpus) == sign * 0.3


@pytest.mark.parametrize("n", [0, -1, 1.5, math.nan, "four"])
def test_a_context_of_no_number_of_examples_is_refused(n):  # numpy #9989
    for call in (
        lambda: context_moments(START, 0.0, n),
        lambda: context_moments(START, 0.0, [4, n]),
        lambda: context_moments_sampled(START, 0.0, n, 10, rng=0),
        lambda: sample_corpus(Design(), n, 4, rng=0),
        lambda: sample_corpus(Design(), 4, n, rng=0),
    ):
        with pytest.raises(ValueError) as refusal:
            call()
        assert "\n" not in str(refusal.value)


# --- flows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_mirrored_crossings(method):  # scipy #9228
    found = crossings(
        RISK,
        Head.from_scores(0.0, -1.0),
        scale=-0.38,
        t_end=100.0,
        method=method,
        rtol=1e-6,
        atol=1e-8,
    )
    assert [hit.message.split()[-1] for hit in found] == ["up", "down"]
    # Measured at most 4.0e-4, RK23 at this tolerance.
    assert [hit.time for hit in found] == pytest.approx([8.44205954, 10.13972648], rel=0, abs=2e-3)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_at_once_where_it_starts(method, sign):  # diffrax #720, scipy #14771
    head = START if sign > 0 else START.reflected
    for level in (5.0, 4.0):
        hit = hitting_time(RISK, head, scale=sign * level, method=method)
        assert (hit.reached, hit.time, hit.head) == (True, 0.0, head)
    assert crossings(RISK, head, scale=sign * 4.0, t_end=10.0, method=method) == []
    trajectory = gradient_flow(RISK, head, 1.0, scale_levels=[sign * 4.0], method=method)
    assert trajectory.hits[0].time == 0.0


def test_the_command_is_at_once_where_it_starts(capsys):
    for level in ("5", "4", "-5"):
        head = ("--label-score", "7.5", "--scale", "5")
        assert main(["hit", *head, "--scale-level", level, "--t-end", "10", "--json"]) == 0
        record = json.loads(capsys.readouterr().out)
        assert (record["reached"], record["time"]) == (
            (level != "-5"),
            0.0 if level != "-5" else None,
        )


@pytest.mark.parametrize("sign", [1, -1])
def test_the_unstable_direction_is_left_at_the_same_time_on_both_sides(sign):  # scipy #9901
    start = Head.from_scores(sign * 2.1350416126511e-12, sign * 1e-12)
    hit = hitting_time(RISK, start, scale=float(sign), t_end=5000.0)
    assert hit.time == pytest.approx(448.669, rel=0, abs=2e-3)


@pytest.mark.parametrize("method", METHODS)
def test_the_origin_rests_by_every_method(method):  # OrdinaryDiffEq.jl #3382
    origin = Head.from_scores(0.0, 0.0)
    trajectory = gradient_flow(RISK, origin, 10.0, method=method)
    assert trajectory.success and "stationary" in trajectory.message
    assert not trajectory.scale.any() and set(trajectory.risk) == {1 / 3}
    hit = hitting_time(RISK, origin, scale=1.0, method=method)
    assert (hit.reached, hit.time) == (False, math.inf) and "stationary" in hit.message


def test_the_origin_rests_on_the_command_line(capsys):
    head = ("--label-score", "0", "--scale", "0")
    for words in (["flow", "--t-end", "10"], ["hit", "--scale-level", "1"], ["risk"]):
        assert main([*words, *head, "--json"]) == 0
        captured = capsys.readouterr()
        record = json.loads(captured.out)
        assert captured.err == ""
        assert "stationary" in record.get("message", "stationary")
        assert set(np.ravel(record.get("risk", 1 / 3))) == {1 / 3}


SEARCHES = {
    "flow": lambda head, **options: gradient_flow(RISK, head, 1.0, **options),
    "hit": lambda head, **options: hitting_time(RISK, head, scale=9.0, t_end=1.0, **options),
    "crossings": lambda head, **options: crossings(RISK, head, scale=9.0, t_end=1.0, **options),
    "tube": lambda head, **options: tube_entrance(RISK, head, width=0.1, t_end=1.0, **options),
}
each_search = pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)


@each_search
@pytest.mark.parametrize("name", ["rtol", "atol"])
@pytest.mark.parametrize("bad", [0.0, -1e-9, math.nan, math.inf, "small"])
def test_every_search_refuses_a_tolerance_that_is_none(search, name, bad):  # PySDM #293
    with pytest.raises(ValueError, match=name):
        search(START, **{name: bad})


@each_search
def test_every_search_refuses_several_heads_and_another_method(search):
    with pytest.raises(ValueError, match="one head"):
        search(Head.from_ratio([1.5, 2.0], 5.0))
    with pytest.raises(ValueError, match="method must be"):
        search(START, method="Euler")


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0])
def test_a_step_that_is_none_is_refused(bad):  # scipy #17846
    with pytest.raises(ValueError, match="step_size"):
        gradient_descent(RISK, START, bad, 3)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_cut_by_the_step_limit_says_where_and_what_to_change(method):  # scipy #11700
    trajectory = gradient_flow(RISK, START, 1e6, max_steps=1, method=method)
    assert not trajectory.success and trajectory.stop_time < 1e6
    assert f"t={trajectory.stop_time:.6g}" in trajectory.message
    assert "max_steps" in trajectory.message


# --- what a call leaves behind --------------------------------------------------------------------


def state():
    import locale
    import signal

    import matplotlib

    names = matplotlib.rcParams.keys() - {"backend"}  # asking for the backend would choose one
    legacy = str(np.random.get_state())  # noqa: NPY002
    return (
        np.geterr(), str(np.get_printoptions()), legacy, mp.dps, mp.pretty,
        {name: matplotlib.rcParams[name] for name in names}, warnings.filters[:],
        random.getstate(), locale.setlocale(locale.LC_ALL), signal.getsignal(signal.SIGINT),
        sys.excepthook, warnings.showwarning, sys.getswitchinterval(),
    )  # fmt: skip


CALLS = {
    "risks": lambda: [risk.hessian(START) for risk in ROUTES.values()],
    "flow": lambda: gradient_flow(RISK, START, 1e6, scale_levels=[9.0]),
    "descent": lambda: gradient_descent(RISK, START, 1.0, 10),
    "moments": lambda: context_moments(START, [0.0, 0.5], 4),
    "draws": lambda: context_moments_sampled(START, 0.0, 4, 10, rng=0),
    "corpus": lambda: CorpusRisk(sample_corpus(Design(), 3, 3, rng=0)).hessian(START),
    "command": lambda: main(["risk", "--ratio", "1.5", "--scale", "5", "--json"]),
    "misuse": lambda: main(["risk", "--ratio", "nan", "--scale", "5"]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_changes_no_global_state(call):
    before = state()
    call()
    assert state() == before


def test_drawing_changes_no_global_state_and_chooses_no_backend(tmp_path):
    before = state()
    words = ["flow", "--ratio", "1.5", "--scale", "5", "--t-end", "9", "--points", "2"]
    assert main([*words, "--plot", str(tmp_path / "flow.png")]) == 0
    assert state() == before
