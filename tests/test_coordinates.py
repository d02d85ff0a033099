"""Coordinates of a head: exactness, round trips, comparison, copies and refusals."""

import copy
import math
import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from popdyn import Head

SEEDS = range(4)
HALF_WIDTHS = (1.0, 0.3, 7.0, 1e-50, 1e50)
SCALES = (1e-300, 1e-9, 0.3, 5.0, 1e3, 1e9, 1e12)
MAKERS = {
    "label_score": Head.from_scores,
    "excess": Head.from_excess,
    "ratio": Head.from_ratio,
    "tube": Head.from_tube,
}
# Rounded once from the exact value: half a spacing. Where the exact sum lies beside a tie, the
# rounding of the tail can push it over, by less than one part in 2^50.
HALF_SPACING = Fraction(1, 2) + Fraction(1, 2**50)
# The tube coordinate takes a logarithm, rounded before the difference.
TUBE_SPACINGS = 1.5
ONE_SPACING = 1.0


def spacings(found, exact):
    """Distance from the exact fraction in spacings of the double found."""
    return abs(Fraction(float(found)) - exact) / Fraction(math.ulp(float(found)))


def draws(seed, n=200):
    """Coordinates and scales over many magnitudes, often with a cancelling difference."""
    rng = np.random.default_rng(seed)
    scale = rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-12, 12, n)
    label_score = rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-12, 12, n)
    near = rng.random(n) < 0.5
    label_score[near] = (scale * (1 + rng.normal(size=n) * 10.0 ** rng.uniform(-16, 0, n)))[near]
    return label_score, scale


# Exactness


@pytest.mark.parametrize("half_width", HALF_WIDTHS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_excess_of_two_scores_is_rounded_once(seed, half_width):
    label_score, scale = draws(seed)
    scale = scale / half_width
    head = Head.from_scores(label_score, scale, half_width)
    for i in range(label_score.size):
        exact = Fraction(label_score[i]) - Fraction(scale[i]) * Fraction(half_width)
        assert spacings(head.excess[i], exact) <= HALF_SPACING


@pytest.mark.parametrize("half_width", HALF_WIDTHS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_label_score_of_an_excess_is_rounded_once(seed, half_width):
    excess, scale = draws(seed)
    excess, scale = -excess, scale / half_width
    head = Head.from_excess(excess, scale, half_width)
    for i in range(excess.size):
        exact = Fraction(excess[i]) + Fraction(scale[i]) * Fraction(half_width)
        assert spacings(head.label_score[i], exact) <= HALF_SPACING


@pytest.mark.parametrize("half_width", HALF_WIDTHS)
@pytest.mark.parametrize("seed", SEEDS)
def test_both_scores_of_a_ratio_are_rounded_once(seed, half_width):
    draw, scale = draws(seed)
    ratio = draw / np.abs(scale) * half_width  # often near the half width
    scale = np.abs(scale) / half_width
    head = Head.from_ratio(ratio, scale, half_width)
    for i in range(ratio.size):
        k, mu, width = Fraction(ratio[i]), Fraction(scale[i]), Fraction(half_width)
        assert spacings(head.label_score[i], k * mu) <= HALF_SPACING
        assert spacings(head.excess[i], (k - width) * mu) <= HALF_SPACING


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("tube", [-3.0, 0.0, 0.6931471805599453, 40.0])
def test_the_excess_of_a_tube_coordinate_is_within_one_spacing_of_its_terms(tube, scale):
    head = Head.from_tube(tube, scale)
    with mpmath.workdps(50):
        exact = mpmath.mpf(tube) + mpmath.log(mpmath.mpf(scale))
        error = abs(mpmath.mpf(head.excess) - exact)
        unit = math.ulp(max(abs(tube), abs(math.log(scale)), abs(head.excess)))
    assert error <= unit


def test_neither_score_can_be_had_from_the_other_at_large_scale():
    head = Head.from_excess(21.416413017506354, 1e9)
    assert head.excess == 21.416413017506354
    assert head.label_score - 1e9 != head.excess
    assert Head.from_scores(head.label_score, 1e9) != head


@pytest.mark.parametrize("score", [5.93080058165991e-151, 2.225073858507203e-309, -5e-324, 1e300])
@pytest.mark.parametrize("half_width", [2.7e157, 2.0, 1e-200])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_at_scale_zero_excess_and_label_score_are_one_number(score, half_width, zero):
    assert Head.from_scores(score, zero, half_width).excess == score
    assert Head.from_excess(score, zero, half_width).label_score == score


@pytest.mark.parametrize(
    ("label_score", "scale", "half_width", "excess"),
    [
        (1.0, 1e-300, 1e-300, 1.0),
        (0.0, 5e-324, 1.0, -5e-324),
        (0.0, 0.0, 1.0, 0.0),
        (-1e308, 1e-300, 1.0, -1e308),
        (1e308, 1e308, 1.0, 0.0),
        (3.0, 1e50, 1e-50, 3.0 - 1.0),
        (1.0, 1e300, 1e-310, 1.0 - 1e-10),
    ],
)
def test_extreme_scores_neither_overflow_nor_vanish(label_score, scale, half_width, excess):
    head = Head.from_scores(label_score, scale, half_width)
    exact = Fraction(label_score) - Fraction(scale) * Fraction(half_width)
    assert spacings(head.excess, exact) <= HALF_SPACING
    assert head.excess == pytest.approx(excess, rel=1e-12, abs=0)


# Round trips


@pytest.mark.parametrize("half_width", HALF_WIDTHS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", MAKERS)
def test_a_head_rebuilt_from_its_own_coordinate_is_identical(name, scale, half_width):
    coordinate = 1.3 * half_width if name == "ratio" else 2.7182818284590451
    head = MAKERS[name](coordinate, scale, half_width)
    assert getattr(head, name) == coordinate
    assert head.given == (name, coordinate)
    rebuilt = MAKERS[name](getattr(head, name), head.scale, head.half_width)
    assert rebuilt == head
    assert (rebuilt.ratio, rebuilt.tube) == (head.ratio, head.tube)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("given", MAKERS)
@pytest.mark.parametrize("through", MAKERS)
def test_a_round_trip_through_another_coordinate_stays_within_the_spacings_passed(
    given, through, scale
):
    head = MAKERS[given](1.4, scale)
    back = MAKERS[through](getattr(head, through), scale)
    # One spacing of the largest number on the way, and of the factor that a ratio is stretched by.
    largest = max(abs(head.label_score), abs(head.excess), scale, abs(math.log(scale)), 1.4)
    for name in ("label_score", "excess"):
        assert abs(getattr(back, name) - getattr(head, name)) <= 2 * math.ulp(largest)


@pytest.mark.parametrize("seed", SEEDS)
def test_scores_and_excess_return_within_one_spacing_of_the_largest(seed):
    label_score, scale = draws(seed)
    head = Head.from_scores(label_score, scale)
    back = Head.from_excess(head.excess, scale)
    unit = np.spacing(np.maximum(np.abs(label_score), np.abs(head.excess)))
    assert np.all(np.abs(back.label_score - label_score) <= ONE_SPACING * unit)


@pytest.mark.parametrize("seed", SEEDS)
def test_ratio_and_tube_are_those_of_the_scores(seed):
    label_score, scale = draws(seed)
    scale = np.abs(scale)
    head = Head.from_scores(label_score, scale)
    assert np.array_equal(head.ratio, label_score / scale)
    exact = [
        mpmath.mpf(float(d)) - mpmath.log(mpmath.mpf(float(m)))
        for d, m in zip(head.excess, scale, strict=True)
    ]
    terms = np.maximum(np.abs(head.excess), np.abs(np.log(scale)))
    error = [abs(float(mpmath.mpf(float(c)) - e)) for c, e in zip(head.tube, exact, strict=True)]
    assert np.all(np.array(error) <= TUBE_SPACINGS * np.spacing(terms))


# Scale zero and below


@pytest.mark.parametrize("scale", [0.0, -0.0, -1e-300, -7.0])
def test_ratio_and_tube_are_nan_where_the_scale_is_not_positive(scale):
    for head in (Head.from_scores(0.5, scale), Head.from_excess(0.5, scale)):
        assert math.isnan(head.ratio) and math.isnan(head.tube)


def test_ratio_and_tube_are_nan_only_there():
    head = Head.from_scores(1.0, [-1.0, 0.0, 2.0])
    assert np.isnan(head.ratio).tolist() == np.isnan(head.tube).tolist() == [True, True, False]


@pytest.mark.parametrize("scale", [0.0, -1.0, [1.0, -1.0]])
@pytest.mark.parametrize("name", ["ratio", "tube"])
def test_a_ratio_or_a_tube_coordinate_needs_a_positive_scale(name, scale):
    with pytest.raises(ValueError, match=f"scale must be positive where a {name} is given"):
        MAKERS[name](1.0, scale)


# Reflection


@pytest.mark.parametrize("name", MAKERS)
def test_the_reflected_head_has_the_opposite_scores_and_reflects_back(name):
    head = MAKERS[name]([1.1, 2.2], [0.7, 1e9])
    mirror = head.reflected
    assert np.array_equal(mirror.label_score, -head.label_score)
    assert np.array_equal(mirror.excess, -head.excess)
    assert np.array_equal(mirror.scale, -head.scale)
    assert mirror.reflected == head


# Arrays: broadcasting, copies


def test_coordinate_and_scale_broadcast():
    head = Head.from_excess([[1.0], [2.0]], [1.0, 10.0, 100.0])
    assert head.shape == np.shape(head.label_score) == np.shape(head.excess) == (2, 3)
    assert np.shape(head.ratio) == np.shape(head.tube) == (2, 3)
    assert head.label_score[1].tolist() == [3.0, 12.0, 102.0]


def test_scalars_stay_scalars():
    head = Head.from_ratio(1.5, 5)
    assert head.shape == ()
    for field in ("label_score", "excess", "scale", "ratio", "tube"):
        assert isinstance(getattr(head, field), float)


@pytest.mark.parametrize("name", MAKERS)
def test_a_head_keeps_its_own_copies(name):
    coordinate, scale = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    head = MAKERS[name](coordinate, scale)
    coordinate[0] = scale[0] = 99.0
    assert getattr(head, name)[0] == 1.0
    assert head.scale[0] == 3.0


@pytest.mark.parametrize("field", ["label_score", "excess", "scale", "ratio", "tube"])
@pytest.mark.parametrize("name", MAKERS)
def test_the_arrays_of_a_head_cannot_be_written(name, field):
    head = MAKERS[name]([1.0, 2.0], 3.0)
    for again in (head, pickle.loads(pickle.dumps(head)), copy.deepcopy(head)):
        with pytest.raises(ValueError, match="read-only"):
            getattr(again, field)[0] = 5.0


def test_the_fields_of_a_head_cannot_be_set():
    head = Head.from_scores(1.0, 2.0)
    with pytest.raises(AttributeError):
        head.scale = 3.0


# Comparison


def test_heads_are_compared_by_value_whatever_they_were_given_in():
    head = Head.from_scores(7.5, 5.0)
    assert head == Head.from_excess(2.5, 5) == Head.from_ratio(1.5, 5)
    assert hash(head) == hash(Head.from_ratio(1.5, 5))
    assert len({head, Head.from_excess(2.5, 5), Head.from_scores(7.5, 5.1)}) == 2


@pytest.mark.parametrize(
    "other",
    [
        Head.from_scores(7.5, 5.0, 2.0),
        Head.from_scores(7.5, 5.000000000000001),
        Head.from_scores([7.5], 5.0),
        Head.from_scores([7.5, 7.5], 5.0),
        7.5,
        None,
    ],
    ids=str,
)
def test_heads_that_differ_in_anything_are_unequal(other):
    assert Head.from_scores(7.5, 5.0) != other


def test_equal_heads_have_equal_hashes_at_either_zero():
    plus, minus = Head.from_scores(0.0, 0.0), Head.from_scores(-0.0, -0.0)
    assert plus == minus and hash(plus) == hash(minus)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("coordinate", [1.25, [1.25, 3.5]], ids=["scalar", "array"])
def test_a_head_survives_pickling_and_copying(name, coordinate):
    head = MAKERS[name](coordinate, 1e9, 0.3)
    for again in (pickle.loads(pickle.dumps(head)), copy.copy(head), copy.deepcopy(head)):
        assert again == head and hash(again) == hash(head)
        assert np.array_equal(getattr(again, name), getattr(head, name))
        assert again.given[0] == name


@pytest.mark.parametrize("name", MAKERS)
def test_the_shown_form_makes_the_same_head(name):
    head = MAKERS[name](0.1, 1e9 / 3, 0.7)
    assert eval(repr(head), {"Head": Head}) == head


# Kinds of numbers


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.longdouble, int, np.int8, np.uint64])
def test_every_kind_of_number_is_computed_with_in_double(kind):
    head = Head.from_scores(kind(7), np.array([5, 6]).astype(kind))
    assert head == Head.from_scores(7.0, [5.0, 6.0])
    assert head.excess.dtype == head.label_score.dtype == head.scale.dtype == np.float64


def test_a_single_precision_number_is_read_as_it_is_and_not_as_its_decimal():
    head = Head.from_scores(np.float32(7.3), np.float32(5.1))
    assert head == Head.from_scores(float(np.float32(7.3)), float(np.float32(5.1)))
    assert head != Head.from_scores(7.3, 5.1)


# Refusals


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, [1.0, math.nan]], ids=str)
@pytest.mark.parametrize("name", MAKERS)
def test_coordinates_that_are_not_finite_are_refused(name, bad):
    with pytest.raises(ValueError, match=f"^{name} must be finite, got") as refusal:
        MAKERS[name](bad, 5.0)
    assert "\n" not in str(refusal.value)
    with pytest.raises(ValueError, match=r"^scale must be finite, got"):
        MAKERS[name](1.0, bad)


@pytest.mark.parametrize(
    "bad", [0.0, -1.0, -0.0, math.nan, math.inf, [1.0], [1.0, 2.0], "wide", None], ids=str
)
@pytest.mark.parametrize("name", MAKERS)
def test_half_widths_that_are_not_one_positive_number_are_refused(name, bad):
    with pytest.raises(ValueError, match=r"^half_width must be"):
        MAKERS[name](1.0, 5.0, bad)


@pytest.mark.parametrize("bad", ["1", None, 1j, True, [[1.0], [1.0, 2.0]], object()], ids=str)
@pytest.mark.parametrize("name", MAKERS)
def test_what_is_no_real_number_is_refused(name, bad):
    with pytest.raises(ValueError, match=f"^{name} must be a real number or an array of them"):
        MAKERS[name](bad, 5.0)


@pytest.mark.parametrize("name", MAKERS)
def test_shapes_that_do_not_broadcast_are_refused(name):
    message = rf"^{name} and scale must broadcast, got shapes \(2,\) and \(3,\)"
    with pytest.raises(ValueError, match=message):
        MAKERS[name]([1.0, 2.0], [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("name", "coordinate", "scale", "half_width"),
    [
        ("label_score", -1e308, 1e308, 1.0),
        ("label_score", 0.0, 1e300, 1e50),
        ("excess", 1e308, 1e308, 1.0),
        ("ratio", 1e200, 1e200, 1.0),
        ("ratio", 1.0, 1e300, 1e50),
    ],
)
def test_coordinates_whose_partners_overflow_are_refused(name, coordinate, scale, half_width):
    with pytest.raises(ValueError, match="label score and excess must be finite"):
        MAKERS[name](coordinate, scale, half_width)


def test_a_long_double_beyond_the_doubles_is_refused():
    with np.errstate(over="ignore"):
        beyond = np.longdouble("1e4000")
    with pytest.raises(ValueError, match="label_score must be finite"):
        Head.from_scores(beyond, 1.0)
