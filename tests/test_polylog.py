"""Li2 and Li3 by their identities, then by values."""

from math import log, pi, sqrt

import mpmath
import numpy as np
import pytest

from popdyn.polylog import ZETA3, bernoulli, li2, li3, trilogarithm_series

# Relative; measured at most 3.7e-16 over 1500 points, the two spacings of a double at worst.
ACCURACY = 6e-16
# Of identities between a few values of order one to ten; measured at most 7e-16.
IDENTITY = 2e-15

RANDOM = np.random.default_rng(20)
ARGUMENTS = {
    "across the unit interval": RANDOM.uniform(-1, 1, 60),
    "near one": 1 - 10 ** RANDOM.uniform(-16, -1, 30),
    "near the border at one half": 0.5
    + RANDOM.choice([-1, 1], 20) * 10 ** RANDOM.uniform(-16, -2, 20),
    "near the border at minus one": -1
    + RANDOM.choice([-1, 1], 20) * 10 ** RANDOM.uniform(-16, -2, 20),
    "small": RANDOM.choice([-1, 1], 40) * 10 ** RANDOM.uniform(-307, -2, 40),
    "large negative": -(10 ** RANDOM.uniform(0, 307, 40)),
}


def exact(order, z):
    ctx = mpmath.mp.clone()
    ctx.dps = 30
    return ctx.mpf(ctx.polylog(order, ctx.mpf(float(z))).real)


@pytest.mark.parametrize("order, function", [(2, li2), (3, li3)])
@pytest.mark.parametrize("region", ARGUMENTS)
def test_values_agree_with_high_precision(order, function, region):
    for z in ARGUMENTS[region]:
        true = exact(order, z)
        assert abs((function(z) - true) / true) < ACCURACY, z


@pytest.mark.parametrize(
    "z, value",
    [
        (1.0, pi**2 / 6),
        (-1.0, -(pi**2) / 12),
        (0.5, pi**2 / 12 - log(2) ** 2 / 2),
        (sqrt(3) - 2, -0.25186201860906521),
        (-2 - sqrt(3), -2.2602610993754793),
    ],
)
def test_dilogarithm_has_its_known_values(z, value):
    assert li2(z) == pytest.approx(value, rel=IDENTITY, abs=0)


@pytest.mark.parametrize(
    "z, value",
    [
        (1.0, 1.2020569031595942854),
        (-1.0, -0.75 * ZETA3),
        (0.5, 7 / 8 * ZETA3 - pi**2 / 12 * log(2) + log(2) ** 3 / 6),
    ],
)
def test_trilogarithm_has_its_known_values(z, value):
    assert li3(z) == pytest.approx(value, rel=IDENTITY, abs=0)


@pytest.mark.parametrize("function", [li2, li3])
def test_zero_goes_to_zero_and_arguments_beyond_one_to_nan(function):
    assert function(0.0) == 0.0
    assert np.isnan(function(np.nextafter(1.0, 2.0)))
    assert np.isnan(function(np.nan))


@pytest.mark.parametrize("function", [li2, li3])
def test_smallest_arguments_are_their_own_value(function):
    assert function(1e-300) == 1e-300
    assert function(-5e-324) == -5e-324


@pytest.mark.parametrize("z", [0.01, 0.3, 0.49, 0.51, 0.7, 0.999])
def test_dilogarithm_reflects_about_one_half(z):
    assert li2(z) + li2(1 - z) == pytest.approx(
        pi**2 / 6 - log(z) * log(1 - z), rel=IDENTITY, abs=0
    )


@pytest.mark.parametrize("z", [-0.2, -0.9, -1.1, -30.0, -1e10])
def test_polylogarithms_invert(z):
    x = log(-z)
    assert li2(z) + li2(1 / z) == pytest.approx(-(pi**2) / 6 - x**2 / 2, rel=IDENTITY, abs=0)
    assert li3(z) - li3(1 / z) == pytest.approx(-(pi**2) / 6 * x - x**3 / 6, rel=IDENTITY, abs=0)


@pytest.mark.parametrize("order, function", [(2, li2), (3, li3)])
@pytest.mark.parametrize("z", [1e-8, 0.2, 0.6, 0.8, 0.99])
def test_polylogarithms_duplicate(order, function, z):
    difference = function(z) + function(-z) - 2.0 ** (1 - order) * function(z * z)
    assert abs(difference) < IDENTITY * function(z)


def test_trilogarithm_series_is_the_one_of_the_definition():
    w = 1e-2
    z = -np.expm1(-w)
    series = w * sum(float(a) * w**n for n, a in enumerate(trilogarithm_series(8)))
    assert series == pytest.approx(sum(z**k / k**3 for k in range(1, 12)), rel=IDENTITY, abs=0)


def test_bernoulli_numbers_are_those_of_mpmath():
    assert [float(b) for b in bernoulli(13)] == pytest.approx(
        [float(mpmath.bernoulli(n)) for n in range(13)], rel=1e-15, abs=0
    )
