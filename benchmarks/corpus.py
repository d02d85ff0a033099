"""One step of gradient descent on a corpus: risk and gradient of drawn tasks (MODEL §6)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from benchmarks.contest import (
    Answer,
    Case,
    Goal,
    Row,
    Section,
    Way,
    Work,
    seconds_of,
    worst_error,
)
from popdyn import CorpusRisk, Design, Head, sample_corpus

ACCURACY = 1e-12  # of ours
TEXTBOOK = 1e-6  # of the covariance as a difference of averages, which cancels at large scale
OURS, NUMPY, MANY = "popdyn", "NumPy", "popdyn, 64 label scores at one scale"
SIZE, SMALL = 1000, 60
SCALES = (10.0, 100.0, 1000.0)
WANTED = (10.0, 20.0, 90.0)  # times the speed of NumPy
N_SCORES = 64
BLOCK = 20  # tasks at a time in long double
SEED = 3


@dataclass(frozen=True)
class Step:
    """A corpus and the head whose gradient is wanted."""

    risk: CorpusRisk
    lam: float
    mu: float

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        corpus = self.risk.corpus
        return corpus.features, corpus.labels.astype(float), corpus.thresholds


@cache
def risk_of_size(size: int) -> CorpusRisk:
    """Of as many tasks as examples."""
    return CorpusRisk(sample_corpus(Design(), size, size, SEED))


def _case(name: str, size: int, mu: float, x: float) -> Case:
    lam = float(Head.from_tube(math.log(2.0), mu).label_score)
    step = Step(risk_of_size(size), lam, mu)
    return Case(name, step, _in_long_double(step), x)


def _scales(quick: bool) -> list[Case]:
    size = SMALL if quick else SIZE
    return [_case(f"mu = {mu:g}", size, mu, mu) for mu in SCALES]


def _sizes(quick: bool) -> list[Case]:
    sizes = (20, 60) if quick else (100, 316, 1000, 2000)
    return [_case(f"m = n = {size}", size, 100.0, float(size) ** 2) for size in sizes]


def _in_long_double(step: Step) -> tuple[Answer, Answer]:
    """Risk and gradient, and the sums of the absolute contributions of the tasks.

    The covariance comes from the two means, of the examples with either label: as a difference of
    averages it loses all digits of a long double where nearly all weight is on one label.
    """
    features, labels, thresholds = (array.astype(np.longdouble) for array in step.arrays)
    lam, mu = np.longdouble(step.lam), np.longdouble(step.mu)
    parts = []
    for first in range(0, len(features), BLOCK):
        x, y = features[first : first + BLOCK], labels[first : first + BLOCK]
        scores = lam * y + mu * x
        w = np.exp(scores - scores.max(axis=1, keepdims=True))
        w /= w.sum(axis=1, keepdims=True)
        away = x - thresholds[first : first + BLOCK, None]
        error = (w * away).sum(axis=1, keepdims=True)
        centred = w * (away - error)
        of_label = [np.where(y == sign, w, 0) for sign in (1, -1)]
        masses = [part.sum(axis=1) for part in of_label]
        upper, lower = (
            (part * away).sum(axis=1) / np.where(mass > 0, mass, 1)
            for part, mass in zip(of_label, masses, strict=True)
        )
        covariance = 2 * masses[0] * masses[1] * (upper - lower)
        variance = (centred * (away - error)).sum(axis=1)
        error = error[:, 0]
        parts.append(np.array([error**2, 2 * error * covariance, 2 * error * variance]))
    each = np.concatenate(parts, axis=1)
    return each.mean(axis=1), np.abs(each).mean(axis=1)


def distance(answer: Answer, exact: tuple[Answer, Answer]) -> float:
    """Worst error of risk and gradient in units of the summed absolute contributions."""
    return float(np.max(np.abs(answer[0] - exact[0]) / exact[1]))


# --- ways -----------------------------------------------------------------------------------------


def _ours(step: Step) -> Work:
    head = Head.from_scores(step.lam, step.mu)

    def work() -> Answer:
        value, gradient = step.risk.value_and_gradient(head)
        return np.array([[value, *gradient]])

    work()
    return work


def _many_scores(step: Step) -> Work:
    heads = Head.from_scores(step.lam + np.linspace(0.0, 1.0, N_SCORES), step.mu)

    def work() -> Answer:
        value, gradient = step.risk.value_and_gradient(heads)
        return np.column_stack((value, gradient))

    return work


def numpy_gradient(risk: CorpusRisk, number: type = float) -> Callable[[float, float], Answer]:
    """The softmax over whole rows in three preallocated arrays; moments about the means.

    A function of label score and scale; in doubles or another type of number.
    """
    corpus = risk.corpus
    arrays = (corpus.features, corpus.labels, corpus.thresholds)
    x, y, thresholds = (array.astype(number) for array in arrays)
    w, x_away, y_away = np.empty((3, *x.shape), number)

    def gradient(lam: float, mu: float) -> Answer:
        np.multiply(x, mu, out=w)
        np.multiply(y, lam, out=y_away)
        np.add(w, y_away, out=w)
        np.subtract(w, w.max(axis=1, keepdims=True), out=w)
        np.exp(w, out=w)
        np.divide(w, w.sum(axis=1, keepdims=True), out=w)
        mean_x, mean_y = (np.einsum("ij,ij->i", w, part) for part in (x, y))
        np.subtract(x, mean_x[:, None], out=x_away)
        np.subtract(y, mean_y[:, None], out=y_away)
        np.multiply(w, x_away, out=w)
        covariance, variance = (np.einsum("ij,ij->i", w, part) for part in (y_away, x_away))
        error = mean_x - thresholds
        return np.array([error @ error, 2 * error @ covariance, 2 * error @ variance]) / len(x)

    return gradient


def _numpy(step: Step) -> Work:
    gradient = numpy_gradient(step.risk)
    return lambda: gradient(step.lam, step.mu)[np.newaxis]


def _torch(step: Step) -> Work:
    import torch

    torch.set_num_threads(1)
    x, y, thresholds = (torch.tensor(np.array(array)) for array in step.arrays)
    w, y_away = torch.empty_like(x), torch.empty_like(x)

    def work() -> Answer:
        with torch.no_grad():
            torch.mul(x, step.mu, out=w)
            w.add_(y, alpha=step.lam)
            weights = torch.softmax(w, dim=1, out=y_away)
            mean_x = torch.linalg.vecdot(weights, x)
            mean_y = torch.linalg.vecdot(weights, y)
            torch.sub(x, mean_x[:, None], out=w)
            weights.mul_(w)
            variance = torch.linalg.vecdot(weights, w)
            covariance = torch.linalg.vecdot(weights, y) - mean_y * weights.sum(dim=1)
            error = mean_x - thresholds
            sums = (error @ error, 2 * error @ covariance, 2 * error @ variance)
            return np.array([[float(part) for part in sums]]) / len(x)

    return work


def _jax(step: Step) -> Work:
    import jax

    jax.config.update("jax_enable_x64", True)
    x, y, thresholds = (jax.numpy.array(array) for array in step.arrays)

    @jax.jit
    @jax.value_and_grad
    def risk(scores: Any) -> Any:
        weights = jax.nn.softmax(scores[0] * y + scores[1] * x, axis=1)
        return jax.numpy.mean(((weights * x).sum(axis=1) - thresholds) ** 2)

    at = jax.numpy.array([step.lam, step.mu])

    def work() -> Answer:
        value, gradient = risk(at)
        return np.array([[value, *gradient]])

    return work


@cache
def _fused_loop() -> Callable[..., tuple[float, float, float]]:
    import numba

    @numba.njit(error_model="numpy")
    def fused(
        x: np.ndarray, y: np.ndarray, thresholds: np.ndarray, lam: float, mu: float
    ) -> tuple[float, float, float]:
        risk, by_lam, by_mu = 0.0, 0.0, 0.0
        m, n = x.shape
        for j in range(m):
            top = -np.inf
            for i in range(n):
                top = max(top, lam * y[j, i] + mu * x[j, i])
            total, of_x, of_y, of_xy, of_xx = 0.0, 0.0, 0.0, 0.0, 0.0
            for i in range(n):
                w = math.exp(lam * y[j, i] + mu * x[j, i] - top)
                total += w
                of_x += w * x[j, i]
                of_y += w * y[j, i]
                of_xy += w * x[j, i] * y[j, i]
                of_xx += w * x[j, i] * x[j, i]
            mean = of_x / total
            error = mean - thresholds[j]
            risk += error * error
            by_lam += 2.0 * error * (of_xy / total - mean * of_y / total)
            by_mu += 2.0 * error * (of_xx / total - mean * mean)
        return risk / m, by_lam / m, by_mu / m

    return fused


def _numba(step: Step) -> Work:
    fused, arrays = _fused_loop(), [np.array(array) for array in step.arrays]
    return lambda: np.array([fused(*arrays, step.lam, step.mu)])


# --- sections -------------------------------------------------------------------------------------


def _goals(rows: Sequence[Row]) -> list[Goal]:
    goals = []
    for mu, wanted in zip(SCALES, WANTED, strict=True):
        case = f"mu = {mu:g}"
        ours, theirs = seconds_of(rows, OURS, case), seconds_of(rows, NUMPY, case)
        ratio = theirs / ours if theirs and ours else None
        goals.append(Goal("C", f"corpus step at mu = {mu:g}: NumPy, over ours", wanted, ratio))
    return [*goals, Goal("C", "error of a corpus step", 1e-12, worst_error(rows, OURS), False)]


_WAYS = (
    Way(OURS, _ours, ACCURACY),
    Way(MANY, _many_scores, ACCURACY),
    Way(NUMPY, _numpy, TEXTBOOK),
    Way("Numba, fused loop", _numba, TEXTBOOK),
    Way("torch, gradient by hand", _torch, TEXTBOOK, ("torch",)),
    Way("JAX, value_and_grad", _jax, TEXTBOOK, ("jax",)),
)
BY_SCALE = Section(
    "C",
    f"corpus step at m = n = {SIZE}, a head",
    "mu",
    _scales,
    _WAYS,
    distance,
    _goals,
)
BY_SIZE = Section(
    "C",
    "corpus step at mu = 100 by size, a head",
    "m n",
    _sizes,
    _WAYS,
    distance,
)
SECTIONS = (BY_SCALE, BY_SIZE)
