"""The Laplace transform of one example's weight, against exponential integrals."""

import mpmath
import numpy as np
import pytest

from popdyn.design import Design
from popdyn.noise import LabelFlips
from popdyn.weight_transform import (
    COARSE,
    FINE,
    G1,
    G2,
    example_panels,
    transform,
)

CONTEXT = mpmath.MPContext()
CONTEXT.dps = 30

VALUES = np.array([(G1, 0), (G2, 0)])
# The panels' rule is off where exp(-exp t) falls fastest. The moments of contexts are sums over the
# grid in which this averages out: they are good to 1e-14 and better.
PHI_TOLERANCE = 1e-14  # measured 5e-15
LOG_PHI_TOLERANCE = 5e-14  # relative; measured 2e-14
MOMENT_TOLERANCES = 1e-12, 2e-11  # of the largest, for G1 and G2; measured 4e-13 and 9e-12
LEFT_OUT = 1e-22  # exp(-38) / 1e6 is 3e-23: what the weights below the table add up to


def group(y, low, high):
    """Integral of `exp(-exp(y + v))` over `v` in `[low, high]`, and of its complement."""
    first, last = CONTEXT.exp(y + low), CONTEXT.exp(y + high)
    phi = CONTEXT.e1(first) - CONTEXT.e1(last)
    return phi, high - low - phi


@pytest.mark.parametrize("steps", [COARSE, FINE])
@pytest.mark.parametrize(("lam", "mu"), [(7.5, 5.0), (20.5, 20.0), (3.0, 30.0), (-2.0, 0.7)])
def test_phi_is_a_difference_of_exponential_integrals(lam, mu, steps):
    s, r = 1.25, 0.75
    law = example_panels(lam, lam - mu, mu, s, r, 1e6, Design())
    example = transform(law, VALUES, steps=steps)
    for k in range(0, example.y.size, 17):
        y = CONTEXT.mpf(float(example.y[k]))
        positive = group(y, -mu * s, 0)
        negative = group(y, -2 * lam, mu * r - 2 * lam)
        phi, complement = ((positive[i] + negative[i]) / (2 * mu) for i in (0, 1))
        assert abs(example.phi[k] - phi) < PHI_TOLERANCE
        if complement < 0.5:
            missing = abs(example.log_phi[k] - CONTEXT.log1p(-complement))
            assert missing < LOG_PHI_TOLERANCE * complement + LEFT_OUT
        elif phi > 1e-16:
            assert abs(example.log_phi[k] - CONTEXT.log(phi)) < PHI_TOLERANCE / phi


@pytest.mark.parametrize("per_scale", [0.0, 1.0])
def test_moments_are_differences_of_exponentials(per_scale):
    """`int tau exp(-tau) dt = -exp(-tau)`, `int tau^2 exp(-tau) dt = -(1 + tau) exp(-tau)`."""
    lam, mu, s, r = 6.0, 5.0, 1.25, 0.75
    example = transform(
        example_panels(lam, lam - mu, mu, s, r, 100.0, Design()), VALUES, per_scale, -1.0
    )
    for label, low, high in ((0, -mu * s, 0.0), (1, -2 * lam, mu * r - 2 * lam)):
        first, last = np.exp(example.y + low), np.exp(example.y + high)
        firsts = -np.exp(-first) * np.expm1(first - last) / (2 * mu)
        seconds = ((1 + first) * np.exp(-first) - (1 + last) * np.exp(-last)) / (2 * mu)
        for k, exact in enumerate((firsts, seconds)):
            worst = np.abs(example.moments[label, k] - exact).max()
            assert worst < MOMENT_TOLERANCES[k] * exact.max()


@pytest.mark.parametrize("mu", [0.0, 1e-300, 0.3, 8.0, 8.001, 500.0, -40.0])
@pytest.mark.parametrize("s", [0.0, 1e-12, 0.6, 2.0])
def test_the_masses_of_an_example_sum_to_one(mu, s):
    flips = LabelFlips(lambda gap: np.where(np.abs(gap) < 0.1, 0.3, 0.01), (-0.1, 0.1))
    for noise in (None, flips):
        for design in (
            Design(noise=noise),
            Design(3.0, feature_density=lambda x: (1 + 0.3 * x) / 6, noise=noise),
        ):
            law = example_panels(mu + 1.0, 1.0, mu, s, 2.0 - s, 10.0, design)
            assert law.masses.sum() == pytest.approx(1.0, rel=1e-14, abs=0)
            assert law.counts.sum() == law.masses.shape[0]
            assert np.abs(law.gaps).max() <= 2.0


@pytest.mark.parametrize("lam", [-1e300, 1e300])
def test_the_grid_stays_short_for_groups_far_apart(lam):
    example = transform(example_panels(lam, lam - 5.0, 5.0, 1.25, 0.75, 100.0, Design()), VALUES)
    assert example.y.size < 1200
    assert np.isfinite(example.moments).all()
