"""Bias and mean square error on drawn contexts, with standard errors (MODEL §6, §7).

Nothing but the definition of the predictors: an independent check of the exact moments, and the
only route at the scales that those of a reflected pair do not reach.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from popdyn.arguments import count, thresholds_inside
from popdyn.coordinates import Head, require_head
from popdyn.corpus import Corpus
from popdyn.design import Design, require_design
from popdyn.moments import ContextMoments, context_sizes
from popdyn.reflection import pair_predictions, predictions
from popdyn.sampling import Seed, generator_of, sample_contexts

__all__ = ["SampledMoments", "context_moments_sampled", "pair_moments_sampled"]

_CHUNK = 2**20  # examples drawn at a time

Estimate: TypeAlias = Callable[[Head, Corpus], NDArray[float64]]


@dataclass(frozen=True, eq=False, repr=False)
class SampledMoments(ContextMoments):
    """Moments estimated from drawn contexts.

    Attributes
    ----------
    bias_standard_error, mean_square_error_standard_error : ndarray, shape (...)
        Standard errors of the two estimates, themselves estimated from the sample.
    """

    bias_standard_error: NDArray[float64]
    mean_square_error_standard_error: NDArray[float64]


def context_moments_sampled(
    head: Head,
    threshold: ArrayLike,
    n_examples: ArrayLike,
    n_contexts: int,
    rng: Seed = None,
    design: Design | None = None,
) -> SampledMoments:
    """The moments of `context_moments` from `n_contexts` drawn contexts for each cell.

    Parameters
    ----------
    head, threshold, n_examples, design
        As in `context_moments`; the scale may be any.
    n_contexts : int
        At least 2.
    rng : Generator, SeedSequence, int or None
        Source of the contexts.

    Raises
    ------
    ValueError
        As in `context_moments`, or if `n_contexts` is no whole number of at least 2.
    """
    return _moments(predictions, head, threshold, n_examples, n_contexts, rng, design)


def pair_moments_sampled(
    head: Head,
    threshold: ArrayLike,
    n_examples: ArrayLike,
    n_contexts: int,
    rng: Seed = None,
    design: Design | None = None,
) -> SampledMoments:
    """The moments of `pair_moments` from `n_contexts` drawn contexts for each cell.

    Arguments and errors are those of `context_moments_sampled`.
    """
    return _moments(pair_predictions, head, threshold, n_examples, n_contexts, rng, design)


def _moments(
    estimate: Estimate,
    head: Head,
    threshold: ArrayLike,
    n_examples: ArrayLike,
    n_contexts: int,
    rng: Seed,
    design: Design | None,
) -> SampledMoments:
    require_head(head)
    n_contexts = count("n_contexts", n_contexts, least=2)
    design = Design(head.half_width) if design is None else design
    require_design(design, head.half_width)
    alpha, sizes = thresholds_inside(threshold, head.half_width), context_sizes(n_examples)
    cells = np.broadcast_arrays(head.label_score, head.scale, alpha, sizes)
    generator = generator_of(rng)
    columns = np.empty((4, *cells[0].shape))
    for cell in np.ndindex(cells[0].shape):
        lam, mu, task, n = (float(column[cell]) for column in cells)
        one = Head.from_scores(lam, mu, head.half_width)
        errors = _errors(estimate, one, task, int(n), n_contexts, generator, design)
        for row, sample in ((0, errors), (1, errors**2)):
            columns[(row, *cell)] = sample.mean()
            columns[(row + 2, *cell)] = sample.std(ddof=1) / np.sqrt(n_contexts)
    return SampledMoments(*columns)


def _errors(
    estimate: Estimate,
    head: Head,
    threshold: float,
    n_examples: int,
    n_contexts: int,
    rng: np.random.Generator,
    design: Design,
) -> NDArray[float64]:
    """Errors of the estimate on contexts of one task."""
    chunk = max(1, _CHUNK // n_examples)
    errors = []
    for first in range(0, n_contexts, chunk):
        tasks = np.full(min(chunk, n_contexts - first), threshold)
        errors.append(estimate(head, sample_contexts(design, tasks, n_examples, rng)) - threshold)
    return np.concatenate(errors)
