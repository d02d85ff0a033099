"""The closed form against tables, high precision and itself, on the whole plane."""

import json
from pathlib import Path

import mpmath
import numpy as np
import pytest

from popdyn import ArbitraryPrecisionRisk, ClosedFormRisk, Head
from popdyn.risk.closed_form import _fill_hessian, _fill_risk
from popdyn.risk.form_in_y import hessian_in_y, risk_in_y
from popdyn.risk.form_in_z import hessian_in_z, risk_in_z
from popdyn.risk.near_origin import (
    _NODES,
    _WEIGHTS,
    hessian_at_moderate_scale,
    hessian_near_origin,
    risk_at_moderate_scale,
    risk_near_origin,
)
from popdyn.risk.small_scale import (
    _antiderivatives,
    _second_derivatives,
    hessian_at_small_scale,
    risk_at_small_scale,
)

REFERENCE = Path(__file__).parents[1] / "reference"
MAKERS = {
    "label_score": Head.from_scores,
    "excess": Head.from_excess,
    "ratio": Head.from_ratio,
    "tube": Head.from_tube,
}

# Errors of value, gradient and Hessian, each relative to the largest component (a power of the half
# width for each derivative by the scale). Measured over 65000 heads (Hessians of 5000): 2.3e-15,
# 1.2e-14, 8e-14.
ACCURACY = (1e-14, 2e-14, 1e-13)
# On the tube, |c - c*| <= 1 and scale >= 5. Measured over 1000 heads: 3.1e-16, 9.4e-16, 2e-15.
TUBE_ACCURACY = (4e-15, 4e-15, 1e-13)
SPACING = 2.0**-52


def components(risk, head):
    value, gradient = risk.value_and_gradient(head)
    hessian = risk.hessian(head)
    return (
        [value],
        [*gradient],
        [hessian[..., 0, 0], hessian[..., 0, 1], hessian[..., 1, 1]],
    )


def errors(got, exact, half_width):
    """Error of value, gradient and Hessian, relative to the largest component each."""
    width = mpmath.mpf(half_width)
    found = []
    for ours, theirs in zip(got, exact, strict=True):
        true = [mpmath.mpf(x) / width**k for k, x in enumerate(theirs)]
        off = [
            abs(mpmath.mpf(float(x)) / width**k - t)
            for k, (x, t) in enumerate(zip(ours, true, strict=True))
        ]
        size = max(abs(t) for t in true)
        found.append(float(max(off) / size) if size else float(max(off)))
    return found


def table(name, keep=lambda case: True):
    cases = [case for case in json.loads((REFERENCE / name).read_text()) if keep(case)]
    assert cases
    return cases


def given(case):
    if "given" in case:
        return MAKERS[case["given"]](case["value"], case["scale"], case["half_width"])
    return Head.from_excess(case["excess"], case["scale"], case["half_width"])


def exact(case):
    return [case["risk"]], case["gradient"], case["hessian"]


@pytest.mark.parametrize(
    "case",
    table("plane.json"),
    ids=lambda c: f"{c['given']} {c['value']} {c['scale']} {c['half_width']}",
)
def test_agrees_with_the_table_of_the_whole_plane(case):
    got = components(ClosedFormRisk(case["half_width"]), given(case))
    assert np.less(errors(got, exact(case), case["half_width"]), ACCURACY).all()


@pytest.mark.parametrize(
    "case",
    # At excess 0 the table's Hessians, and one gradient, were spoilt by the singularity there.
    table("population.json", lambda case: case["excess"] != 0),
    ids=lambda c: f"{c['excess']} {c['scale']} {c['half_width']}",
)
def test_agrees_with_the_table_of_populations(case):
    got = components(ClosedFormRisk(case["half_width"]), given(case))
    assert np.less(errors(got, exact(case), case["half_width"]), ACCURACY).all()


# Each draws a coordinate's name, its value and a scale.
REGIONS = {
    "around the origin": lambda r: (
        "label_score",
        r.choice([-1, 1]) * 10 ** r.uniform(-300, 0),
        r.choice([-1, 1]) * 10 ** r.uniform(-300, 0),
    ),
    "moderate scores": lambda r: ("label_score", r.uniform(-4, 4), r.uniform(-4, 4)),
    "small scale": lambda r: (
        "label_score",
        r.choice([-1, 1]) * 10 ** r.uniform(-1, 3),
        r.choice([-1, 1]) * 10 ** r.uniform(-20, 0.3),
    ),
    "across scale zero": lambda r: (
        "label_score",
        r.uniform(-6, 6),
        1e-3 * r.normal() * r.integers(2),
    ),
    "label score of order one": lambda r: ("label_score", r.uniform(-3, 3), 10 ** r.uniform(0, 12)),
    "no label score": lambda r: ("label_score", 0.0, r.choice([-1, 1]) * 10 ** r.uniform(-12, 12)),
    "excess around zero": lambda r: (
        "excess",
        r.choice([-1, 1]) * 10 ** r.uniform(-20, 1),
        10 ** r.uniform(-4, 12),
    ),
    "no excess": lambda r: ("excess", 0.0, r.choice([-1, 1]) * 10 ** r.uniform(-12, 12)),
    "ratio below one": lambda r: ("ratio", r.uniform(-0.2, 1.1), 10 ** r.uniform(0, 3)),
    "any sizes": lambda r: (
        "label_score",
        r.choice([-1, 1]) * 10 ** r.uniform(-300, 12),
        r.choice([-1, 1]) * 10 ** r.uniform(-300, 12),
    ),
    "tube": lambda r: ("tube", np.log(2) + r.uniform(-1, 1), 10 ** r.uniform(np.log10(5), 9)),
}


def high_precision(head):
    """Value, gradient and Hessian at the head as stored, to 20 digits."""
    risk = ArbitraryPrecisionRisk(head.half_width, digits=20)
    name = "label_score" if abs(head.label_score) < abs(head.excess) else "excess"
    found = risk.evaluate(scale=float(head.scale), **{name: float(getattr(head, name))})
    return [found.risk], [*found.gradient], [*found.hessian]


def input_spacing(head, exact):
    """What one spacing of the smaller of excess and label score, and of the scale, changes."""
    (value,), (g_lam, g_mu), (lam_lam, lam_mu, mu_mu) = ([abs(float(x)) for x in e] for e in exact)
    lam = SPACING * min(abs(head.label_score), abs(head.excess))
    mu = SPACING * abs(head.scale)
    moved = max(lam * lam_lam + mu * (lam_mu + lam_lam), lam * lam_mu + mu * (mu_mu + lam_mu))
    size = max(g_lam, g_mu)
    return (lam * g_lam + mu * (g_mu + g_lam)) / value, moved / size if size else 0.0


@pytest.mark.parametrize("region", REGIONS)
def test_agrees_with_high_precision(region):
    random = np.random.default_rng([7, len(region)])
    for _ in range(25):
        name, coordinate, scale = REGIONS[region](random)
        head = MAKERS[name](coordinate, scale)
        true = high_precision(head)
        found = errors(components(ClosedFormRisk(), head), true, 1.0)
        limits = TUBE_ACCURACY if region == "tube" else ACCURACY
        spacings = input_spacing(head, true)
        assert found[0] < max(limits[0], spacings[0]), head
        assert found[1] < max(limits[1], spacings[1]), head
        assert found[2] < limits[2], head


# Where two formulas meet: points (lam, mu) on their common border, both formulas, and whether the
# second one takes the reflected head.
FORMULAS = {
    "near origin": (
        lambda lam, mu: risk_near_origin(lam, mu),
        lambda lam, mu: hessian_near_origin(lam, mu),
    ),
    "moderate scale": (
        lambda lam, mu: risk_at_moderate_scale(lam, mu),
        lambda lam, mu: hessian_at_moderate_scale(lam, mu),
    ),
    "small scale": (
        lambda lam, mu: risk_at_small_scale(lam, lam - mu, mu),
        lambda lam, mu: hessian_at_small_scale(lam, lam - mu, mu),
    ),
    "in y": (
        lambda lam, mu: risk_in_y(lam, lam - mu, mu),
        lambda lam, mu: hessian_in_y(lam, lam - mu, mu),
    ),
    "in z": (
        lambda lam, mu: risk_in_z(lam, lam - mu, mu),
        lambda lam, mu: hessian_in_z(lam, lam - mu, mu),
    ),
}


def thin(mu):
    return max(1.05 - 0.35 * abs(mu), 0.42)


BORDERS = {
    "near origin, moderate scale": (
        ("near origin", "moderate scale", 1),
        [(lam, 1.0) for lam in np.linspace(-0.7, 1.7, 20)],
    ),
    "near origin, small scale, positive": (
        ("near origin", "small scale", 1),
        [(mu + thin(mu), mu) for mu in np.linspace(0, 1, 20)],
    ),
    "near origin, small scale, negative": (
        ("near origin", "small scale", 1),
        [(thin(mu), mu) for mu in np.linspace(-1, 0, 20)],
    ),
    "moderate scale, small scale, positive": (
        ("moderate scale", "small scale", 1),
        [(mu + thin(mu), mu) for mu in np.linspace(1, 1.5, 20)],
    ),
    "moderate scale, small scale, negative": (
        ("moderate scale", "small scale", 1),
        [(thin(mu), mu) for mu in np.linspace(-1.5, -1, 20)],
    ),
    "moderate scale, in z, thin layer": (
        ("moderate scale", "in z", 1),
        [(mu + thin(mu), mu) for mu in np.linspace(1.5, 2, 20)],
    ),
    "moderate scale, in z, scale 2": (
        ("moderate scale", "in z", 1),
        [(lam, 2.0) for lam in np.linspace(1, 2.42, 20)],
    ),
    "moderate scale, in y, thin layer": (
        ("moderate scale", "in y", 1),
        [(-thin(mu), mu) for mu in np.linspace(1.5, 2, 20)],
    ),
    "moderate scale, in y, scale 2": (
        ("moderate scale", "in y", 1),
        [(lam, 2.0) for lam in np.linspace(-0.42, 1, 20)],
    ),
    "small scale, in z": (
        ("small scale", "in z", 1),
        [(lam, 1.5) for lam in np.linspace(2.025, 20, 20)],
    ),
    "small scale, in y": (
        ("small scale", "in y", -1),
        [(lam, -1.5) for lam in np.linspace(0.525, 20, 20)],
    ),
    "in y, in z": (
        ("in y", "in z", 1),
        [(0.5 * mu, mu) for mu in 2 * 10 ** np.linspace(0, 8, 40)],
    ),
}
# Two formulas may err in opposite ways.
AGREEMENT = tuple(2 * limit for limit in ACCURACY)


@pytest.mark.parametrize("border", BORDERS)
def test_neighbouring_formulas_agree_where_they_meet(border):
    (first, second, sign), points = BORDERS[border]
    for lam, mu in points:
        sides = []
        for formula, s in ((first, 1), (second, sign)):
            value, g_lam, g_mu = FORMULAS[formula][0](s * lam, s * mu)
            sides.append(([value], [s * g_lam, s * g_mu], FORMULAS[formula][1](s * lam, s * mu)))
        assert np.less(errors(*sides, 1.0), AGREEMENT).all(), (lam, mu)


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("step", [-1e-15, 1e-15])
def test_heads_on_both_sides_of_a_border_are_right(border, step):
    for lam, mu in BORDERS[border][1][::6]:
        head = Head.from_scores(lam * (1 + step), mu * (1 - step))
        found = errors(components(ClosedFormRisk(), head), high_precision(head), 1.0)
        assert np.less(found, ACCURACY).all(), head


@pytest.mark.parametrize("degree", range(0, 2 * _NODES.size, 7))
def test_the_gauss_rule_is_rounded_once(degree):
    ctx = mpmath.mp.clone()
    ctx.dps = 40
    terms = [ctx.mpf(w) * ctx.mpf(x) ** degree for x, w in zip(_NODES, _WEIGHTS, strict=True)]
    exact = ctx.mpf(0 if degree % 2 else 2) / (degree + 1)
    assert abs(ctx.fsum(terms) - exact) < 1e-16  # measured 3e-17; 1.3e-15 with NumPy's


@pytest.mark.parametrize("u", [-3.5, -2.41, -1.01, -0.02, 0.09, 0.5, 2.39, 3.54])
def test_the_smooth_parts_at_small_scale_are_the_integrals_they_stand_for(u):
    ctx = mpmath.mp.clone()
    ctx.dps = 40

    def p(v):
        return (v / ctx.expm1(v) - 1) / v if v else -ctx.mpf(1) / 2

    def pg(v):
        return p(v) * (1 + v * p(v))

    u = ctx.mpf(u)
    slope = ctx.diff(p, u)
    j = ctx.quad(lambda v: (v * p(v)) ** 2, [0, u]) / u**3
    k = ctx.quad(pg, [0, u]) / u
    j_1, k_1 = (p(u) ** 2 - 3 * j) / u, (pg(u) - k) / u
    j_2, k_2 = (2 * p(u) * slope - 4 * j_1) / u, (ctx.diff(pg, u) - 2 * k_1) / u
    found = (*_antiderivatives(float(u)), *_second_derivatives(float(u)))
    exact = (j, j_1, k, k_1, p(u), j_2, k_2, slope)
    off = [abs(ours - true) for ours, true in zip(found, exact, strict=True)]
    assert max(off) < 2e-16  # measured at most 1.3e-16 over 60 points


def test_one_head_and_many_share_their_machine_code():
    risk = ClosedFormRisk()
    for head in (Head.from_scores(1, 2), Head.from_scores([1, 2], 3), Head.from_ratio([[2]], 3)):
        risk.value_and_gradient(head)
        risk.hessian(head)
    assert len(_fill_risk.called.signatures) == len(_fill_hessian.called.signatures) == 1


@pytest.mark.parametrize(
    "name, coordinate, scale, value",
    [
        ("ratio", 0, 1000, 1.3313343333333333),
        ("ratio", -0.5, 20, 1.2359835904458045),
        ("ratio", 0.5, 20, 1.0650543376763604),
        ("tube", np.log(2), 1e3, 9.9929711926763319e-7),
        ("tube", np.log(2), 100, 9.9289640826357806e-5),
    ],
)
def test_reported_risks_are_right(name, coordinate, scale, value):
    risk = ClosedFormRisk().value(MAKERS[name](coordinate, scale))
    assert risk == pytest.approx(value, rel=ACCURACY[0], abs=0)


@pytest.mark.parametrize(
    "scale, gradient",
    [
        (1e-8, (-1.3333333333333e-9, 8.8888888888889e-10)),
        (1e-12, (-1.3333333333333e-13, 8.8888888888889e-14)),
    ],
)
def test_gradient_near_the_origin_keeps_its_digits(scale, gradient):
    found = ClosedFormRisk().gradient(Head.from_ratio(1, scale))
    assert found == pytest.approx(gradient, rel=1e-13, abs=0)  # the digits the reported values have


def test_origin_is_a_stationary_point_of_risk_one_third():
    head = Head.from_scores(0.0, 0.0, half_width=2.0)
    value, gradient = ClosedFormRisk(2.0).value_and_gradient(head)
    assert value == pytest.approx(4 / 3, rel=1e-14, abs=0)
    assert (gradient == 0).all()
    assert ClosedFormRisk(2.0).hessian(head) == pytest.approx(
        np.array([[0, -2 * 8 / 15], [-2 * 8 / 15, 2 * 16 / 9]]), rel=1e-14, abs=1e-14
    )


def whole_plane(size, seed, half_width):
    """Heads of every size and sign, a third of them of moderate scale."""
    random = np.random.default_rng(seed)

    def signed(low, high):
        return random.choice([-1.0, 0.0, 1.0], size, p=[0.48, 0.04, 0.48]) * 10 ** random.uniform(
            low, high, size
        )

    coordinate = np.where(random.random(size) < 0.5, random.uniform(-9, 9, size), signed(-300, 12))
    moderate = signed(-3, 3) / half_width
    scale = np.where(random.random(size) < 0.3, moderate, signed(-300, 100 - np.log10(half_width)))
    make = random.choice([Head.from_scores, Head.from_excess])
    return make(coordinate, scale, half_width)


@pytest.mark.parametrize("half_width", [1e-50, 1e-3, 1.0, 1e3, 1e50])
@pytest.mark.parametrize("seed", range(4))
def test_every_head_has_a_finite_risk_gradient_and_hessian(half_width, seed):
    head = whole_plane(20_000, seed, half_width)
    risk = ClosedFormRisk(half_width)
    value, gradient = risk.value_and_gradient(head)
    assert (value >= 0).all()
    assert (value <= 4 / 3 * half_width**2 * (1 + SPACING)).all()
    assert np.isfinite(gradient).all()
    assert np.isfinite(risk.hessian(head)).all()


@pytest.mark.parametrize("half_width", [1e-3, 1.0, 1e50])
def test_a_batch_is_bitwise_the_single_heads(half_width):
    batch = whole_plane(300, 5, half_width)
    risk = ClosedFormRisk(half_width)
    value, gradient = risk.value_and_gradient(batch)
    hessian = risk.hessian(batch)
    for i in range(300):
        single = Head(
            batch.label_score[i],
            batch.excess[i],
            batch.scale[i],
            half_width,
            ("excess", batch.excess[i]),
        )
        assert risk.value(single) == value[i]
        assert (risk.gradient(single) == gradient[i]).all()
        assert (risk.hessian(single) == hessian[i]).all()


def test_reflected_heads_have_the_same_risk_bitwise():
    head, risk = whole_plane(2000, 6, 1.0), ClosedFormRisk()
    value, gradient = risk.value_and_gradient(head)
    mirrored, mirrored_gradient = risk.value_and_gradient(head.reflected)
    # scores of 0 have no sign, and either formula of a reflected pair may serve
    regular = (head.label_score != 0) & (head.scale != 0)
    assert (mirrored[regular] == value[regular]).all()
    assert (mirrored_gradient[regular] == -gradient[regular]).all()
    assert (risk.hessian(head.reflected)[regular] == risk.hessian(head)[regular]).all()


@pytest.mark.parametrize("half_width", [2.0**-160, 0.25, 2.0, 2.0**160])
def test_half_widths_scale_out(half_width):
    unit = whole_plane(500, 7, 1.0)
    keep = np.abs(np.log2(np.abs(unit.scale) + (unit.scale == 0))) < 300
    lam, mu = unit.label_score[keep], unit.scale[keep]
    wide = Head.from_scores(lam, mu / half_width, half_width)
    unit = Head.from_scores(lam, mu)
    value, gradient = ClosedFormRisk(half_width).value_and_gradient(wide)
    unit_value, unit_gradient = ClosedFormRisk().value_and_gradient(unit)
    assert (value == half_width**2 * unit_value).all()
    assert (gradient[:, 0] == half_width**2 * unit_gradient[:, 0]).all()
    assert (gradient[:, 1] == half_width**2 * (half_width * unit_gradient[:, 1])).all()


def test_results_have_the_shapes_of_the_head():
    risk = ClosedFormRisk()
    single, grid = Head.from_scores(1, 2), Head.from_scores(np.ones((3, 1)), np.ones((1, 4)))
    assert isinstance(risk.value(single), np.float64)
    assert risk.gradient(single).shape == (2,)
    assert risk.hessian(single).shape == (2, 2)
    assert risk.value(grid).shape == (3, 4)
    assert risk.gradient(grid).shape == (3, 4, 2)
    assert risk.hessian(grid).shape == (3, 4, 2, 2)
    assert risk.value(Head.from_scores([], [])).shape == (0,)


@pytest.mark.parametrize("method", ["value", "gradient", "hessian", "value_and_gradient"])
def test_a_head_of_another_half_width_is_refused(method):
    with pytest.raises(ValueError, match=r"half width 1\.0 of the risk, got 2\.0"):
        getattr(ClosedFormRisk(), method)(Head.from_scores(1, 1, half_width=2))


@pytest.mark.parametrize("half_width", [0, -1.0, np.nan, np.inf, "1", [1.0, 2.0]])
def test_a_half_width_that_is_none_is_refused(half_width):
    with pytest.raises(ValueError, match="half_width must be one positive finite number, got"):
        ClosedFormRisk(half_width)


def test_a_hessian_that_nearly_vanishes_keeps_its_absolute_accuracy():
    # Around this head all second derivatives are below 3e-3; measured at most 6e-16.
    for lam, mu in np.random.default_rng(8).normal((3.17, 4.36), 0.02, (30, 2)):
        head = Head.from_scores(lam, mu)
        true = high_precision(head)[2]
        found = components(ClosedFormRisk(), head)[2]
        assert (
            max(abs(true_one - float(x)) for true_one, x in zip(true, found, strict=True)) < 2e-15
        )
