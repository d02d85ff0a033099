"""Pretraining: descent on one corpus, stopped and frozen without a look at fresh tasks (MODEL §6).

Start, step size, stopping scale and step budget come from the number of tasks and examples alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib import import_module
from math import ceil, log
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from popdyn.archive import PathLike, load_arrays, save_arrays
from popdyn.arguments import count, one_positive, one_width, positive
from popdyn.asymptotics import stable_step, tube_limit
from popdyn.coordinates import Head
from popdyn.corpus import Corpus
from popdyn.display import html_table
from popdyn.dynamics.descent import gradient_descent
from popdyn.dynamics.hitting import hitting_time
from popdyn.risk.closed_form import ClosedFormRisk
from popdyn.risk.corpus import CorpusRisk

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Checkpoint", "default_start", "pretrain", "stopping_scale"]

_FORMAT = "popdyn checkpoint 1"

# Found by trial, all at half width 1: a start above the tube, from which the scale grows at once; a
# step that the tube's stability limit at the starting scale allows; a scale that corpora of 128
# tasks and more reach.
_SCALE, _EXCESS = 8.0, 4.0
_STEP_SHARE = 100.0 / 256.0  # of the stability limit, which is 256 at scale 8
_CONSTANT, _LOG_POWER = 2.5, 2.0
# Measured: 38 corpora of 128 or 256 tasks came to their scale within 2.5 times the population's
# steps; of 160 corpora of 64 tasks 13 did not within 3 times, each with two or more tasks that have
# no positive example, which slow the scale down or hold it for good.
_BUDGET = 3
_MOST_STEPS = 10**10  # hours for the smallest corpus; the default step falls like the cubed scale


@dataclass(frozen=True, repr=False)
class Checkpoint:
    """A pretrained head, frozen, and where it came from.

    Made by `pretrain` or `load`. Checkpoints are compared by value.

    Attributes
    ----------
    head : Head
        Where training stopped.
    start : Head
    n_tasks, n_examples : int
        Size of the corpus.
    step_size : float
    n_steps : int
        Steps done.
    step_budget : int
        Steps allowed.
    stopping_scale : float
        Scale at which training was to stop.
    reached : bool
        Whether it was reached.
    message : str
        Why training stopped.
    seed : int or None
        Of the corpus; None if unknown.
    """

    head: Head
    start: Head
    n_tasks: int
    n_examples: int
    step_size: float
    n_steps: int
    step_budget: int
    stopping_scale: float
    reached: bool
    message: str
    seed: int | None = None

    @property
    def half_width(self) -> float:
        return self.head.half_width

    @property
    def corpus_size(self) -> int:
        """`min(m, n)`, which the scale of pretraining goes with."""
        return min(self.n_tasks, self.n_examples)

    def save(self, path: PathLike) -> None:
        """Write an `.npz` file without pickles, whole or not at all; replaces an older file."""
        arrays: dict[str, Any] = {"half_width": self.half_width}
        for field in fields(self):
            entry = getattr(self, field.name)
            if isinstance(entry, Head):
                arrays[field.name] = [entry.given[1], entry.scale]
                arrays[f"{field.name}_coordinate"] = entry.given[0]
            elif field.name == "seed":
                arrays["seed"] = "" if entry is None else str(entry)  # seeds may be of any size
            else:
                arrays[field.name] = entry
        save_arrays(path, _FORMAT, arrays)

    @classmethod
    def load(cls, path: PathLike) -> "Checkpoint":
        """Checkpoint that `save` wrote.

        Raises
        ------
        ValueError
            If the file is damaged or something else.
        OSError
            If it cannot be read.
        """
        with load_arrays(path, _FORMAT, "Checkpoint.save") as arrays:
            width, seed = float(arrays["half_width"]), str(arrays["seed"])
            heads = {
                name: _head(str(arrays[f"{name}_coordinate"]), arrays[name], width)
                for name in ("head", "start")
            }
            return cls(
                **heads,
                n_tasks=int(arrays["n_tasks"]),
                n_examples=int(arrays["n_examples"]),
                step_size=float(arrays["step_size"]),
                n_steps=int(arrays["n_steps"]),
                step_budget=int(arrays["step_budget"]),
                stopping_scale=float(arrays["stopping_scale"]),
                reached=bool(arrays["reached"]),
                message=str(arrays["message"]),
                seed=int(seed) if seed else None,
            )

    def __repr__(self) -> str:
        return (
            f"<Checkpoint of {self.n_tasks} tasks with {self.n_examples} examples each, "
            f"scale={float(self.head.scale):.6g}, {self.message!r}>"
        )

    def _repr_html_(self) -> str:
        names = ("scale", "tube", "label_score", "stopping_scale", "reached", "n_steps", "seed")
        rows = [(name, getattr(self if hasattr(self, name) else self.head, name)) for name in names]
        return html_table(repr(self).strip("<>"), rows)

    def plot(self) -> "Figure":
        """Picture of the frozen head: its place beside the population flow, its errors (MODEL §6).

        The errors are the exact ones on fresh contexts, at the thresholds 0 and `l/2` to both
        sides; `transfer(...).plot()` shows others.

        Returns
        -------
        matplotlib Figure
            Outside of pyplot; a notebook shows it.
        """
        # By name at call time: what follows from a checkpoint is found by modules below this one.
        seen = import_module("popdyn.experiments.frozen_head").observe(self)
        figure: Figure = import_module("popdyn.plotting.frozen_head").draw(seen)
        return figure


def pretrain(
    corpus: Corpus,
    *,
    start: Head | None = None,
    step_size: float | None = None,
    until_scale: float | None = None,
    seed: int | None = None,
    callback: Callable[[float, Head], object] | None = None,
) -> Checkpoint:
    """Head that constant-step descent on a corpus leads to, stopped by a rule made beforehand.

    The rule knows the number of tasks and examples: training stops once the scale has grown to
    `stopping_scale`, or after 3 times the steps that the population flow needs from the same start,
    rounded up. A corpus that falls short of the scale is an answer, and the checkpoint says so. One
    whose stopping scale is not above the starting one, `min(m, n) <= 47` at the default start, is
    not trained: its checkpoint is the start. Long runs jump, within 1e-11 of plain steps (see
    `gradient_descent`).

    Parameters
    ----------
    corpus : Corpus
    start : Head, optional
        By default `default_start`: (ratio, scale) = (1.5, 8) at half width 1.
    step_size : float, optional
        By default 0.39 times the stability limit `mu^3/(2 l)` at the starting scale, which is 100
        at the default start and half width 1.
    until_scale : float, optional
        By default `stopping_scale` of the corpus.
    seed : int, optional
        What the corpus was drawn from, for the record.
    callback : callable, optional
        Called as in `gradient_descent`; training stops when it returns a true value.

    Raises
    ------
    ValueError
        On bad arguments, or if the population flow never comes to the scale, or not in 1e10 steps.
    """
    risk = CorpusRisk(corpus)
    seed = None if seed is None else count("seed", seed, least=0)
    width = corpus.half_width
    start = default_start(width) if start is None else start
    _check_start(start, width)
    step = _STEP_SHARE * stable_step(start.scale, width) if step_size is None else step_size
    step = one_positive("step_size", step)
    if until_scale is None:
        until_scale = stopping_scale(corpus.n_tasks, corpus.n_examples, width)
    until = one_positive("until_scale", until_scale)
    budget = _step_budget(start, step, until)
    trajectory = gradient_descent(
        risk,
        start,
        step,
        budget,
        until_scale=until,
        record=[0],
        callback=callback,
        method="jumps",
    )
    head = trajectory.stop_head
    reached = bool(head.scale >= until)
    message = trajectory.message
    if not budget:
        message = f"nothing to train: the start is not below the stopping scale {until:.6g}"
    elif trajectory.n_steps == budget and not reached:
        message = _shortfall(corpus, head, budget, until)
    return Checkpoint(
        head=head,
        start=start,
        n_tasks=corpus.n_tasks,
        n_examples=corpus.n_examples,
        step_size=step,
        n_steps=trajectory.n_steps,
        step_budget=budget,
        stopping_scale=until,
        reached=reached,
        message=message,
        seed=seed,
    )


def stopping_scale(n_tasks: ArrayLike, n_examples: ArrayLike, half_width: float = 1.0) -> Any:
    """Scale `2.5 M/(l log(M)^2)`, `M = min(m, n)`, at which pretraining stops (MODEL §6).

    Of the order that the theory has, with constants found by trial. Below `M = e^2`, where the
    quotient would grow again, its logarithm is 2.

    Parameters
    ----------
    n_tasks, n_examples : array_like of whole numbers, shape (...)
        At least 1.
    half_width : float

    Returns
    -------
    ndarray, shape (...)
        In inverse units of the half width.

    Raises
    ------
    ValueError
        If a number is below 1 or the half width is not positive.
    """
    size = np.minimum(positive("n_tasks", n_tasks), positive("n_examples", n_examples))
    if not (size >= 1).all():
        raise ValueError(
            f"n_tasks and n_examples must be at least 1, got {n_tasks!r} and {n_examples!r}"
        )
    return _CONSTANT / (one_width(half_width) * sampling_term(size))


def sampling_term(size: NDArray[float64]) -> NDArray[float64]:
    """`log(M)^2/M`, the order of the error that a corpus of size `M` leaves."""
    return np.maximum(np.log(size), _LOG_POWER) ** _LOG_POWER / size


def default_start(half_width: float = 1.0) -> Head:
    """Start at `mu l = 8`, as far above the tube at any half width as (ratio, scale) = (1.5, 8) is
    at half width 1."""
    width = one_width(half_width)
    scale = _SCALE / width
    shift = tube_limit(width) - tube_limit() - log(width)
    return Head.from_excess(_EXCESS + shift, scale, width)


def _shortfall(corpus: Corpus, head: Head, budget: int, until_scale: float) -> str:
    one_sided = int(np.count_nonzero((corpus.labels < 0).all(axis=1)))
    return (
        f"the budget of {budget} steps ended at scale {float(head.scale):.6g}, short of "
        f"{until_scale:.6g}; {one_sided} of {corpus.n_tasks} tasks have no positive example"
    )


def _step_budget(start: Head, step_size: float, until_scale: float) -> int:
    """Three times the steps of the population flow from the same start, rounded up."""
    flow = hitting_time(ClosedFormRisk(start.half_width), start, scale=until_scale)
    if not flow.reached:
        raise ValueError(
            f"until_scale must be one that the population flow reaches from {start!r}, got "
            f"{until_scale!r} ({flow.message}); take a start of larger scale"
        )
    budget = ceil(min(_BUDGET * flow.time / step_size, _MOST_STEPS + 1))
    if budget > _MOST_STEPS:
        raise ValueError(
            f"step_size must lead the population to scale {until_scale:.6g} in a sensible number "
            f"of steps, got {step_size!r} for a time of {flow.time:.3g}; take a larger one"
        )
    return budget


def _check_start(start: Head, half_width: float) -> None:
    if not isinstance(start, Head) or start.shape or not start.scale > 0:
        raise ValueError(f"start must be one Head of positive scale, got {start!r}")
    if start.half_width != half_width:
        raise ValueError(
            f"start and corpus must have one half width, got {start.half_width!r} and "
            f"{half_width!r}"
        )


def _head(coordinate: str, entry: NDArray[Any], half_width: float) -> Head:
    given, scale = entry
    makers = {
        "ratio": Head.from_ratio,
        "label_score": Head.from_scores,
        "excess": Head.from_excess,
        "tube": Head.from_tube,
    }
    return makers[coordinate](given, scale, half_width)
