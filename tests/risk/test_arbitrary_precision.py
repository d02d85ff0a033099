"""The arbitrary-precision risk against quadrature, itself at other precisions, and identities."""

import json
import pickle
import time
from pathlib import Path

import mpmath
import numpy as np
import pytest

from popdyn import ArbitraryPrecisionRisk, Head

REFERENCE = Path(__file__).parents[1] / "reference"
POPULATION = json.loads((REFERENCE / "population.json").read_text())
PLANE = json.loads((REFERENCE / "plane.json").read_text())

REFUSED_WITHIN = 1.0  # seconds; refusals take microseconds
# The files are rounded to 25 digits.
ROUNDING = mpmath.mpf("1e-24")
# The Hessians of population.json lost digits to cancellation at scale 1e-6: at worst 9e-22.
POPULATION_HESSIAN = mpmath.mpf("2e-21")
# 30 digits asked for; measured at worst 1e-32, the tolerance of the agreement, and mostly 1e-60.
THIRTY_DIGITS = mpmath.mpf("1e-30")
# Central differences of step 1e-15: the error is a sixth of it squared, times the next derivative.
DIFFERENCE = mpmath.mpf("1e-29")

# (label score, scale): one head or more of every regime and of every border between them.
TORTURE = [
    (0.0, 0.5),
    (0.0, -1e12),
    (1e-300, 1e-300),
    (1e-300, 2.0),
    (-2.0, 1e-300),
    (1e-9, 1e-14),
    (1e-12, -1e-12),
    (3e-12, 1e-11),
    (700.0, 1e-7),
    (-700.0, 0.3),
    (1.0, 2.0),
    (3.0, 6.000000000000001),
    (5.0, 5.0),
    (5.000000000000001, 5.0),
    (12.7, 11.0),
    (40.0, 50.0),
    (-1e6, 3.0),
    (1e6, -3.0),
    (9e299, 1e300),
    (-1e300, 1e12),
]
MODERATE = [(0.3, 0.2), (-2.0, 0.7), (0.0, 3.0), (2.0, 5.0), (7.5, 5.0), (1.5, -0.4), (60.0, 50.0)]


def components(evaluation):
    return [evaluation.risk, *evaluation.gradient, *evaluation.hessian]


def distance(found, wanted):
    """Largest relative difference of the components."""
    with mpmath.workdps(120):
        pairs = [(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(found, wanted, strict=True)]
        return max(abs(a - b) / (abs(b) if b else 1) for a, b in pairs)


def of_the_largest(found, wanted):
    """Largest difference, relative to the largest component."""
    with mpmath.workdps(40):
        pairs = [(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(found, wanted, strict=True)]
        return max(abs(a - b) for a, b in pairs) / max(abs(b) for _, b in pairs)


def stated(entry):
    return [entry["risk"], *entry["gradient"], *entry["hessian"]]


def plane_id(entry):
    return f"{entry['given']}={entry['value']!r},scale={entry['scale']!r},l={entry['half_width']!r}"


@pytest.mark.parametrize("entry", PLANE, ids=plane_id)
def test_it_agrees_with_the_confirmed_values_over_the_whole_plane(entry):
    risk = ArbitraryPrecisionRisk(entry["half_width"], digits=26)
    found = risk.evaluate(scale=entry["scale"], **{entry["given"]: entry["value"]})
    assert distance(components(found), stated(entry)) < ROUNDING


@pytest.mark.parametrize("entry", POPULATION, ids=lambda e: f"{e['excess']!r},{e['scale']!r}")
def test_it_agrees_with_the_values_near_the_tube(entry):
    risk = ArbitraryPrecisionRisk(entry["half_width"], digits=26)
    found = risk.evaluate(scale=entry["scale"], excess=entry["excess"])
    assert distance([found.risk], [entry["risk"]]) < ROUNDING
    if entry["excess"] != 0:  # there the file's derivatives are wrong: see reference/README.md
        assert of_the_largest(found.gradient, entry["gradient"]) < ROUNDING
        assert of_the_largest(found.hessian, entry["hessian"]) < POPULATION_HESSIAN


def test_every_value_over_the_plane_was_confirmed_by_quadrature():
    assert len(PLANE) > 150
    assert min(entry["shared_digits"] for entry in PLANE) >= 20


@pytest.mark.parametrize(("label_score", "scale"), TORTURE)
def test_thirty_digits_are_thirty_digits_of_sixty(label_score, scale):
    short, long = (
        ArbitraryPrecisionRisk(digits=digits).evaluate(label_score=label_score, scale=scale)
        for digits in (30, 60)
    )
    assert distance(components(short), components(long)) < THIRTY_DIGITS


@pytest.mark.parametrize(("label_score", "scale"), TORTURE)
def test_the_reflected_head_has_the_same_risk_and_the_opposite_gradient(label_score, scale):
    risk = ArbitraryPrecisionRisk(digits=20)
    head = risk.evaluate(label_score=label_score, scale=scale)
    mirror = risk.evaluate(label_score=-label_score, scale=-scale)
    with mpmath.workdps(40):  # even a change of sign rounds
        opposite = [mirror.risk, *(-g for g in mirror.gradient), *mirror.hessian]
    assert distance(components(head), opposite) < mpmath.mpf("1e-20")


@pytest.mark.parametrize("half_width", [1e-50, 0.375, 2.0, 1e50])
@pytest.mark.parametrize(("label_score", "scale"), MODERATE)
def test_half_widths_scale_out(label_score, scale, half_width):
    unit = ArbitraryPrecisionRisk(digits=30)
    wide = ArbitraryPrecisionRisk(half_width, digits=30)
    with mpmath.workdps(60):
        narrow_scale = mpmath.mpf(scale) / half_width
        width = mpmath.mpf(half_width)
        powers = (2, 2, 3, 2, 3, 4)
        found = components(wide.evaluate(label_score=label_score, scale=narrow_scale))
        wanted = components(unit.evaluate(label_score=label_score, scale=scale))
        scaled = [w * width**p for w, p in zip(wanted, powers, strict=True)]
    assert distance(found, scaled) < THIRTY_DIGITS * 10


@pytest.mark.parametrize(("label_score", "scale"), MODERATE)
def test_derivatives_are_the_differences_of_the_risk(label_score, scale):
    risk = ArbitraryPrecisionRisk(digits=60)
    with mpmath.workdps(70):
        h = mpmath.mpf("1e-15")
        lam, mu = mpmath.mpf(label_score), mpmath.mpf(scale)

        def at(i, j):
            return risk.evaluate(label_score=lam + i * h, scale=mu + j * h).risk

        centre = at(0, 0)
        differences = [
            centre,
            (at(1, 0) - at(-1, 0)) / (2 * h),
            (at(0, 1) - at(0, -1)) / (2 * h),
            (at(1, 0) - 2 * centre + at(-1, 0)) / h**2,
            (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / (4 * h**2),
            (at(0, 1) - 2 * centre + at(0, -1)) / h**2,
        ]
        found = components(risk.evaluate(label_score=lam, scale=mu))
        error = max(abs(a - b) for a, b in zip(found, differences, strict=True))
    assert error < DIFFERENCE


@pytest.mark.parametrize("label_score", [0.0, 1e-300, 0.7, -30.0, 1e6])
def test_at_zero_scale_the_risk_is_that_of_the_constant_predictor(label_score):
    found = ArbitraryPrecisionRisk(2.0, digits=30).evaluate(label_score=label_score, scale=0.0)
    assert mpmath.nstr(found.risk, 30) == "1." + 29 * "3"
    assert found.gradient[0] == 0 and found.hessian[0] == 0


def test_the_hessian_at_the_origin_is_the_stated_saddle():
    found = ArbitraryPrecisionRisk(0.5, digits=30).evaluate(label_score=0, scale=0)
    with mpmath.workdps(40):
        cube = mpmath.mpf("0.125")
        exact = [mpmath.mpf(1) / 12, 0, 0, 0, -2 * cube / 15, cube / 9]
    assert distance(components(found), exact) < THIRTY_DIGITS


@pytest.mark.parametrize(
    ("given", "value", "scale", "wanted"),
    [
        ("ratio", "0", 1000, "1.3313343333333333"),
        ("label_score", -10, 20, "1.2359835904458045"),
        ("label_score", 10, 20, "1.0650543376763604"),
        ("tube", mpmath.log(2), 1000, "9.9929711926763319e-7"),
        ("tube", mpmath.log(2), 100, "9.9289640826357806e-5"),
    ],
)
def test_risks_known_to_seventeen_digits(given, value, scale, wanted):
    found = ArbitraryPrecisionRisk(digits=20).evaluate(scale=scale, **{given: value})
    assert mpmath.almosteq(found.risk, mpmath.mpf(wanted), 3e-16)


def test_a_float_and_its_decimal_string_differ_from_the_seventeenth_digit_on():
    risk = ArbitraryPrecisionRisk(digits=40)
    binary = risk.limit_error(0.1, label_score=3, scale=2)
    decimal = risk.limit_error("0.1", label_score=3, scale=2)
    with mpmath.workdps(50):
        assert mpmath.mpf("1e-18") < abs(binary - decimal) < mpmath.mpf("1e-16")
        exact = mpmath.mpf(0.1)
    again = risk.limit_error(mpmath.nstr(exact, 60), label_score=3, scale=2)
    assert mpmath.nstr(again, 40) == mpmath.nstr(binary, 40)


def definition_of_limit_error(alpha, lam, mu):
    """`F - alpha` by quadrature of the two softmax integrals."""
    with mpmath.workdps(40):

        def integral(power):
            def weight(x, y):
                return x**power * mpmath.exp(lam * y + mu * x)

            return mpmath.quad(lambda x: weight(x, 1), [-1, alpha]) + mpmath.quad(
                lambda x: weight(x, -1), [alpha, 1]
            )

        return integral(1) / integral(0) - alpha


@pytest.mark.parametrize("threshold", [-1.0, -0.999, -0.25, 0.0, 0.75, 1.0])
@pytest.mark.parametrize(("label_score", "scale"), [*MODERATE, (2.0, 0.0), (-0.5, 1e-20)])
def test_the_limit_error_is_that_of_the_definition(threshold, label_score, scale):
    found = ArbitraryPrecisionRisk(digits=25).limit_error(
        threshold, label_score=label_score, scale=scale
    )
    wanted = definition_of_limit_error(mpmath.mpf(threshold), label_score, scale)
    assert abs(found - wanted) < mpmath.mpf("1e-24") * max(1, abs(wanted))


def test_the_limit_error_survives_the_overflow_of_doubles():
    risk = ArbitraryPrecisionRisk(digits=20)
    thresholds = ("-1", "-0.999", "0", "0.999", "1")
    found = [risk.limit_error(a, ratio="0.2", scale=800) for a in thresholds]
    wanted = ("1.99875", "1.99775", "0.99875", "-0.00125", "-0.00125")
    assert [mpmath.nstr(f, 12) for f in found] == list(wanted)


def test_a_head_is_read_by_the_coordinate_it_was_given():
    mu = 1e9
    head = Head.from_excess([20.5, 21.5], mu)
    risk = ArbitraryPrecisionRisk(digits=30)
    exact = [risk.evaluate(excess=excess, scale=mu) for excess in (20.5, 21.5)]
    assert risk.value(head).tolist() == [float(e.risk) for e in exact]
    assert risk.gradient(head).tolist() == [[float(g) for g in e.gradient] for e in exact]
    tube = Head.from_tube(0.7, 300.0)
    assert risk.value(tube) == float(risk.evaluate(tube=0.7, scale=300.0).risk)


def test_arrays_of_heads_give_arrays_of_the_shapes_of_the_contract():
    risk = ArbitraryPrecisionRisk(digits=20)
    head = Head.from_scores([[0.5, -1.0, 0.0]], [[1.0], [-2.0]])
    value, gradient = risk.value_and_gradient(head)
    assert value.shape == (2, 3) and gradient.shape == (2, 3, 2)
    hessian = risk.hessian(head)
    assert hessian.shape == (2, 3, 2, 2) and hessian.dtype == np.float64
    assert np.array_equal(hessian[..., 0, 1], hessian[..., 1, 0])
    assert np.array_equal(gradient, risk.gradient(head))
    single = Head.from_scores(-1.0, -2.0)
    assert value[1, 1] == risk.value(single) and np.shape(risk.value(single)) == ()


def test_results_too_small_for_a_double_are_rounded_once():
    tiny = ArbitraryPrecisionRisk(digits=25).evaluate(label_score=370, scale=3)
    head = Head.from_scores(370.0, 3.0)
    rounded = ArbitraryPrecisionRisk(digits=25).gradient(head)[0]
    with mpmath.workdps(30):
        units = tiny.gradient[0] * mpmath.mpf(2) ** 1074
        assert rounded * mpmath.mpf(2) ** 1074 == mpmath.nint(units) != 0


@pytest.mark.parametrize(
    "number", [np.float64(0.75), np.float32(0.75), np.longdouble(0.75), np.int64(3) / 4, "0.75"]
)
def test_every_kind_of_number_is_read_exactly(number):
    risk = ArbitraryPrecisionRisk(digits=30)
    assert risk.evaluate(label_score=number, scale=1) == risk.evaluate(label_score=0.75, scale=1)


def test_a_long_double_keeps_its_own_digits():
    wide = np.longdouble(1) + np.finfo(np.longdouble).eps
    if wide == np.float64(wide):
        pytest.skip("long double is double here")
    risk = ArbitraryPrecisionRisk(digits=30)
    with mpmath.workdps(40):
        exact = 1 + mpmath.mpf(2) ** -63
    assert risk.evaluate(label_score=wide, scale=1) == risk.evaluate(label_score=exact, scale=1)


@pytest.mark.parametrize("bad", ["nan", "inf", float("nan"), float("-inf"), mpmath.nan, "1e500"])
@pytest.mark.parametrize("name", ["label_score", "scale", "excess", "ratio", "tube"])
def test_numbers_that_are_not_finite_are_refused_at_once(name, bad):
    arguments = {"scale": 5, name: bad}
    if name == "scale":
        arguments["label_score"] = 1
    risk = ArbitraryPrecisionRisk()
    started = time.perf_counter()
    with pytest.raises(ValueError, match=f"{name} must be finite") as refusal:
        risk.evaluate(**arguments)
    with pytest.raises(ValueError, match=f"{name} must be finite"):
        risk.limit_error(0, **arguments)
    assert time.perf_counter() - started < REFUSED_WITHIN
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"label_score": 1, "excess": 0}, "exactly one of .* got label_score and excess"),
        ({}, "exactly one of .* got none"),
        ({"label_score": "one"}, "label_score must be a finite float"),
        ({"label_score": [1.0]}, "label_score must be a finite float"),
        ({"label_score": True}, "label_score must be a finite float"),
        ({"label_score": 1j}, "label_score must be a finite float"),
    ],
)
def test_arguments_that_make_no_head_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ArbitraryPrecisionRisk().evaluate(scale=5, **arguments)


@pytest.mark.parametrize("scale", [0, -1.0])
@pytest.mark.parametrize("name", ["ratio", "tube"])
def test_ratio_and_tube_coordinate_need_a_positive_scale(name, scale):
    with pytest.raises(ValueError, match=f"scale must be positive where a {name} is given"):
        ArbitraryPrecisionRisk().evaluate(scale=scale, **{name: 1})


@pytest.mark.parametrize("threshold", [1.0000000000000002, "-1.00000000000000000000000001"])
def test_thresholds_outside_the_interval_are_refused(threshold):
    with pytest.raises(ValueError, match="threshold must lie in"):
        ArbitraryPrecisionRisk().limit_error(threshold, label_score=1, scale=1)


@pytest.mark.parametrize("half_width", [0.0, -1.0, float("nan"), float("inf"), "1"])
def test_half_widths_that_are_not_positive_numbers_are_refused(half_width):
    with pytest.raises(ValueError, match="half_width must be one positive finite number"):
        ArbitraryPrecisionRisk(half_width)


@pytest.mark.parametrize("digits", [0, 2001, 30.0])
def test_numbers_of_digits_that_cannot_be_had_are_refused(digits):
    with pytest.raises(ValueError, match="digits must be an integer from 1 to"):
        ArbitraryPrecisionRisk(digits=digits)


def test_a_head_of_another_half_width_is_refused():
    with pytest.raises(ValueError, match=r"half width 1\.0 of the risk, got 2\.0"):
        ArbitraryPrecisionRisk().value(Head.from_scores(1.0, 1.0, 2.0))


def test_the_precision_of_mpmath_is_left_alone_and_without_influence():
    risk = ArbitraryPrecisionRisk(digits=30)
    wanted = risk.evaluate(ratio="1.1", scale="7.3")
    with mpmath.workdps(3):
        assert risk.evaluate(ratio="1.1", scale="7.3") == wanted
        assert mpmath.mp.dps == 3


def test_risk_and_result_survive_pickling():
    risk = ArbitraryPrecisionRisk(2.0, digits=30)
    result = risk.evaluate(label_score="0.1", scale=3)
    assert pickle.loads(pickle.dumps(risk)) == risk
    assert pickle.loads(pickle.dumps(result)) == result
