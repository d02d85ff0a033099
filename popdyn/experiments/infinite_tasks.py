"""Infinitely many tasks, few examples each: the risk has a minimum at a finite scale (MODEL §6).

The claim of Figure 10: the exact risk of contexts of n examples has its minimum at a scale of order
`n^2`, not `n`, where it is near `4 l^2/(n + 1)`, and the flow turns from `t^(1/4)` to a slower
power of time near the scale `n`. Here `l = 1`.
"""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy import float64
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from popdyn.archive import PathLike
from popdyn.coordinates import Head
from popdyn.experiments.finding import Finding
from popdyn.risk.finite_context import FiniteContextRisk, end_graded
from popdyn.sweeping import sweep

__all__ = ["Config", "Result", "findings", "lowest_head", "run", "valley"]

# Minimum and valley are found on half the nodes, in half the time, and the risks there on all.
# The scale of the minimum moves by 2e-6 at n = 64, of which its risk feels the square.
_ORDER = 8
_TOLERANCE = 1e-5  # Newton step to the minimum, in excess and log scale; it converges quadratically
_VALLEY_TOLERANCE = 1e-3  # step in excess to the valley; the one after it would be below 1e-5
_LARGEST_STEP = 0.5  # further off, the quadratic model is of no use
_MAX_STEPS = 40


@dataclass(frozen=True)
class Config:
    """Context sizes, and the scales at which the risk of each is followed.

    Attributes
    ----------
    n_examples : tuple of int
    n_scales : int
        Evenly in log scale from `first_scale` to `beyond` times the scale of the minimum.
    first_scale, beyond : float
    """

    n_examples: tuple[int, ...]
    n_scales: int
    first_scale: float = 4.0
    beyond: float = 2.0

    @classmethod
    def paper(cls) -> "Config":
        """Sizes 16 to 256."""
        return cls((16, 32, 64, 128, 256), n_scales=24)

    @classmethod
    def quick(cls) -> "Config":
        """Sizes 16 to 64."""
        return cls((16, 32, 64), n_scales=13)


@dataclass(frozen=True)
class Result:
    """The minimum for each of `k` sizes, and `p` points of the valley through it.

    Attributes
    ----------
    n_examples : ndarray of int, shape (k,)
    minimum_scale, minimum_excess, minimum_risk : ndarray, shape (k,)
    scale, excess, risk : ndarray, shape (k, p)
    time_power : ndarray, shape (k, p)
        `d log mu/d log t` of the flow, as read from its velocity; nan past the minimum,
        where it turns back.
    """

    n_examples: NDArray[np.int64]
    minimum_scale: NDArray[float64]
    minimum_excess: NDArray[float64]
    minimum_risk: NDArray[float64]
    scale: NDArray[float64]
    excess: NDArray[float64]
    risk: NDArray[float64]
    time_power: NDArray[float64]


def run(
    config: Config, *, executor: Executor | None = None, store: PathLike | None = None
) -> Result:
    """Find the minimum of every size and follow the valley through it."""
    cells = [
        (n, config.first_scale, config.beyond, config.n_scales) for n in sorted(config.n_examples)
    ]
    found = sweep(cells, _minimum_and_valley, executor=executor, store=store)
    columns = {name: np.stack([one[name] for one in found]) for name in found[0]}
    return Result(n_examples=np.array([cell[0] for cell in cells]), **columns)


def findings(result: Result) -> tuple[Finding, ...]:
    """Powers and values of the minimum, and the powers of time on both sides of the scale `n`."""
    n, found = result.n_examples, []
    for i in range(1, len(n)):
        power = np.log(result.minimum_scale[i] / result.minimum_scale[i - 1]) / np.log(
            n[i] / n[i - 1]
        )
        claim = f"power of n in the scale mu* of the minimum, n = {n[i - 1]} to {n[i]}"
        found.append(Finding(claim, "2, up to logarithms", float(power)))
    for size, risk in zip(n, result.minimum_risk, strict=True):
        claim = f"smallest risk over 4/(n + 1), n = {size}"
        found.append(Finding(claim, 1.0, float(risk * (size + 1) / 4.0)))
    last = result.scale[-1], result.time_power[-1]
    for where, text in ((n[-1] / 8.0, "1/4 while 1 << mu << n"), (float(n[-1]), "about 1/5")):
        power = np.interp(np.log(where), np.log(last[0]), last[1])
        claim = f"power of t in mu at mu = {where:g}, n = {n[-1]}"
        found.append(Finding(claim, text, float(power)))
    return tuple(found)


def lowest_head(n_examples: int) -> Head:
    """Head of the smallest risk on contexts of `n_examples`, by Newton's method.

    Its scale is good to 2e-6, relative, from 16 to 128 examples.

    Raises
    ------
    RuntimeError
        If the steps do not end.
    """
    risk = FiniteContextRisk(n_examples, rule=end_graded(n_examples, _ORDER))
    # Roughly where the minima from 16 to 128 are; any start nearby does.
    point = np.array([0.43 * np.log(n_examples) - 0.3, np.log(n_examples**2 / 20.0)])
    for _ in range(_MAX_STEPS):
        head = Head.from_excess(point[0], np.exp(point[1]))
        along = np.array([[1.0, head.scale], [0.0, head.scale]])  # d(lam, mu)/d(delta, log mu)
        gradient = along.T @ risk.gradient(head)
        hessian = along.T @ risk.hessian(head) @ along
        hessian[1, 1] += gradient[1]
        step = -np.linalg.solve(hessian, gradient)
        point += np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
        if np.abs(step).max() < _TOLERANCE:
            return Head.from_excess(point[0], np.exp(point[1]))
    raise RuntimeError(f"no minimum found for {n_examples} examples; the last head was {head!r}")


def valley(
    n_examples: int, scales: NDArray[float64], lowest: Head
) -> tuple[NDArray[float64], NDArray[float64]]:
    """Excess and velocity `dmu/dt` on the floor of the valley, shape `(p,)` each.

    There the gradient points along `(l, 1)`: the risk is smallest across the tube. A flow falls
    onto a path beside it that differs by `O(1/mu)`.

    Parameters
    ----------
    n_examples : int
    scales : ndarray, shape (p,)
        Increasing.
    lowest : Head
        The minimum, from which the floor is followed both ways.
    """
    risk = FiniteContextRisk(n_examples, rule=end_graded(n_examples, _ORDER))
    excess, slope = np.empty_like(scales), np.empty_like(scales)
    above = int(np.searchsorted(scales, lowest.scale))
    for indices in (range(above - 1, -1, -1), range(above, len(scales))):
        delta, change = float(lowest.excess), 0.0
        for i in indices:
            found = _floor(risk, float(scales[i]), delta + change)
            change, delta = found[0] - delta, found[0]
            excess[i], slope[i] = found
    return excess, -slope


def _floor(risk: FiniteContextRisk, scale: float, guess: float) -> tuple[float, float]:
    """Excess on the floor at one scale, and `dL/dmu` there."""
    excess = guess
    head = Head.from_excess(excess, scale)
    hessian = risk.hessian(head)
    for _ in range(_MAX_STEPS):
        gradient = risk.gradient(head)
        step = -(gradient[0] - gradient[1]) / (hessian[0, 0] - hessian[0, 1])
        excess += float(np.clip(step, -_LARGEST_STEP, _LARGEST_STEP))
        head = Head.from_excess(excess, scale)
        if abs(step) < _VALLEY_TOLERANCE:
            # The two are equal on the floor, and their mean is flat across it.
            return excess, float(0.5 * (gradient[0] + gradient[1]))
    raise RuntimeError(f"no floor of the valley found at scale {scale!r}, from excess {guess!r}")


def _minimum_and_valley(cell: tuple[int, float, float, int]) -> dict[str, NDArray[float64]]:
    """The fields of `Result` without their first axis, for one size."""
    n_examples, first_scale, beyond, n_scales = cell
    risk = FiniteContextRisk(n_examples)
    lowest = lowest_head(n_examples)
    scales = np.geomspace(first_scale, beyond * lowest.scale, n_scales)
    excess, velocity = valley(n_examples, scales, lowest)
    # Nearly constant while mu ~ t^(1/4), and smooth through 0 at the minimum.
    growth = scales**3 * velocity
    change = CubicSpline(np.log(scales), growth)(np.log(scales), 1)
    power = np.full_like(scales, np.nan)
    rising = growth > 0.0
    # dmu/dt ~ mu^-p makes mu ~ t^(1/(p + 1)), wherever the clock began.
    power[rising] = 1.0 / (4.0 - change[rising] / growth[rising])
    return {
        "minimum_scale": lowest.scale,
        "minimum_excess": lowest.excess,
        "minimum_risk": risk.value(lowest),
        "scale": scales,
        "excess": excess,
        "risk": risk.value(Head.from_excess(excess, scales)),
        "time_power": power,
    }
