"""What is drawn: the interval, the laws of features and thresholds, label noise (MODEL §1, §7)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.arguments import one_width
from popdyn.noise import LabelFlips, mirror_image, require_probability

__all__ = ["Density", "Design", "require_design", "tilted", "wavy"]

Density: TypeAlias = Callable[[NDArray[float64]], NDArray[float64]]

# A density of a formula integrates to 1 to rounding, one of rounded coefficients or of a table to
# some nine digits; a forgotten factor is off by much more.
NORMALIZATION_TOLERANCE = 1e-8
_PANELS, _ORDER = 64, 16  # of the rule that checks it; exact for whatever the risks can resolve


@dataclass(frozen=True, init=False)
class Design:
    """Laws of the features, thresholds and labels on `[-half_width, half_width]` (MODEL §1, §7).

    Parameters
    ----------
    half_width : float
        `l`, positive.
    feature_density, threshold_density : callable, str or None
        Smooth densities: take an array of points of `[-l, l]`, return the values there, not
        negative, in an array of the same shape. None is the uniform density `1 / (2 l)`. By name:
        "uniform", "tilted" for `tilted(0.3, l)`, "wavy" for `wavy(0.3, l)`.
    noise : LabelFlips or None
        Law by which labels are flipped: `massart`, `localized`, `tsybakov`, or a function of its
        own in a `LabelFlips`. None leaves all labels as the threshold has them.

    Attributes
    ----------
    half_width, feature_density, threshold_density, noise
        As given, a named density as its function.

    Raises
    ------
    ValueError
        If the half width is not positive and finite, or if a density is of an unknown name,
        negative or not finite somewhere, returns another shape, or has an integral that differs
        from 1 by over 1e-8, or if the noise is no law of flips with probabilities from 0 to 1.

    Examples
    --------
    >>> design = Design(feature_density="tilted")
    >>> design.is_uniform, Design(half_width=2.0).is_uniform
    (False, True)
    >>> design == Design(feature_density=tilted(0.3))
    True
    """

    half_width: float
    feature_density: Density | None
    threshold_density: Density | None
    noise: LabelFlips | None

    def __init__(
        self,
        half_width: float = 1.0,
        feature_density: Density | str | None = None,
        threshold_density: Density | str | None = None,
        noise: LabelFlips | None = None,
    ) -> None:
        width = one_width(half_width)
        object.__setattr__(self, "half_width", width)
        for name, density in (
            ("feature_density", feature_density),
            ("threshold_density", threshold_density),
        ):
            if isinstance(density, str):
                density = _named(name, density, width)
            if density is not None:
                _require_density(name, density, width)
            object.__setattr__(self, name, density)
        if noise is not None:
            if not isinstance(noise, LabelFlips):
                raise ValueError(
                    f"noise must be a law of label flips, got {noise!r}; use massart, localized, "
                    "tsybakov, or LabelFlips(function, breaks)"
                )
            require_probability(noise, width)
        object.__setattr__(self, "noise", noise)

    @property
    def is_uniform(self) -> bool:
        """Whether features and thresholds are both uniform."""
        return self.feature_density is None and self.threshold_density is None

    @cached_property
    def mirrored(self) -> "Design":
        """The design of `-x` and `-alpha`, which the reflected head reads."""
        if self.is_uniform and self.noise is None:
            return self
        mirrored = object.__new__(Design)  # the checks hold for the mirror image as they stand
        object.__setattr__(mirrored, "half_width", self.half_width)
        for name in ("feature_density", "threshold_density"):
            density = getattr(self, name)
            image = None if density is None else mirror_image(density)
            object.__setattr__(mirrored, name, image)
        noise = None if self.noise is None else self.noise.mirrored
        object.__setattr__(mirrored, "noise", noise)
        return mirrored


def tilted(slope: float, half_width: float = 1.0) -> "Tilted":
    """Density `(1 + slope x / l) / (2 l)` on `[-l, l]`, `|slope| <= 1` (MODEL §7)."""
    return Tilted(_share("slope", slope), one_width(half_width))


def wavy(amplitude: float, half_width: float = 1.0) -> "Wavy":
    """Density `(1 + amplitude cos(pi x / l)) / (2 l)` on `[-l, l]`, `|amplitude| <= 1`."""
    return Wavy(_share("amplitude", amplitude), one_width(half_width))


@dataclass(frozen=True)
class Tilted:
    """What `tilted` returns."""

    slope: float
    half_width: float

    def __call__(self, x: NDArray[float64]) -> NDArray[float64]:
        return (1.0 + self.slope * (x / self.half_width)) / (2.0 * self.half_width)


@dataclass(frozen=True)
class Wavy:
    """What `wavy` returns."""

    amplitude: float
    half_width: float

    def __call__(self, x: NDArray[float64]) -> NDArray[float64]:
        wave = np.cos(np.pi * (x / self.half_width))
        return (1.0 + self.amplitude * wave) / (2.0 * self.half_width)


_NAMED_AMPLITUDE = 0.3


def _named(name: str, density: str, half_width: float) -> Density | None:
    if density == "uniform":
        return None
    if density == "tilted":
        return tilted(_NAMED_AMPLITUDE, half_width)
    if density == "wavy":
        return wavy(_NAMED_AMPLITUDE, half_width)
    raise ValueError(f"{name} must be 'uniform', 'tilted' or 'wavy' or a function, got {density!r}")


def _share(name: str, number: float) -> float:
    try:
        share = float(number)
    except (TypeError, ValueError):
        share = np.nan
    if not -1.0 <= share <= 1.0:
        raise ValueError(f"{name} must be a number from -1 to 1, got {number!r}")
    return share


def require_design(design: object, half_width: float | None = None) -> None:
    """Refuse what is no design, or one of another half width than that of the head."""
    if not isinstance(design, Design):
        raise ValueError(f"design must be a popdyn.Design, got {design!r}; make Design(half_width)")
    if half_width is not None and design.half_width != half_width:
        raise ValueError(
            f"head and design must have one half width, got {half_width!r} and "
            f"{design.half_width!r}"
        )


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
