"""What arguments accept: positive numbers, one half width, a count."""

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

__all__ = ["count", "one_width", "positive"]


def positive(name: str, number: ArrayLike) -> NDArray[float64]:
    try:
        array = np.asarray(number, dtype=float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a real number or an array, got {number!r}") from None
    if not ((array > 0) & np.isfinite(array)).all():
        raise ValueError(f"{name} must be positive and finite, got {number!r}")
    return array


def one_width(half_width: float) -> float:
    width = positive("half_width", half_width)
    if width.ndim:
        raise ValueError(f"half_width must be one positive number, got {half_width!r}")
    return float(width)


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
