"""What arguments accept: positive numbers, one half width, thresholds, a count."""

from math import inf, nan
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "count",
    "one_number",
    "one_positive",
    "one_width",
    "positive",
    "real_numbers",
    "thresholds_inside",
]


def positive(name: str, number: ArrayLike) -> NDArray[float64]:
    array = real_numbers(name, number)
    if not ((array > 0) & np.isfinite(array)).all():
        raise ValueError(f"{name} must be positive and finite, got {number!r}")
    return array


def thresholds_inside(threshold: ArrayLike, half_width: float) -> NDArray[float64]:
    """Thresholds of any shape in doubles; refused outside the interval."""
    array = real_numbers("threshold", threshold)
    outside = ~(np.abs(array) <= half_width)
    if outside.any():
        raise ValueError(
            f"threshold must lie in [-{half_width!r}, {half_width!r}], "
            f"got {float(array[outside][0])!r}"
        )
    return array


def real_numbers(name: str, number: ArrayLike) -> NDArray[float64]:
    """Numbers of any shape in doubles; what is too large for them is infinite."""
    try:
        array = np.asarray(number)
        if array.dtype.kind not in "iuf":
            raise TypeError
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a real number or an array of them, got {number!r}"
        ) from None
    with np.errstate(over="ignore"):
        return array.astype(float64)


def one_number(number: Any) -> float:
    """`number` as a float; nan where it is not one number, or beyond the doubles."""
    try:
        return nan if np.ndim(number) or isinstance(number, str | bytes) else float(number)
    except (TypeError, ValueError, OverflowError):
        return nan


def one_positive(name: str, number: Any) -> float:
    """`number` as a float; refused unless it is one positive finite number."""
    found = one_number(number)
    if not 0.0 < found < inf:
        raise ValueError(f"{name} must be one positive finite number, got {number!r}")
    return found


def one_width(half_width: Any) -> float:
    return one_positive("half_width", half_width)


def count(name: str, number: int, least: int = 1, most: int | None = None) -> int:
    """`number` as an int; refused unless it is a whole number from `least` (to `most`)."""
    try:
        whole = int(number)
        if whole != number or isinstance(number, bool):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        whole = least - 1
    if whole < least or (most is not None and whole > most):
        wanted = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be a whole number {wanted}, got {number!r}")
    return whole
