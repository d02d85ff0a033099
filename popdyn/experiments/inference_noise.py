"""Flipped labels at inference: a frozen head on contexts of every size (MODEL §6, §7).

The claim of the paper's Figure 8: clean and threshold-localized contexts let the error fall with
their size to a floor of the order of the resolution, while one percent of flips anywhere ends in an
error of order one. All errors are exact.
"""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy import float64, int64
from numpy.typing import NDArray

from popdyn.archive import PathLike
from popdyn.asymptotics import tube_limit
from popdyn.attention import limit_error
from popdyn.coordinates import Head
from popdyn.design import Design
from popdyn.experiments.finding import Finding
from popdyn.limit_laws import localized_floor
from popdyn.moments import context_moments
from popdyn.noise import localized, massart

__all__ = ["CONDITIONS", "Config", "Result", "findings", "run"]

CONDITIONS = ("clean", "localized", "massart")


@dataclass(frozen=True)
class Config:
    """The head, the task, the contexts and how often their labels are flipped.

    Attributes
    ----------
    context_sizes : tuple of int
    scale : float
        Of the head, which is at the limit of the tube.
    threshold : float
    localized_probability : float
        Of a flip no further than `1 / scale` from the threshold.
    massart_probability : float
        Of a flip anywhere.
    """

    context_sizes: tuple[int, ...]
    scale: float = 32.0
    threshold: float = 0.0
    localized_probability: float = 0.25
    massart_probability: float = 0.01

    @classmethod
    def paper(cls) -> "Config":
        """Powers of 2 from 8 to 65536."""
        return cls(tuple(2**k for k in range(3, 17)))

    @classmethod
    def quick(cls) -> "Config":
        """Every other of them, and the last."""
        return cls((8, 32, 128, 512, 2048, 8192, 65536))


@dataclass(frozen=True)
class Result:
    """Errors on `s` sizes, a row for each of `CONDITIONS`.

    Attributes
    ----------
    scale, threshold, localized_probability, massart_probability : float
    context_sizes : ndarray of int, shape (s,)
    bias, root_mean_square : ndarray, shape (3, s)
    floor : ndarray, shape (3,)
        Size of the error on an infinite context.
    """

    scale: float
    threshold: float
    localized_probability: float
    massart_probability: float
    context_sizes: NDArray[int64]
    bias: NDArray[float64]
    root_mean_square: NDArray[float64]
    floor: NDArray[float64]


def run(
    config: Config, *, executor: Executor | None = None, store: PathLike | None = None
) -> Result:
    """Exact errors of the frozen head; a fraction of a second, so in this process."""
    head = Head.from_tube(tube_limit(), config.scale)
    sizes = np.array(config.context_sizes)
    laws = (
        None,
        localized(config.localized_probability, 1.0 / config.scale),
        massart(config.massart_probability),
    )
    designs = [Design(noise=law) for law in laws]
    moments = [context_moments(head, config.threshold, sizes, design) for design in designs]
    floors = [abs(float(limit_error(head, config.threshold, design))) for design in designs]
    return Result(
        scale=config.scale,
        threshold=config.threshold,
        localized_probability=config.localized_probability,
        massart_probability=config.massart_probability,
        context_sizes=sizes,
        bias=np.stack([moment.bias for moment in moments]),
        root_mean_square=np.stack([moment.root_mean_square for moment in moments]),
        floor=np.array(floors),
    )


def findings(result: Result) -> tuple[Finding, ...]:
    """The floors, and how near to them the largest context comes."""
    width, mu = 1.0, result.scale
    last = result.context_sizes[-1]
    laws = (
        ("clean floor", 1.0 / mu),
        ("floor with localized flips", localized_floor(mu, result.localized_probability)),
        ("floor with homogeneous flips", width - result.threshold - 1.0 / mu),
    )
    found = [
        Finding(claim, law, float(floor))
        for (claim, law), floor in zip(laws, result.floor, strict=True)
    ]
    for name, floor, row in zip(CONDITIONS, result.floor, result.root_mean_square, strict=True):
        claim = f"RMS over floor on {last} examples, {name}"
        found.append(Finding(claim, 1.0, float(row[-1] / floor)))
    return tuple(found)
