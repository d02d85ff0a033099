"""The exponential law against its closed forms in high precision."""

import mpmath
import pytest

from popdyn.exponentials import changes_from_uniform, exponential_law, mass

CTX = mpmath.mp.clone()
CTX.dps = 60

# Both sides of the borders 0.5 and 2.5 between the short series, the long one and the closed form.
RATES = [1e-300, 1e-8, 0.01, 0.3, 0.4999, 0.5001, 1.7, 2.4999, 2.5001, 4.0, 30.0, 700.0, 1e9]


def exact_law(z):
    z = CTX.mpf(z)
    tail, rest = CTX.exp(-z), -CTX.expm1(-z)
    return (
        rest / z,
        1 / z - tail / rest,
        1 / z**2 - tail / rest**2,
        tail * (1 + tail) / rest**3 - 2 / z**3,
    )


@pytest.mark.parametrize("z", RATES[1:])
def test_mass_mean_variance_and_slope_are_those_of_the_law(z):
    tolerances = (1e-15, 1e-15, 2e-15, 1e-14)  # measured 2.3e-16, 2.1e-16, 6.2e-16, 5.1e-15
    for got, exact, tolerance in zip(exponential_law(z), exact_law(z), tolerances, strict=True):
        assert abs(got / exact - 1) < tolerance


@pytest.mark.parametrize("z", [0.0, 1e-300])
def test_the_law_of_a_vanishing_rate_is_uniform(z):
    assert exponential_law(z)[:3] == (1.0, 0.5, pytest.approx(1 / 12, rel=1e-15, abs=0))
    assert mass(z) == 1.0


@pytest.mark.parametrize("z", [1e-8, 0.01, 0.3, 0.5, 2.4])
def test_changes_from_the_uniform_law_keep_their_relative_precision(z):
    exact_mass, mean, variance, _ = exact_law(z)
    exact = (
        mean - CTX.mpf(1) / 2,
        variance - CTX.mpf(1) / 12,
        CTX.log(exact_mass) + CTX.mpf(z) / 2,
    )
    for got, wanted in zip(changes_from_uniform(z), exact, strict=True):
        assert abs(got / wanted - 1) < 2e-15  # measured 4.7e-16


def test_changes_are_linear_and_quadratic_where_all_else_underflows():
    mean, variance, log_mass = changes_from_uniform(1e-300)
    assert mean == pytest.approx(-1e-300 / 12, rel=1e-15, abs=0)
    assert variance == log_mass == 0.0
