"""What a design takes and what it refuses."""

import dataclasses
import pickle

import numpy as np
import pytest

import popdyn
from popdyn import Design


def tilted(x):
    return (1 + 0.3 * x) / 2


def wavy(x):
    return (1 + 0.3 * np.cos(np.pi * x)) / 2


def test_a_design_is_uniform_unless_said_otherwise():
    assert Design(2.0).is_uniform
    assert not Design(feature_density=wavy).is_uniform
    assert not Design(threshold_density=wavy).is_uniform


@pytest.mark.parametrize("density", [tilted, wavy], ids=["tilted", "wavy"])
def test_the_mirrored_design_reads_its_densities_from_the_other_end(density):
    x = np.linspace(-1, 1, 7)
    mirrored = Design(feature_density=density, threshold_density=tilted).mirrored
    np.testing.assert_array_equal(mirrored.feature_density(x), density(-x))
    np.testing.assert_array_equal(mirrored.threshold_density(x), tilted(-x))


def test_mirroring_twice_gives_the_densities_back():
    design = Design(feature_density=tilted)
    assert design.mirrored.mirrored.feature_density is tilted


@pytest.mark.parametrize("half_width", [1e-50, 0.5, 1e50])
def test_a_density_is_one_on_its_own_interval(half_width):
    Design(half_width, feature_density=lambda x: (1 + x / half_width) / (2 * half_width))


@pytest.mark.parametrize("half_width", [0, -1.0, np.nan, np.inf, "wide", None, [1.0, 2.0]])
def test_a_half_width_that_is_none_is_refused(half_width):
    with pytest.raises(ValueError, match="half_width must be one positive finite number, got"):
        Design(half_width)


@pytest.mark.parametrize("name", ["feature_density", "threshold_density"])
@pytest.mark.parametrize(
    ("density", "message"),
    [
        (lambda x: x, r"not negative on \[-1.0, 1.0\], got -1.0 at -1.0"),
        (lambda x: np.where(x > 0.99, np.nan, 0.5), "must be finite .* got nan at 0.99"),
        (lambda x: np.full_like(x, np.inf), "must be finite .* got inf at -1.0"),
        (lambda x: np.ones_like(x), "must integrate to 1 within 1e-08, got 2.0"),
        (lambda x: 0.5 + 1e-7 + 0 * x, "must integrate to 1 within 1e-08, got 1.0000002"),
        (lambda x: 0.5, r"must return real values in the shape .* got float64 of shape \(\)"),
        (lambda x: x[:-1], "must return real values in the shape"),
        (lambda x: 0.5 + 0j * x, "got complex128"),
        (0.5, "must be a function of an array of points, got 0.5"),
    ],
)
def test_a_density_that_is_none_is_refused_in_one_line(name, density, message):
    with pytest.raises(
        ValueError, match=f"^{name} {'' if message[0] == 'm' else '.*'}{message}"
    ) as e:
        Design(**{name: density})
    assert "\n" not in str(e.value)


def test_a_design_of_functions_pickles_with_its_mirror_image():
    design = Design(2.0, threshold_density=lambda_free_density)
    copy = pickle.loads(pickle.dumps(design.mirrored))
    assert copy.mirrored == design


def lambda_free_density(x):
    return (2 + x) / 8


# --- named densities ------------------------------------------------------------------------------


@pytest.mark.parametrize("half_width", [1e-50, 0.5, 1.0, 1e50])
@pytest.mark.parametrize(("name", "make"), [("tilted", popdyn.tilted), ("wavy", popdyn.wavy)])
def test_a_named_density_is_its_function_on_any_interval(name, make, half_width):
    design = Design(half_width, feature_density=name, threshold_density=name)
    assert design.feature_density == design.threshold_density == make(0.3, half_width)
    assert Design(half_width, feature_density=make(-1.0, half_width)) != design
    x = np.linspace(-1, 1, 7)
    formula = {"tilted": tilted, "wavy": wavy}[name](x)
    found = half_width * design.feature_density(half_width * x)
    np.testing.assert_allclose(found, formula, rtol=1e-15)


def test_the_uniform_density_has_a_name():
    assert Design(feature_density="uniform") == Design()
    assert Design(feature_density="uniform").is_uniform


def test_a_design_of_names_pickles():
    design = Design(2.0, feature_density="wavy", threshold_density="tilted")
    assert pickle.loads(pickle.dumps(design.mirrored)).mirrored == design
    assert dataclasses.replace(design, threshold_density=None) == Design(2.0, "wavy")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Design(feature_density="beta"), "feature_density must be .* got 'beta'"),
        (lambda: Design(threshold_density=""), "threshold_density must be 'uniform', .* got ''"),
        (lambda: popdyn.tilted(1.1), "slope must be a number from -1 to 1, got 1.1"),
        (lambda: popdyn.wavy("high"), "amplitude must be a number from -1 to 1, got 'high'"),
        (lambda: popdyn.wavy(np.nan), "amplitude must be a number from -1 to 1, got nan"),
        (lambda: popdyn.tilted(0.3, 0.0), "half_width must be one positive finite number, got 0.0"),
    ],
)
def test_an_unknown_name_or_a_strange_share_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
