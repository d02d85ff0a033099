"""Patches that stand in for the gradient of a risk: how well, where, and where not."""

import numpy as np
import pytest
from toy_risks import QuadraticRisk, SpoiltRisk

from popdyn import ClosedFormRisk, CorpusRisk, Design, Head, gradient_descent, sample_corpus
from popdyn.dynamics.surrogate import NODES, Surrogate, patch_gradient

CLOSE = 1e-12  # of the largest gradient on the patch; measured 5e-15

HEADS = {
    "on the tube": (ClosedFormRisk(), 3.0, 10.0),
    "high on the tube": (ClosedFormRisk(), 7.6, 1000.0),
    "reflected": (ClosedFormRisk(), -3.0, -10.0),
    "next to the origin": (ClosedFormRisk(), 2e-6, -1e-6),
    "corpus": (CorpusRisk(sample_corpus(Design(), 64, 64, 0)), 2.0, 12.0),
    "wide": (ClosedFormRisk(2.0), 2.0, 5.0),
}


def held(surrogate, excess, scale, n_dropped=0):
    found = patch_gradient(surrogate.patches, n_dropped, excess, scale, np.empty(30))
    return np.array(found[:2])


@pytest.mark.parametrize(("risk", "excess", "scale"), HEADS.values(), ids=HEADS)
def test_a_patch_holds_the_gradient_ahead_of_the_point(risk, excess, scale):
    surrogate = Surrogate(risk)
    assert surrogate.cover(excess, scale)
    assert np.isfinite(held(surrogate, excess, scale)).all()
    center, per_log, middle, per_excess, slant, sign, noise = surrogate.patches[0][0]
    for u, v in np.random.default_rng(0).uniform(-1.0, 1.0, (200, 2)):
        there = middle + slant * u / per_log + v / per_excess, sign * np.exp(center + u / per_log)
        g_lam, g_mu = risk.gradient(Head.from_excess(*there, risk.half_width))
        exact = np.array([g_lam - risk.half_width * g_mu, g_mu])
        assert np.abs(held(surrogate, *there) - exact).max() < CLOSE * (noise / 1e-14)


def test_a_patch_lies_where_the_descent_goes():
    risk = ClosedFormRisk()
    surrogate = Surrogate(risk)
    assert surrogate.cover(5.0, 10.0)
    end = gradient_descent(risk, Head.from_excess(5.0, 10.0), 1.0, 100).stop_head
    assert end.excess < 4.9
    assert np.isfinite(held(surrogate, float(end.excess), float(end.scale))).all()


def test_there_is_no_gradient_beside_the_patches():
    surrogate = Surrogate(ClosedFormRisk())
    assert np.isnan(held(surrogate, 3.0, 10.0)).all()
    assert surrogate.cover(3.0, 10.0)
    for excess, scale in ((3.0, 9.0), (3.0, 16.0), (3.5, 10.0), (3.0, -10.0)):
        assert np.isnan(held(surrogate, excess, scale)).all()


def test_a_quadratic_risk_is_held_to_rounding():
    risk = QuadraticRisk(((1.0, 0.2), (0.2, 0.1)), (2.0, 8.0))
    surrogate = Surrogate(risk)
    assert surrogate.cover(-3.7, 4.0)
    by_score = risk.gradient(Head.from_excess(-3.65, 4.01))
    exact = [by_score[0] - by_score[1], by_score[1]]
    np.testing.assert_allclose(held(surrogate, -3.65, 4.01), exact, rtol=1e-13)


def test_the_cost_of_a_patch_is_counted():
    surrogate = Surrogate(ClosedFormRisk())
    surrogate.cover(3.0, 10.0)
    assert surrogate.n_evaluations == NODES + 1


@pytest.mark.parametrize("noise", [1e-8, np.nan])
def test_no_patch_holds_a_gradient_that_is_not_smooth(noise):
    class Noisy(SpoiltRisk):
        def gradient(self, head):
            gradient = self.clean.gradient(head)
            shake = np.sin(1e17 * np.stack([head.label_score, head.scale], axis=-1))
            return gradient + self.noise * shake

    assert not Surrogate(Noisy(ClosedFormRisk(), noise=noise)).cover(3.0, 10.0)


def test_no_patch_lies_across_a_scale_of_zero():
    assert not Surrogate(ClosedFormRisk()).cover(1.0, 0.0)
