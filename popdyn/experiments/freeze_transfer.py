"""Freeze, then transfer: one head per corpus, used on fresh contexts of every size (MODEL §6).

The claim of the paper's Figure 4: the error of a frozen head falls with the context to a floor, and
the floors fall like the inverse of the scale at which pretraining was to stop.
"""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy import bool_, float64, int64
from numpy.typing import NDArray

from popdyn.archive import PathLike
from popdyn.experiments.finding import Finding
from popdyn.experiments.pretrained_corpora import Corpora, checkpoint_of, pretrained
from popdyn.limit_laws import context_rms
from popdyn.sweeping import sweep
from popdyn.transfer_curve import transfer

__all__ = ["Config", "Result", "findings", "run"]

_LAW_FROM = 32  # the law of an interior threshold is one of large contexts


@dataclass(frozen=True)
class Config(Corpora):
    """Corpora, and the fresh tasks and contexts of their heads.

    Attributes
    ----------
    sizes, n_replicates, seed, ratio, scale, step_size, n_points
        Those of `Corpora`.
    thresholds : tuple of float
    context_sizes : tuple of int
    """

    thresholds: tuple[float, ...] = (0.0, 0.5, -0.5)
    context_sizes: tuple[int, ...] = tuple(2**power for power in range(3, 17))


@dataclass(frozen=True)
class Result:
    """Errors of the frozen heads of `c` corpora.

    Attributes
    ----------
    corpus_sizes, replicates : ndarray of int, shape (c,)
    reached : ndarray of bool, shape (c,)
        Whether the stopping scale was reached within the budget of steps.
    stopping_scales, scales : ndarray, shape (c,)
        Where pretraining was to stop, known beforehand, and where it did.
    thresholds : ndarray, shape (k,)
    context_sizes : ndarray of int, shape (s,)
    root_mean_squares : ndarray, shape (c, k, s)
        Exact.
    floors : ndarray, shape (c, k)
        Their limits for large contexts.
    """

    corpus_sizes: NDArray[int64]
    replicates: NDArray[int64]
    reached: NDArray[bool_]
    stopping_scales: NDArray[float64]
    scales: NDArray[float64]
    thresholds: NDArray[float64]
    context_sizes: NDArray[int64]
    root_mean_squares: NDArray[float64]
    floors: NDArray[float64]


def run(
    config: Config, *, executor: Executor | None = None, store: PathLike | None = None
) -> Result:
    """Pretrain on every corpus, freeze the head, transfer it."""
    cells = config.cells()
    found = sweep(cells, pretrained, executor=executor, store=store)
    checkpoints = [checkpoint_of(*both) for both in zip(cells, found, strict=True)]
    curves = [transfer(c, config.thresholds, config.context_sizes) for c in checkpoints]
    return Result(
        corpus_sizes=np.array([cell.size for cell in cells]),
        replicates=np.array([cell.replicate for cell in cells]),
        reached=np.array([checkpoint.reached for checkpoint in checkpoints]),
        stopping_scales=np.array([checkpoint.stopping_scale for checkpoint in checkpoints]),
        scales=np.array([float(checkpoint.head.scale) for checkpoint in checkpoints]),
        thresholds=np.array(config.thresholds, dtype=float64),
        context_sizes=np.array(config.context_sizes),
        root_mean_squares=np.stack([curve.root_mean_square for curve in curves]),
        floors=np.stack([curve.floor for curve in curves]),
    )


def findings(result: Result) -> tuple[Finding, ...]:
    """The power of the floor, the floor in units of the scale by size, and the law of a context."""
    said = []
    reached = result.reached
    for k, alpha in enumerate(result.thresholds):
        slope = np.polyfit(
            np.log(result.stopping_scales[reached]), np.log(result.floors[reached, k]), 1
        )[0]
        said.append(
            Finding(
                f"power of the stopping scale in the floor at threshold {alpha:g}",
                -1.0,
                float(slope),
            )
        )
    for size in np.unique(result.corpus_sizes):
        of_size = result.corpus_sizes == size
        scaled = result.floors[of_size] * result.scales[of_size, np.newaxis]
        said += [
            Finding(
                f"floor times scale, {size} tasks, farthest from 1",
                1.0,
                float(scaled.ravel()[np.abs(scaled - 1.0).argmax()]),
            ),
            Finding(
                f"heads of {size} tasks that fell short of their stopping scale",
                "few, of the smallest",
                f"{np.count_nonzero(~reached[of_size])} of {np.count_nonzero(of_size)}",
            ),
        ]
    large = result.context_sizes >= _LAW_FROM
    law = context_rms(result.scales[:, np.newaxis, np.newaxis], result.context_sizes[large])
    off = (result.root_mean_squares[..., large] / law - 1.0)[reached]
    said.append(
        Finding(
            f"farthest from the law, relative, from {_LAW_FROM} examples on, scale reached",
            "at most 0.058",
            float(off.ravel()[np.abs(off).argmax()]),
        )
    )
    return tuple(said)
