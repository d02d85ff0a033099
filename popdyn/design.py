"""What is drawn: the interval, the law of the features and the law of the thresholds (MODEL §1)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy import float64
from numpy.typing import NDArray

__all__ = ["Density", "Design"]

Density: TypeAlias = Callable[[NDArray[float64]], NDArray[float64]]

# A density of a formula integrates to 1 to rounding, one of rounded coefficients or of a table to
# some nine digits; a forgotten factor is off by much more.
NORMALIZATION_TOLERANCE = 1e-8
_PANELS, _ORDER = 64, 16  # of the rule that checks it; exact for whatever the risks can resolve


@dataclass(frozen=True)
class Design:
    """Laws of the features and thresholds on `[-half_width, half_width]` (MODEL §1, §7).

    Attributes
    ----------
    half_width : float
        `l`, positive.
    feature_density, threshold_density : callable or None
        Smooth densities: take an array of points of `[-l, l]`, return the values there, not
        negative, in an array of the same shape. None is the uniform density `1 / (2 l)`.

    Raises
    ------
    ValueError
        If the half width is not positive and finite, or if a density is negative or not finite
        somewhere, returns another shape, or has an integral that differs from 1 by over 1e-8.

    Examples
    --------
    >>> tilted = Design(feature_density=lambda x: (1 + 0.3 * x) / 2)
    >>> tilted.is_uniform, Design(half_width=2.0).is_uniform
    (False, True)
    """

    half_width: float = 1.0
    feature_density: Density | None = None
    threshold_density: Density | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "half_width", positive_half_width(self.half_width))
        for name in ("feature_density", "threshold_density"):
            density = getattr(self, name)
            if density is not None:
                _require_density(name, density, self.half_width)

    @property
    def is_uniform(self) -> bool:
        """Whether features and thresholds are both uniform."""
        return self.feature_density is None and self.threshold_density is None

    @cached_property
    def mirrored(self) -> "Design":
        """The design of `-x` and `-alpha`, which the reflected head reads."""
        if self.is_uniform:
            return self
        mirrored = object.__new__(Design)  # the checks hold for the mirror image as they stand
        object.__setattr__(mirrored, "half_width", self.half_width)
        for name in ("feature_density", "threshold_density"):
            object.__setattr__(mirrored, name, _mirror(getattr(self, name)))
        return mirrored


def positive_half_width(half_width: float) -> float:
    """`half_width` as a float; refused unless it is one positive finite number."""
    try:
        width = float(half_width)
    except (TypeError, ValueError):
        width = np.nan
    if not 0.0 < width < np.inf:
        raise ValueError(f"half_width must be one positive finite number, got {half_width!r}")
    return width


@dataclass(frozen=True)
class _Mirror:
    """`x -> density(-x)`, a class and not a closure so that a design of functions pickles."""

    density: Density

    def __call__(self, x: NDArray[float64]) -> NDArray[float64]:
        return self.density(-x)


def _mirror(density: Density | None) -> Density | None:
    if isinstance(density, _Mirror):
        return density.density
    return None if density is None else _Mirror(density)


def _require_density(name: str, density: Density, half_width: float) -> None:
    if not callable(density):
        raise ValueError(f"{name} must be a function of an array of points, got {density!r}")
    nodes, weights = np.polynomial.legendre.leggauss(_ORDER)
    centres = (2.0 * np.arange(_PANELS) + 1.0) / _PANELS - 1.0
    inner = (centres[:, None] + nodes / _PANELS).ravel()
    points = half_width * np.concatenate(([-1.0], inner, [1.0]))
    values = np.asarray(density(points))
    if values.shape != points.shape or values.dtype.kind not in "iuf":
        raise ValueError(
            f"{name} must return real values in the shape {points.shape} of its points, "
            f"got {values.dtype} of shape {values.shape}"
        )
    wrong = ~((values >= 0.0) & (values < np.inf))
    if wrong.any():
        first = int(np.argmax(wrong))
        raise ValueError(
            f"{name} must be finite and not negative on [-{half_width!r}, {half_width!r}], "
            f"got {float(values[first])!r} at {float(points[first])!r}"
        )
    integral = float(np.tile(weights / _PANELS, _PANELS) @ (half_width * values[1:-1]))
    if abs(integral - 1.0) > NORMALIZATION_TOLERANCE:
        raise ValueError(
            f"{name} must integrate to 1 within {NORMALIZATION_TOLERANCE:g}, got {integral!r}; "
            "divide it by its integral"
        )
