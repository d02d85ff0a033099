"""What goes wrong in software like this, as inputs of this model with their right answers.

Each test is named for the fault, and its comment names the public report it was made from. Reports
whose inputs are tested elsewhere, beside the function they concern, are not repeated here.
"""

import json
import os
import pickle
import subprocess
import sys
import time
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
    FiniteContextRisk,
    Head,
    InfiniteContextRisk,
    UnresolvedLayerWarning,
    boundary_graded,
    context_moments,
    context_moments_sampled,
    crossings,
    gauss_legendre,
    gradient_descent,
    gradient_flow,
    hitting_time,
    limit_error,
    progress_direction,
    progress_moments,
    sample_corpus,
    transfer,
)
from popdyn.cli import main
from popdyn.cli.parsing import METHODS
from popdyn.dynamics import arguments
from popdyn.polylog import li2

RISK = ClosedFormRisk()
START = Head.from_ratio(1.5, 5.0)
SPACING = 2.3e-16  # one spacing of doubles, relative

# --- times and levels -----------------------------------------------------------------------------


# The two crossings are 1.7 apart, and one step at these tolerances is longer: each method finds
# both, as well as its tolerance allows (worst measured 0.32, RK23).
@pytest.mark.parametrize("method", METHODS)
def test_a_level_touched_within_one_step_is_not_missed_by_any_method(method):  # scipy #9228
    found = crossings(
        RISK, Head.from_ratio(0.0, 1.0), scale=0.38, t_end=100.0, method=method,
        rtol=1e-3, atol=1e-6,
    )  # fmt: skip
    assert [hit.message.split()[-1] for hit in found] == ["down", "up"]
    assert [hit.time for hit in found] == pytest.approx([8.44205954, 10.13972648], rel=0, abs=0.5)


def test_a_level_already_passed_is_never_crossed_and_was_entered_at_once():  # scipy #14771
    assert crossings(RISK, START, scale=4.0, t_end=1e6) == []
    assert hitting_time(RISK, START, scale=4.0).time == 0.0


def test_a_target_that_holds_at_the_start_gives_the_start_itself():  # diffrax #720
    hit = hitting_time(RISK, START, scale=5.0)
    assert (hit.reached, hit.time, hit.head) == (True, 0.0, START)


def test_a_stiff_flow_to_time_1e12_takes_few_steps():  # OrdinaryDiffEq.jl #1018
    trajectory = gradient_flow(RISK, START, 1e12)
    # The digits of the right answers; Radau took 4203 steps in the linear scores.
    assert trajectory.scale[-1] == pytest.approx(1413.52828, rel=5e-9, abs=0)
    assert trajectory.tube[-1] == pytest.approx(0.6929364, rel=0, abs=5e-8)
    assert trajectory.scale[-1] ** 4 / 1e12 == pytest.approx(3.9922525, rel=2e-8, abs=0)
    assert trajectory.n_steps < 2000  # measured 475


def test_the_unstable_direction_is_followed_from_radius_1e_minus_12():  # scipy #9901, #18039
    start = Head.from_ratio(2.1350416126511, 1e-12)
    hit = hitting_time(RISK, start, scale=1.0, t_end=5000.0)
    assert hit.time == pytest.approx(448.669, rel=0, abs=2e-3)


def test_an_absolute_tolerance_of_zero_is_refused_by_name():  # PySDM #293, scipy #11239
    with pytest.raises(ValueError, match="atol"):
        gradient_flow(RISK, Head.from_scores(0.0, 1.0), 10.0, atol=0.0)


@pytest.mark.parametrize("t_eval", [[], [0.0], [1.0, 2.0, 1e6]], ids=len)
def test_a_run_cut_by_the_step_limit_has_columns_of_one_length(t_eval):  # scipy #11700, #12100
    trajectory = gradient_flow(RISK, START, 1e6, t_eval=t_eval, max_steps=1)
    assert not trajectory.success and "max_steps" in trajectory.message
    columns = ("label_score", "scale", "excess", "ratio", "tube", "risk", "chart")
    assert {getattr(trajectory, name).shape for name in columns} == {trajectory.t.shape}


def test_a_repeated_time_is_answered_twice():  # scipy #8672, the like of it
    trajectory = gradient_flow(RISK, START, 3.0, t_eval=[2.0, 2.0, 3.0])
    assert trajectory.t.tolist() == [2.0, 2.0, 3.0]
    assert trajectory.scale[0] == trajectory.scale[1] < trajectory.scale[2]


@pytest.mark.parametrize("number", [np.float32, np.float64, np.longdouble])
def test_a_result_is_double_whatever_the_start_was(number):  # jax #3444, diffrax #85
    trajectory = gradient_flow(RISK, Head.from_scores(number(7.3), number(5.1)), 10.0)
    assert trajectory.scale.dtype == trajectory.label_score.dtype == np.float64


# --- risks and errors -----------------------------------------------------------------------------


@pytest.mark.parametrize("scores", [(0.0, 0.0), (1e-300, -1e-300), (1e-12, 1e-12), (1e-8, 1e-8)])
def test_the_risk_at_the_origin_is_one_third_to_the_last_digit(scores):  # numpy #14019
    # At (1e-8, 1e-8) the deviation is -2.2e-18.
    assert RISK.value(Head.from_scores(*scores)) == pytest.approx(1 / 3, rel=SPACING, abs=0)


def test_a_label_score_that_is_overwhelmed_by_the_scale_does_not_overflow():  # scipy #23225
    value = RISK.value(Head.from_ratio(0.0, 1000.0))  # exp(-2 delta) is exp(2000)
    assert value == pytest.approx(1.3313343333333333, rel=4 * SPACING, abs=0)


def test_no_infinity_is_multiplied_by_zero_at_the_upper_end():  # mlx #1277, stdlib #12468
    found = limit_error(Head.from_ratio(0.2, 800.0), [-1.0, -0.999, 0.0, 0.999, 1.0])
    exact = [1.99875, 1.99775, 0.99875, -0.00125, -0.00125]
    np.testing.assert_allclose(found, exact, rtol=0, atol=2e-15)  # measured 4e-16


@pytest.mark.parametrize(
    ("ratio", "scale", "value"),
    [
        (1 + (np.log(2) + np.log(1000)) / 1000, 1e3, 9.9929711926763319e-7),
        (1 + (np.log(2) + np.log(100)) / 100, 1e2, 9.9289640826357806e-5),
    ],
)
def test_a_head_on_the_tube_given_by_its_ratio_keeps_its_layer(ratio, scale, value):
    # scipy #7204, #17443: the ratio's last digit is 1e-13 of the excess, and that 1e-14 of the risk
    assert RISK.value(Head.from_ratio(ratio, scale)) == pytest.approx(value, rel=1e-14, abs=0)


@pytest.mark.parametrize("order", [50, 200, 2000])
def test_a_rule_that_misses_the_layer_says_so(order):  # scipy #19283, sasmodels #712
    head = Head.from_tube(np.log(2), 100.0)
    with pytest.warns(UnresolvedLayerWarning, match=f"order {order} .* nodes are needed"):
        value = InfiniteContextRisk(Design(), gauss_legendre(order)).value(head)
    assert abs(value / 9.9289640826357806e-5 - 1) > 1e-3  # measured 5e-3, 5e-3, 2e-3


@pytest.mark.parametrize(
    ("z", "value"),
    [
        (np.sqrt(3) - 2, -0.25186201860906521),
        (-2 - np.sqrt(3), -2.2602610993754793),
    ],
)
def test_the_dilogarithm_keeps_its_digits_where_scipy_loses_them(z, value):  # spexial #24
    assert li2(z) == pytest.approx(value, rel=4 * SPACING, abs=0)


def test_half_width_and_reflection_are_the_right_way_round():
    other = ClosedFormRisk(2.0).value(Head.from_scores(3.0, 2.0, half_width=2.0))
    assert other == pytest.approx(1.697972687692126, rel=4 * SPACING, abs=0)
    assert other == 4 * RISK.value(Head.from_scores(3.0, 4.0))
    gradient = RISK.gradient(Head.from_scores(7.5, 5.0))
    np.testing.assert_allclose(gradient, [-0.00358791, -0.00688081], rtol=0, atol=5e-9)
    np.testing.assert_array_equal(RISK.gradient(Head.from_scores(-7.5, -5.0)), -gradient)


@pytest.mark.parametrize("score", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("risk", [RISK, ArbitraryPrecisionRisk()], ids=["closed form", "mpmath"])
def test_a_score_that_is_no_number_ends_at_once(risk, score):  # mpmath #505, #473, #1033
    begin = time.perf_counter()
    with pytest.raises(ValueError, match="label_score must be finite"):
        risk.value(Head.from_scores(score, 5.0))
    assert time.perf_counter() - begin < 1.0


def test_the_derived_expression_of_the_risk_can_be_evaluated():  # sympy #18179
    import sympy

    from derivations import closed_form_risk
    from derivations.checks import Chain

    expression = closed_form_risk.derive(Chain()).risk
    symbols = sorted(expression.free_symbols, key=str)
    function = sympy.lambdify(symbols, expression, "mpmath")
    numbers = {"l": 1, "lam": 7.5, "mu": 5}
    found = function(*(mp.mpf(numbers[symbol.name]) for symbol in symbols))
    assert float(found) == pytest.approx(float(RISK.value(START)), rel=1e-13, abs=0)


NO_HEAD = (1.5, 5.0)


@pytest.mark.parametrize(
    "risk",
    [
        RISK,
        InfiniteContextRisk(Design(), boundary_graded()),
        FiniteContextRisk(4),
        CorpusRisk(sample_corpus(Design(), 2, 2, rng=0)),
        ArbitraryPrecisionRisk(),
    ],
    ids=lambda risk: type(risk).__name__,
)
@pytest.mark.parametrize("method", ["value", "gradient", "value_and_gradient", "hessian"])
def test_two_numbers_in_place_of_a_head_are_refused_by_name(risk, method):
    with pytest.raises(ValueError, match=r"head must be a popdyn\.Head, got \(1\.5, 5\.0\)"):
        getattr(risk, method)(NO_HEAD)


@pytest.mark.parametrize(
    "call",
    [
        lambda: limit_error(NO_HEAD, 0.0),
        lambda: context_moments(NO_HEAD, 0.0, 4),
        lambda: context_moments_sampled(NO_HEAD, 0.0, 4, 10),
        lambda: progress_direction(NO_HEAD),
        lambda: progress_moments(NO_HEAD, 4),
        lambda: gradient_flow(RISK, NO_HEAD, 1.0),
        lambda: gradient_descent(RISK, NO_HEAD, 1.0, 1),
    ],
    ids=["error", "moments", "sampled", "direction", "progress", "flow", "descent"],
)
def test_two_numbers_in_place_of_a_head_are_refused_by_every_function(call):
    with pytest.raises(ValueError, match=r"head must be a popdyn\.Head, got \(1\.5, 5\.0\)"):
        call()


@pytest.mark.parametrize("risk", [3, ClosedFormRisk], ids=["number", "class"])
@pytest.mark.parametrize(
    "evolve",
    [
        lambda risk: gradient_flow(risk, START, 1.0),
        lambda risk: gradient_descent(risk, START, 1.0, 1),
        lambda risk: hitting_time(risk, START, scale=9.0),
        lambda risk: crossings(risk, START, scale=9.0, t_end=1.0),
    ],
    ids=["flow", "descent", "hit", "crossings"],
)
def test_what_is_no_risk_is_refused_by_name(evolve, risk):
    with pytest.raises(ValueError, match=r"risk must be a risk such as ClosedFormRisk\(\), got"):
        evolve(risk)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale_levels": 6.0}, "scale_levels must be a list of scales, got 6"),
        ({"callback": 3}, "callback must be callable .* got 3"),
    ],
)
def test_a_single_level_and_a_callback_that_is_none_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        gradient_flow(RISK, START, 1.0, **options)


# --- finite contexts ------------------------------------------------------------------------------


def test_a_softmax_of_huge_scores_is_the_largest_example():  # scipy #23225
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        corpus = Corpus.from_arrays([[-0.5, 0.3, 0.9]], [[1, 1, -1]], [0.0])
        value = CorpusRisk(corpus).value(Head.from_scores(1.5e6, 1e6))
    assert value == pytest.approx(0.09, rel=SPACING, abs=0)  # F = 0.3 at the threshold 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: sample_corpus(Design(), 0, 4, rng=0),
        lambda: sample_corpus(Design(), 4, 0, rng=0),
        lambda: context_moments(START, 0.0, 0),
        lambda: FiniteContextRisk(0),
        lambda: Corpus.from_arrays([], [], []),
        lambda: Corpus.from_arrays(np.empty((0, 3)), np.empty((0, 3)), []),
        lambda: Corpus.from_arrays(np.empty((2, 0)), np.empty((2, 0)), [0.0, 0.0]),
    ],
    ids=["no tasks", "no examples", "moments", "risk", "lists", "no rows", "no columns"],
)
def test_a_mean_of_nothing_is_refused_without_a_warning(make):  # numpy #9989
    with pytest.raises(ValueError) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_one_task_with_one_example_is_a_corpus_and_predicts_its_feature():  # numpy #9989
    corpus = sample_corpus(Design(), 1, 1, rng=0)
    value, gradient = CorpusRisk(corpus).value_and_gradient(START)
    miss = (corpus.features[0, 0] - corpus.thresholds[0]) ** 2
    assert value == pytest.approx(miss, rel=4 * SPACING, abs=0)
    np.testing.assert_array_equal(gradient, [0.0, 0.0])


# --- results and processes ------------------------------------------------------------------------

RESULTS = {
    "trajectory": lambda: gradient_flow(RISK, START, 10.0, scale_levels=[5.01, 9.0]),
    "descent": lambda: gradient_descent(RISK, START, 1.0, 10),
    "hit": lambda: hitting_time(RISK, START, scale=5.01),
    "never": lambda: hitting_time(RISK, START, scale=9.0, t_end=1.0),
    "corpus": lambda: sample_corpus(Design(), 2, 3, rng=0),
    "moments": lambda: context_moments(START, [0.0, 0.5], 4),
    "sampled moments": lambda: context_moments_sampled(START, 0.0, 4, 10, rng=0),
    "progress": lambda: progress_moments(START, 4),
    "transfer": lambda: transfer(START, [0.0], [4, 8], n_contexts=10, rng=0),
}


def parts(result):
    """What a result consists of, arrays as bytes, results inside a result as their own parts."""
    if isinstance(result, np.ndarray):
        return result.dtype.str, result.shape, result.tobytes(), result.flags.writeable
    if hasattr(result, "__dataclass_fields__"):
        fields = result.__dataclass_fields__
        return type(result), [(name, parts(getattr(result, name))) for name in fields]
    if isinstance(result, tuple):
        return [parts(part) for part in result]
    return type(result), repr(result)


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
def test_a_result_comes_back_from_a_pickle_as_it_was(make):  # cpython #3895, adaptive #206
    result = make()
    assert parts(pickle.loads(pickle.dumps(result))) == parts(result)


FIGURE = """
import os, sys
import popdyn
assert "matplotlib" not in sys.modules
import matplotlib
matplotlib.use("svg")
from popdyn.cli import main
code = main(["figures", "--only", "2", "--quick", "--workers", "1", "--json", "--out", sys.argv[1]])
assert matplotlib.get_backend() == "svg", matplotlib.get_backend()
assert "matplotlib.pyplot" not in sys.modules
sys.exit(code)
"""


def test_figures_need_no_display_and_no_home_and_leave_the_backend(tmp_path):  # matplotlib #13883
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    environment.pop("DISPLAY", None)
    nowhere = "/dev/null"  # no folder can be made in it, not even by root
    environment |= {"HOME": nowhere, "XDG_CONFIG_HOME": nowhere, "MPLCONFIGDIR": str(tmp_path)}
    command = [sys.executable, "-c", FIGURE, str(tmp_path / "figures")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout).keys() == {"2"}
    assert (tmp_path / "figures" / "figure02.pdf").exists()


# --- the command and the library say the same -----------------------------------------------------


def test_every_command_on_a_head_takes_the_methods_of_the_flow(capsys):
    assert METHODS == arguments.METHODS
    head = ("--ratio", "1.5", "--scale", "5")
    commands = {"risk": (), "flow": ("--t-end", "1"), "hit": ("--scale-level", "5")}
    for command, options in commands.items():
        assert main([command, *head, *options, "--method", "Radau", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)
        assert main([command, *head, *options, "--method", "radau"]) == 2
        assert "choose from" in capsys.readouterr().err
