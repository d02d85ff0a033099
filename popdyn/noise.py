"""Label noise: the probability that a label is flipped, by distance from the threshold (MODEL §7).

A law knows a probability, a width and a shape, never a head: matching its width to the scale of a
head is the experiment's business.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.arguments import one_number, one_positive

__all__ = ["LabelFlips", "localized", "massart", "mirror_image", "tsybakov"]

Function: TypeAlias = Callable[[NDArray[float64]], NDArray[float64]]

_POINTS = 64  # at which a law is checked, between two of its break points


@dataclass(frozen=True)
class LabelFlips:
    """Probability `rho(x - alpha)` that the label of the feature `x` is flipped (MODEL §7).

    Made by `massart`, `localized` or `tsybakov`, or of any function. Each label is flipped on its
    own. Part of a `Design`, which checks that the function is a probability on its interval.

    Attributes
    ----------
    probability : callable
        Takes an array of distances `x - alpha`, negative on the positive examples; returns the
        probabilities, from 0 to 1, in an array of the same shape. Smooth between the breaks.
    breaks : tuple of float
        Distances at which it jumps or has a kink, in any order; 0 need not be named. They are what
        exact results are integrated between.
    levels : tuple of float, optional
        The probabilities between the breaks, ascending and one more than they, of a law that is
        constant there: exact finite contexts then have closed forms. A `Design` compares them with
        the function.

    Raises
    ------
    ValueError
        If `probability` is not callable, a break is not a finite number, or the levels are not one
        more than the breaks.

    Examples
    --------
    >>> flips = LabelFlips(lambda d: 0.3 * np.maximum(0, 1 - np.abs(d) / 0.1), (-0.1, 0.1))
    >>> print(flips.probability(np.array([-0.05, 0.0, 0.2])))
    [0.15 0.3  0.  ]
    """

    probability: Function
    breaks: tuple[float, ...] = ()
    levels: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not callable(self.probability):
            raise ValueError(
                f"probability must be a function of an array of distances x - alpha, got "
                f"{self.probability!r}; massart(p) is a constant"
            )
        try:
            breaks = np.asarray(self.breaks, dtype=float64)
        except (TypeError, ValueError):
            breaks = np.array(np.nan)
        if breaks.ndim != 1 or not np.isfinite(breaks).all():
            raise ValueError(f"breaks must be a row of finite distances, got {self.breaks!r}")
        object.__setattr__(self, "breaks", tuple(np.unique(breaks).tolist()))
        if self.levels is not None:
            levels = np.ravel(self.levels)
            if levels.dtype.kind not in "iuf" or levels.size != len(self.breaks) + 1:
                raise ValueError(
                    f"levels must be {len(self.breaks) + 1} probabilities, one more than there are "
                    f"breaks, or None, got {self.levels!r}"
                )
            object.__setattr__(self, "levels", tuple(levels.astype(float64).tolist()))

    @property
    def mirrored(self) -> "LabelFlips":
        """The law of the mirrored tasks, `rho(-d)`."""
        levels = None if self.levels is None else self.levels[::-1]
        breaks = tuple(-point for point in self.breaks)
        return LabelFlips(mirror_image(self.probability), breaks, levels)


def massart(probability: float) -> LabelFlips:
    """Homogeneous Massart noise: every label is flipped with the same probability (MODEL §7).

    On an infinite context it is the reparametrization `tanh(lam) -> (1 - 2 p) tanh(lam)`.

    Raises
    ------
    ValueError
        If the probability is not a number from 0 to 1.

    Examples
    --------
    >>> from popdyn import Head, limit_error
    >>> from popdyn.design import Design
    >>> head = Head.from_scores(1.0, 3.0)
    >>> print(limit_error(head, 0.2, Design(noise=massart(0.01))).round(6))
    0.207584
    """
    law = _Homogeneous(_probability(probability))
    return LabelFlips(law, levels=(law.flip_probability,))


def localized(probability: float, width: float) -> LabelFlips:
    """Labels flipped with one probability where `|x - alpha| <= width`, else never (MODEL §7).

    Raises
    ------
    ValueError
        If the probability is not a number from 0 to 1, or the width not positive and finite.
    """
    law = _Localized(_probability(probability), one_positive("width", width))
    levels = 0.0, law.flip_probability, 0.0
    return LabelFlips(law, (-law.width, law.width), levels)


def tsybakov(exponent: float, width: float) -> LabelFlips:
    """Tsybakov noise `1/2 - 1/2 min(1, (|x - alpha| / width)^exponent)` (MODEL §7).

    An exponent that is no whole number leaves a singularity at the threshold. It is broken up by
    break points that close in on it, some 20 on each side, which costs exact results as much time.

    Raises
    ------
    ValueError
        If the exponent or the width is not positive and finite.
    """
    law = _Tsybakov(one_positive("exponent", exponent), one_positive("width", width))
    n_inner = 0
    if law.exponent != round(law.exponent):
        n_inner = int(np.ceil(_DIGITS / ((1.0 + law.exponent) * np.log2(_GRADING))))
    distances = law.width * _GRADING ** -np.arange(n_inner + 1.0)
    return LabelFlips(law, (*-distances, *distances))


# Break points towards the singularity of d^b: 12 Gauss-Legendre nodes between two of them are good
# to 4^-24 and better, and what is left at the singularity, (d/w)^(1 + b), to a rounding.
_GRADING = 3.0
_DIGITS = 53.0


@dataclass(frozen=True)
class _Homogeneous:
    flip_probability: float

    def __call__(self, distance: NDArray[float64]) -> NDArray[float64]:
        return np.full(np.shape(distance), self.flip_probability)


@dataclass(frozen=True)
class _Localized:
    flip_probability: float
    width: float

    def __call__(self, distance: NDArray[float64]) -> NDArray[float64]:
        return np.where(np.abs(distance) <= self.width, self.flip_probability, 0.0)


@dataclass(frozen=True)
class _Tsybakov:
    exponent: float
    width: float

    def __call__(self, distance: NDArray[float64]) -> NDArray[float64]:
        return 0.5 - 0.5 * np.minimum(1.0, np.abs(distance) / self.width) ** self.exponent


@dataclass(frozen=True)
class _MirrorImage:
    """`x -> function(-x)`, a class and not a closure so that it pickles where the function does."""

    function: Function

    def __call__(self, x: NDArray[float64]) -> NDArray[float64]:
        return self.function(-x)


def mirror_image(function: Function) -> Function:
    """`x -> function(-x)`; the mirror image of a mirror image is the function itself."""
    return function.function if isinstance(function, _MirrorImage) else _MirrorImage(function)


def require_probability(flips: LabelFlips, half_width: float) -> None:
    """Refuse a law whose values on `[-2 l, 2 l]` are not probabilities."""
    reach = 2.0 * half_width
    inner = [point for point in flips.breaks if -reach < point < reach]
    edges = np.unique([-reach, *inner, 0.0, reach])
    places = (np.arange(_POINTS) + 0.5) / _POINTS
    points = (edges[:-1, None] + np.diff(edges)[:, None] * places).ravel()
    values = np.asarray(flips.probability(points))
    if values.shape != points.shape or values.dtype.kind not in "iuf":
        raise ValueError(
            f"noise must return real values in the shape {points.shape} of its distances, "
            f"got {values.dtype} of shape {values.shape}"
        )
    wrong = ~((values >= 0.0) & (values <= 1.0))
    if wrong.any():
        first = int(np.argmax(wrong))
        raise ValueError(
            "noise must be a probability, from 0 to 1, "
            f"got {float(values[first])!r} at the distance {float(points[first])!r}"
        )
    if flips.levels is None:
        return
    levels = np.array(flips.levels)[np.searchsorted(flips.breaks, points)]
    if (levels != values).any():
        first = int(np.argmax(levels != values))
        raise ValueError(
            f"noise must have its levels between its breaks, got {float(values[first])!r} where "
            f"the level is {float(levels[first])!r}, at the distance {float(points[first])!r}"
        )


def _probability(probability: float) -> float:
    number = one_number(probability)
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"probability must be a number from 0 to 1, got {probability!r}")
    return number
