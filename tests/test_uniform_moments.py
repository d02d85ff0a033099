"""Closed-form averages over one example, and moments integrated over panels, at any scale."""

from itertools import pairwise

import numpy as np
import pytest

from popdyn.context_derivatives import unit_gradient, unit_hessian
from popdyn.design import Design
from popdyn.legendre import legendre_rule
from popdyn.moments import unit_moments
from popdyn.noise import LabelFlips, localized, massart
from popdyn.uniform_moments import (
    example_averages,
    narrow_rule,
    uniform_segments,
    uniform_transform,
)
from popdyn.weight_transform import G1, G2

SIZES = 2.0 ** np.arange(3, 17)


def steps(breaks, levels):
    return LabelFlips(lambda d: np.array(levels)[np.searchsorted(breaks, d)], breaks, levels)


LOPSIDED = steps((-0.3, 0.0, 0.01), (0.0, 1.0, 0.25, 0.6))
LAWS = {
    "clean": None,
    "massart": massart(0.01),
    "localized": localized(0.25, 1 / 32),
    "lopsided": LOPSIDED,
}

# --- one example ----------------------------------------------------------------------------------

GROWTH_TOLERANCE = 5e-14  # relative, while all examples are light; measured 2e-14 at t = -90
PHI_TOLERANCE = 5e-15  # measured 7e-16
AVERAGE_TOLERANCE = 2e-14  # of the largest; measured 4e-15
PLACES, WEIGHTS = (np.asarray(column, dtype=np.longdouble) for column in legendre_rule(40))
STEPS = np.array(
    [-170, -150, -130, -110, -90, -60, -40, -20, -10, -5, -2, 0, 1, 2, 3, 4, 5], dtype=np.longdouble
)


def averages(y, lam, mu, s, r, flips):
    """`phi`, `1 - phi`, and averages of `d u w e^(-u w)`, its absolute value, and its square."""
    found = np.zeros(5, dtype=np.longdouble)
    breaks = () if flips is None else flips.breaks
    edges = np.unique([-s, 0.0, r, *(point for point in breaks if -s < point < r)])
    for low, high in pairwise(edges):
        middle = np.array([(low + high) / 2])
        flipped = 0.0 if flips is None else flips.probability(middle)[0]
        negative = flipped if high <= 0 else 1 - flipped
        for probability, base in ((1 - negative, 0.0), (negative, -2 * lam)):
            cuts = np.unique(np.clip([low, *((STEPS - y - base) / mu), high], low, high))
            widths = np.diff(cuts)[:, None]
            gap = cuts[:-1, None] + widths * PLACES / 2
            tau = np.exp(np.minimum(y + base + mu * gap, 9))
            share, first = probability * widths * WEIGHTS / 4, gap * tau * np.exp(-tau)
            columns = np.exp(-tau), -np.expm1(-tau), first, abs(first), first * gap * tau
            found += [np.sum(share * column) for column in columns]
    return found


@pytest.mark.parametrize("flips", LAWS.values(), ids=LAWS)
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
def test_averages_over_an_example_are_the_integrals(lam, mu, s, flips):
    law = uniform_segments((lam, lam - mu, mu, s, 2 - s), 1.0, 1e6, Design(noise=flips))
    work = np.full((3, 7), 0.5)
    if mu >= 1:
        work[2] *= mu ** -np.array([1.0, 2, 3, 1, 2, 3, 4])
    moments = np.empty((2, 7))
    found, exact, heaviest = [], [], []
    for log_weight in {*law.rows[:, 2], *law.rows[:, 3]}:
        for t in (-90.0, -30.0, -5.0, -0.5, 1.0, 3.0, 3.69, 3.89, 3.91, 5.0):  # of this end
            y = float(np.round(t - log_weight))
            step = t - log_weight - y
            phi = example_averages(moments, y, step, mu, law.rows, narrow_rule(), work, (0.0, 0.0))
            found.append((*phi, moments[:, 1].sum(), moments[:, 5].sum()))
            exact.append(averages(np.longdouble(y) + step, lam, mu, s, 2 - s, flips))
            heaviest.append(y + step + law.rows[:, 2].max())
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


def draw_flips(rng, scale):
    """None, one level, two breaks or three, of any size."""
    probability = rng.choice([rng.uniform(), 10 ** rng.uniform(-9, 0), 0.5, 1.0])
    width = rng.choice([rng.uniform(0, 2), 10 ** rng.uniform(-7, 0), 1 / abs(scale)])
    breaks = tuple(np.unique(rng.uniform(-1, 1, 3) * width).tolist())
    levels = tuple(rng.choice([0.0, 1.0, probability, rng.uniform()], 4).tolist())
    laws = None, massart(probability), localized(probability, width), steps(breaks, levels)
    return laws[rng.integers(len(laws))]


def tables(flips):
    """The design of the same flips for which tables are taken, as they do not tell their levels."""
    law = massart(0.0) if flips is None else flips
    return Design(noise=LabelFlips(law.probability, law.breaks))


def departure(found, expected):
    bias = np.abs(found[0] - expected[0]) / np.sqrt(expected[1])
    return max(bias.max(), np.abs(found[1] / expected[1] - 1).max())


PANEL_TOLERANCE = 5e-13  # measured 2e-13 in 3000 draws, of the tables


@pytest.mark.parametrize("seed", range(40))
def test_moments_agree_with_tables_and_the_trapezoid_rule(seed):
    rng = np.random.default_rng(seed)
    cell = draw(rng, largest_scale=3e3)
    flips = draw_flips(rng, cell[2])
    sizes = np.unique(np.round(10 ** rng.uniform(0, 7, size=5)))
    found = unit_moments(*cell, sizes, Design(noise=flips))
    assert departure(found, unit_moments(*cell, sizes, tables(flips))) < PANEL_TOLERANCE


SINGLE_TOLERANCE = 2e-14  # measured 6e-15 in 7000 draws


@pytest.mark.parametrize("seed", range(50))
def test_one_example_is_its_own_average_for_every_head(seed):
    rng = np.random.default_rng(seed)
    cell = draw(rng, largest_scale=1e5)
    alpha = 0.5 * (cell[3] - cell[4])
    found = unit_moments(*cell, np.array([1.0]), Design(noise=draw_flips(rng, cell[2])))
    expected = np.array([[-alpha], [alpha**2 + 1 / 3]])
    assert departure(found, expected) < SINGLE_TOLERANCE


COMPANY_TOLERANCE = 5e-14  # measured 2e-14 in 7000 draws


@pytest.mark.parametrize("seed", range(50))
def test_a_size_has_the_same_moments_alone_and_in_company(seed):
    """The panels are others."""
    rng = np.random.default_rng(seed)
    cell = draw(rng, largest_scale=1e5)
    design = Design(noise=draw_flips(rng, cell[2]))
    together = unit_moments(*cell, np.array([1.0, *SIZES, 1e7]), design)
    k = rng.integers(SIZES.size)
    alone = unit_moments(*cell, SIZES[[k]], design)
    assert departure(alone, together[:, [k + 1]]) < COMPANY_TOLERANCE


MOST_PANELS = {
    "clean": 112,
    "massart": 162,
    "localized": 208,
    "lopsided": 250,
}  # measured 95 % of it


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("mu", [0.01, 1.0, 30.0, 1e3, 1e4, 1e5])
@pytest.mark.parametrize("ratio", [-2.0, -0.3, 0.5, 1.0, 1.0001, 3.0])
def test_all_sizes_take_some_panels_at_any_scale(name, mu, ratio):
    """At a scale of 1e4 a grid takes 80,000 points."""
    for s in (1e-3, 0.5, 1.0):
        task = ratio * mu, (ratio - 1) * mu, mu, s, 2 - s
        law = uniform_segments(task, SIZES.min(), SIZES.max(), Design(noise=LAWS[name]))
        points = uniform_transform(law, np.array([(G1, 1), (G2, 2)])).y.size
        assert points <= 16 * MOST_PANELS[name]


# --- derivatives ----------------------------------------------------------------------------------

# In units of the largest component, or of the error itself where that is larger.
GRADIENT_TOLERANCE = 1e-12  # measured 5e-13 in 4000 draws
HESSIAN_TOLERANCE = 1e-12  # measured 5e-13


@pytest.mark.parametrize("seed", range(40))
def test_derivatives_agree_with_tables_and_the_trapezoid_rule(seed):
    rng = np.random.default_rng(seed)
    cell = draw(rng, largest_scale=300)
    flips = draw_flips(rng, cell[2])
    n = float(np.round(10 ** rng.uniform(0.4, 4)))
    found, expected = (unit_gradient(*cell, n, d) for d in (Design(noise=flips), tables(flips)))
    unit = np.abs(expected).max()
    assert np.abs(found - expected).max() < GRADIENT_TOLERANCE * unit
    found, second = (unit_hessian(*cell, n, d) for d in (Design(noise=flips), tables(flips)))
    unit = max(np.abs(second).max(), expected[0])
    assert np.abs(found - second).max() < HESSIAN_TOLERANCE * unit
