"""Descent on a grid of corpora, and the frozen heads that it leads to (MODEL §6).

What the figures of pretraining and of transfer have in common, corpus by corpus, so that a store
has each of them once.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy import int64

from popdyn.coordinates import Head
from popdyn.design import Design
from popdyn.dynamics.descent import gradient_descent
from popdyn.pretraining import Checkpoint, pretrain
from popdyn.projected_gradient import progress_direction
from popdyn.risk.closed_form import ClosedFormRisk
from popdyn.risk.corpus import CorpusRisk
from popdyn.sampling import cell_seed, sample_corpus
from popdyn.sweeping import CellResult

__all__ = ["Corpora", "CorpusCell", "checkpoint_of", "pretrained"]


@dataclass(frozen=True)
class CorpusCell:
    """One corpus and the descent on it: all that its path depends on."""

    size: int
    replicate: int
    seed: int
    ratio: float
    scale: float
    step_size: float
    n_points: int

    @property
    def start(self) -> Head:
        return Head.from_ratio(self.ratio, self.scale)


@dataclass(frozen=True)
class Corpora:
    """Corpora with as many tasks as examples, and the descent on each. Half width 1.

    Attributes
    ----------
    sizes, n_replicates : tuple of int
        Numbers of tasks, and corpora drawn of each.
    seed : int
    ratio, scale, step_size : float
        Start and step of descent.
    n_points : int
        Points of a path, spaced evenly in the logarithm of the step.
    """

    sizes: tuple[int, ...] = (64, 128, 256, 512, 1024)
    n_replicates: tuple[int, ...] = (16, 8, 8, 4, 1)
    seed: int = 0
    ratio: float = 1.5
    scale: float = 8.0
    step_size: float = 100.0
    n_points: int = 60

    @classmethod
    def paper(cls) -> Self:
        """Corpora of 64 to 1024 tasks; nine tenths of the time go to the largest one."""
        return cls()

    @classmethod
    def quick(cls) -> Self:
        """Corpora of 64 to 256 tasks."""
        return cls(sizes=(64, 128, 256), n_replicates=(16, 8, 4))

    def cells(self) -> list[CorpusCell]:
        """Every replicate of every size."""
        descent = self.seed, self.ratio, self.scale, self.step_size, self.n_points
        return [
            CorpusCell(size, replicate, *descent)
            for size, replicates in zip(self.sizes, self.n_replicates, strict=True)
            for replicate in range(replicates)
        ]


def pretrained(cell: CorpusCell) -> CellResult:
    """Descent on one corpus by the rule of `pretrain`, with its path and the population's."""
    rng = cell_seed(cell.seed, cell.size, cell.size, cell.replicate)
    corpus = sample_corpus(Design(), cell.size, cell.size, rng)
    risk, population, start = CorpusRisk(corpus), ClosedFormRisk(), cell.start
    # Ended after its first call, pretraining tells the rule; its steps follow here, with a path.
    rule = pretrain(corpus, start=start, step_size=cell.step_size, callback=_at_once)
    path = gradient_descent(
        risk,
        start,
        cell.step_size,
        rule.step_budget,
        until_scale=rule.stopping_scale,
        record=cell.n_points,
        method="jumps",
    )
    steps = np.rint(path.t / cell.step_size).astype(int64)
    followed = gradient_descent(population, start, cell.step_size, path.n_steps, record=steps)
    heads = Head.from_excess(path.excess, path.scale)
    along = progress_direction(heads)
    progress = (population.gradient(heads) * along).sum(axis=-1)
    return {
        "steps": steps,
        "excess": np.array(path.excess),
        "scale": np.array(path.scale),
        "population_radius": np.hypot(followed.label_score, followed.scale),
        "deviation": (risk.gradient(heads) * along).sum(axis=-1) / progress - 1.0,
        "reached": np.array(path.stop_head.scale >= rule.stopping_scale),
        "stopping_scale": np.array(rule.stopping_scale),
        "step_budget": np.array(rule.step_budget),
        "one_sided": np.count_nonzero((corpus.labels < 0).all(axis=1)),
    }


def _at_once(time: float, head: Head) -> bool:
    return True


def checkpoint_of(cell: CorpusCell, found: CellResult) -> Checkpoint:
    """The frozen head of a cell, from what `pretrained` returned."""
    n_steps, reached = int(found["steps"][-1]), bool(found["reached"])
    head = Head.from_excess(found["excess"][-1], found["scale"][-1])
    return Checkpoint(
        head=head if n_steps else cell.start,
        start=cell.start,
        n_tasks=cell.size,
        n_examples=cell.size,
        step_size=cell.step_size,
        n_steps=n_steps,
        step_budget=int(found["step_budget"]),
        stopping_scale=float(found["stopping_scale"]),
        reached=reached,
        message="reached" if reached else "fell short",
        seed=cell.seed,
    )
