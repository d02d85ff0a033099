"""Training a reflected pair beside training one head: powers of the scale and the risk (MODEL §7).

The claim: in the risk of the pair the bulk cancels and the ends of the interval drive everything.
The fifth power of the scale grows nearly affinely, `q = exp(-2 (lam - mu l))` falls like `mu^-3`
and the risk like `t^(-3/5)`, where the risk of a head falls like `t^(-1/2)`. A head trained for
itself, whose scale grows faster, forms a better pair in the end: its risk falls like `t^(-3/4)`.
"""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.archive import PathLike
from popdyn.asymptotics import fourth_power_rate, risk_in_tube, scale_at
from popdyn.coordinates import Head
from popdyn.experiments.finding import Finding
from popdyn.experiments.observation import flow_at, power_of_time
from popdyn.limit_laws import averaged_risk_at, pair_fifth_power_rate, pair_layer, pair_risk_at
from popdyn.risk.closed_form import ClosedFormRisk
from popdyn.risk.reflected_pair import ReflectedPairRisk

__all__ = ["Config", "Result", "findings", "run"]


@dataclass(frozen=True)
class Config:
    """The common start of both flows and the times they are looked at.

    Attributes
    ----------
    ratio, scale : float
        The start.
    t_end : float
    half_width : float
    first_time : float
        Recorded after time 0; from there on times are equally spaced in log time.
    n_times : int
    """

    ratio: float = 1.5
    scale: float = 5.0
    t_end: float = 1e13
    half_width: float = 1.0
    first_time: float = 1.0
    n_times: int = 521

    @classmethod
    def paper(cls) -> "Config":
        """From (1.5, 5) to time 1e13."""
        return cls()

    @classmethod
    def quick(cls) -> "Config":
        """The same at fewer times."""
        return cls(n_times=131)


@dataclass(frozen=True)
class Result:
    """Both flows at the same times: the head trained for itself and the head trained as a pair.

    Attributes
    ----------
    half_width : float
    start : ndarray, shape (2,)
        Label score and scale.
    t : ndarray, shape (n_times,)
    head_scale, pair_scale : ndarray, shape (n_times,)
    pair_layer : ndarray, shape (n_times,)
        `q mu^3` with `q = exp(-2 (lam - mu l))`, of the head trained as a pair.
    head_risk, pair_risk : ndarray, shape (n_times,)
        Each flow's own risk.
    averaged_risk : ndarray, shape (n_times,)
        Risk of the pair that the head trained for itself forms with its reflection.
    """

    half_width: float
    start: NDArray[float64]
    t: NDArray[float64]
    head_scale: NDArray[float64]
    pair_scale: NDArray[float64]
    pair_layer: NDArray[float64]
    head_risk: NDArray[float64]
    pair_risk: NDArray[float64]
    averaged_risk: NDArray[float64]


def run(
    config: Config, *, executor: Executor | None = None, store: PathLike | None = None
) -> Result:
    """Run both flows; a second, so in this process."""
    width = config.half_width
    start = Head.from_ratio(config.ratio, config.scale, width)
    t = np.geomspace(config.first_time, config.t_end, config.n_times)
    head = flow_at(ClosedFormRisk(width), start, t)
    pair = flow_at(ReflectedPairRisk(width), start, t)
    alone = Head.from_excess(head.excess, head.scale, width)
    return Result(
        half_width=width,
        start=np.array([start.label_score, start.scale], dtype=float64),
        t=t,
        head_scale=head.scale,
        pair_scale=pair.scale,
        pair_layer=np.exp(-2.0 * pair.excess) * pair.scale**3,
        head_risk=head.risk,
        pair_risk=pair.risk,
        averaged_risk=ReflectedPairRisk(width).value(alone),
    )


def findings(result: Result) -> tuple[Finding, ...]:
    """Limits and risks at the last time, and powers of time over the last decade."""
    t, width = result.t, result.half_width
    end = float(t[-1])

    def power(row: NDArray[float64]) -> float:
        return float(power_of_time(t, row))

    at_end = f"at t = {end:g}"
    last = "last decade"
    head_risk = float(risk_in_tube(scale_at(end, width, order=0), width, order=0))
    return (
        Finding(
            f"mu^5 / t of the pair {at_end}",
            pair_fifth_power_rate(width),
            float(result.pair_scale[-1] ** 5 / end),
        ),
        Finding(f"q mu^3 of the pair {at_end}", pair_layer(width), float(result.pair_layer[-1])),
        Finding(
            f"mu^4 / t of the head {at_end}",
            fourth_power_rate(width),
            float(result.head_scale[-1] ** 4 / end),
        ),
        Finding(f"power of t in the scale of the pair, {last}", 0.2, power(result.pair_scale)),
        Finding(f"power of t in the scale of the head, {last}", 0.25, power(result.head_scale)),
        Finding(f"power of t in the risk of the pair, {last}", -0.6, power(result.pair_risk)),
        Finding(f"power of t in the risk of the head, {last}", -0.5, power(result.head_risk)),
        Finding(
            f"power of t in the risk of the head averaged with its reflection, {last}",
            -0.75,
            power(result.averaged_risk),
        ),
        Finding(
            f"risk of the pair {at_end}",
            float(pair_risk_at(end, width)),
            float(result.pair_risk[-1]),
        ),
        Finding(f"risk of the head {at_end}", head_risk, float(result.head_risk[-1])),
        Finding(
            f"risk of the head averaged with its reflection {at_end}",
            float(averaged_risk_at(end, width)),
            float(result.averaged_risk[-1]),
        ),
    )
