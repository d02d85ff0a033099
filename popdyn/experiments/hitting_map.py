"""When the flow reaches a scale, over ratio and scale of its start (MODEL §4, §5).

Starts on one side of the separatrix of the saddle at the origin never come to a positive scale:
they end at the reflected head.
"""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.archive import PathLike
from popdyn.coordinates import Head
from popdyn.dynamics.arrivals import hitting_times
from popdyn.dynamics.saddle import separatrix
from popdyn.experiments.finding import Finding
from popdyn.risk.closed_form import ClosedFormRisk

__all__ = ["Config", "Result", "findings", "run"]


@dataclass(frozen=True)
class Config:
    """The grid of starts and the level.

    Attributes
    ----------
    level : float
        The scale to be reached.
    ratios : (float, float)
        First and last ratio, evenly spaced.
    scales : (float, float)
        First and last scale, evenly spaced in the logarithm.
    n_ratios, n_scales : int
        At least 2.
    half_width : float
    """

    level: float = 3.0
    ratios: tuple[float, float] = (-1.0, 3.0)
    scales: tuple[float, float] = (0.001, 2.0)
    n_ratios: int = 121
    n_scales: int = 81
    half_width: float = 1.0

    @classmethod
    def paper(cls) -> "Config":
        """121 ratios by 81 scales."""
        return cls()

    @classmethod
    def quick(cls) -> "Config":
        """9 ratios by 7 scales."""
        return cls(n_ratios=9, n_scales=7)

    def __post_init__(self) -> None:
        for name in ("ratios", "scales"):
            first, last = getattr(self, name)
            if not first < last:
                raise ValueError(f"{name} must be two increasing numbers, got {first!r}, {last!r}")
        if not self.scales[0] > 0:
            raise ValueError(f"scales must be positive, got {self.scales[0]!r}; ratios need that")
        if not min(self.n_ratios, self.n_scales) >= 2:
            raise ValueError(
                f"n_ratios and n_scales must be at least 2, got {self.n_ratios!r} and "
                f"{self.n_scales!r}"
            )


@dataclass(frozen=True)
class Result:
    """Times at which the level is reached.

    Attributes
    ----------
    half_width, level : float
    ratios : ndarray, shape (n_ratios,)
    scales : ndarray, shape (n_scales,)
    times : ndarray, shape (n_scales, n_ratios)
        0 where the start is there, inf where the level is never reached.
    separatrix : ndarray, shape (n_scales,)
        Ratio below which a start of each scale ends at the reflected head.
    """

    half_width: float
    level: float
    ratios: NDArray[float64]
    scales: NDArray[float64]
    times: NDArray[float64]
    separatrix: NDArray[float64]


def run(
    config: Config, *, executor: Executor | None = None, store: PathLike | None = None
) -> Result:
    """All starts at once, in threads of this process."""
    ratios = np.linspace(*config.ratios, config.n_ratios)
    scales = np.geomspace(*config.scales, config.n_scales)
    heads = Head.from_ratio(ratios, scales[:, np.newaxis], config.half_width)
    return Result(
        half_width=config.half_width,
        level=config.level,
        ratios=ratios,
        scales=scales,
        times=hitting_times(ClosedFormRisk(config.half_width), heads, config.level),
        separatrix=np.asarray(separatrix(scales, config.half_width).ratio),
    )


def findings(result: Result) -> tuple[Finding, ...]:
    """Which starts below the level come to it, by the separatrix and by their own flows."""
    below = result.scales < result.level
    upright = result.ratios > result.separatrix[below, np.newaxis]
    arrived = np.isfinite(result.times[below])
    return (
        Finding(
            f"starts below that come to scale {result.level:g}",
            int(np.count_nonzero(upright)),
            int(np.count_nonzero(arrived)),
        ),
        Finding("starts on the wrong side of the separatrix", 0, int((upright != arrived).sum())),
    )
