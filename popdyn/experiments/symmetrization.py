"""What averaging a head with its reflection does on finite contexts (MODEL §6, §7).

The claim: inside the interval the biases `-1/mu` and `+1/mu` cancel, on few examples the pair is
the midpoint of the two that straddle the threshold and on many it is far below the floor of one
head; at both ends it errs by `l`, one head by `2 l` at one of them. Averaged over thresholds the
squared error is half of a head's, where that of the best estimate falls like `1/N^2`.
"""

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy import float64, int64
from numpy.typing import NDArray

from popdyn.archive import PathLike
from popdyn.asymptotics import boundary_error, tube_limit
from popdyn.coordinates import Head
from popdyn.design import Design
from popdyn.experiments.finding import Finding
from popdyn.limit_laws import prior_averaged_risks
from popdyn.moments import context_moments
from popdyn.reflected_moments import bayes_moments, midpoint_moments
from popdyn.reflection import bayes_estimates, pair_predictions, predictions
from popdyn.sampled_moments import pair_moments_sampled
from popdyn.sampling import cell_seed, sample_corpus
from popdyn.sweeping import CellResult, sweep

__all__ = ["Config", "Result", "findings", "run"]

_POWERS_OF_TWO = tuple(2**k for k in range(15))


@dataclass(frozen=True)
class Config:
    """Heads on the tube at `c*`; a sweep of context sizes, one of scales, one over the prior.

    Attributes
    ----------
    interior : float
        The interior threshold, in half widths; the others are the two ends.
    scale : float
        At which the context size is swept.
    n_examples : tuple of int
    size : int
        Context size at which the scale is swept.
    scales : tuple of float
    n_contexts : int
        Drawn for each threshold and point of either sweep, at least 2.
    prior_sizes : tuple of int
        Context sizes at which squared errors are averaged over thresholds.
    sharp_scale : float
        The scale there; the laws are those of an infinite one.
    n_tasks : int
        Drawn for each of the prior sizes, at least 2.
    half_width : float
    seed : int
    """

    interior: float = 0.3
    scale: float = 32.0
    n_examples: tuple[int, ...] = _POWERS_OF_TWO[3:]
    size: int = 512
    scales: tuple[float, ...] = tuple(map(float, _POWERS_OF_TWO[3:]))
    n_contexts: int = 2000
    prior_sizes: tuple[int, ...] = _POWERS_OF_TWO[1:9]
    sharp_scale: float = 1e6
    n_tasks: int = 100_000
    half_width: float = 1.0
    seed: int = 0

    @classmethod
    def paper(cls) -> "Config":
        """2000 contexts a point and 100000 tasks a size."""
        return cls()

    @classmethod
    def quick(cls) -> "Config":
        """Every other point, 300 contexts each, and 10000 tasks a size."""
        return cls(
            n_examples=_POWERS_OF_TWO[3::2],
            scales=tuple(map(float, _POWERS_OF_TWO[3::2])),
            n_contexts=300,
            n_tasks=10_000,
        )


@dataclass(frozen=True)
class Result:
    """Errors of a head, of its pair and of the references; standard errors where they are drawn.

    Attributes
    ----------
    half_width : float
    thresholds : ndarray, shape (3,)
        The interior one, the lower end and the upper end.
    n_sizes : int
        How many of the k points are of the sweep of sizes; those after them are of that of scales.
    scales, sizes : ndarray, shape (k,)
        Scale and context size of each point.
    head_bias, reflected_bias, head_rms : ndarray, shape (3, k)
        `E[F - alpha]` of the head and of its reflection, and RMS error of the head; exact.
    pair_bias, pair_rms, pair_bias_error, pair_rms_error : ndarray, shape (3, k)
        Of the pair, on drawn contexts, with standard errors.
    midpoint_rms, bayes_rms : ndarray, shape (3, k)
        Exact.
    prior_sizes : ndarray of int, shape (p,)
    prior_risks, prior_errors : ndarray, shape (3, p)
        Squared error averaged over drawn tasks, of the head, the pair and Bayes, and its standard
        error.
    """

    half_width: float
    thresholds: NDArray[float64]
    n_sizes: int
    scales: NDArray[float64]
    sizes: NDArray[int64]
    head_bias: NDArray[float64]
    reflected_bias: NDArray[float64]
    head_rms: NDArray[float64]
    pair_bias: NDArray[float64]
    pair_rms: NDArray[float64]
    pair_bias_error: NDArray[float64]
    pair_rms_error: NDArray[float64]
    midpoint_rms: NDArray[float64]
    bayes_rms: NDArray[float64]
    prior_sizes: NDArray[int64]
    prior_risks: NDArray[float64]
    prior_errors: NDArray[float64]


def run(
    config: Config, *, executor: Executor | None = None, store: PathLike | None = None
) -> Result:
    """Draw the contexts of the pair, cell by cell; the exact laws of the others."""
    width = config.half_width
    thresholds = np.array([config.interior * width, -width, width])
    points = [(config.scale, n) for n in config.n_examples]
    points += [(mu, config.size) for mu in config.scales]
    cells = list(dict.fromkeys(points))  # the two sweeps may share a point
    work = partial(
        pair_cell,
        thresholds=thresholds,
        half_width=width,
        n_contexts=config.n_contexts,
        seed=config.seed,
    )
    drawn = dict(zip(cells, sweep(cells, work, executor=executor, store=store), strict=True))
    pair = {
        name: np.stack([drawn[point][name] for point in points], axis=-1)
        for name in ("bias", "rms", "bias_error", "rms_error")
    }
    prior = sweep(
        list(config.prior_sizes),
        partial(
            prior_cell,
            n_tasks=config.n_tasks,
            scale=config.sharp_scale,
            half_width=width,
            seed=config.seed,
        ),
        executor=executor,
        store=store,
    )

    scales = np.array([mu for mu, _ in points])
    sizes = np.array([n for _, n in points])
    head = Head.from_tube(tube_limit(width), scales, width)
    tasks = thresholds[:, None]
    exact = context_moments(head, tasks, sizes)
    return Result(
        half_width=width,
        thresholds=thresholds,
        n_sizes=len(config.n_examples),
        scales=scales,
        sizes=sizes,
        head_bias=exact.bias,
        reflected_bias=context_moments(head.reflected, tasks, sizes).bias,
        head_rms=exact.root_mean_square,
        pair_bias=pair["bias"],
        pair_rms=pair["rms"],
        pair_bias_error=pair["bias_error"],
        pair_rms_error=pair["rms_error"],
        midpoint_rms=midpoint_moments(tasks, sizes, width).root_mean_square,
        bayes_rms=bayes_moments(tasks, sizes, width).root_mean_square,
        prior_sizes=np.array(config.prior_sizes),
        prior_risks=np.stack([cell["risk"] for cell in prior], axis=-1),
        prior_errors=np.stack([cell["error"] for cell in prior], axis=-1),
    )


def pair_cell(
    cell: tuple[float, int],
    thresholds: NDArray[float64],
    half_width: float,
    n_contexts: int,
    seed: int,
) -> CellResult:
    """Bias and RMS of the pair at one scale and context size, and standard errors: `(thresholds,)`.

    A function of `(scale, n_examples)`, whatever else is swept.
    """
    scale, n_examples = cell
    words = np.array([scale]).view(np.uint32)  # a key of its own for every number
    rng = np.random.SeedSequence(seed, spawn_key=(n_examples, *words.tolist()))
    head = Head.from_tube(tube_limit(half_width), scale, half_width)
    moments = pair_moments_sampled(head, thresholds, n_examples, n_contexts, rng)
    rms = moments.root_mean_square
    return {
        "bias": moments.bias,
        "rms": rms,
        "bias_error": moments.bias_standard_error,
        "rms_error": moments.mean_square_error_standard_error / (2.0 * rms),
    }


_CHUNK = 2**20  # examples drawn at a time


def prior_cell(
    n_examples: int, n_tasks: int, scale: float, half_width: float, seed: int
) -> CellResult:
    """Mean squared error of the head, the pair and Bayes over drawn tasks, shape (3,)."""
    head = Head.from_tube(tube_limit(half_width), scale, half_width)
    design = Design(half_width)
    chunk = max(1, _CHUNK // n_examples)
    squares = []
    for i, first in enumerate(range(0, n_tasks, chunk)):
        rng = cell_seed(seed, n_tasks, n_examples, i)
        corpus = sample_corpus(design, min(chunk, n_tasks - first), n_examples, rng)
        estimates = (
            predictions(head, corpus),
            pair_predictions(head, corpus),
            bayes_estimates(corpus),
        )
        squares.append((np.stack(estimates) - corpus.thresholds) ** 2)
    every = np.concatenate(squares, axis=1)
    return {
        "risk": every.mean(axis=1),
        "error": every.std(axis=1, ddof=1) / np.sqrt(n_tasks),
    }


def findings(result: Result) -> tuple[Finding, ...]:
    """Limits at the ends of both sweeps, errors at the ends of the interval, averaged risks."""
    width = result.half_width
    many, sharp = result.n_sizes - 1, len(result.scales) - 1
    mu, n = float(result.scales[many]), int(result.sizes[many])
    few, steep = int(result.sizes[sharp]), float(result.scales[sharp])
    here, there = f"at N = {n}, mu = {mu:g}", f"at N = {few}, mu = {steep:g}"
    said = [
        Finding(f"bias of a head {here}", -1 / mu, float(result.head_bias[0, many])),
        Finding(f"bias of its reflection {here}", 1 / mu, float(result.reflected_bias[0, many])),
        Finding(f"bias of the pair {here}", 0.0, float(result.pair_bias[0, many])),
        Finding(f"RMS of a head {here}", 1 / mu, float(result.head_rms[0, many])),
        Finding(
            f"RMS of the pair {here}",
            float(np.sqrt(width / (4 * n * mu))),
            float(result.pair_rms[0, many]),
        ),
        Finding(
            f"RMS of the pair {there}",
            float(np.sqrt(2) * width / few),
            float(result.pair_rms[0, sharp]),
        ),
        Finding(
            f"error of a head at the lower end {here}",
            float(boundary_error(mu, width)),
            float(result.head_bias[1, many]),
        ),
        Finding(
            f"error of a head at the upper end {here}", -1 / mu, float(result.head_bias[2, many])
        ),
        Finding(
            f"error of the pair at the lower end {here}", width, float(result.pair_bias[1, many])
        ),
        Finding(
            f"error of the pair at the upper end {here}", -width, float(result.pair_bias[2, many])
        ),
    ]
    laws = prior_averaged_risks(result.prior_sizes, width)
    for i, name in enumerate(("a head", "the pair", "Bayes")):
        said.append(
            Finding(
                f"squared error of {name} over the prior, by its law: mean over the sizes",
                1.0,
                float((result.prior_risks[i] / laws[i]).mean()),
            )
        )
    return tuple(said)
