"""What a predicted law accepts: positive numbers, and one half width."""

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

__all__ = ["one_width", "positive"]


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
