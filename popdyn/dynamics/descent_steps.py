"""Steps of gradient descent, in a loop that is compiled where the risk is."""

from collections.abc import Callable
from functools import singledispatch
from typing import TypeAlias

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.compiled import kernel
from popdyn.coordinates import Head
from popdyn.risk.closed_form import ClosedFormRisk
from popdyn.risk.closed_form import _risk as closed_form_risk
from popdyn.risk.corpus import CorpusRisk
from popdyn.risk.corpus_kernels import Tasks, corpus_gradient, two_product, two_sum
from popdyn.risk.protocol import Risk

__all__ = [
    "FELL",
    "GOING",
    "LOST",
    "NOT_FINITE",
    "REACHED",
    "State",
    "Steps",
    "steps_of",
]

# Excess and scale, each followed by what rounding has left out of it; the sums of the absolute
# updates of both; the risk before the last step.
State: TypeAlias = NDArray[float64]

GOING, REACHED, FELL, NOT_FINITE = range(4)

# An update below this part of the head is lost: at a minimum the gradient's rounding errors of
# 1e-16 drive the head back and forth.
LOST = 2.0**-48

# `steps(state, step_size, n_steps, lowest, highest)` takes at most `n_steps` steps, up to one that
# leads to a scale outside `(lowest, highest)` or before one that is not finite, and returns how
# many it took and why it ended.
Steps: TypeAlias = Callable[[State, float, int, float, float], tuple[int, int]]


@singledispatch
def steps_of(risk: Risk) -> Steps:
    """Steps down a risk; compiled for the risks registered below, which have kernels for it."""

    def steps(
        state: State, step_size: float, n_steps: int, lowest: float, highest: float
    ) -> tuple[int, int]:
        width = risk.half_width
        for taken in range(n_steps):
            head = Head.from_excess(state[0], state[2], width)
            value, (g_lam, g_mu) = risk.value_and_gradient(head)
            outcome = _step(
                state, float(value), float(g_lam), float(g_mu), step_size, width, lowest, highest
            )
            if outcome != GOING:
                return taken + (outcome != NOT_FINITE), outcome
        return n_steps, GOING

    return steps


@steps_of.register
def _(risk: ClosedFormRisk) -> Steps:
    def steps(
        state: State, step_size: float, n_steps: int, lowest: float, highest: float
    ) -> tuple[int, int]:
        return _closed_form_steps(state, step_size, n_steps, lowest, highest, risk.half_width)

    return steps


@steps_of.register
def _(risk: CorpusRisk) -> Steps:
    tasks, width = risk.tasks, risk.half_width

    def steps(
        state: State, step_size: float, n_steps: int, lowest: float, highest: float
    ) -> tuple[int, int]:
        return _corpus_steps(state, step_size, n_steps, lowest, highest, tasks, width)

    return steps


@kernel
def _step(
    state: NDArray[float64],
    value: float,
    g_lam: float,
    g_mu: float,
    step_size: float,
    width: float,
    lowest: float,
    highest: float,
) -> int:
    """One step, with compensated sums: the rounding of 1e6 steps stays below that of one."""
    more_excess = -step_size * (g_lam - width * g_mu)
    more_scale = -step_size * g_mu
    excess, excess_tail = two_sum(state[0], more_excess)
    scale, scale_tail = two_sum(state[2], more_scale)
    excess, excess_tail = two_sum(excess, excess_tail + state[1])
    scale, scale_tail = two_sum(scale, scale_tail + state[3])
    if not (np.isfinite(excess) and np.isfinite(scale) and np.isfinite(excess + width * scale)):
        return NOT_FINITE
    state[0], state[1], state[2], state[3] = excess, excess_tail, scale, scale_tail
    state[4] += abs(more_excess)
    state[5] += abs(more_scale)
    state[6] = value
    if scale >= highest:
        return REACHED
    if scale <= lowest:
        return FELL
    return GOING


@kernel
def _label_score(excess: float, scale: float, width: float) -> float:
    """That of `Head.from_excess`, to the last bit."""
    product, product_tail = two_product(scale, width)
    total, total_tail = two_sum(product, excess)
    score: float = total + (total_tail + product_tail)
    return score


@kernel
def _closed_form_steps(
    state: NDArray[float64],
    step_size: float,
    n_steps: int,
    lowest: float,
    highest: float,
    width: float,
) -> tuple[int, int]:
    square = width * width
    for taken in range(n_steps):
        label_score = _label_score(state[0], state[2], width)
        value, g_lam, g_mu = closed_form_risk(label_score, state[0], state[2] * width)
        value, g_lam, g_mu = square * value, square * g_lam, square * (width * g_mu)
        outcome = _step(state, value, g_lam, g_mu, step_size, width, lowest, highest)
        if outcome != GOING:
            return taken + (outcome != NOT_FINITE), outcome
    return n_steps, GOING


@kernel
def _corpus_steps(
    state: NDArray[float64],
    step_size: float,
    n_steps: int,
    lowest: float,
    highest: float,
    tasks: Tasks,
    width: float,
) -> tuple[int, int]:
    for taken in range(n_steps):
        value, g_lam, g_mu = corpus_gradient(tasks, state[0], 2.0 * width, state[2])
        outcome = _step(state, value, g_lam, g_mu, step_size, width, lowest, highest)
        if outcome != GOING:
            return taken + (outcome != NOT_FINITE), outcome
    return n_steps, GOING
