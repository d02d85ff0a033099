"""The expansion of the tube against the slow manifold itself, solved for in 50 digits."""

import json
from functools import cache
from pathlib import Path

import mpmath
import pytest

from derivations import tube_expansion
from popdyn import ArbitraryPrecisionRisk, asymptotics

REFERENCE = Path(__file__).parent / "reference"
DIGITS = 45
NODES = 17  # odd, so that the scale asked for is one
SPAN = 0.25  # of log mu, each way from the scale asked for
SCALES = ("1e2", "1e4", "1e6")
WIDTHS = (0.5, 1.0, 2.0)
ORDERS = (1, 2, 3, 4, 5)


def slowness(scale, half_width, order):
    return 1 / asymptotics.growth_rate(scale, half_width, order)


LAWS = {
    "tube_center": (asymptotics.tube_center, lambda ell, mu: 1),
    "time": (asymptotics.time_at, lambda ell, mu: (1 + ell**2) * mu**4 / 8),
    "pace": (slowness, lambda ell, mu: (1 + ell**2) * mu**3 / 2),
    "risk": (asymptotics.risk_in_tube, lambda ell, mu: mu**-2),
}
# The difference over the first neglected term is 1 up to this times log(mu)/(mu l): measured at
# most 2.44 (l = 2, order 2, mu = 100).
NEXT_TERM = 3.0
FLOW = 2e-13  # of c at mu = 100, l = 1: e^-400 off the manifold; the file is good to 4e-14
DOUBLE = 1e-15  # relative: measured at most 1.9e-16

mp = mpmath.mp.clone()
mp.dps = DIGITS + 10


@pytest.fixture(scope="module")
def expansion():
    return tube_expansion.expand()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("order", ORDERS)
def test_what_an_order_misses_is_the_next_term_with_its_logarithms(expansion, order, width, scale):
    ell, mu = mp.mpf(width), mp.mpf(scale)
    kept, more = (
        tube_expansion.evaluate(expansion.tube_center[:n], mp, ell, mu)
        for n in (order + 1, order + 2)
    )
    missed = slow_manifold(width, scale) - kept
    assert abs(missed / (more - kept) - 1) <= NEXT_TERM * mp.log(mu) / (mu * ell)


def test_the_slow_manifold_is_where_a_flow_goes():
    flow = json.loads((REFERENCE / "flow.json").read_text(encoding="utf-8"))[0]
    passage = next(hit for hit in flow["hitting"] if hit["scale"] == 100)
    assert abs(slow_manifold(flow["half_width"], "1e2") - passage["tube_coordinate"]) <= FLOW


def test_the_stored_coefficients_are_those_derived(expansion):
    stored = json.loads(tube_expansion.STORED.read_text(encoding="utf-8"))
    assert stored == tube_expansion.as_data(expansion)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", LAWS)
def test_the_laws_in_doubles_are_the_derived_series(expansion, name, width):
    law, leading = LAWS[name]
    for order in range(tube_expansion.ORDER + 1):
        for scale in (10.0, 321.0, 1e5):
            series = tube_expansion.evaluate(
                getattr(expansion, name)[: order + 1], mp, mp.mpf(width), mp.mpf(scale)
            )
            exact = series * leading(mp.mpf(width), mp.mpf(scale))
            assert float(law(scale, width, order) / exact - 1) == pytest.approx(0, abs=DOUBLE)


@cache
def slow_manifold(width, scale):
    """Tube coordinate of the slow manifold at a scale.

    The manifold is the smooth solution of dc/dmu = v(c, mu). On a span over which the others fall
    by e^-30 or more, a polynomial through Chebyshev nodes in log mu cannot follow any of those; so
    collocation without an initial value finds it. Newton's method starts from a constant.
    """
    risk = ArbitraryPrecisionRisk(width, DIGITS)
    nodes = [mp.cos(mp.pi * i / (NODES - 1)) for i in range(NODES)]
    scales = [mp.mpf(scale) * mp.exp(SPAN * node) for node in nodes]
    derivative = _differentiation(nodes) / SPAN
    c = mp.matrix([mp.log(2 * (1 + mp.mpf(width) ** 2)) / 2] * NODES)
    for _ in range(8):
        slopes = [mu * _slope(risk, c[i], mu) for i, mu in enumerate(scales)]
        residual = derivative * c - mp.matrix([value for value, _ in slopes])
        jacobian = derivative - mp.diag([by_c for _, by_c in slopes])
        step = mp.lu_solve(jacobian, residual)
        c -= step
        if mp.norm(step, mp.inf) < mp.mpf(10) ** (5 - DIGITS):
            return c[NODES // 2]
    raise AssertionError(f"Newton's method ended with a step of {mp.nstr(mp.norm(step, mp.inf))}")


def _differentiation(nodes):
    """Matrix of the derivative of the polynomial through Chebyshev's extreme points."""
    ends = (0, len(nodes) - 1)
    weights = [(-1) ** i * (mp.mpf(1) / 2 if i in ends else 1) for i in range(len(nodes))]
    matrix = mp.zeros(len(nodes))
    for i, x in enumerate(nodes):
        for j, y in enumerate(nodes):
            if i != j:
                matrix[i, j] = weights[j] / weights[i] / (x - y)
                matrix[i, i] -= matrix[i, j]
    return matrix


def _slope(risk, c, mu):
    """dc/dmu of the flow, and its derivative in c, as a vector."""
    here = risk.evaluate(tube=c, scale=mu)
    (by_lam, by_mu), (lam_lam, lam_mu, _) = here.gradient, here.hessian
    value = mp.fdiv(by_lam, by_mu) - risk.half_width - 1 / mu
    return mp.matrix([value, (lam_lam * by_mu - by_lam * lam_mu) / mp.mpf(by_mu) ** 2])
