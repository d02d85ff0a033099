"""Moments of the threshold error over contexts of n examples, all sizes at once (MODEL §6)."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.contest import Answer, Case, Goal, Row, Section, Way, Work
from popdyn import Head, context_moments

REFERENCE = Path(__file__).parent.parent / "tests" / "reference" / "moments.json"
ACCURACY = 1e-12
OURS = "popdyn"
SIZES = tuple(2.0**power for power in range(3, 17))  # 8 to 65536
LONGEST = 2e-3  # seconds that are wanted for a head and threshold
CONTEXTS, SAMPLED = 100, 1.0  # drawn, and the relative error that so few may have
SEED = 4


@dataclass(frozen=True)
class Curve:
    """A head, a threshold and the sizes of contexts; the oracle knows the first of them."""

    lam: float
    mu: float
    threshold: float
    sizes: tuple[float, ...]


def _curves(quick: bool) -> list[Case]:
    """Entries of the reference, and the plain recipe as oracle at larger scales on the tube."""
    entries = json.loads(REFERENCE.read_text())
    clean = [each for each in entries if each["noise"] == "clean" and each["half_width"] == 1.0]
    by_scale = {each["scale"]: each for each in reversed(clean)}
    cases = []
    for mu in (4.0,) if quick else (4.0, 20.0, 200.0):
        entry = by_scale[mu]
        sizes = (float(entry["n_examples"]), *SIZES)
        given = Curve(entry["label_score"], mu, entry["threshold"], sizes)
        exact = np.array([entry["bias"], entry["mean_square_error"]])
        cases.append(Case(f"mu = {mu:g}", given, exact, mu))
    for mu in () if quick else (1e3, 1e4):
        lam = float(Head.from_tube(math.log(2.0), mu).label_score)
        given = Curve(lam, mu, 0.25, (1024.0, *SIZES))
        cases.append(Case(f"mu = {mu:g}", given, _recipe(given)()[0], mu))
    return cases


def distance(answer: Answer, exact: Answer) -> float:
    """Worst of the mean square error, relative, and the bias in units of its root, first size."""
    bias, square = np.abs(answer[0] - exact)
    return float(max(bias / math.sqrt(exact[1]), square / exact[1]))


# --- ways: rows of bias and mean square error, a row a size ---------------------------------------


def _ours(curve: Curve) -> Work:
    head = Head.from_scores(curve.lam, curve.mu)
    sizes = np.array(curve.sizes)

    def work() -> Answer:
        found = context_moments(head, curve.threshold, sizes)
        return np.column_stack((found.bias, found.mean_square_error))

    return work


_STEP = 0.25  # of the trapezoid rule in y = log u
_LOWEST, _HIGHEST = -40.0, 4.4  # in t: exp(-exp(t)) is 1 before and 0 after
_PANELS, _NODES = 23, 12
_ROWS = 500  # values of y held at a time


def _recipe(curve: Curve) -> Work:
    """MODEL's recipe in whole arrays: of each label only what lies in the window of t counts."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    nodes = ((np.arange(_PANELS)[:, None] + (nodes + 1) / 2) / _PANELS).ravel()
    weights = np.tile(weights / (2 * _PANELS), _PANELS)
    lam, mu = curve.lam, curve.mu
    below, above = -1.0 - curve.threshold, 1.0 - curve.threshold  # of d = x - alpha
    sides = ((lam, below, 0.0), (-lam, 0.0, above))  # t = y + score + mu d for d in between
    sizes = np.array(curve.sizes)[:, None]
    heaviest = max(lam, -lam + mu * above)
    lightest = min(lam + mu * below, -lam)
    start = -heaviest - math.log(sizes.max()) - 38.0
    grid = np.arange(start, _HIGHEST - lightest + _STEP, _STEP)

    def work() -> Answer:
        sums = np.zeros((2, len(sizes)))
        for first in range(0, len(grid), _ROWS):
            y = grid[first : first + _ROWS, None]
            kept, lost, a1, a2 = np.zeros((4, len(y)))
            for score, low, high in sides:
                left = np.clip((_LOWEST - y - score) / mu, low, high)
                right = np.clip((_HIGHEST - y - score) / mu, low, high)
                d = left + (right - left) * nodes
                mass = (right - left) * weights / 2
                # an empty window lies anywhere, with a mass of 0
                weight = np.exp(np.minimum(y + score + mu * d, _HIGHEST))
                left_over = np.exp(-weight)
                kept += (mass * left_over).sum(axis=1) + (left[:, 0] - low) / 2
                lost -= (mass * np.expm1(-weight)).sum(axis=1) - (high - right[:, 0]) / 2
                share = mass * d * weight * left_over
                a1 += share.sum(axis=1)
                a2 += (share * d * weight).sum(axis=1)
            with np.errstate(divide="ignore"):
                log_phi = np.where(kept < 0.5, np.log(kept), np.log1p(-lost))
            with np.errstate(invalid="ignore"):
                power = np.nan_to_num(np.exp((sizes - 2) * log_phi))  # n = 2 where phi = 0
            with_one = sizes * power * np.exp(log_phi)
            sums[0] += (with_one * a1).sum(axis=1)
            sums[1] += (with_one * a2 + sizes * (sizes - 1) * power * a1**2).sum(axis=1)
        return _STEP * sums.T

    return work


def _monte_carlo(curve: Curve) -> Work:
    rng = np.random.default_rng(SEED)

    def one(size: int) -> tuple[float, float]:
        x = rng.uniform(-1.0, 1.0, (CONTEXTS, size))
        score = np.where(x <= curve.threshold, curve.lam, -curve.lam) + curve.mu * x
        w = np.exp(score - score.max(axis=1, keepdims=True))
        error = (w * (x - curve.threshold)).sum(axis=1) / w.sum(axis=1)
        return error.mean(), (error**2).mean()

    return lambda: np.array([one(int(size)) for size in curve.sizes])


def _one_curve(_: Curve) -> float:
    return 1.0


def _goals(rows: Sequence[Row]) -> list[Goal]:
    times = [row.seconds for row in rows if row.way == OURS and row.seconds is not None]
    errors = [row.error for row in rows if row.way == OURS and row.error is not None]
    return [
        Goal("E", "seconds a head and threshold with all sizes", LONGEST,
             max(times, default=None), False, "s"),
        Goal("E", "error of the moments", ACCURACY, max(errors, default=None), False),
    ]  # fmt: skip


MOMENTS = Section(
    "E",
    f"moments for {len(SIZES) + 1} sizes of contexts from 8 to 65536, a head and threshold",
    "mu",
    _curves,
    (
        Way(OURS, _ours, ACCURACY, pieces=_one_curve),
        Way("MODEL's recipe in NumPy", _recipe, ACCURACY, pieces=_one_curve),
        Way(f"Monte Carlo, {CONTEXTS} contexts a size", _monte_carlo, SAMPLED, pieces=_one_curve),
    ),
    distance,
    _goals,
)
SECTIONS = (MOMENTS,)
