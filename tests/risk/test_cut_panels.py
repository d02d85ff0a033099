"""Risks of flipped labels, infinite and finite contexts, and the thresholds they are taken at."""

import mpmath
import numpy as np
import pytest

from popdyn import (
    ArbitraryPrecisionRisk,
    CorpusRisk,
    Design,
    FiniteContextRisk,
    Head,
    InfiniteContextRisk,
    LabelFlips,
    boundary_graded,
    end_graded,
    equal_weights,
    gauss_legendre,
    gradient_flow,
    hitting_time,
    limit_error,
    localized,
    massart,
    sample_corpus,
    tsybakov,
)
from popdyn.risk.cut_panels import FlipGraded, cut_panels

LAWS = {
    "massart": massart(0.05),
    "localized": localized(0.4, 0.125),
    "rare, wide": localized(1e-3, 0.5),
    "tsybakov": tsybakov(1, 0.25),
    "certain": LabelFlips(lambda d: 1.0 * (np.abs(d) < 0.1), (-0.1, 0.1)),
    "above only": LabelFlips(lambda d: np.where((d > 0.1) & (d < 0.3), 0.2, 0.0), (0.1, 0.3)),
    "dying out": LabelFlips(lambda d: 0.4 * np.exp(-np.abs(d) / 0.02)),
}
HEADS = {
    "mild": (1.5, 2.0),
    "tube": (8.0, 6.0),
    "far up": (105.0, 100.0),
    "interior": (2.0, 30.0),
    "wrong label": (-2.0, 5.0),
    "reflected": (1.0, -4.0),
}


def largest(array):
    return np.abs(array).max()


# --- the nodes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scores", [(0.0, 0.0), (1e300, 3.0), (-1e300, 3.0), *HEADS.values()])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_nodes_cover_the_interval(law, scores):
    lam, mu = scores
    head = Head.from_scores(lam, mu / 3.0, half_width=3.0)
    nodes = FlipGraded(law, 20)(head)
    assert nodes.weights.sum() == pytest.approx(1, rel=1e-14, abs=0)
    assert (nodes.lower * nodes.weights).sum() == pytest.approx(3, rel=1e-14, abs=0)
    assert nodes.lower + nodes.upper == pytest.approx(
        np.full(nodes.lower.shape, 6.0), rel=1e-14, abs=0
    )
    assert min(nodes.lower.min(), nodes.upper.min()) > 0
    assert nodes.weights.size < 3000


def test_cuts_that_fall_together_leave_no_panel_between_them():
    plain = cut_panels([(0.0, 2.0), (0.5, 1.5), (2.0, 0.0)], [0.1] * 3, 8)
    double = cut_panels([(0.0, 2.0), (0.5, 1.5), (0.5, 1.5), (2.0, 0.0)], [0.1] * 4, 8)
    assert np.array_equal(plain, double)


# --- infinite contexts ----------------------------------------------------------------------------

# Relative, derivatives in units of their largest component.
MASSART = {"value": 5e-15, "gradient": 2e-14, "hessian": 2e-13}  # measured 2e-15, 1e-14, 9e-14


def capped(lam, p):
    """`atanh((1 - 2 p) tanh lam)` and its two derivatives, in 40 digits."""
    ctx = mpmath.mp.clone()
    ctx.dps = 40
    slope, t = 1 - 2 * ctx.mpf(p), ctx.tanh(ctx.mpf(lam))
    first = slope * (1 - t * t) / (1 - (slope * t) ** 2)
    second = -2 * t * first + 2 * slope * slope * t * (1 - t * t) * first / (1 - (slope * t) ** 2)
    return float(ctx.atanh(slope * t)), float(first), float(second)


@pytest.mark.parametrize("p", [1e-6, 0.01, 0.3])
@pytest.mark.parametrize("scores", HEADS.values(), ids=HEADS)
def test_massart_noise_is_a_reparametrization_with_its_chain_rule(scores, p):
    lam, mu = scores
    label_score, first, second = capped(lam, p)
    risk, inner = ArbitraryPrecisionRisk(), Head.from_scores(label_score, mu)
    by_score, by_scale = np.asarray(risk.gradient(inner), dtype=float)
    hessian = np.asarray(risk.hessian(inner), dtype=float)
    expected = {
        "value": float(risk.value(inner)),
        "gradient": np.array([by_score * first, by_scale]),
        "hessian": hessian * np.outer([first, 1], [first, 1]) + by_score * second * np.eye(2)[0],
    }
    expected["hessian"][1] = hessian[1] * [first, 1]
    noisy = InfiniteContextRisk(Design(noise=massart(p)), boundary_graded())
    for method, tolerance in MASSART.items():
        found = getattr(noisy, method)(Head.from_scores(lam, mu))
        exact = expected[method]
        assert largest(found - exact) < tolerance * largest(exact), method


CONVERGED = {"value": 1e-14, "gradient": 2e-14, "hessian": 1e-13}  # measured 3e-15, 4e-15, 3e-14
ROUNDING = 2e-16  # of derivatives whose parts of order one cancel; measured 5e-17


@pytest.mark.parametrize("density", [None, "tilted"])
@pytest.mark.parametrize("scores", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_graded_rule_has_converged_for_every_law(law, scores, density):
    design = Design(feature_density=density, threshold_density=density, noise=law)
    head = Head.from_scores(*scores)
    graded = InfiniteContextRisk(design, boundary_graded())
    finer = InfiniteContextRisk(design, FlipGraded(law, 33))
    for method, tolerance in CONVERGED.items():
        exact = getattr(finer, method)(head)
        allowed = tolerance * largest(exact) + ROUNDING
        assert largest(getattr(graded, method)(head) - exact) < allowed, method


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_risk_is_the_mean_square_of_the_limit_error(law):
    """On panels of equal width, fine enough for this scale."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(-1, 1, 81)  # the breaks of the laws are among the distances to the ends
    alpha = (edges[:-1, None] + (nodes + 1) / 80).ravel()
    head, design = Head.from_ratio(1.25, 8.0), Design(noise=law)
    errors = limit_error(head, alpha, design)
    average = errors**2 @ np.tile(weights / 80, 80) / 2
    risk = InfiniteContextRisk(design, boundary_graded())
    assert risk.value(head) == pytest.approx(average, rel=1e-14, abs=0)  # measured 2e-15


STEP = 0.01
COEFFICIENTS = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}  # error of order STEP^8
DIFFERENCE_TOLERANCE = 1e-10  # of the largest component; measured 2e-11, the differences' own


def slopes(method, lam, mu):
    shifts = STEP * np.arange(-4, 5)
    rows = method(Head.from_scores(lam + shifts, mu)), method(Head.from_scores(lam, mu + shifts))
    return np.array(
        [sum(c * (row[4 + k] - row[4 - k]) for k, c in COEFFICIENTS.items()) / STEP for row in rows]
    )


@pytest.mark.parametrize("make", ["infinite", "finite", "drawn tasks"])
@pytest.mark.parametrize("scores", [(7.5, 5.0), (-2.0, 4.0), (3.0, -6.0)])
@pytest.mark.parametrize("law", ["localized", "tsybakov", "above only"])
def test_derivatives_agree_with_differences(law, scores, make):
    design = Design(noise=LAWS[law])
    risk = {
        "infinite": InfiniteContextRisk(design, boundary_graded()),
        "finite": FiniteContextRisk(9, design, equal_weights([-0.9, 0.3])),
        "drawn tasks": InfiniteContextRisk(design, equal_weights([-0.9, 0.3])),
    }[make]
    head = Head.from_scores(*scores)
    for found, expected in (
        (risk.gradient(head), slopes(risk.value, *scores)),
        (risk.hessian(head), slopes(risk.gradient, *scores)),
    ):
        assert largest(found - expected) < DIFFERENCE_TOLERANCE * largest(found)


def test_a_plain_rule_is_taken_as_it_is():
    design, head = Design(noise=localized(0.3, 0.5)), Head.from_scores(1.5, 2.0)
    nodes = gauss_legendre(60)(head)
    errors = limit_error(head, nodes.lower - 1.0, design)
    plain = InfiniteContextRisk(design, gauss_legendre(60))
    assert plain.value(head) == pytest.approx(errors**2 @ nodes.weights, rel=1e-13, abs=0)
    assert plain.value(head) != InfiniteContextRisk(design, boundary_graded()).value(head)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_the_reflected_head_has_the_risk_of_the_mirrored_design(law):
    design, head = Design(feature_density="tilted", noise=law), Head.from_scores(7.5, 5.0)
    risk = InfiniteContextRisk(design, boundary_graded())
    mirrored = InfiniteContextRisk(design.mirrored, boundary_graded())
    assert mirrored.value(head.reflected) == pytest.approx(
        float(risk.value(head)), rel=1e-14, abs=0
    )
    assert mirrored.gradient(head.reflected) == pytest.approx(
        -risk.gradient(head), rel=1e-12, abs=0
    )


@pytest.mark.parametrize("width", [1e-30, 0.25, 1e30])
def test_the_risk_scales_with_the_interval(width):
    unit = InfiniteContextRisk(Design(noise=localized(0.3, 0.2)), boundary_graded())
    wide = InfiniteContextRisk(Design(width, noise=localized(0.3, 0.2 * width)), boundary_graded())
    head, stretched = Head.from_excess(1.0, 12.0), Head.from_excess(1.0, 12.0 / width, width)
    assert wide.value(stretched) / width**2 == pytest.approx(
        float(unit.value(head)), rel=1e-14, abs=0
    )
    scaled = wide.gradient(stretched) / width**2 / [1.0, width]
    assert scaled == pytest.approx(unit.gradient(head), rel=1e-12, abs=0)


@pytest.mark.parametrize("rule", [boundary_graded(8), boundary_graded()])
def test_the_error_estimate_covers_the_error(rule):
    design, head = Design(noise=localized(0.4, 0.125)), Head.from_scores(8.0, 6.0)
    risk = InfiniteContextRisk(design, rule)
    exact = InfiniteContextRisk(design, boundary_graded(40)).value_and_gradient(head)
    for found, bound, best in zip(
        risk.value_and_gradient(head), risk.error_estimate(head), exact, strict=True
    ):
        assert (np.abs(found - best) <= bound).all()


# --- training on noisy labels ---------------------------------------------------------------------


def test_corrupted_training_labels_saturate_the_scale():
    """One per cent of flips: the label score creeps on like a logarithm, the scale stands still."""
    risk = InfiniteContextRisk(Design(noise=massart(0.01)), boundary_graded(12))
    start = Head.from_ratio(1.5, 1.0)
    run = gradient_flow(risk, start, 1e6, scale_levels=(2.0,), rtol=1e-8)
    assert run.scale[-1] == pytest.approx(1.46849, abs=5.1e-6)
    assert run.risk[-1] == pytest.approx(0.198051, abs=5.1e-7)
    assert not run.hits[0].reached
    hit = hitting_time(risk, start, scale=2.0, t_end=1e6, rtol=1e-8)
    assert not hit.reached
    assert "scale=1.46849" in hit.message


# c* of the density and mu at t = 10^9.75 from (k, mu) = (1.5, 8).
TRAINED = {"tilted": (1.0027, 386.27), "wavy": (0.6931, 386.58)}


@pytest.mark.parametrize("density", TRAINED)
def test_densities_move_the_tube_and_keep_the_growth(density):
    tube, scale = TRAINED[density]
    risk = InfiniteContextRisk(Design(feature_density=density), boundary_graded())
    run = gradient_flow(risk, Head.from_ratio(1.5, 8.0), 10**9.75, rtol=1e-8)
    assert run.scale[-1] == pytest.approx(scale, abs=0.01)  # measured 386.274 and 386.587
    assert run.tube[-1] == pytest.approx(tube, abs=1e-3)  # c tends to c* like b / mu: 8e-4


# --- finite contexts ------------------------------------------------------------------------------

RULE = {"value": 1e-14, "gradient": 1e-13}  # measured 2e-15, 5e-15


@pytest.mark.parametrize("law", ["massart", "localized", "tsybakov", "above only"])
def test_the_finite_rule_has_converged(law):
    design, head = Design(noise=LAWS[law]), Head.from_ratio(1.2, 6.0)
    mine = FiniteContextRisk(12, design)
    finer = FiniteContextRisk(12, design, end_graded(60, 26, LAWS[law]))
    for method, tolerance in RULE.items():
        exact = getattr(finer, method)(head)
        assert largest(getattr(mine, method)(head) - exact) < tolerance * largest(exact)


@pytest.mark.parametrize("law", ["massart", "localized"])
def test_long_noisy_contexts_reach_the_infinite_one_at_the_rate_one_over_n(law):
    head, design = Head.from_ratio(1.2, 6.0), Design(noise=LAWS[law])
    limit = InfiniteContextRisk(design, boundary_graded()).gradient(head)
    far, near = (FiniteContextRisk(n, design).gradient(head) - limit for n in (10**5, 10**6))
    assert far / near == pytest.approx(10, rel=0.1, abs=0)


N_SIGMA = 6.0  # of a spread estimated from 40 corpora: further off once in a million


@pytest.mark.parametrize("law", ["massart", "localized", "tsybakov"])
def test_noisy_corpora_tend_to_the_finite_context_risk(law):
    design, head = Design(feature_density="tilted", noise=LAWS[law]), Head.from_ratio(1.2, 6.0)
    risks = [CorpusRisk(sample_corpus(design, 500, 10, (seed, 4))) for seed in range(40)]
    sample = np.array([[risk.value(head), *risk.gradient(head)] for risk in risks])
    value, gradient = FiniteContextRisk(10, design).value_and_gradient(head)
    departure = np.abs(sample.mean(axis=0) - [value, *gradient])
    assert (departure < N_SIGMA * sample.std(axis=0, ddof=1) / np.sqrt(len(sample))).all()
