"""Step sizes of descent, and what few tasks and few examples do to its gradient (MODEL §4, §6).

The claim of the paper's Figure 3: the fourth power of the scale gains the same amount a step, in
units of the step size, whatever the step size; at one head the gradient of a corpus is off by a
mean that the examples alone decide and a spread that the tasks bring down.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy import bool_, float64, int64
from numpy.typing import NDArray

from popdyn.archive import PathLike
from popdyn.asymptotics import fourth_power_increment, tube_limit
from popdyn.coordinates import Head
from popdyn.design import Design
from popdyn.dynamics.descent import gradient_descent
from popdyn.experiments.finding import Finding
from popdyn.projected_gradient import progress_direction, progress_moments
from popdyn.risk.closed_form import ClosedFormRisk
from popdyn.risk.corpus import CorpusRisk
from popdyn.sampling import cell_seed, sample_corpus
from popdyn.sweeping import CellResult, sweep

__all__ = ["Config", "Result", "findings", "run"]


@dataclass(frozen=True)
class Config:
    """Step sizes of the population's descent, and the grid of corpora. Half width 1.

    Attributes
    ----------
    step_sizes : tuple of float
    n_steps : int
    ratio, scale : float
        Where descent starts.
    task_counts, example_counts : tuple of int
        The sides of the grid.
    shells : tuple of float
        Scales, on the tube at `c*`, at which gradients are compared.
    n_replicates : int
        Corpora drawn for each cell of the grid, at least 2.
    seed : int
    """

    step_sizes: tuple[float, ...] = (20.0, 50.0, 100.0, 200.0, 400.0, 512.0)
    n_steps: int = 40_000
    ratio: float = 1.2
    scale: float = 8.0
    task_counts: tuple[int, ...] = (16, 64, 256, 1024, 4096)
    example_counts: tuple[int, ...] = (16, 64, 256, 1024)
    shells: tuple[float, ...] = (8.0, 16.0)
    n_replicates: int = 64
    seed: int = 0

    @classmethod
    def paper(cls) -> "Config":
        """Five step sizes that hold and one that fails; a grid to 4096 tasks, 1024 examples."""
        return cls()

    @classmethod
    def quick(cls) -> "Config":
        """The same step sizes; a smaller grid."""
        return cls(task_counts=(16, 64, 256, 1024), example_counts=(16, 64, 256), n_replicates=32)


@dataclass(frozen=True)
class Result:
    """Increments by step size; deviations of corpus gradients from the population's on the tube.

    Attributes
    ----------
    step_sizes : ndarray, shape (e,)
    increments : ndarray, shape (e,)
        `(mu^4 - mu0^4)/(step size * steps)`, of all the steps asked for; nan where they failed.
    failed : ndarray of bool, shape (e,)
        Whether the scale fell to zero or below, or a step was not finite.
    steps_done : ndarray of int, shape (e,)
    stop_scales : ndarray, shape (e,)
    n_steps : int
        Asked for.
    start_scale : float
    task_counts : ndarray of int, shape (a,)
    example_counts : ndarray of int, shape (b,)
    shells : ndarray, shape (s,)
    deviations : ndarray, shape (s, a, b, r)
        `u . grad L` of every drawn corpus over that of the population, minus 1; `u = (l + 1/mu, 1)`
        is the direction of progress.
    means : ndarray, shape (s, b)
        Exact mean of the deviations, for any number of tasks: that of infinitely many.
    task_spreads : ndarray, shape (s, b)
        Exact standard deviation for a corpus of one task; over `sqrt(m)` for one of `m`.
    """

    step_sizes: NDArray[float64]
    increments: NDArray[float64]
    failed: NDArray[bool_]
    steps_done: NDArray[int64]
    stop_scales: NDArray[float64]
    n_steps: int
    start_scale: float
    task_counts: NDArray[int64]
    example_counts: NDArray[int64]
    shells: NDArray[float64]
    deviations: NDArray[float64]
    means: NDArray[float64]
    task_spreads: NDArray[float64]


def run(
    config: Config, *, executor: Executor | None = None, store: PathLike | None = None
) -> Result:
    """Descend with every step size; draw the corpora and find their gradients; the exact laws."""
    start = Head.from_ratio(config.ratio, config.scale)
    runs = [
        gradient_descent(ClosedFormRisk(), start, eta, config.n_steps, record=[0])
        for eta in config.step_sizes
    ]
    failed = np.array([path.status < 0 for path in runs])
    scales = np.array([float(path.stop_head.scale) for path in runs])
    gained = (scales**4 - config.scale**4) / (np.array(config.step_sizes) * config.n_steps)

    counts = [(m, n) for m in config.task_counts for n in config.example_counts]
    by_cell = sweep(
        [(m, n, config.n_replicates) for m, n in counts],
        partial(corpus_deviations, shells=config.shells, seed=config.seed),
        executor=executor,
        store=store,
    )
    exact = sweep(
        list(config.example_counts),
        partial(exact_deviations, shells=config.shells),
        executor=executor,
        store=store,
    )
    shape = len(config.task_counts), len(config.example_counts), config.n_replicates, -1
    deviations = np.stack([cell["deviations"] for cell in by_cell]).reshape(shape)
    return Result(
        step_sizes=np.array(config.step_sizes, dtype=float64),
        increments=np.where(failed, np.nan, gained),
        failed=failed,
        steps_done=np.array([path.n_steps for path in runs]),
        stop_scales=scales,
        n_steps=config.n_steps,
        start_scale=config.scale,
        task_counts=np.array(config.task_counts),
        example_counts=np.array(config.example_counts),
        shells=np.array(config.shells, dtype=float64),
        deviations=np.moveaxis(deviations, -1, 0),
        means=np.stack([cell["mean"] for cell in exact], axis=-1),
        task_spreads=np.stack([cell["spread"] for cell in exact], axis=-1),
    )


def corpus_deviations(cell: tuple[int, int, int], shells: Sequence[float], seed: int) -> CellResult:
    """Deviations of `(n_tasks, n_examples, n_replicates)` corpora, shape (replicates, shells)."""
    n_tasks, n_examples, n_replicates = cell
    head, along, progress = _on_the_tube(shells)
    found = np.empty((n_replicates, len(shells)))
    for i in range(n_replicates):
        rng = cell_seed(seed, n_tasks, n_examples, i)
        risk = CorpusRisk(sample_corpus(Design(), n_tasks, n_examples, rng))
        found[i] = (risk.gradient(head) * along).sum(axis=-1) / progress - 1.0
    return {"deviations": found}


def exact_deviations(n_examples: int, shells: Sequence[float]) -> CellResult:
    """Mean deviation at infinitely many tasks and spread of one task, shape (shells,)."""
    head, _, progress = _on_the_tube(shells)
    moments = progress_moments(head, n_examples)
    return {
        "mean": moments.mean / progress - 1.0,
        "spread": moments.standard_deviation / np.abs(progress),
    }


def _on_the_tube(
    shells: Sequence[float],
) -> tuple[Head, NDArray[float64], NDArray[float64]]:
    """Heads, their directions of progress, and the population's gradient along them."""
    head = Head.from_tube(tube_limit(), np.array(shells, dtype=float64))
    along = progress_direction(head)
    return head, along, (ClosedFormRisk().gradient(head) * along).sum(axis=-1)


def findings(result: Result) -> tuple[Finding, ...]:
    """Increments by step size; what the grid says of the mean and the spread at each shell."""
    said = []
    predicted = fourth_power_increment(result.step_sizes, result.n_steps, result.start_scale)
    for i, eta in enumerate(result.step_sizes):
        if result.failed[i]:
            measured: float | str = f"fails after {result.steps_done[i]} steps"
        else:
            measured = float(result.increments[i])
        claim = f"mu^4 gains a step, over the step size {eta:g}"
        said.append(Finding(claim, float(predicted[i]), measured))
    averages, spreads = result.deviations.mean(axis=-1), result.deviations.std(axis=-1, ddof=1)
    counts = result.task_counts
    for s, shell in enumerate(result.shells):
        for j, n in enumerate(result.example_counts):
            said.append(
                Finding(
                    f"mean deviation at scale {shell:g}, {n} examples a task, over all tasks drawn",
                    float(result.means[s, j]),
                    float(np.average(averages[s, :, j], weights=counts)),
                )
            )
        slopes = np.polyfit(np.log(counts), np.log(spreads[s]), 1)[0]
        said.append(
            Finding(
                f"power of the number of tasks in the spread at scale {shell:g}",
                -0.5,
                float(slopes.mean()),
            )
        )
        ratios = spreads[s] * np.sqrt(counts)[:, np.newaxis] / result.task_spreads[s]
        said.append(
            Finding(
                f"spread at scale {shell:g} over that of one task by the root of their number",
                1.0,
                float(np.sqrt((ratios**2).mean())),
            )
        )
    return tuple(said)
