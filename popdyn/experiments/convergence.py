"""How far the population results depend on interior, start and quadrature (MODEL §2, §4).

The claim of the paper's Figure 6: the scaled error settles at 1 for every task interior and start;
hitting times and ratios found with a plain Gauss-Legendre rule over thresholds converge once its
order follows the power 3/2 of the scale, while a graded rule hardly grows.
"""

import warnings
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.archive import PathLike
from popdyn.asymptotics import tube_limit
from popdyn.coordinates import Head
from popdyn.design import Design
from popdyn.dynamics.flow import gradient_flow
from popdyn.dynamics.hitting import hitting_time
from popdyn.experiments.finding import Finding
from popdyn.experiments.observation import flow_at, largest_error
from popdyn.experiments.population import Config as PopulationConfig
from popdyn.quadrature import UnresolvedLayerWarning, boundary_graded, gauss_legendre
from popdyn.risk.closed_form import ClosedFormRisk
from popdyn.risk.infinite_context import InfiniteContextRisk
from popdyn.risk.protocol import Risk
from popdyn.sweeping import sweep

__all__ = ["ORDER_LAWS", "Config", "Result", "findings", "order_needed", "run"]

# Order of a plain rule over mu^1.5 that a relative error of the gradient on the tube needs; the
# numbers are those of `popdyn.quadrature.order_needed`, rounded.
ORDER_LAWS = ((1e-12, 25.0), (3e-6, 14.0))
_LATE = 2.0  # a rule that hits so much later than it should is given up: it does not resolve
# Of the runs by a rule and by the closed form: it errs alike in both, and what is left is the rule.
_SOLVER = "LSODA"
_FIRST_TIME = 1.0


@dataclass(frozen=True)
class Config:
    """Starts and interiors of the errors; scales and orders of the rules.

    Attributes
    ----------
    starts : tuple of (float, float)
        Ratio and scale of each; the rules are tried from the first.
    interiors : tuple of float
        Half widths of the intervals of thresholds over which the largest error is taken.
    t_end : float
        Time at which the errors end.
    n_times : int
    levels : tuple of float
        Scales to be hit, above that of the first start.
    factors : tuple of float
        Orders of the plain rules over `mu^1.5`, increasing.
    n_ratios : int
        Times until the hit at which ratios are compared.
    """

    starts: tuple[tuple[float, float], ...] = PopulationConfig.paper().starts
    interiors: tuple[float, ...] = (0.25, 0.5, 0.75, 0.9)
    t_end: float = 1e12
    n_times: int = 200
    levels: tuple[float, ...] = (10.0, 20.0, 40.0, 80.0)
    factors: tuple[float, ...] = (1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28)
    n_ratios: int = 50

    @classmethod
    def paper(cls) -> "Config":
        """Scales from 10 to 80, orders to 28 `mu^1.5`."""
        return cls()

    @classmethod
    def quick(cls) -> "Config":
        """Scales 10 and 20, fewer orders and times."""
        return cls(n_times=60, levels=(10.0, 20.0), factors=(2, 6, 10, 14, 18, 22, 26))


@dataclass(frozen=True)
class Result:
    """Scaled errors of the flow in closed form, and errors of what rules find. Half width 1.

    Attributes
    ----------
    starts : ndarray, shape (n_starts, 2)
        Label score and scale at time 0.
    interiors : ndarray, shape (n_interiors,)
    t : ndarray, shape (n_times,)
    scaled_error : ndarray, shape (n_starts, n_interiors, n_times)
        `mu sup |F - alpha|` over thresholds in the interior.
    levels : ndarray, shape (n_levels,)
        Scales that are hit.
    hit_time : ndarray, shape (n_levels,)
        In closed form.
    orders : ndarray of int, shape (n_levels, n_orders)
        Of the plain rules.
    hit_error, ratio_error, gradient_error : ndarray, shape (n_levels, n_orders)
        Of the hitting time, relative; of the ratio until that time, the largest, absolute; of the
        gradient at the scale on the tube, relative. The first is nan where the scale was not hit.
    graded_nodes : ndarray of int, shape (n_levels,)
        Nodes of the graded rule at the scale on the tube.
    graded_hit_error, graded_ratio_error, graded_gradient_error : ndarray, shape (n_levels,)
    """

    starts: NDArray[float64]
    interiors: NDArray[float64]
    t: NDArray[float64]
    scaled_error: NDArray[float64]
    levels: NDArray[float64]
    hit_time: NDArray[float64]
    orders: NDArray[np.int64]
    hit_error: NDArray[float64]
    ratio_error: NDArray[float64]
    gradient_error: NDArray[float64]
    graded_nodes: NDArray[np.int64]
    graded_hit_error: NDArray[float64]
    graded_ratio_error: NDArray[float64]
    graded_gradient_error: NDArray[float64]


@dataclass(frozen=True)
class _Cell:
    """One rule at one scale; order 0 is the graded rule."""

    order: int
    level: float
    start: tuple[float, float]
    hit_time: float
    n_ratios: int


def run(
    config: Config, *, executor: Executor | None = None, store: PathLike | None = None
) -> Result:
    """Errors along the flows, then a cell for each rule and scale."""
    heads = [Head.from_ratio(*start) for start in config.starts]
    t = np.concatenate(([0.0], np.geomspace(_FIRST_TIME, config.t_end, config.n_times - 1)))
    exact = ClosedFormRisk()
    hit_time = np.array([hitting_time(exact, heads[0], scale=mu).time for mu in config.levels])
    orders = np.array(
        [[round(factor * mu**1.5) for factor in config.factors] for mu in config.levels]
    )
    cells = [
        _Cell(int(order), level, config.starts[0], float(time), config.n_ratios)
        for row, level, time in zip(orders, config.levels, hit_time, strict=True)
        for order in (0, *row)
    ]
    found = sweep(cells, _compare, executor=executor, store=store)

    def of(name: str) -> NDArray[float64]:
        """One row a scale, the graded rule first."""
        return np.array([cell[name] for cell in found]).reshape(len(config.levels), -1)

    hit_error, ratio_error, gradient_error = map(of, ("hit", "ratio", "gradient"))
    return Result(
        starts=np.array([[head.label_score, head.scale] for head in heads]),
        interiors=np.array(config.interiors),
        t=t,
        scaled_error=np.array([_scaled_errors(exact, head, t, config.interiors) for head in heads]),
        levels=np.array(config.levels),
        hit_time=hit_time,
        orders=orders,
        hit_error=hit_error[:, 1:],
        ratio_error=ratio_error[:, 1:],
        gradient_error=gradient_error[:, 1:],
        graded_nodes=np.array([_graded_nodes(level) for level in config.levels]),
        graded_hit_error=hit_error[:, 0],
        graded_ratio_error=ratio_error[:, 0],
        graded_gradient_error=gradient_error[:, 0],
    )


def order_needed(result: Result, tolerance: float) -> NDArray[float64]:
    """Order at which the gradient of a plain rule is good to a tolerance, shape `(n_levels,)`.

    Between the orders tried by a straight line through the logarithms of errors; nan where no
    order tried is good enough.
    """
    needed = np.full(len(result.levels), np.nan)
    for i, (orders, errors) in enumerate(zip(result.orders, result.gradient_error, strict=True)):
        good = np.flatnonzero(errors <= tolerance)
        if good.size == 0:
            continue
        j = max(int(good[0]), 1)
        coarse, fine = np.log(errors[j - 1 : j + 1])
        share = (coarse - np.log(tolerance)) / (coarse - fine)
        needed[i] = orders[j - 1] + share * (orders[j] - orders[j - 1])
    return needed


def findings(result: Result) -> tuple[Finding, ...]:
    """The scaled error at the end, the orders that plain rules need, and what the graded needs."""
    end = result.scaled_error[..., -1].ravel()
    top = f"mu = {result.levels[-1]:g}"
    said = [
        Finding(
            f"mu sup|F - alpha| at t = {result.t[-1]:g}, farthest of all interiors and starts",
            1.0,
            float(end[np.argmax(np.abs(end - 1.0))]),
        )
    ]
    for tolerance, law in ORDER_LAWS:
        needed = order_needed(result, tolerance)
        said.append(
            Finding(
                f"plain order over mu^1.5 for a gradient good to {tolerance:g}, {top}",
                law,
                float(needed[-1] / result.levels[-1] ** 1.5),
            )
        )
    power = np.polyfit(np.log(result.levels), np.log(order_needed(result, ORDER_LAWS[0][0])), 1)
    said += [
        Finding(f"power of mu in the order for {ORDER_LAWS[0][0]:g}", 1.5, float(power[0])),
        Finding(f"nodes of the graded rule, {top}", "hardly grow", str(result.graded_nodes[-1])),
        Finding("largest error of its gradient", 0.0, float(result.graded_gradient_error.max())),
        Finding("largest error of its hitting time", 0.0, float(result.graded_hit_error.max())),
    ]
    return tuple(said)


def _scaled_errors(
    risk: Risk, start: Head, times: NDArray[float64], interiors: tuple[float, ...]
) -> NDArray[float64]:
    """Shape `(n_interiors, n_times)`."""
    trajectory = flow_at(risk, start, times)
    heads = [trajectory.head(i) for i in range(len(trajectory))]
    largest = [[largest_error(head, interior) for head in heads] for interior in interiors]
    return np.array(largest) * trajectory.scale


def _compare(cell: _Cell) -> Mapping[str, float]:
    """Errors of one rule against the closed form."""
    rule = boundary_graded() if cell.order == 0 else gauss_legendre(cell.order)
    with warnings.catch_warnings():
        # That a plain rule of too low an order resolves nothing is what is shown here.
        warnings.simplefilter("ignore", UnresolvedLayerWarning)
        return _errors(InfiniteContextRisk(Design(), rule), cell)


def _errors(risk: Risk, cell: _Cell) -> Mapping[str, float]:
    exact, start = ClosedFormRisk(), Head.from_ratio(*cell.start)
    times = np.geomspace(_FIRST_TIME, cell.hit_time, cell.n_ratios)
    path, reference = (
        gradient_flow(
            one,
            start,
            _LATE * cell.hit_time,
            t_eval=times,
            scale_levels=[cell.level],
            method=_SOLVER,
        )
        for one in (risk, exact)
    )
    head = Head.from_tube(tube_limit(), cell.level)
    gradient = exact.gradient(head)
    miss = np.linalg.norm(risk.gradient(head) - gradient) / np.linalg.norm(gradient)
    (hit,), (wanted,) = path.hits, reference.hits
    return {
        "hit": abs(hit.time / wanted.time - 1.0) if hit.reached else np.nan,
        "ratio": float(np.abs(path.ratio - reference.ratio).max()),
        "gradient": float(miss),
    }


def _graded_nodes(level: float) -> int:
    nodes = boundary_graded()(Head.from_tube(tube_limit(), level))
    return int(np.count_nonzero(nodes.weights))
