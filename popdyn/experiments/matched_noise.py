"""Label noise as wide as the resolution of the head, which grows with the context (MODEL §7).

The claim of the paper's Figure 9: with `mu = N/8` localized and Tsybakov noise leave the interior
error falling like `1/N`, as it does on clean labels, and at the boundary the error of one head is
of order one at every size of the context, noise or not. All errors are exact, and `l = 1`.
"""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy import float64, int64
from numpy.typing import NDArray

from popdyn.archive import PathLike
from popdyn.asymptotics import tube_limit
from popdyn.coordinates import Head
from popdyn.design import Design
from popdyn.experiments.finding import Finding
from popdyn.limit_laws import boundary_limits
from popdyn.moments import context_moments
from popdyn.noise import localized, tsybakov

__all__ = ["BOUNDARY", "INTERIOR", "Config", "Result", "findings", "run"]

INTERIOR = ("clean", "localized", "Tsybakov")
BOUNDARY = INTERIOR[:2]


@dataclass(frozen=True)
class Config:
    """Sizes of the contexts, what scale goes with a size, and the noise of width `1/mu`.

    Attributes
    ----------
    context_sizes : tuple of int
    examples_per_scale : float
        `N / mu`; heads are at the limit of the tube.
    threshold : float
        The interior one.
    localized_probability, tsybakov_exponent : float
    """

    context_sizes: tuple[int, ...]
    examples_per_scale: float = 8.0
    threshold: float = 0.0
    localized_probability: float = 0.4
    tsybakov_exponent: float = 1.0

    @classmethod
    def paper(cls) -> "Config":
        """Powers of 2 from 64 to 4096."""
        return cls(tuple(2**k for k in range(6, 13)))

    @classmethod
    def quick(cls) -> "Config":
        """Powers of 4."""
        return cls(tuple(4**k for k in range(3, 7)))


@dataclass(frozen=True)
class Result:
    """Root mean square errors on `s` sizes.

    Attributes
    ----------
    examples_per_scale, threshold, localized_probability, tsybakov_exponent : float
    context_sizes : ndarray of int, shape (s,)
    interior : ndarray, shape (3, s)
        At the interior threshold, a row for each of `INTERIOR`.
    boundary : ndarray, shape (2, s)
        At the threshold `-l`, a row for each of `BOUNDARY`.
    """

    examples_per_scale: float
    threshold: float
    localized_probability: float
    tsybakov_exponent: float
    context_sizes: NDArray[int64]
    interior: NDArray[float64]
    boundary: NDArray[float64]


def run(
    config: Config, *, executor: Executor | None = None, store: PathLike | None = None
) -> Result:
    """Exact errors of the matched heads; a second, so in this process."""
    columns = [_column(config, size) for size in config.context_sizes]
    errors = np.array(columns).T
    return Result(
        examples_per_scale=config.examples_per_scale,
        threshold=config.threshold,
        localized_probability=config.localized_probability,
        tsybakov_exponent=config.tsybakov_exponent,
        context_sizes=np.array(config.context_sizes),
        interior=errors[: len(INTERIOR)],
        boundary=errors[len(INTERIOR) :],
    )


def findings(result: Result) -> tuple[Finding, ...]:
    """Power and size of the interior errors, and the boundary errors of the largest contexts."""
    sizes, last = result.context_sizes.astype(float64), result.context_sizes[-1]
    found = []
    for name, row in zip(INTERIOR, result.interior, strict=True):
        slope = np.polyfit(np.log(sizes), np.log(row), 1)[0]
        found.append(Finding(f"power of N in the interior RMS, {name}", -1.0, float(slope)))
    for name, row in zip(INTERIOR, result.interior, strict=True):
        scaled = sizes * row
        text = f"{scaled.min():.4g} to {scaled.max():.4g}"
        found.append(Finding(f"N RMS at the interior threshold, {name}", "constant", text))
    limits = boundary_limits(result.examples_per_scale, result.localized_probability)
    for name, row, limit in zip(BOUNDARY, result.boundary, limits, strict=True):
        claim = f"RMS at the boundary on {last} examples, {name}"
        found.append(Finding(claim, limit, float(row[-1])))
    return tuple(found)


def _column(config: Config, size: int) -> list[float]:
    """The errors on contexts of one size: interior, then boundary."""
    mu = size / config.examples_per_scale
    head = Head.from_tube(tube_limit(), mu)
    clean = Design()
    flipped = Design(noise=localized(config.localized_probability, 1.0 / mu))
    graded = Design(noise=tsybakov(config.tsybakov_exponent, 1.0 / mu))
    cells = [(config.threshold, design) for design in (clean, flipped, graded)]
    cells += [(-1.0, design) for design in (clean, flipped)]
    return [
        float(context_moments(head, threshold, size, design).root_mean_square)
        for threshold, design in cells
    ]
