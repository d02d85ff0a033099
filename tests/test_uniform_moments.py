"""Closed-form averages over one example, and moments integrated over panels, at any scale."""

import numpy as np
import pytest

from popdyn.design import Design
from popdyn.legendre import legendre_rule
from popdyn.moments import unit_moments
from popdyn.uniform_moments import (
    example_averages,
    label_rows,
    narrow_rule,
    unit_uniform_moments,
)
from popdyn.weight_transform import facing_up

SIZES = 2.0 ** np.arange(3, 17)

# --- one example ----------------------------------------------------------------------------------

GROWTH_TOLERANCE = 5e-14  # relative, while all examples are light; measured 2e-14 at t = -90
PHI_TOLERANCE = 5e-15  # measured 7e-16
AVERAGE_TOLERANCE = 2e-14  # of the largest; measured 4e-15
PLACES, WEIGHTS = (np.asarray(column, dtype=np.longdouble) for column in legendre_rule(40))
STEPS = np.array(
    [-170, -150, -130, -110, -90, -60, -40, -20, -10, -5, -2, 0, 1, 2, 3, 4, 5], dtype=np.longdouble
)


def averages(y, lam, mu, s, r):
    """`phi`, `1 - phi`, and averages of `d u w e^(-u w)`, its absolute value, and its square."""
    found = np.zeros(5, dtype=np.longdouble)
    for low, high, base in ((-s, 0.0, 0.0), (0.0, r, -2 * lam)):
        cuts = np.unique(np.clip([low, *((STEPS - y - base) / mu), high], low, high))
        widths = np.diff(cuts)[:, None]
        gap = cuts[:-1, None] + widths * PLACES / 2
        tau = np.exp(np.minimum(y + base + mu * gap, 9))
        share, first = widths * WEIGHTS / 4, gap * tau * np.exp(-tau)
        columns = np.exp(-tau), -np.expm1(-tau), first, abs(first), first * gap * tau
        found += [np.sum(share * column) for column in columns]
    return found


@pytest.mark.parametrize(
    ("lam", "mu", "s"),
    [
        (1.0, 0.7, 1.25),  # nodes
        (7.5, 2.2, 1.3),  # closed forms for the positives, nodes for the negatives
        (3.0, 30.0, 1.25),  # negatives weigh more
        (1010.0, 1000.0, 0.01),
        (31.0, 30.0, 0.0),
    ],
)
def test_averages_over_an_example_are_the_integrals(lam, mu, s):
    up = facing_up(lam, lam - mu, mu, s, 2 - s, 1e6)
    labels, nodes = label_rows(up), narrow_rule()
    found, exact, heaviest = [], [], []
    for log_weight in {*labels[:, 0], *labels[:, 1]}:
        for t in (-90.0, -30.0, -5.0, -0.5, 1.0, 3.0, 3.69, 3.71, 5.0):  # of this end
            y = float(np.round(t - log_weight))
            step = t - log_weight - y
            found.append(example_averages(y, step, mu, labels, nodes))
            exact.append(averages(np.longdouble(y) + step, lam, mu, s, 2 - s))
            heaviest.append(y + step + labels[:, 0].max())
    phi, log_phi, first, second = np.array(found).T
    exact_phi, missing, exact_first, unsigned, exact_second = np.array(exact).T
    light = np.array(heaviest) < 0
    assert light.sum() >= 4
    for one, other in ((-np.expm1(log_phi), missing), (second, exact_second)):
        assert np.abs(one / other - 1)[light].max() < GROWTH_TOLERANCE
    assert np.abs((first - exact_first) / unsigned)[light].max() < GROWTH_TOLERANCE
    assert np.abs(phi - exact_phi).max() < PHI_TOLERANCE
    assert np.abs(first - exact_first).max() < AVERAGE_TOLERANCE * unsigned.max()
    assert np.abs(second - exact_second).max() < AVERAGE_TOLERANCE * exact_second.max()


# --- contexts -------------------------------------------------------------------------------------


def draw(rng, largest_scale):
    """A head anywhere on the plane, often where the labels weigh alike, and a task."""
    mu = 10 ** rng.uniform(-2, np.log10(largest_scale)) * rng.choice([-1, 1])
    excess = rng.choice([rng.normal() * 3, np.log(abs(mu)), mu * rng.uniform(-3, 2), -mu])
    near_an_end = 10 ** rng.uniform(-12, 0)
    s = rng.choice([rng.uniform(0, 2), near_an_end, 2 - near_an_end, 0.0, 2.0, 1.0])
    return mu + excess, excess, mu, s, 2 - s


def departure(found, expected):
    bias = np.abs(found[0] - expected[0]) / np.sqrt(expected[1])
    return max(bias.max(), np.abs(found[1] / expected[1] - 1).max())


PANEL_TOLERANCE = 5e-13  # measured 2e-13 in 400 draws, at scales of thousands, of the grid
GRID = Design(feature_density=lambda x: np.full(x.shape, 0.5))


@pytest.mark.parametrize("seed", range(30))
def test_moments_agree_with_tables_and_the_trapezoid_rule(seed):
    rng = np.random.default_rng(seed)
    cell = draw(rng, largest_scale=1e4)
    sizes = np.unique(np.round(10 ** rng.uniform(0, rng.choice([6, 30]), size=5)))
    found = unit_uniform_moments(*cell, sizes)[0]
    assert departure(found, unit_moments(*cell, sizes, GRID)) < PANEL_TOLERANCE


SINGLE_TOLERANCE = 2e-14  # measured 3e-15 in 3000 draws


@pytest.mark.parametrize("seed", range(50))
def test_one_example_is_its_own_average_for_every_head(seed):
    cell = draw(np.random.default_rng(seed), largest_scale=1e5)
    alpha = 0.5 * (cell[3] - cell[4])
    found = unit_uniform_moments(*cell, np.array([1.0]))[0]
    expected = np.array([[-alpha], [alpha**2 + 1 / 3]])
    assert departure(found, expected) < SINGLE_TOLERANCE


COMPANY_TOLERANCE = 5e-14  # measured 1e-14 in 1000 draws


@pytest.mark.parametrize("seed", range(50))
def test_a_size_has_the_same_moments_alone_and_in_company(seed):
    """The panels are others."""
    rng = np.random.default_rng(seed)
    cell = draw(rng, largest_scale=1e5)
    together = unit_uniform_moments(*cell, np.array([1.0, *SIZES, 1e7]))[0]
    k = rng.integers(SIZES.size)
    alone = unit_uniform_moments(*cell, SIZES[[k]])[0]
    assert departure(alone, together[:, [k + 1]]) < COMPANY_TOLERANCE


MOST_PANELS = 110  # measured 102 in 1000 draws; at a scale of 1e4 a grid takes 80,000 points


@pytest.mark.parametrize("mu", [0.01, 1.0, 30.0, 1e3, 1e4, 1e5])
@pytest.mark.parametrize("ratio", [-2.0, -0.3, 0.5, 1.0, 1.0001, 3.0])
@pytest.mark.parametrize("s", [1e-3, 0.5, 1.0])
def test_all_sizes_take_some_panels_at_any_scale(mu, ratio, s):
    _, n_panels = unit_uniform_moments(ratio * mu, (ratio - 1) * mu, mu, s, 2 - s, SIZES)
    assert n_panels <= MOST_PANELS
