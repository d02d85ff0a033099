"""Passages through levels on the polynomials of a run of collocation, compiled."""

from math import inf, log

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.compiled import kernel
from popdyn.dynamics.collocation_pieces import (
    DELTA,
    END,
    MODE,
    MU,
    SIGN,
    H,
    at_place,
    point,
    put,
)
from popdyn.dynamics.collocation_steps import IN_SCALE
from popdyn.dynamics.radau import DERIVATIVE, NODES, STAGES, interpolated

__all__ = ["SCALE", "TUBE", "find_passages"]

SCALE, TUBE = 0, 1  # what a level is one of

_HALVINGS = 100  # more than bisection to the last bit takes


@kernel
def _height(
    kept: NDArray[float64], rows: NDArray[float64], place: float, kind: int, level: float,
    width: float,
) -> float:  # fmt: skip
    """By how much a scale or tube coordinate is above a level."""
    sign = kept[SIGN]
    if kind == SCALE:
        grown = kept[H] if kept[MODE] == IN_SCALE else interpolated(rows[1], place)
        return float(sign * (place * grown - (sign * level * width - kept[MU])))
    if kept[MODE] == IN_SCALE:
        if sign < 0.0:
            return inf
        old = kept[DELTA] - log(kept[MU] / width)
        return float((old - level) + place * interpolated(rows[0], place))
    _, delta, mu, _ = at_place(kept, rows, place)
    scale = sign * mu / width
    return sign * delta - log(scale) - level if scale > 0.0 else inf


@kernel
def _slope(
    kept: NDArray[float64], derivatives: NDArray[float64], rows: NDArray[float64], place: float,
    kind: int,
) -> float:  # fmt: skip
    """Derivative of the height along the step."""
    sign = kept[SIGN]
    if kept[MODE] == IN_SCALE:
        return float(sign * kept[H]) if kind == SCALE else interpolated(derivatives[0], place)
    v = interpolated(derivatives[1], place)
    if kind == SCALE:
        return float(sign * v)
    mu = kept[MU] + place * interpolated(rows[1], place)
    return float(sign * (interpolated(derivatives[0], place) - v) - v / mu)


@kernel
def find_passages(
    kept: NDArray[float64],
    rows: NDArray[float64],
    width: float,
    kind: int,
    level: float,
    direction: float,
    found: NDArray[float64],
) -> int:
    """Passages through a level of the scale or of the tube coordinate, as many as there is room.

    A step that ends on the level has passed it; one that starts there has not. Between the places
    that are looked at the height has no extremum: those of the polynomial are among them.

    Parameters
    ----------
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
    derivatives = np.empty((2, STAGES))
    n = 0
    last = _height(kept[0], rows[0], 0.0, kind, level, width)
    for k in range(len(kept)):
        end = kept[k, END]
        places[0], heights[0] = 0.0, last
        count = 1
        monotone = kind == SCALE and kept[k, MODE] == IN_SCALE
        if not monotone:
            for i in range(STAGES):
                for m in range(2):
                    derivatives[m, i] = 0.0
                    for j in range(STAGES):
                        derivatives[m, i] += DERIVATIVE[i, j] * NODES[j] * rows[k, m, j]
        before = 0.0 if monotone else _slope(kept[k], derivatives, rows[k], 0.0, kind)
        for i in range(STAGES):
            place = min(NODES[i], end)
            if monotone:
                place = end
            else:
                after = _slope(kept[k], derivatives, rows[k], place, kind)
                if before * after < 0.0:
                    left, right = places[count - 1], place
                    for _ in range(_HALVINGS):
                        middle = 0.5 * (left + right)
                        if not left < middle < right:
                            break
                        if _slope(kept[k], derivatives, rows[k], middle, kind) * before > 0.0:
                            left = middle
                        else:
                            right = middle
                    places[count] = right
                    heights[count] = _height(kept[k], rows[k], right, kind, level, width)
                    count += 1
                before = after
            places[count] = place
            heights[count] = _height(kept[k], rows[k], place, kind, level, width)
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
            place = _passage(kept[k], rows[k], kind, level, width, places[i - 1], places[i], low)
            put(found, n, point(kept[k], rows[k], place, width))
            found[5, n] = way
            n += 1
            if n == found.shape[1]:
                return n
        last = heights[count - 1]
    return n


@kernel
def _passage(
    kept: NDArray[float64], rows: NDArray[float64], kind: int, level: float, width: float,
    left: float, right: float, low: float,
) -> float:  # fmt: skip
    """Place of the one passage between two places."""
    if kind == SCALE and kept[MODE] == IN_SCALE:
        return float(min((kept[SIGN] * level * width - kept[MU]) / kept[H], right))
    for _ in range(_HALVINGS):
        middle = 0.5 * (left + right)
        if not left < middle < right:
            break
        height = _height(kept, rows, middle, kind, level, width)
        if height == 0.0:
            return middle
        if height * low > 0.0:
            left = middle
        else:
            right = middle
    return right
