"""The pair's risk against extended precision and its closed form; the flow that it drives."""

from itertools import pairwise

import mpmath
import numpy as np
import pytest

from popdyn import Head, ReflectedPairRisk, gradient_flow, limit_error, limit_laws

# --- the definition, in extended precision --------------------------------------------------------

# The layer of 1e-52 takes 52 of them, the small scale of 1e-9 takes 36.
DIGITS = 80
NODES = 24  # a panel; 28 change nothing before digit 30
PANELS = (0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 18.0, 27.0, 40.0, 60.0, 90.0)  # edges, times mu


@pytest.fixture(scope="module")
def mp():
    context = mpmath.mp.clone()
    context.dps = DIGITS
    return context


@pytest.fixture(scope="module")
def gauss(mp):
    nodes, weights = [], []
    for guess in np.polynomial.legendre.leggauss(NODES)[0]:
        x = mp.findroot(lambda t: mp.legendre(NODES, t), mp.mpf(guess))
        slope = NODES * (x * mp.legendre(NODES, x) - mp.legendre(NODES - 1, x)) / (x * x - 1)
        nodes.append((x + 1) / 2)
        weights.append(1 / ((1 - x * x) * slope**2))
    return nodes, weights


def integrals(mp, mu, low, high):
    """Integrals of `x^k exp(mu x)`, k = 0 to 3."""
    if mu == 0:
        return [(high ** (k + 1) - low ** (k + 1)) / (k + 1) for k in range(4)]
    found = []
    for k in range(4):
        ends = high**k * mp.exp(mu * high) - low**k * mp.exp(mu * low)
        found.append((ends - (k * found[-1] if k else 0)) / mu)
    return found


def error_jet(mp, s, lam, mu):
    """`F - alpha` of one head and its derivatives: lam, mu, lam lam, lam mu, mu mu."""
    positives = integrals(mp, mu, -s, mp.mpf(0))
    negatives = integrals(mp, mu, mp.mpf(0), 2 - s)
    up, down = mp.exp(lam), mp.exp(-lam)
    total = up * positives[0] + down * negatives[0]
    pairs = list(zip(positives, negatives, strict=True))
    x = [(up * p + down * n) / total for p, n in pairs]
    y = [(up * p - down * n) / total for p, n in pairs]
    f = x[1]
    covariance, variance = y[1] - y[0] * f, x[2] - f * f
    return (
        f,
        covariance,
        variance,
        -2 * y[0] * covariance,
        y[2] - y[0] * x[2] - 2 * f * covariance,
        x[3] - f * x[2] - 2 * f * variance,
    )


def risk_jet(mp, gauss, lam, delta, mu):
    """Value, gradient and Hessian from the definition: six numbers, half width 1."""
    sign = -1 if mu < 0 else 1
    place = max(sign * delta, -sign * lam)  # negative: the labels lose inside, at -2 place / mu
    rate = max(abs(mu), 1)
    layer = mp.exp(-2 * place) / rate if place > 0 else mp.mpf(1)
    centre = max(-2 * place / abs(mu), 0) if mu else 0
    offsets = [0, *PANELS, *(-offset for offset in PANELS)]
    edges = sorted({centre + offset / rate for offset in offsets} | {mp.mpf(0), mp.mpf(1)})
    edges = [edge for edge in edges if 0 <= edge <= 1]
    sums = [mp.mpf(0)] * 6
    for low, high in pairwise(edges):
        # s = layer expm1(v) on the panel at the end, in parts
        last = mp.log1p(high / layer)
        parts = int(last / 2) + 1 if low == 0 else 1
        for part in range(parts):
            for node, weight in zip(*gauss, strict=True):
                if low == 0:
                    v = last * (part + node) / parts
                    s, weight = layer * mp.expm1(v), weight * last / parts * layer * mp.exp(v)
                else:
                    s, weight = low + (high - low) * node, weight * (high - low)
                plain, other = error_jet(mp, s, lam, mu), error_jet(mp, s, -lam, -mu)
                e, e_l, e_m, e_ll, e_lm, e_mm = (
                    (one + parity * two) / 2
                    for one, two, parity in zip(plain, other, (1, -1, -1, 1, 1, 1), strict=True)
                )
                terms = (
                    e * e,
                    2 * e * e_l,
                    2 * e * e_m,
                    2 * (e_l * e_l + e * e_ll),
                    2 * (e_l * e_m + e * e_lm),
                    2 * (e_m * e_m + e * e_mm),
                )
                sums = [total + weight * term for total, term in zip(sums, terms, strict=True)]
    return np.array([float(total) for total in sums])


HEADS = {
    "origin nearby": Head.from_scores(3e-9, -1e-9),
    "mild": Head.from_scores(0.15, 0.2),
    "no scale": Head.from_scores(1.5, 0.0),
    "thin layer at small scale": Head.from_scores(20.0, 0.1),
    "below the border of the two forms": Head.from_scores(2.0, 0.999),
    "above it": Head.from_scores(2.0, 1.001),
    "towards the tube": Head.from_ratio(1.5, 5.0),
    "on the pair's tube": Head.from_excess(1.5 * np.log(1000.0), 1000.0),
    "far out on it": Head.from_excess(1.5 * np.log(1e6), 1e6),
    "far above it": Head.from_excess(60.0, 30.0),
    "labels lose at the middle": Head.from_scores(20.0, 40.0),
    "labels lose near the end": Head.from_scores(3.5, 4.0),
    "wrong label": Head.from_scores(-6.0, 9.0),
    "negative scale": Head.from_scores(-7.0, -6.0),
}
# Relative to the largest component; measured 1.3e-15, 8e-16, 7e-16.
VALUE, GRADIENT, HESSIAN = 3e-15, 4e-15, 4e-15


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_value_gradient_and_hessian_are_those_of_the_definition(mp, gauss, head):
    mu = mp.mpf(float(head.scale))
    name, given = head.given
    if name == "excess":
        delta = mp.mpf(float(given))
        lam = delta + mu
    else:
        lam = mp.mpf(float(head.label_score))
        delta = lam - mu
    exact = risk_jet(mp, gauss, lam, delta, mu)
    risk = ReflectedPairRisk()
    value, gradient = risk.value_and_gradient(head)
    hessian = risk.hessian(head)[[0, 0, 1], [0, 1, 1]]
    assert abs(value / exact[0] - 1) < VALUE
    assert np.abs(gradient - exact[1:3]).max() < GRADIENT * np.abs(exact[1:3]).max()
    assert np.abs(hessian - exact[3:]).max() < HESSIAN * np.abs(exact[3:]).max()


# --- other routes ---------------------------------------------------------------------------------

# Relative, of the value and of the gradient's norm; measured 9e-16 and 1.7e-15.
CLOSED_FORM = 5e-15


def closed_form(mp, lam, mu, ell):
    """The risk up to `exp(-2 mu l)`, as `derivations.reflected_training` derives it."""
    q = mp.exp(-2 * (lam - mu * ell))
    li2, li3 = (mp.re(mp.polylog(order, 1 - q)) for order in (2, 3))
    return (
        (li2 - li3) / (2 * ell * mu**3)
        - q * (mp.log(q) + li2) / ((1 - q) * mu**2)
        + ell * q * (1 - q + q * mp.log(q)) / ((1 - q) ** 2 * mu)
    )


@pytest.mark.parametrize("half_width", [1.0, 2.5])
@pytest.mark.parametrize("scale", [40.0, 441.0, 3e4, 1e8])
@pytest.mark.parametrize("offset", [-1.0, 1.0])
def test_on_the_tube_the_risk_is_the_closed_form(mp, half_width, scale, offset):
    head = Head.from_excess(1.5 * np.log(scale) + offset, scale, half_width)
    value, gradient = ReflectedPairRisk(half_width).value_and_gradient(head)
    mu, ell = mp.mpf(scale), mp.mpf(half_width)
    place = mp.mpf(float(head.excess)) + mu * ell, mu
    slopes = [
        mp.diff(lambda *scores: closed_form(mp, *scores, ell), place, n) for n in ((1, 0), (0, 1))
    ]
    slopes = np.array([float(slope) for slope in slopes])
    assert abs(value / float(closed_form(mp, *place, ell)) - 1) < CLOSED_FORM
    assert np.abs(gradient - slopes).max() < CLOSED_FORM * np.abs(slopes).max()


NUMPY_NODES = 1e-13  # measured 3e-14, nearly all of it from the nodes


def test_the_risk_is_the_mean_square_of_the_averaged_errors():
    head = Head.from_scores(2.0, 1.5)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    error = (limit_error(head, nodes) + limit_error(head.reflected, nodes)) / 2
    assert ReflectedPairRisk().value(head) == pytest.approx(
        weights @ error**2 / 2, rel=NUMPY_NODES, abs=0
    )


def test_in_the_interior_the_pair_errs_less_than_the_bulk_of_one_head():
    head = Head.from_excess(1.5 * np.log(200.0), 200.0)
    assert ReflectedPairRisk().value(head) < 0.01 / 200.0**2


def test_a_head_and_its_reflection_are_one_pair_bit_for_bit():
    rng = np.random.default_rng(7)
    head = Head.from_scores(*rng.normal(0.0, [[20.0], [10.0]], (2, 50)))
    risk = ReflectedPairRisk()
    np.testing.assert_array_equal(risk.value(head.reflected), risk.value(head))
    np.testing.assert_array_equal(risk.gradient(head.reflected), -risk.gradient(head))
    np.testing.assert_array_equal(risk.hessian(head.reflected), risk.hessian(head))


@pytest.mark.parametrize("lam, mu", [(1e5, 0.3), (-1e300, 1e-300), (5.0, 1e300), (1e4, -1e12)])
def test_extreme_heads_have_finite_risks(lam, mu):
    risk, head = ReflectedPairRisk(), Head.from_scores(lam, mu)
    value, gradient = risk.value_and_gradient(head)
    assert 0 <= value <= 1
    assert np.isfinite(gradient).all()
    assert np.isfinite(risk.hessian(head)).all()


def test_the_gradient_keeps_its_digits_at_the_smallest_radius():
    # The Hessian at the origin is [[-4/15, 4/45], [4/45, 0]], from `F` to second order.
    gradient = ReflectedPairRisk().gradient(Head.from_scores(3e-300, 2e-300))
    np.testing.assert_allclose(gradient, [-28e-300 / 45, 12e-300 / 45], rtol=1e-14)


@pytest.mark.parametrize("half_width", [0.0, -1.0, np.inf, np.nan, "wide"])
def test_a_half_width_that_is_no_positive_number_is_refused(half_width):
    with pytest.raises(ValueError, match="half_width must be one positive finite number"):
        ReflectedPairRisk(half_width)


# --- training the pair (MODEL §7) -----------------------------------------------------------------

TIMES = np.array([1e8, 1e10, 1e12, 1e13])
FIFTH_POWER = np.array([1.6427, 1.6526, 1.6573, 1.6585])  # mu^5/t at these times, MODEL §7
LAST_LAYER = 0.1601  # q mu^3 at the last
PRINTED = 1e-4  # all digits of those numbers


@pytest.fixture(scope="module")
def trained():
    start = Head.from_ratio(1.5, 5.0)
    return gradient_flow(ReflectedPairRisk(), start, TIMES[-1], t_eval=TIMES)


def layer(run, half_width=1.0):
    return np.exp(-2.0 * run.excess) * run.scale**3


def test_the_fifth_power_of_the_scale_grows_as_measured(trained):
    np.testing.assert_allclose(trained.scale**5 / TIMES, FIFTH_POWER, atol=PRINTED)
    assert layer(trained)[-1] == pytest.approx(LAST_LAYER, abs=PRINTED)


# First corrections to the laws are relative and of order 1/mu: measured -0.48/mu to -0.60/mu in
# mu^5/t, 1.08/mu to 1.11/mu in the risk.
CORRECTION = 1.3


def test_scale_and_risk_follow_the_laws_up_to_their_first_corrections(trained):
    rate = trained.scale**5 / TIMES / limit_laws.pair_fifth_power_rate()
    risk = trained.risk / limit_laws.pair_risk_at(TIMES)
    assert (np.abs(rate - 1) < CORRECTION / trained.scale).all()
    assert (np.abs(risk - 1) < CORRECTION / trained.scale).all()


def test_the_layer_settles_at_its_law_up_to_the_logarithm_of_the_scale(trained):
    # The first correction is relative, -3 log(mu)/mu with terms of 1/mu: 0.87 to 0.68 of it.
    corrections = 1 - layer(trained) / limit_laws.pair_layer()
    logarithms = 3 * np.log(trained.scale) / trained.scale
    assert (corrections > 0.5 * logarithms).all()
    assert (corrections < logarithms).all()


def test_another_half_width_trains_by_its_own_law():
    start = Head.from_ratio(3.0, 4.0, half_width=2.0)
    run = gradient_flow(ReflectedPairRisk(2.0), start, 1e13)
    rate = run.scale[-1] ** 5 / run.t[-1] / limit_laws.pair_fifth_power_rate(2.0)
    assert abs(rate - 1) < CORRECTION / run.scale[-1]
