"""Population risk and gradient: batches of heads on the tube and all over the plane (MODEL §3)."""

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np

from benchmarks.contest import (
    Answer,
    Case,
    Goal,
    Row,
    Section,
    Way,
    Work,
    mean_ratio,
    seconds_of,
    worst_error,
)
from benchmarks.graded_rule import compiled, graded, integrand
from popdyn import ClosedFormRisk, Design, Head, InfiniteContextRisk, boundary_graded

ACCURACY = 1e-12
OURS, GRADED = "popdyn", "graded rule of 80 nodes, Numba"
QUADAX, TUNED = "quadax, break points", "quadax, break points, tuned"
HEADS = 1000
CHECKED = 3  # rows against the oracle, 0.3 s each; heads come in random order
DIGITS = 30
GAUSS_ORDER = 400
EACH_US, EACH_MS = 30, 3  # heads a call of the ways that need microseconds, milliseconds a head
LADDER = 8
SEED = 1


def _tube(quick: bool) -> list[Case]:
    scales = (5.0, 500.0) if quick else (5.0, 50.0, 500.0, 5e3, 1e6)
    rng = np.random.default_rng(SEED)
    cases = []
    for mu in scales:
        scale = mu * rng.uniform(0.99, 1.01, HEADS)
        head = Head.from_tube(math.log(2.0) + rng.uniform(-0.1, 0.1, HEADS), scale)
        cases.append(Case(f"mu = {mu:g}", head, _exact(head), mu))
    return cases


# Where in the plane, in the ratio or the label score: (name, coordinate, its range, scales).
_PLACES = (
    ("radius below 1/2", "label_score", (0.0, 0.4), (0.01, 0.3)),
    ("scale 1 to 1.4", "label_score", (0.2, 1.0), (1.0, 1.4)),
    ("small scale, lam 3 to 6", "label_score", (3.0, 6.0), (0.1, 1.0)),
    ("ratio below 1/2", "ratio", (0.05, 0.45), (3.0, 50.0)),
    ("ratio 0.6 to 0.95", "ratio", (0.6, 0.95), (3.0, 50.0)),
    ("ratio above 1", "ratio", (1.05, 2.0), (3.0, 50.0)),
)


def _plane(quick: bool) -> list[Case]:
    rng = np.random.default_rng(SEED)
    cases = []
    for name, coordinate, span, scales in _PLACES[::3] if quick else _PLACES:
        make = Head.from_ratio if coordinate == "ratio" else Head.from_scores
        scale = np.exp(rng.uniform(*np.log(scales), HEADS))
        head = make(rng.uniform(*span, HEADS), scale)
        cases.append(Case(name, head, _exact(head)))
    return cases


def _exact(head: Head) -> Answer:
    """Risk and gradient of the first heads by quadrature in 30 digits, shape (CHECKED, 3)."""
    context = mpmath.MPContext()
    context.dps = DIGITS
    return np.array([_by_mpmath(context, *pair) for pair in _pairs(head, CHECKED)])


def _pairs(head: Head, n_heads: int) -> list[tuple[float, float]]:
    return [
        (float(delta), float(mu))
        for delta, mu in zip(head.excess[:n_heads], head.scale[:n_heads], strict=True)
    ]


def _breaks(delta: float, mu: float, factor: float = 4.0) -> list[float]:
    """Break points over `[0, 2]`, geometric from the thinner of the layers on."""
    first = math.exp(-2.0 * max(delta, 0.0)) / mu
    turn = -2.0 * delta / mu  # where the labels lose to the features
    n_points = math.ceil(math.log(min(2.0, 45.0 / mu) / first, factor))
    ladder = [first * factor**power for power in range(n_points)]
    around = [turn + offset / mu for offset in (-45, -20, -8, -3, 0, 3, 8, 20, 45)]
    inside = {s for s in ladder + (around if delta < 0 else [45 / mu]) if 1e-300 < s < 2.0}
    return [0.0, *sorted(inside), 2.0]


def _by_mpmath(context: Any, delta: float, mu: float, breaks: bool = True) -> list[Any]:
    points = _breaks(delta, mu) if breaks else [0.0, 2.0]
    delta, mu = context.mpf(delta), context.mpf(mu)

    def term(index: int, s: Any) -> Any:
        return integrand(context.exp, context.expm1, s, delta, mu)[index]

    sums = [context.quad(partial(term, index), points) for index in range(3)]
    return [mu**-2 + sums[0], sums[1], -2 * mu**-3 + sums[2]]


def distance(answer: Answer, exact: Answer) -> float:
    """Worst relative error of the value, and of the gradient by its larger component."""
    rows = min(len(answer), len(exact))
    wrong = np.abs(answer[:rows] - exact[:rows]) / np.abs(exact[:rows])
    size = np.abs(exact[:rows, 1:]).max(axis=1, keepdims=True)
    gradient = np.abs(answer[:rows, 1:] - exact[:rows, 1:]) / size
    return float(np.max(np.column_stack((wrong[:, 0], gradient))))


# --- ways -----------------------------------------------------------------------------------------


def _of_risk(risk: Any, head: Head) -> Work:
    def work() -> Answer:
        value, gradient = risk.value_and_gradient(head)
        return np.column_stack((value, gradient))

    return work


def _ours(head: Head) -> Work:
    return _of_risk(ClosedFormRisk(), head)


def _one_by_one(head: Head) -> Work:
    heads = [Head.from_excess(delta, mu) for delta, mu in _pairs(head, 100)]
    risk = ClosedFormRisk()

    def work() -> Answer:
        found = [risk.value_and_gradient(one) for one in heads]
        return np.array([(value, *gradient) for value, gradient in found])

    return work


def _our_rule(head: Head) -> Work:
    return _of_risk(InfiniteContextRisk(Design(), boundary_graded()), head)


def _graded(head: Head) -> Work:
    fill = compiled()
    delta, mu = np.array(head.excess), np.array(head.scale)

    def work() -> Answer:
        rows = np.empty((mu.size, 3))
        fill(delta, mu, rows)
        return rows

    return work


def _graded_numpy(head: Head) -> Work:
    pairs = _pairs(head, EACH_US)
    return lambda: np.array([graded(np, *pair) for pair in pairs])


def _gauss_legendre(head: Head) -> Work:
    nodes, weights = np.polynomial.legendre.leggauss(GAUSS_ORDER)
    pairs = _pairs(head, EACH_US)

    def one(delta: float, mu: float) -> tuple[float, float, float]:
        value, by_lam, by_mu = integrand(np.exp, np.expm1, nodes + 1.0, delta, mu)
        return mu**-2 + weights @ value, weights @ by_lam, -2 * mu**-3 + weights @ by_mu

    return lambda: np.array([one(*pair) for pair in pairs])


def _quad(head: Head, breaks: bool) -> Work:
    from scipy.integrate import quad

    pairs = _pairs(head, EACH_MS)
    # with the full output scipy does not warn: what it does not say is measured here
    options = {"epsabs": 0.0, "epsrel": ACCURACY, "full_output": 1}

    def one(delta: float, mu: float) -> list[float]:
        points = _breaks(delta, mu) if breaks else [0.0, 2.0]
        sums = []
        for index in range(3):

            def term(s: float, index: int = index) -> float:
                return integrand(math.exp, math.expm1, s, delta, mu)[index]

            sums.append(sum(quad(term, *panel, **options)[0] for panel in pairwise(points)))
        return [mu**-2 + sums[0], sums[1], -2 * mu**-3 + sums[2]]

    def work() -> Answer:
        return np.array([one(*pair) for pair in pairs])

    return work


@cache
def _adaptive(order: int, extrapolate: bool) -> Callable[..., Any]:
    import jax
    import quadax

    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy

    def term(s: Any, delta: Any, mu: Any) -> Any:
        return jnp.stack(integrand(jnp.exp, jnp.expm1, s, delta, mu))

    @jax.jit
    def one(delta: Any, mu: Any, ladder: Any) -> Any:
        sums, _ = quadax.quadgk(
            term,
            ladder,
            args=(delta, mu),
            epsabs=0.0,
            epsrel=1e-12,
            order=order,
            extrapolate=extrapolate,
        )
        return sums + jnp.stack((mu**-2, 0.0 * mu, -2.0 * mu**-3))

    return one


def _quadax(head: Head, factor: float, order: int, extrapolate: bool) -> Work:
    one = _adaptive(order, extrapolate)
    heads = []
    for delta, mu in _pairs(head, EACH_US):
        ladder = _breaks(delta, mu, factor)
        # few shapes, so that little compiles: repeated ends are panels of no width
        padding = -len(ladder) % LADDER
        heads.append((delta, mu, np.array([0.0] * padding + ladder)))
    return lambda: np.array([one(*each) for each in heads])


def _arb_integral(head: Head) -> Work:
    import flint

    pairs = _pairs(head, EACH_MS)

    def one(*scores: float) -> list[float]:
        delta, mu = (flint.acb(score) for score in scores)
        sums = []
        for index in range(3):

            def term(s: Any, _: bool, index: int = index) -> Any:
                return integrand(flint.acb.exp, flint.acb.expm1, s, delta, mu)[index]

            # the absolute goal is for the smallest of gradients, of mu = 1e6
            sums.append(flint.acb.integral(term, 0, 2, abs_tol=flint.arb(2) ** -150))
        rows = (mu**-2 + sums[0], sums[1], -2 * mu**-3 + sums[2])
        return [float(row.real.mid()) for row in rows]

    def work() -> Answer:
        before, flint.ctx.prec = flint.ctx.prec, 100
        try:
            return np.array([one(*pair) for pair in pairs])
        finally:
            flint.ctx.prec = before

    return work


def _balls(head: Head) -> Work:
    from popdyn.enclosures import risk_balls

    heads = [Head.from_excess(*pair) for pair in _pairs(head, EACH_MS)]

    def work() -> Answer:
        found = [risk_balls(one) for one in heads]
        balls = [(each.risk, *each.gradient) for each in found]
        return np.array([[float(ball.mid()) for ball in row] for row in balls])

    return work


def _mpmath(head: Head, breaks: bool) -> Work:
    context = mpmath.MPContext()
    pairs = _pairs(head, 1)
    return lambda: np.array([_by_mpmath(context, *pair, breaks=breaks) for pair in pairs], float)


# --- sections -------------------------------------------------------------------------------------


_JAX = ("jax", "quadax")


def _way(name: str, prepare: Callable[[Head], Work], *needs: str) -> Way:
    return Way(name, prepare, ACCURACY, needs)


def _tube_goals(rows: Sequence[Row]) -> list[Goal]:
    worst = worst_error(rows, OURS)
    return [
        Goal("A", "batch on the tube: quadax with break points, over ours", 1500.0,
             mean_ratio(rows, QUADAX, OURS)),
        Goal("A", "batch on the tube: quadax tuned, over ours", 1500.0,
             mean_ratio(rows, TUNED, OURS)),
        Goal("A", "batch on the tube: compiled graded rule, over ours", 50.0,
             mean_ratio(rows, GRADED, OURS)),
        Goal("A", "error on the tube", 4e-15, worst, at_least=False),
        Goal("A", "seconds a head on the tube", 1e-7, _slowest(rows), False, "s"),
    ]  # fmt: skip


def _plane_goals(rows: Sequence[Row]) -> list[Goal]:
    return [
        Goal("A", "error anywhere", 2e-14, worst_error(rows, OURS), at_least=False),
        Goal("A", "seconds a head anywhere", 2.5e-7, _slowest(rows), False, "s"),
    ]


def _slowest(rows: Sequence[Row]) -> float | None:
    times = [seconds_of(rows, OURS, row.case) for row in rows if row.way == OURS]
    return max((time for time in times if time is not None), default=None)


TUBE = Section(
    "A",
    "population risk and gradient on the tube, a head",
    "mu",
    _tube,
    (
        _way(OURS, _ours),
        _way("popdyn, a call for each head", _one_by_one),
        _way(GRADED, _graded),
        _way("popdyn's graded rule", _our_rule),
        _way("graded rule of 80 nodes, NumPy", _graded_numpy),
        _way(f"Gauss-Legendre of order {GAUSS_ORDER}, NumPy", _gauss_legendre),
        _way("scipy quad, break points", partial(_quad, breaks=True)),
        _way("scipy quad, plain", partial(_quad, breaks=False)),
        _way("mpmath.quad, break points", partial(_mpmath, breaks=True)),
        _way("mpmath.quad, plain", partial(_mpmath, breaks=False)),
        _way(QUADAX, partial(_quadax, factor=4.0, order=21, extrapolate=True), *_JAX),
        _way(TUNED, partial(_quadax, factor=16.0, order=41, extrapolate=False), *_JAX),
        _way("arb, acb.integral at 100 bits", _arb_integral, "flint"),
        _way("arb, popdyn's closed form in balls", _balls, "flint"),
    ),
    distance,
    _tube_goals,
)
PLANE = Section(
    "A",
    "population risk and gradient over the plane, a head",
    "",
    _plane,
    (
        _way(OURS, _ours),
        _way("popdyn's graded rule", _our_rule),
        _way("scipy quad, break points", partial(_quad, breaks=True)),
        _way(TUNED, partial(_quadax, factor=16.0, order=41, extrapolate=False), *_JAX),
        _way("arb, popdyn's closed form in balls", _balls, "flint"),
    ),
    distance,
    _plane_goals,
)
SECTIONS = (TUBE, PLANE)
