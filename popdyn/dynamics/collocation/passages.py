"""Passages through levels on the polynomials of a run of collocation, compiled."""

from math import inf, log

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.compiled import kernel
from popdyn.dynamics.collocation.newton import IN_SCALE
from popdyn.dynamics.collocation.pieces import (
    DELTA,
    END,
    MODE,
    MU,
    SIGN,
    H,
    at_place,
    fill_point,
)
from popdyn.dynamics.collocation.radau import NODES, STAGES, interpolated

__all__ = ["find_passages"]

_HALVINGS = 100  # more than bisection to the last bit takes
# Extrema are where the heights at two places so far apart agree: theirs is missed by the square of
# 1e-10, far below its rounding.
_APART = 2.0**-17


@kernel
def _height(
    kept: NDArray[float64], rows: NDArray[float64], place: float, width: float, level: float,
    tube: float,
) -> float:  # fmt: skip
    """By how much a scale or tube coordinate is above a level."""
    sign = kept[SIGN]
    if level == level:
        grown = kept[H] if kept[MODE] == IN_SCALE else interpolated(rows[1], place)
        return float(sign * (place * grown - (sign * level * width - kept[MU])))
    if kept[MODE] == IN_SCALE:
        if sign < 0.0:
            return inf
        old = kept[DELTA] - log(kept[MU] / width)
        return float((old - tube) + place * interpolated(rows[0], place))
    _, delta, mu, _ = at_place(kept, rows, place)
    scale = sign * mu / width
    return sign * delta - log(scale) - tube if scale > 0.0 else inf


@kernel
def _rise(
    kept: NDArray[float64], rows: NDArray[float64], place: float, width: float, level: float,
    tube: float,
) -> float:  # fmt: skip
    """How the height changes about a place: 0 at an extremum; nan next to an infinite height."""
    above = _height(kept, rows, place + _APART, width, level, tube)
    return above - _height(kept, rows, place - _APART, width, level, tube)


@kernel
def find_passages(
    kept: NDArray[float64],
    rows: NDArray[float64],
    width: float,
    level: float,
    tube: float,
    direction: float,
    found: NDArray[float64],
) -> int:
    """Passages through a level of the scale or of the tube coordinate, as many as there is room.

    A step that ends on the level has passed it; one that starts there has not. Between the places
    that are looked at the height has no extremum: those of the polynomial are among them.

    Parameters
    ----------
    level, tube : float
        The level of the scale or of the tube coordinate; the other is nan.
    direction : float
        1 for passages upwards alone, -1 for downwards, 0 for both.
    found : ndarray, shape (6, n)
        Gets the points, as of `fill_points`, and 1 or -1 for the direction.

    Returns
    -------
    int
        Number of passages.
    """
    places = np.empty(2 * STAGES + 2)
    heights = np.empty(2 * STAGES + 2)
    n = 0
    last = _height(kept[0], rows[0], 0.0, width, level, tube)
    for k in range(len(kept)):
        one, its_rows, end = kept[k], rows[k], kept[k, END]
        places[0], heights[0] = 0.0, last
        count = 1
        monotone = level == level and one[MODE] == IN_SCALE
        before = 0.0 if monotone else _rise(one, its_rows, 0.0, width, level, tube)
        for node in NODES:
            place = end if monotone else min(node, end)
            after = 0.0 if monotone else _rise(one, its_rows, place, width, level, tube)
            if before * after < 0.0:
                left, right = places[count - 1], place
                for _ in range(_HALVINGS):
                    middle = 0.5 * (left + right)
                    if not left < middle < right:
                        break
                    if _rise(one, its_rows, middle, width, level, tube) * before > 0.0:
                        left = middle
                    else:
                        right = middle
                places[count] = right
                heights[count] = _height(one, its_rows, right, width, level, tube)
                count += 1
            before = after
            places[count] = place
            heights[count] = _height(one, its_rows, place, width, level, tube)
            count += 1
            if place >= end:
                break
        for i in range(1, count):
            low, high = heights[i - 1], heights[i]
            if not (low < 0.0 <= high or low > 0.0 >= high):
                continue
            way = 1.0 if low < 0.0 else -1.0
            if way * direction < 0.0:
                continue
            left, right = places[i - 1], places[i]
            if monotone:
                right = min((one[SIGN] * level * width - one[MU]) / one[H], end)
                left = right
            for _ in range(_HALVINGS):
                middle = 0.5 * (left + right)
                if not left < middle < right:
                    break
                height = _height(one, its_rows, middle, width, level, tube)
                if height * low > 0.0:
                    left = middle
                else:
                    right = middle
            fill_point(one, its_rows, right, width, found[:, n])
            found[5, n] = way
            n += 1
            if n == found.shape[1]:
                return n
        last = heights[count - 1]
    return n
