"""Drawn tasks and contexts (MODEL §1, §6).

Random numbers come from the `rng` argument alone: a Generator, which the draw advances, a seed or a
SeedSequence, which it leaves as they are, or None for fresh entropy.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from popdyn.arguments import count
from popdyn.compiled import kernel
from popdyn.corpus import Corpus, inside_interval
from popdyn.design import Density, Design, require_design

__all__ = ["Seed", "cell_seed", "generator_of", "sample_contexts", "sample_corpus"]

Seed: TypeAlias = np.random.Generator | np.random.SeedSequence | int | Sequence[int] | None


def cell_seed(seed: int, n_tasks: int, n_examples: int, replicate: int) -> np.random.SeedSequence:
    """Seed of one cell of a grid, a function of these four numbers alone.

    A cell keeps its stream when the grid grows or is run in another order.

    Raises
    ------
    ValueError
        If one of them is not a whole number of at least 0.
    """
    numbers = {"seed": seed, "n_tasks": n_tasks, "n_examples": n_examples, "replicate": replicate}
    entropy, *key = (count(name, number, least=0) for name, number in numbers.items())
    return np.random.SeedSequence(entropy, spawn_key=tuple(key))


def sample_corpus(design: Design, n_tasks: int, n_examples: int, rng: Seed = None) -> Corpus:
    """Corpus of `n_tasks` drawn tasks with `n_examples` drawn examples each.

    Thresholds, features and label flips have streams of their own: another number of examples
    leaves the thresholds as they are, and noise leaves both thresholds and features.

    Raises
    ------
    ValueError
        If the design is none, a count is not a whole number of at least 1, or `rng` no source.
    """
    require_design(design)
    n_tasks = count("n_tasks", n_tasks)
    n_examples = count("n_examples", n_examples)
    of_thresholds, *of_examples = _streams(rng)
    thresholds = _draw(design.threshold_density, design.half_width, (n_tasks,), of_thresholds)
    return _contexts(design, thresholds, n_examples, *of_examples)


def sample_contexts(
    design: Design, thresholds: ArrayLike, n_examples: int, rng: Seed = None
) -> Corpus:
    """Fresh contexts of `n_examples` for tasks with the given thresholds, shape `(m,)`.

    Raises
    ------
    ValueError
        As `sample_corpus`, or if the thresholds are not a row of one or more numbers in the
        interval.
    """
    require_design(design)
    n_examples = count("n_examples", n_examples)
    given = inside_interval("thresholds", thresholds, design.half_width, "(n_tasks,)")
    return _contexts(design, given, n_examples, *_streams(rng)[1:])


def _contexts(
    design: Design,
    thresholds: NDArray[float64],
    n_examples: int,
    of_features: np.random.Generator,
    of_flips: np.random.Generator,
) -> Corpus:
    shape = (thresholds.size, n_examples)
    features = _draw(design.feature_density, design.half_width, shape, of_features)
    if design.noise is None:
        features.sort(axis=1)  # the labels go with them: cheaper than to have the corpus sort both
    labels = np.where(features <= thresholds[:, None], np.int8(1), np.int8(-1))
    if design.noise is not None:
        probability = design.noise.probability(features - thresholds[:, None])
        labels *= np.where(of_flips.random(shape) < probability, np.int8(-1), np.int8(1))
    return Corpus.from_arrays(features, labels, thresholds, design.half_width)


def generator_of(rng: Seed) -> np.random.Generator:
    """The Generator itself, or a new one of the seed; refused if `rng` is no source."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ValueError(
            f"rng must be a Generator, a SeedSequence, a seed from 0 on or None, got {rng!r}"
        ) from None


def _streams(rng: Seed) -> list[np.random.Generator]:
    """Streams of the thresholds, the features and the label flips.

    Keys are drawn, not spawned: spawning would count the calls in a SeedSequence that the caller
    may use again, and would not see how far a Generator has been advanced. That of the flips is
    derived from that of the features, so that noise advances a Generator no further.
    """
    generator = generator_of(rng)
    keys = generator.integers(2**32, size=(2, 8), dtype=np.uint32)
    of_flips = np.random.SeedSequence(keys[1].tolist(), spawn_key=(1,))
    return [np.random.default_rng(key) for key in (keys[0], keys[1], of_flips)]


# --- inverse transform ----------------------------------------------------------------------------

# Panels and degree of the density's interpolant: 5e-15 for 100 waves on the interval.
_PANELS, _DEGREE = 512, 8
_ROUNDING = 1e-13  # in units of a panel: 4e-16 of the half width
_CONVERGED = 1e-8  # a Newton step this small leaves an error of its square


def _draw(
    density: Density | None, half_width: float, shape: tuple[int, ...], rng: np.random.Generator
) -> NDArray[float64]:
    uniform = rng.random(shape)
    if density is None:
        return half_width * (2.0 * uniform - 1.0)
    points = _quantiles(uniform.ravel(), _cumulative(density, half_width))
    return half_width * points.reshape(shape)


def _cumulative(density: Density, half_width: float) -> NDArray[float64]:
    """Powers of the distribution function on each panel, shape `(panels, degree + 2)`."""
    nodes = 0.5 - 0.5 * np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
    points = 2.0 * (np.arange(_PANELS)[:, None] + nodes) / _PANELS - 1.0
    values = np.asarray(density(half_width * points), dtype=float64)
    inner = np.linalg.solve(np.vander(nodes, increasing=True), values.T).T
    powers = np.zeros((_PANELS, _DEGREE + 2))
    powers[:, 1:] = inner / np.arange(1.0, _DEGREE + 2.0)
    mass = powers.sum(axis=1)
    powers[:, 0] = np.cumsum(mass) - mass
    powers /= mass.sum()
    return powers


@kernel
def _quantiles(probabilities: NDArray[float64], powers: NDArray[float64]) -> NDArray[float64]:
    """Points of `[-1, 1]` with these probabilities below them: Newton's method in a bracket."""
    n_panels, n_powers = powers.shape
    points = np.empty(probabilities.size)
    starts = powers[:, 0].copy()
    for i in range(probabilities.size):
        panel = max(np.searchsorted(starts, probabilities[i], side="right") - 1, 0)
        low, high, at = 0.0, 1.0, 0.5
        while high - low > _ROUNDING:
            value, slope = 0.0, 0.0
            for j in range(n_powers - 1, -1, -1):
                slope = slope * at + value
                value = value * at + powers[panel, j]
            value -= probabilities[i]
            if value > 0.0:
                high = at
            else:
                low = at
            step = value / slope
            if low < at - step < high:
                at -= step
                if abs(step) < _CONVERGED:
                    break
            else:
                at = 0.5 * (low + high)
        points[i] = 2.0 * (panel + at) / n_panels - 1.0
    return points
