"""Pretraining on finite corpora, then frozen transfer (MODEL §6).

The claim of the paper's Figure 1: descent on a corpus follows the population's in radius and in
scaled error until it is stopped by a rule made beforehand, and the frozen heads err by two terms,
one of the corpus and one of the fresh context.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np
from numpy import bool_, float64, int64
from numpy.typing import NDArray

from popdyn.archive import PathLike
from popdyn.coordinates import Head
from popdyn.experiments.finding import Finding
from popdyn.experiments.observation import largest_error
from popdyn.experiments.pretrained_corpora import Corpora, checkpoint_of, pretrained
from popdyn.limit_laws import context_rms
from popdyn.sweeping import sweep
from popdyn.transfer_curve import fit_two_terms, transfer

__all__ = ["Config", "Result", "certified_scales", "findings", "run"]

_FRACTION = 0.5  # of the population's progress, up to which the error of a gradient is certified


@dataclass(frozen=True)
class Config(Corpora):
    """Corpora, and what is asked of the paths and of the frozen heads.

    Attributes
    ----------
    sizes, n_replicates, seed, ratio, scale, step_size, n_points
        Those of `Corpora`.
    interior : float
        The scaled error is taken over thresholds in `[-interior, interior]`.
    threshold : float
        The fresh task.
    context_sizes : tuple of int
    fit_from : int
        The two terms are fitted to contexts of this size and above.
    """

    interior: float = 0.5
    threshold: float = 0.0
    context_sizes: tuple[int, ...] = tuple(2**power for power in range(3, 17))
    fit_from: int = 32


@dataclass(frozen=True)
class Result:
    """Paths and errors of `c` corpora; points of a path after its end are nan.

    Attributes
    ----------
    corpus_sizes, replicates : ndarray of int, shape (c,)
    reached : ndarray of bool, shape (c,)
        Whether the stopping scale was reached within the budget of steps.
    one_sided : ndarray of int, shape (c,)
        Tasks without any positive example.
    stopping_scales, stop_scales : ndarray, shape (c,)
        Where descent was to stop, and where it did.
    step_budgets : ndarray of int, shape (c,)
    steps, scales : ndarray, shape (c, p)
    radius_ratios : ndarray, shape (c, p)
        Radius `|(lam, mu)|` over that of the population's descent after the same steps.
    scaled_errors : ndarray, shape (c, p)
        Radius times the largest error `|F - alpha|` on an infinite context, over the interior.
    deviations : ndarray, shape (c, p)
        `u . (grad L_mn - grad L)` over `u . grad L`, `u = (l + 1/mu, 1)`.
    context_sizes : ndarray of int, shape (s,)
    root_mean_squares : ndarray, shape (c, s)
        Exact errors of the frozen heads.
    fitted_errors : ndarray, shape (c, s)
        `A log(M)^2/M + B/N`, fitted to them.
    A, B, residual : float
        Of that fit, to all corpora.
    law_A, law_B : float
        The same fit to the law `sqrt(1/mu^2 + 8 l^2/N^2)` at the stopping scales.
    fit_from : int
    """

    corpus_sizes: NDArray[int64]
    replicates: NDArray[int64]
    reached: NDArray[bool_]
    one_sided: NDArray[int64]
    stopping_scales: NDArray[float64]
    stop_scales: NDArray[float64]
    step_budgets: NDArray[int64]
    steps: NDArray[float64]
    scales: NDArray[float64]
    radius_ratios: NDArray[float64]
    scaled_errors: NDArray[float64]
    deviations: NDArray[float64]
    context_sizes: NDArray[int64]
    root_mean_squares: NDArray[float64]
    fitted_errors: NDArray[float64]
    A: float
    B: float
    residual: float
    law_A: float
    law_B: float
    fit_from: int


def run(
    config: Config, *, executor: Executor | None = None, store: PathLike | None = None
) -> Result:
    """Pretrain on every corpus, compare its path, freeze it and transfer it."""
    cells = config.cells()
    found = sweep(cells, pretrained, executor=executor, store=store)
    checkpoints = [checkpoint_of(*both) for both in zip(cells, found, strict=True)]
    curves = [transfer(c, config.threshold, config.context_sizes) for c in checkpoints]
    fitted_sizes = [n for n in config.context_sizes if n >= config.fit_from]
    fitted = [transfer(c, config.threshold, fitted_sizes) for c in checkpoints]
    by_law = [
        replace(
            curve,
            root_mean_square=context_rms(checkpoint.stopping_scale, [fitted_sizes]),
        )
        for curve, checkpoint in zip(fitted, checkpoints, strict=True)
    ]
    fit, law = fit_two_terms(fitted), fit_two_terms(by_law)

    def path(name: str) -> NDArray[float64]:
        return _padded([cell[name] for cell in found], config.n_points)

    excess, scales = path("excess"), path("scale")
    radius = np.hypot(excess + scales, scales)
    return Result(
        corpus_sizes=np.array([cell.size for cell in cells]),
        replicates=np.array([cell.replicate for cell in cells]),
        reached=np.array([checkpoint.reached for checkpoint in checkpoints]),
        one_sided=np.array([int(cell["one_sided"]) for cell in found]),
        stopping_scales=np.array([checkpoint.stopping_scale for checkpoint in checkpoints]),
        stop_scales=np.array([float(checkpoint.head.scale) for checkpoint in checkpoints]),
        step_budgets=np.array([checkpoint.step_budget for checkpoint in checkpoints]),
        steps=path("steps"),
        scales=scales,
        radius_ratios=radius / path("population_radius"),
        scaled_errors=radius * _largest_errors(excess, scales, config.interior),
        deviations=path("deviation"),
        context_sizes=np.array(config.context_sizes),
        root_mean_squares=np.concatenate([curve.root_mean_square for curve in curves]),
        fitted_errors=np.stack(
            [fit.predicted(cell.size, np.array(config.context_sizes)) for cell in cells]
        ),
        A=fit.A,
        B=fit.B,
        residual=fit.residual,
        law_A=law.A,
        law_B=law.B,
        fit_from=config.fit_from,
    )


def _padded(rows: Sequence[NDArray[float64]], length: int) -> NDArray[float64]:
    """Rows with nan after their ends."""
    padded = np.full((len(rows), length), np.nan)
    for i, row in enumerate(rows):
        padded[i, : row.size] = row
    return padded


def _largest_errors(
    excess: NDArray[float64], scales: NDArray[float64], interior: float
) -> NDArray[float64]:
    errors = np.full(scales.shape, np.nan)
    known = np.isfinite(scales)
    errors[known] = [
        largest_error(Head.from_excess(delta, mu), interior)
        for delta, mu in zip(excess[known], scales[known], strict=True)
    ]
    return errors


def certified_scales(result: Result) -> NDArray[float64]:
    """Last scale of each path up to which all deviations are at most one half, shape (c,).

    0 if the first one is larger. A path certified to its end may have gone on.
    """
    holds = np.logical_and.accumulate(np.abs(result.deviations) <= _FRACTION, axis=1)
    return np.asarray(np.where(holds, result.scales, 0.0).max(axis=1), dtype=float64)


def findings(result: Result) -> tuple[Finding, ...]:
    """The two controls and the certificate by size, the fit, and the corpora that fell short."""
    said = []
    certified = certified_scales(result)
    for size in np.unique(result.corpus_sizes):
        of_size = result.corpus_sizes == size
        last = np.array([row[np.isfinite(row)][-1] for row in result.scaled_errors[of_size]])
        said += [
            Finding(
                f"radius over the population's after the same steps, {size} tasks",
                "near 1",
                _range(result.radius_ratios[of_size]),
            ),
            Finding(
                f"radius times the largest interior error, {size} tasks, at the end",
                float(np.sqrt(2.0)),
                float(np.median(last)),
            ),
            Finding(
                f"scale to which half the progress is certified, median, {size} tasks",
                f"of order {0.1 * size:.3g}",
                _up_to(float(np.median(certified[of_size])), result.stopping_scales[of_size][0]),
            ),
            Finding(
                f"corpora of {size} tasks that fell short of their stopping scale",
                "few, of the smallest",
                f"{np.count_nonzero(~result.reached[of_size])} of {np.count_nonzero(of_size)}",
            ),
        ]
    fitted = result.context_sizes >= result.fit_from
    off = result.fitted_errors[:, fitted] / result.root_mean_squares[:, fitted] - 1.0
    said += [
        Finding("share of the corpus, A in A log(M)^2/M + B/N", result.law_A, result.A),
        Finding("share of the fresh context, B", result.law_B, result.B),
        Finding("root mean square relative residual, all corpora", "small", result.residual),
        Finding(
            "the same over corpora that reached their stopping scale",
            "small",
            float(np.sqrt((off[result.reached] ** 2).mean())),
        ),
    ]
    return tuple(said)


def _up_to(scale: float, stopping_scale: float) -> str:
    return f"{scale:.4g}" + ("; descent stops there" if scale >= stopping_scale else "")


def _range(numbers: NDArray[float64]) -> str:
    return f"{np.nanmin(numbers):.3f} to {np.nanmax(numbers):.3f}"
