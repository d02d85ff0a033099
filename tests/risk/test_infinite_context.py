"""Risk by quadrature against reference values, arbitrary precision, and the definition."""

import json
from itertools import pairwise
from pathlib import Path

import mpmath
import numpy as np
import pytest

from popdyn import (
    ArbitraryPrecisionRisk,
    Design,
    Head,
    InfiniteContextRisk,
    UnresolvedLayerWarning,
    boundary_graded,
    equal_weights,
    gauss_legendre,
    limit_error,
)

GRADED = InfiniteContextRisk(Design(), boundary_graded())
C_STAR = np.log(2.0)
REFERENCE = Path(__file__).parents[1] / "reference"
POPULATION = json.loads((REFERENCE / "population.json").read_text())
PLANE = json.loads((REFERENCE / "plane.json").read_text())

MAKERS = {
    "label_score": Head.from_scores,
    "excess": Head.from_excess,
    "ratio": Head.from_ratio,
    "tube": Head.from_tube,
}

VALUE = 5e-15  # measured 2.6e-15 over 1200 random heads of the whole plane
GRADIENT = 2e-14  # measured 7e-15 there, in the norm max(|g_lam|, |g_mu| / l)
HESSIAN = 1e-13  # measured 4e-14 there, outside 0 < lam < mu l
BETWEEN = 1e-15  # and inside so much more, times the scale: measured 1e-16


UNDERFLOW = 1e-290  # below it a double loses digits


def relative(got, exact, half_width):
    """Error in the norm that weighs a derivative in the scale by `1 / l`."""
    got, exact = np.asarray(got, dtype=float), np.asarray(exact, dtype=float)
    units = half_width ** np.arange(got.size)
    size = np.abs(exact / units).max()
    return np.abs((got - exact) / units).max() / (size if size > UNDERFLOW else 1.0)


def entries(hessian):
    return hessian[0, 0], hessian[0, 1], hessian[1, 1]


@pytest.mark.parametrize("case", POPULATION, ids=lambda c: f"{c['scale']:g}, {c['excess']:g}")
def test_the_graded_rule_gives_the_reference_values(case):
    width = case["half_width"]
    head = Head.from_excess(case["excess"], case["scale"], half_width=width)
    risk = InfiniteContextRisk(Design(width), boundary_graded())
    value, gradient = risk.value_and_gradient(head)
    assert value == pytest.approx(float(case["risk"]), rel=VALUE, abs=0)
    if case["excess"] != 0.0:
        assert relative(gradient, case["gradient"], width) < GRADIENT
        assert relative(entries(risk.hessian(head)), case["hessian"], width) < HESSIAN


@pytest.mark.parametrize(
    "case", PLANE, ids=lambda c: f"{c['given']} {c['value']:g}, {c['scale']:g}, {c['half_width']:g}"
)
def test_the_graded_rule_gives_the_reference_values_of_the_plane(case):
    width, make = case["half_width"], MAKERS[case["given"]]
    head = make(case["value"], case["scale"], half_width=width)
    risk = InfiniteContextRisk(Design(width), boundary_graded())
    value, gradient = risk.value_and_gradient(head)
    assert value == pytest.approx(float(case["risk"]), rel=VALUE, abs=0)
    assert relative(gradient, case["gradient"], width) < GRADIENT
    tolerance = HESSIAN
    if 0 < head.label_score < head.scale * width:
        tolerance += BETWEEN * head.scale * width
    assert relative(entries(risk.hessian(head)), case["hessian"], width) < tolerance


# Both sides of the borders of the rule (radius 0.5, scale 3, layers as wide as a panel) and of the
# gradient (radius 0.25), and a few far corners.
CORNERS = {
    "origin, almost": (1e-300, -2e-300),
    "small radius": (1e-8, 1e-8),
    "radius 0.249": (0.249, 0.1),
    "radius 0.251": (0.251, -0.1),
    "radius 0.499": (-0.3, 0.499),
    "radius 0.501": (-0.3, 0.501),
    "scale 2.99": (35.0, 2.99),
    "scale 3.01": (35.0, 3.01),
    "no scale": (10.0, 0.0),
    "no scale, wrong label": (-10.0, 0.0),
    "no label score": (0.0, 300.0),
    "equal scores": (50.0, 50.0),
    "layer as wide as a panel": (20.4, 20.0),
    "wrong label": (-10.0, 20.0),
    "wrong label, large scale": (-2.0, 1e6),
    "label of order one at large scale": (1.0, 1e6),
    "large scale": (2e4, 1e4),
    "small scale, many labels": (300.0, 1e-3),
    "negative scale": (31.0, -0.7),
    "reflected": (-7.5, -5.0),
    "both huge": (1e12, 1e5),
}


@pytest.mark.parametrize("scores", CORNERS.values(), ids=CORNERS)
def test_the_graded_rule_is_exact_on_the_whole_plane(scores):
    head = Head.from_scores(*scores)
    exact = ArbitraryPrecisionRisk()
    value, gradient = GRADED.value_and_gradient(head)
    assert value == pytest.approx(exact.value(head), rel=VALUE, abs=0)
    assert relative(gradient, exact.gradient(head), 1.0) < GRADIENT
    assert relative(entries(GRADED.hessian(head)), entries(exact.hessian(head)), 1.0) < HESSIAN


@pytest.mark.parametrize("fraction", [0.02, 0.5, 0.98])
@pytest.mark.parametrize("scale", [30.0, 300.0])
def test_between_the_ends_only_the_hessian_loses_with_the_scale(scale, fraction):
    head = Head.from_scores(fraction * scale, scale)
    exact = ArbitraryPrecisionRisk()
    assert relative(GRADED.gradient(head), exact.gradient(head), 1.0) < GRADIENT
    error = relative(entries(GRADED.hessian(head)), entries(exact.hessian(head)), 1.0)
    assert error < HESSIAN + BETWEEN * scale


@pytest.mark.parametrize("scale", [1e6, 1e9, 1e12])
def test_the_interior_gradient_keeps_its_digits_at_any_scale(scale):
    # With thresholds as distances alone it would be off by 1e-16 times the scale. Up to O(1/mu) the
    # error is 1 - alpha below alpha_0 = 1 - 2 lam/mu and 0 above: L = (1/2) int_-1^alpha_0 (1 -
    # alpha)^2, and at alpha_0 = 0, dL/dlam = -1/mu.
    head = Head.from_scores(0.5 * scale, scale)
    rules = [boundary_graded(order) for order in (16, 20, 40)]
    gradients = [InfiniteContextRisk(Design(), rule).gradient(head) for rule in rules]
    np.testing.assert_allclose(gradients[0], gradients[2], rtol=GRADIENT)
    np.testing.assert_allclose(gradients[1], gradients[2], rtol=GRADIENT)
    assert gradients[2][0] * scale == pytest.approx(-1.0, rel=10 / scale, abs=0)


@pytest.mark.parametrize(
    "head",
    [Head.from_tube(C_STAR, 5.0), Head.from_tube(C_STAR, 20.0), Head.from_scores(-1.0, 4.0)],
    ids=repr,
)
def test_plain_and_graded_rules_agree_where_the_plain_one_resolves(head):
    plain = InfiniteContextRisk(Design(), gauss_legendre(2600))
    assert plain.value(head) == pytest.approx(
        GRADED.value(head), rel=1e-14, abs=0
    )  # measured 1e-15
    assert relative(plain.gradient(head), GRADED.gradient(head), 1.0) < 1e-13  # measured 1e-14
    assert relative(entries(plain.hessian(head)), entries(GRADED.hessian(head)), 1.0) < 1e-12


def test_an_unresolved_plain_rule_warns_and_is_as_wrong_as_reported():
    head = Head.from_tube(C_STAR, 100.0)
    plain = InfiniteContextRisk(Design(), gauss_legendre(200))
    with pytest.warns(UnresolvedLayerWarning, match="about 25"):
        value = plain.value(head)
    assert GRADED.value(head) == pytest.approx(9.9289640826357806e-5, rel=VALUE, abs=0)
    assert abs(value / 9.9289640826357806e-5 - 1) > 1e-3


@pytest.mark.parametrize("scale", [1e-8, 1e-12, 1e-300])
def test_the_gradient_near_the_origin_is_linear(scale):
    gradient = GRADED.gradient(Head.from_ratio(1.0, scale))
    # Hessian at the origin, MODEL §5: [[0, -2/15], [-2/15, 2/9 * 2]]
    np.testing.assert_allclose(gradient / scale, [-2 / 15, -2 / 15 + 2 / 9], rtol=3e-8)
    if scale < 1e-8:
        np.testing.assert_allclose(gradient / scale, [-2 / 15, -2 / 15 + 2 / 9], rtol=1e-11)


# --- densities ------------------------------------------------------------------------------------

SLOPE = 0.3
DENSITIES = {"up": SLOPE, "down": -SLOPE, "steep": -0.9, "flat": 0.0}


def linear(slope):
    return lambda x: (1 + slope * x) / 2


def exact_risk(feature_slope, threshold_slope, lam, mu):
    """Risk and gradient of linear densities: inner integrals in closed form, in 40 digits."""
    ctx = mpmath.mp.clone()
    ctx.dps = 40
    f, p, lam, mu = (ctx.mpf(number) for number in (feature_slope, threshold_slope, lam, mu))

    def antiderivative(x):  # of x^j exp(mu x), j = 0..3
        powers = [ctx.exp(mu * x) / mu]
        for j in range(1, 4):
            powers.append((x**j * ctx.exp(mu * x) - j * powers[-1]) / mu)
        return powers

    ends = antiderivative(ctx.mpf(-1)), antiderivative(ctx.mpf(1))

    def integrand(s):
        alpha = s - 1
        middle = antiderivative(alpha)
        below = [ctx.exp(lam) * (m - e) for m, e in zip(middle, ends[0], strict=True)]
        above = [ctx.exp(-lam) * (e - m) for m, e in zip(middle, ends[1], strict=True)]
        plus = [below[j] + f * below[j + 1] for j in range(3)]
        minus = [above[j] + f * above[j + 1] for j in range(3)]
        total = plus[0] + minus[0]
        mean, square = (plus[1] + minus[1]) / total, (plus[2] + minus[2]) / total
        product, label = (plus[1] - minus[1]) / total, (plus[0] - minus[0]) / total
        error, weight = mean - alpha, (1 + p * alpha) / 2
        return ctx.matrix(
            [
                weight * error**2,
                2 * weight * error * (product - mean * label),
                2 * weight * error * (square - mean**2),
            ]
        )

    steps = [ctx.mpf(10) ** (ctx.mpf(k) / 2) for k in range(-20, 1)]
    centre = 1 - lam / mu
    cuts = {ctx.mpf(0), ctx.mpf(2), *steps, *(2 - step for step in steps)}
    cuts |= {centre + 4 * k / abs(mu) for k in range(-10, 11)}
    cuts = sorted(cut for cut in cuts if 0 <= cut <= 2)
    nodes, weights = _legendre_in(ctx, 16)
    total = ctx.matrix([0, 0, 0])
    for a, b in pairwise(cuts):
        for node, weight in zip(nodes, weights, strict=True):
            total += integrand((a + b) / 2 + (b - a) / 2 * node) * (weight * (b - a) / 2)
    return np.array([float(part) for part in total])


def _legendre_in(ctx, order):
    """Gauss-Legendre nodes by Newton's method in the context's precision."""
    nodes = []
    for start in np.polynomial.legendre.leggauss(order)[0]:
        x = ctx.mpf(float(start))
        for _ in range(3):
            value, before = ctx.legendre(order, x), ctx.legendre(order - 1, x)
            x -= value * (1 - x * x) / (order * (before - x * value))
        nodes.append(x)
    weights = [2 * (1 - x * x) / (order * ctx.legendre(order - 1, x)) ** 2 for x in nodes]
    return nodes, weights


@pytest.mark.parametrize(
    ("features", "thresholds"), [("up", "flat"), ("steep", "flat"), ("flat", "up"), ("down", "up")]
)
@pytest.mark.parametrize(
    "scores",
    [(7.5, 5.0), (-7.5, -5.0), (2.0, 5.0), (-1.0, 5.0), (34.1, 30.0), (0.5, -3.0)],
    ids=str,
)
def test_linear_densities_give_the_risk_of_the_definition(features, thresholds, scores):
    design = Design(
        feature_density=linear(DENSITIES[features]),
        threshold_density=linear(DENSITIES[thresholds]),
    )
    risk = InfiniteContextRisk(design, boundary_graded())
    value, gradient = risk.value_and_gradient(Head.from_scores(*scores))
    exact = exact_risk(DENSITIES[features], DENSITIES[thresholds], *scores)
    assert value == pytest.approx(exact[0], rel=5e-15, abs=0)  # measured 1e-15
    assert relative(gradient, exact[1:], 1.0) < 1e-14  # measured 2e-15


@pytest.mark.parametrize("scale", [20.0, 1e3, 1e6])
def test_a_wavy_density_is_resolved_at_any_scale(scale):
    design = Design(feature_density=lambda x: (1 + 0.3 * np.cos(np.pi * x)) / 2)
    coarse, fine = (InfiniteContextRisk(design, boundary_graded(order)) for order in (20, 50))
    head = Head.from_tube(C_STAR, scale)
    assert coarse.value(head) == pytest.approx(fine.value(head), rel=VALUE, abs=0)
    assert relative(coarse.gradient(head), fine.gradient(head), 1.0) < GRADIENT


@pytest.mark.parametrize(
    ("density", "ends"),
    [
        (linear(0.3), 1.3 / 0.7),
        (linear(-0.3), 0.7 / 1.3),
        (lambda x: (1 + 0.3 * np.cos(np.pi * x)) / 2, 1.0),
    ],
    ids=["up", "down", "wavy"],
)
def test_the_tube_sits_where_the_end_densities_put_it(density, ends):
    # MODEL §7: c* = log(2 (1 + l^2) f(l)/f(-l)) / 2. On the flow dc = 0 where dL/dlam = (l + 1/mu)
    # dL/dmu; at mu = 1e7 the root is measured 6e-8 from c*, the next order in 1/mu.
    risk, scale = InfiniteContextRisk(Design(feature_density=density), boundary_graded()), 1e7

    def drift(tube):
        d_lam, d_mu = risk.gradient(Head.from_tube(tube, scale))
        return (d_lam - (1 + 1 / scale) * d_mu) * scale**3

    c_star = 0.5 * np.log(4 * ends)
    assert drift(c_star - 2e-7) * drift(c_star + 2e-7) < 0


@pytest.mark.parametrize("scores", [(1.0, 3.0), (7.5, 5.0), (-2.0, 9.0), (0.0, 0.0)], ids=str)
def test_a_flat_density_is_the_uniform_design(scores):
    flat = InfiniteContextRisk(
        Design(feature_density=linear(0.0), threshold_density=linear(0.0)), boundary_graded()
    )
    head = Head.from_scores(*scores)
    assert flat.value(head) == pytest.approx(GRADED.value(head), rel=VALUE, abs=0)
    np.testing.assert_allclose(flat.gradient(head), GRADED.gradient(head), rtol=1e-13, atol=1e-16)
    np.testing.assert_allclose(flat.hessian(head), GRADED.hessian(head), rtol=1e-13, atol=1e-15)


def test_the_mirrored_design_and_the_reflected_head_have_one_risk():
    design = Design(feature_density=linear(0.3), threshold_density=linear(-0.5))
    risk = InfiniteContextRisk(design, boundary_graded())
    mirrored = InfiniteContextRisk(design.mirrored, boundary_graded())
    head = Head.from_scores([7.5, 1.0, -3.0], [5.0, -2.0, 40.0])
    assert risk.value(head) == pytest.approx(mirrored.value(head.reflected), rel=VALUE, abs=0)
    np.testing.assert_allclose(
        risk.gradient(head), -mirrored.gradient(head.reflected), rtol=1e-13, atol=1e-17
    )


# --- drawn tasks ----------------------------------------------------------------------------------


@pytest.mark.parametrize("design", [Design(), Design(feature_density=linear(0.3))])
def test_the_risk_of_drawn_tasks_is_the_mean_of_their_squared_errors(design):
    thresholds = np.array([-1.0, -0.999, -0.2, 0.3, 1.0])
    risk = InfiniteContextRisk(design, equal_weights(thresholds))
    head = Head.from_tube(C_STAR, 100.0)
    mean = np.mean(limit_error(head, thresholds, design) ** 2)
    assert risk.value(head) == pytest.approx(mean, rel=1e-15, abs=0)


def test_drawn_tasks_are_not_weighted_by_the_density_they_come_from():
    thresholds = [-0.5, 0.1, 0.6]
    head = Head.from_scores(3.0, 4.0)
    plain = InfiniteContextRisk(Design(), equal_weights(thresholds))
    drawn = InfiniteContextRisk(Design(threshold_density=linear(0.3)), equal_weights(thresholds))
    assert drawn.value(head) == plain.value(head)


def test_one_task_moves_the_origin():
    # A single task leaves no symmetry: at the zero head F = 0, Var = 1/3, Cov = -(1 - alpha^2)/2.
    risk = InfiniteContextRisk(Design(), equal_weights([0.5]))
    gradient = risk.gradient(Head.from_scores(0.0, 0.0))
    np.testing.assert_allclose(gradient, [2 * 0.5 * 0.375, -2 * 0.5 / 3], rtol=1e-15)


# --- error estimate -------------------------------------------------------------------------------

ESTIMATED = {
    "tube": Head.from_tube(C_STAR, 50.0),
    "far up the tube": Head.from_tube(C_STAR, 1e6),
    "above the tube": Head.from_ratio(1.5, 50.0),
    "interior": Head.from_ratio(0.5, 100.0),
    "wrong label": Head.from_scores(-10.0, 20.0),
    "mild": Head.from_scores(1.0, 2.0),
    "reflected": Head.from_scores(-7.5, -5.0),
    "small": Head.from_scores(1e-9, 1e-9),
}
RULES = {
    "4 a panel": boundary_graded(4),
    "8 a panel": boundary_graded(8),
    "12 a panel": boundary_graded(12),
    "default": boundary_graded(),
    "plain 30": gauss_legendre(30),
    "plain 300": gauss_legendre(300),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("head", ESTIMATED.values(), ids=ESTIMATED)
@pytest.mark.filterwarnings("ignore::popdyn.UnresolvedLayerWarning")
def test_the_error_estimate_never_understates(head, rule):
    risk = InfiniteContextRisk(Design(), rule)
    exact = ArbitraryPrecisionRisk()
    value_error, gradient_error = risk.error_estimate(head)
    value, gradient = risk.value_and_gradient(head)
    assert abs(value - exact.value(head)) <= value_error
    assert (np.abs(gradient - exact.gradient(head)) <= gradient_error).all()


@pytest.mark.parametrize("head", ESTIMATED.values(), ids=ESTIMATED)
def test_the_default_rule_knows_that_it_is_exact(head):
    value_error, gradient_error = GRADED.error_estimate(head)
    value, gradient = GRADED.value_and_gradient(head)
    assert value_error < 1e-12 * value  # measured 2e-13
    assert gradient_error.max() < 5e-12 * np.abs(gradient).max()  # measured 2e-12


def test_drawn_tasks_have_no_quadrature_error_to_estimate():
    risk = InfiniteContextRisk(Design(), equal_weights([0.5]))
    with pytest.raises(ValueError, match="drawn tasks are summed exactly"):
        risk.error_estimate(Head.from_scores(1.0, 1.0))


# --- arguments ------------------------------------------------------------------------------------


def test_many_heads_pass_in_blocks_and_in_order():
    scales = np.geomspace(5.0, 1e6, 700).reshape(7, 100)
    values = GRADED.value(Head.from_tube(C_STAR, scales))
    assert values.shape == (7, 100)
    assert values[6, 99] == GRADED.value(Head.from_tube(C_STAR, scales[6, 99]))


def test_a_rule_without_exponents_gets_them_from_its_distances():
    class Bare:
        is_sample, companion = False, None

        def __call__(self, head):
            return boundary_graded()(head)._replace(exponent=None)

    head = Head.from_scores([7.5, -2.0, 1.0], [5.0, -3.0, 0.2])
    bare = InfiniteContextRisk(Design(), Bare())
    np.testing.assert_allclose(bare.gradient(head), GRADED.gradient(head), rtol=1e-13)
    np.testing.assert_allclose(bare.hessian(head), GRADED.hessian(head), rtol=1e-12)


@pytest.mark.parametrize(
    ("design", "rule", "message"),
    [
        (1.0, boundary_graded(), "design must be a popdyn.Design, got 1.0"),
        (Design(), 20, "rule must be a quadrature rule, got 20; use boundary_graded()"),
    ],
)
def test_arguments_of_another_kind_are_refused(design, rule, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace(")", r"\)")):
        InfiniteContextRisk(design, rule)
