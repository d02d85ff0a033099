"""The steps that a run of collocation keeps, and points on their polynomials, compiled."""

from math import log

from numpy import float64
from numpy.typing import NDArray

from popdyn.compiled import kernel
from popdyn.dynamics.collocation.newton import IN_SCALE, IN_TIME, moved
from popdyn.dynamics.collocation.radau import NODES, STAGES, interpolated

__all__ = [
    "DELTA",
    "END",
    "FIELDS",
    "LAM",
    "MODE",
    "MU",
    "SIGN",
    "TIME",
    "H",
    "at_place",
    "fill_nodes",
    "fill_point",
    "fill_points",
    "place_of_time",
]

# Fields of a step: the state at its start (with the sign that it has been turned by, so that the
# scale of a run in the scale is positive), its length, its mode, and where on it the run ended, in
# units of its length. The increments at its nodes are in its rows, as `step` makes them.
LAM, DELTA, MU, TIME, SIGN, H, MODE, END = range(8)
FIELDS = 8

_PLACES = 100  # more than bisection to the last bit takes


@kernel
def at_place(
    kept: NDArray[float64], rows: NDArray[float64], place: float
) -> tuple[float, float, float, float]:
    """Label score, excess, scale and time on a step."""
    mode = int(kept[MODE])
    z0, z1 = place * interpolated(rows[0], place), place * interpolated(rows[1], place)
    lam, delta, mu = moved(mode, kept[LAM], kept[DELTA], kept[MU], z0, z1, place * kept[H])
    return lam, delta, mu, kept[TIME] + (z1 if mode == IN_SCALE else place * kept[H])


@kernel
def place_of_time(kept: NDArray[float64], rows: NDArray[float64], time: float) -> float:
    """Where on a step a time is."""
    elapsed = time - kept[TIME]
    if not elapsed > 0.0:
        return 0.0
    if kept[MODE] == IN_TIME:
        return float(min(elapsed / kept[H], 1.0))
    if elapsed >= rows[1, STAGES - 1]:
        return 1.0
    # time grows with the scale: secants between two places that are kept on either side
    left, right = 0.0, 1.0
    below, above = -elapsed, rows[1, STAGES - 1] - elapsed
    place = 0.0
    for iteration in range(_PLACES):
        last = place
        place = left - below * ((right - left) / (above - below))
        if iteration % 4 == 3 or not left < place < right:
            place = 0.5 * (left + right)
        value = place * interpolated(rows[1], place) - elapsed
        if value == 0.0 or abs(place - last) <= 1e-16 * place or right - left <= 1e-16 * right:
            break
        if value < 0.0:
            if below < 0.0 and last == left:
                above *= 0.5  # Illinois
            left, below = place, value
        else:
            if last == right:
                below *= 0.5
            right, above = place, value
    return place


@kernel
def fill_point(
    kept: NDArray[float64],
    rows: NDArray[float64],
    place: float,
    width: float,
    point: NDArray[float64],
) -> None:
    """Time, label score, excess and scale, and the tube coordinate of the head or its reflection,
    whichever has a positive scale."""
    lam, delta, mu, time = at_place(kept, rows, place)
    sign = kept[SIGN]
    upright = -delta if mu < 0.0 else delta
    point[0], point[1], point[2], point[3] = time, sign * lam, sign * delta, sign * mu / width
    point[4] = upright - log(abs(mu) / width)


@kernel
def fill_nodes(
    kept: NDArray[float64], rows: NDArray[float64], width: float, points: NDArray[float64]
) -> int:
    """Points at the nodes of all steps, shape (5, n); their number."""
    n = 0
    for k in range(len(kept)):
        for place in NODES:
            if place >= kept[k, END]:
                break
            fill_point(kept[k], rows[k], place, width, points[:, n])
            n += 1
        fill_point(kept[k], rows[k], kept[k, END], width, points[:, n])
        n += 1
    return n


@kernel
def fill_points(
    kept: NDArray[float64],
    rows: NDArray[float64],
    width: float,
    stop: float,
    times: NDArray[float64],
    points: NDArray[float64],
) -> None:
    """Points at increasing times up to the stop of the run, shape (5, n)."""
    k = 0
    for i in range(len(times)):
        while k + 1 < len(kept) and kept[k + 1, TIME] < times[i]:
            k += 1
        place = kept[k, END]
        if times[i] < stop:
            place = min(place_of_time(kept[k], rows[k], times[i]), place)
        fill_point(kept[k], rows[k], place, width, points[:, i])
        points[0, i] = times[i]
