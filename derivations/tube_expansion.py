"""The flow's slow manifold c(mu) is a series in 1/mu with coefficients polynomial in log mu.

MODEL §4, carried to order 8; t(mu) and L(mu) along it are such series too. Assumes mu -> infinity
with c = delta - log mu bounded: terms of order exp(-2 mu l) are dropped, so no power is lost.

Symbols: half width l > 0; M = mu l > 0, u = 1/M; h = l^2/(1 + l^2) in (0, 1), the only way in which
l enters once lengths are measured in l, since L_l(lam, mu) = l^2 L_1(lam, mu l) and only the metric
of the flow knows l; center = c* = log(2 (1 + l^2))/2; Lambda = log mu + c*, a symbol of its own
with dLambda/dM = u; zeta2 and zeta3, the zeta values. No other transcendental number enters.

The result is stored as data for `popdyn.asymptotics` (`python -m derivations.tube_expansion
--store`). MODEL §4 is right about b; sharper here is that the next term is
-log(mu)/((1 + l^2) mu^2) + O(mu^-2), and that only every second order raises the power of log mu.
"""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sympy import QQ, symbols
from sympy.polys.ring_series import rs_exp, rs_mul, rs_series_inversion, rs_trunc
from sympy.polys.rings import PolyElement, ring

from derivations import tube_risk
from derivations.checks import Chain, show
from derivations.scale_growth import in_tube_coordinates

ORDER = 8
STORED = Path(__file__).parents[1] / "popdyn" / "tube_coefficients.json"

SERIES, u, h, Lambda, zeta2, zeta3, center = ring("u,h,Lambda,zeta2,zeta3,center", QQ)
ZERO, ONE = SERIES(0), SERIES(1)

# A function of q near 0 is a list of pairs (a_n, b_n): the sum of q^n (a_n + b_n log q).
LogSeries = list[tuple[PolyElement, PolyElement]]


class Expansion(NamedTuple):
    """Coefficients of u^k, k = 0..order, relative to the leading power of mu."""

    tube_center: list[PolyElement]  # c = sum
    pace: list[PolyElement]  # dt/dmu = (1 + l^2) mu^3/2 times the sum
    time: list[PolyElement]  # t = (1 + l^2) mu^4/8 times the sum
    risk: list[PolyElement]  # L = mu^-2 times the sum


def risk_parts(length: int) -> tuple[LogSeries, LogSeries, LogSeries]:
    """Series of f1, f2, f3 in L_1 = u^2 + 2 f1 u - 2 f2 u^2 - f3 u^3 (see tube_risk)."""
    n_range = range(1, length + 1)
    f1 = [(ZERO, ZERO)] + [(ONE, SERIES(n - 1)) for n in n_range]
    dilog = [(zeta2, ZERO)] + [(SERIES(QQ(-1, n**2)), SERIES(QQ(1, n))) for n in n_range]
    f2 = [(ZERO, ZERO)]  # q/(1 - q) Li2(1 - q): partial sums, shifted by one
    for a, b in dilog[:-1]:
        f2.append((f2[-1][0] + a, f2[-1][1] + b))
    f3 = [(zeta3, ZERO)]  # q d/dq Li3(1 - q) = -f2
    f3 += [(b * QQ(1, n**2) - a * QQ(1, n), -b * QQ(1, n)) for n, (a, b) in enumerate(f2) if n]
    return f1, f2, f3


def theta(f: LogSeries) -> LogSeries:
    """q d/dq."""
    return [(n * a + b, n * b) for n, (a, b) in enumerate(f)]


def along(d: PolyElement, order: int) -> tuple[PolyElement, PolyElement, PolyElement]:
    """`M^2 L_1`, `M^3 2 q dL_1/dq`, `M^3 dL_1/dM` on the curve c = c* + d(u), through u^order."""
    precision = order + 3
    half_h = h * QQ(1, 2)
    q = u**2 * (half_h * rs_exp(-2 * d, u, precision) if d else half_h)
    log_q = -2 * (Lambda + d)
    powers = [ONE]
    while len(powers) < precision // 2 + 1:
        powers.append(rs_mul(powers[-1], q, u, precision))

    def at(f: LogSeries) -> PolyElement:
        plain = sum((a * p for (a, _), p in zip(f, powers, strict=True)), ZERO)
        logged = sum((b * p for (_, b), p in zip(f, powers, strict=True)), ZERO)
        return plain + rs_mul(logged, log_q, u, precision)

    f1, f2, f3 = risk_parts(len(powers) - 1)
    value = 1 + 2 * at(f1).quo(u) - 2 * at(f2) - u * at(f3)
    by_q = 4 * at(theta(f1)).quo(u**2) - 4 * at(theta(f2)).quo(u) - 2 * at(theta(f3))
    by_scale = -2 - 2 * at(f1).quo(u) + 4 * at(f2) + 3 * u * at(f3)
    return tuple(rs_trunc(part, u, order + 1) for part in (value, by_q, by_scale))


def slope(d: PolyElement) -> PolyElement:
    """d delta/dM on the curve, from delta = Lambda + d."""
    return u * (1 + d.diff(Lambda) - u * d.diff(u))


def residual(d: PolyElement, order: int) -> PolyElement:
    """What the curve fails the flow by: d delta/dt = h (...) and dM/dt times the slope."""
    _, by_q, by_scale = along(d, order)
    return rs_trunc(by_q + h * by_scale + h * (by_q + by_scale) * slope(d), u, order + 1)


def coefficients(series: PolyElement, order: int) -> list[PolyElement]:
    parts = [dict() for _ in range(order + 1)]
    for powers, number in series.terms():
        parts[powers[0]][(0, *powers[1:])] = number
    return [SERIES.from_dict(part) for part in parts]


def expand(order: int = ORDER) -> Expansion:
    d = ZERO
    for k in range(1, order + 1):
        # d_k enters the residual at u^k through q alone, as -4 h d_k
        d += u**k * coefficients(residual(d, k), k)[k].exquo(4 * h)
    value, _, by_scale = along(d, order)
    # dM/dt from the flow, with dL_1/dq eliminated: the curve solves it
    inverse = rs_series_inversion(-by_scale * QQ(1, 2), u, order + 1)
    pace = coefficients(rs_mul(1 + h * slope(d), inverse, u, order + 1), order)
    return Expansion(
        tube_center=[center, *coefficients(d, order)[1:]],
        pace=pace,
        time=[_time(4 - k, 4 * part) for k, part in enumerate(pace)],
        risk=coefficients(value, order),
    )


def _time(power: int, source: PolyElement) -> PolyElement:
    """T(Lambda) with d/dM (M^power T) = M^(power - 1) source; 0 at mu = 1 if power is 0."""
    if power == 0:
        antiderivative = sum(
            (SERIES({m: c}) * Lambda * QQ(1, m[2] + 1) for m, c in source.terms()), ZERO
        )
        return antiderivative - antiderivative.compose(Lambda, center)
    solution, rest = ZERO, source
    while rest:
        solution += rest * QQ(1, power)
        rest = -rest.diff(Lambda) * QQ(1, power)
    return solution


def derive(chain: Chain) -> Expansion:
    for name, stated, exact in zip(
        ("f1", "f2", "f3"), risk_parts(8), tube_risk.parts(), strict=True
    ):
        chain.checked(
            f"the series of {name} in q and log q is that of tube_risk",
            exact,
            partial(_summed, stated),
            [{tube_risk.q: "1/10000"}],
            digits=29,  # q^9 log q against q
        )
    expansion = expand()
    d = sum((u**k * part for k, part in enumerate(expansion.tube_center) if k), ZERO)
    pace, time, risk = (
        sum((u**k * part for k, part in enumerate(series)), ZERO)
        for series in (expansion.pace, expansion.time, expansion.risk)
    )
    _, by_q, by_scale = along(d, ORDER)

    def through_order(polynomial):
        return rs_trunc(polynomial, u, ORDER + 1).as_expr()

    chain.proved("the curve solves the flow through u^8", residual(d, ORDER).as_expr())
    chain.proved(
        "pace times velocity is 1: (1 - h) mu^3 dmu/dt is -(M^3/2) (L_M - L_delta)",
        through_order(-pace * (by_q + by_scale)),
        2 - 2 * h.as_expr(),
    )
    chain.proved(
        "time has the slope that pace states",
        through_order(4 * time - u * time.diff(u) + time.diff(Lambda)),
        4 * pace.as_expr(),
    )
    chain.proved(
        "and no constant: it is 0 at log mu = 0",
        expansion.time[4].compose(Lambda, center).as_expr(),
    )
    chain.proved(
        "risk has the slope L_M + L_delta d delta/dM, and L_delta = -2 q L_q",
        through_order(risk.diff(Lambda) - u * risk.diff(u) - 2 * risk),
        through_order(by_scale - by_q * slope(d)),
    )

    l_, zeta_2, zeta_3 = symbols("l", positive=True), zeta2.as_expr(), zeta3.as_expr()
    part = l_**2 / (1 + l_**2)
    chain.proved(
        "MODEL's b, the coefficient of 1/mu",
        expansion.tube_center[1].as_expr().subs(h.as_expr(), part) / l_,
        (3 * zeta_3 - 2 - 2 * zeta_2 + part) / (4 * l_),
    )
    chain.proved(
        "the first logarithm is -log(mu)/((1 + l^2) mu^2)",
        expansion.tube_center[2].diff(Lambda).as_expr().subs(h.as_expr(), part) / l_**2,
        -1 / (1 + l_**2),
    )
    points = [{l_: width, symbols("mu", positive=True): 10**6} for width in ("1/2", 1, 2)]
    exact = partial(_exact, expansion.tube_center)
    chain.checked(
        "the exact flow at a point of the curve has the curve's slope",
        lambda mp, ell, mu: ell * evaluate(coefficients(slope(d), ORDER + 1), mp, ell, mu),
        lambda mp, *point: mp.fdiv(*in_tube_coordinates(point[0], *exact(mp, *point)[1:])),
        points,
        digits=36,
    )
    chain.checked(
        "and the velocity that pace states",
        lambda mp, ell, mu: 2 / ((1 + ell**2) * mu**3 * evaluate(expansion.pace, mp, ell, mu)),
        lambda mp, *point: in_tube_coordinates(point[0], *exact(mp, *point)[1:])[1],
        points,
        digits=45,
    )
    chain.checked(
        "and the risk",
        lambda mp, ell, mu: evaluate(expansion.risk, mp, ell, mu) / mu**2,
        lambda mp, *point: exact(mp, *point)[0],
        points,
        digits=45,
    )
    return expansion


def evaluate(series: list[PolyElement], mp: Any, ell: Any, mu: Any) -> Any:
    """Sum of a series, to the digits of an mpmath context."""
    middle = mp.log(2 * (1 + ell**2)) / 2
    values = (1, ell**2 / (1 + ell**2), mp.log(mu) + middle, mp.zeta(2), mp.zeta(3), middle)
    return sum(
        (mu * ell) ** -k
        * mp.fdiv(int(number.numerator), int(number.denominator))
        * mp.fprod(value**power for value, power in zip(values, powers, strict=True))
        for k, part in enumerate(series)
        for powers, number in part.terms()
    )


def _summed(series: LogSeries, mp: Any, q: Any) -> Any:
    """A log series at a number."""
    return sum(
        q**n * (evaluate([a], mp, 1, 1) + evaluate([b], mp, 1, 1) * mp.log(q))
        for n, (a, b) in enumerate(series)
    )


def _exact(tube_center: list[PolyElement], mp: Any, ell: Any, mu: Any) -> tuple[Any, Any, Any]:
    """Risk and slopes on the curve, by quadrature of the definition."""
    q = mp.exp(-2 * evaluate(tube_center, mp, ell, mu)) / mu**2
    return tube_risk.by_quadrature(mp, ell, mu, q)


def as_data(expansion: Expansion) -> dict[str, list[list[str]]]:
    """Series by name; in each, index k holds (mu l)^-k, and in it index j holds Lambda^j."""

    def by_logarithm(polynomial: PolyElement) -> list[str]:
        parts = [dict() for _ in range(polynomial.degree(Lambda) + 1 if polynomial else 1)]
        for powers, number in polynomial.terms():
            parts[powers[2]][(*powers[:2], 0, *powers[3:])] = number
        return [str(SERIES.from_dict(part)).replace("**", "^") for part in parts]

    return {
        name: [by_logarithm(coefficient) for coefficient in series]
        for name, series in expansion._asdict().items()
    }


if __name__ == "__main__":
    if sys.argv[1:] == ["--store"]:
        STORED.write_text(json.dumps(as_data(expand()), indent=1) + "\n", encoding="utf-8")
    else:
        show(derive)
