"""A whole run of collocation in one compiled call: modes, lengths of steps, ends."""

from math import inf, nan

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.compiled import kernel
from popdyn.dynamics.collocation.newton import (
    IN_SCALE,
    IN_TIME,
    slopes,
    slopes_by_increments,
    step,
)
from popdyn.dynamics.collocation.passages import find_passages
from popdyn.dynamics.collocation.pieces import (
    DELTA,
    END,
    LAM,
    MODE,
    MU,
    SIGN,
    TIME,
    H,
    at_place,
    fill_point,
    place_of_time,
)
from popdyn.dynamics.collocation.radau import STAGES
from popdyn.risk.closed_form import _risk

__all__ = [
    "AT_END",
    "AT_LEVEL",
    "COUNTS",
    "FULL",
    "NFEV",
    "NJEV",
    "N_STEPS",
    "ON_OTHER_SIDE",
    "STATES",
    "advance",
    "first_state",
]

# Why a run stops.
AT_END, AT_LEVEL, ON_OTHER_SIDE, FULL, AT_REST, STUCK = range(6)

# A state has the first fields of a step, the length of the next step and that of the last.
NEXT_H, LAST_H, STATES = 5, 6, 7
NFEV, NJEV, N_STEPS, LAST_MODE, HELD = range(5)
COUNTS = 5

# From here on, in units of 1 / l, the scale may take the place of time: the tube coordinate has a
# singularity at scale 0. The label score must not move much faster; the gap keeps a run from
# changing to and fro.
_SCALE_FROM = 1.0
_STEEP, _TOO_STEEP = 8.0, 30.0
# A head beyond the endpoint from this scale on never comes back, as in `hitting_time`.
_CAPTURED = 10.0

_ORDER = STAGES + 1.0  # of the error between the nodes
_SAFETY = 0.85
_SHRINK, _GROW = 0.1, 8.0  # a step by no more than these factors, by _FAILED if nothing is known
_FAILED = 0.25
# The first steps: parts of the head, of its fastest time.
_FIRST_PART, _FIRST_TIME = 0.1, 0.5
_MOST_REJECTIONS = 60
# A run in the scale that does not come forward is near a turning point: so many steps in time.
_REJECTIONS_IN_SCALE, _HELD_IN_TIME = 12, 5


@kernel
def first_state(
    label_score: float, excess: float, scale: float, width: float, state: NDArray[float64]
) -> None:
    """State at time 0, upright if the scale is negative."""
    upright = scale > 0.0 or (scale == 0.0 and label_score >= 0.0)
    sign = 1.0 if upright else -1.0
    for k in range(STATES):
        state[k] = 0.0
    state[LAM], state[DELTA], state[MU] = sign * label_score, sign * excess, sign * scale * width
    state[SIGN] = sign


@kernel
def _mode(f0: float, f1: float, mu: float, width: float, steep: float) -> int:
    """Mode of a head by its slopes in time."""
    if mu >= _SCALE_FROM and f1 > 0.0 and abs(f0) * width < steep * f1 / width:
        return IN_SCALE
    return IN_TIME


@kernel
def _first_length(
    mode: int,
    lam: float,
    mu: float,
    f0: float,
    f1: float,
    jacobian: tuple[float, float, float, float],
) -> float:
    j00, j01, j10, j11 = jacobian
    if mode == IN_SCALE:
        return min(_FIRST_PART * mu, 1.0 / (abs(j00) + _SHRINK / mu))
    pace = max(abs(f0), abs(f1)) / max(abs(lam), abs(mu))
    return min(_FIRST_PART / pace, _FIRST_TIME / max(abs(j00), abs(j01), abs(j10), abs(j11)))


@kernel
def advance(
    state: NDArray[float64],
    counts: NDArray[np.int64],
    width: float,
    t_end: float,
    level: float,
    tolerances: NDArray[float64],
    most_steps: int,
    keep: bool,
    kept: NDArray[float64],
    rows: NDArray[float64],
    entrance: NDArray[float64],
) -> int:
    """Go on from a state to an end, and why it is the end.

    Parameters
    ----------
    state, counts : ndarray
        As `first_state` makes them and as they were left; brought up to date.
    width, t_end : float
        The half width, and the last time.
    level : float
        A scale to end at once it is entered; nan for none.
    tolerances : ndarray
        Relative and absolute tolerance of a step.
    most_steps : int
        Steps in all.
    keep : bool
        Whether to keep all steps, as far as there is room, or the last one alone.
    kept, rows : ndarray, shapes (n, FIELDS) and (n, 2, STAGES)
        The steps.
    entrance : ndarray, shape (6, 1)
        Gets the point at which the level was entered.
    """
    last_rows = np.empty((2, STAGES))
    work = np.empty((2 * STAGES, 2 * STAGES))
    pivots = np.empty(2 * STAGES, dtype=np.int64)
    state[LAST_H] = 0.0
    square = width * width
    n = 0
    while True:
        if state[TIME] >= t_end:
            return AT_END
        if counts[N_STEPS] >= most_steps or (keep and n == len(kept)):
            return FULL
        _, g_lam, g_mu = _risk(state[LAM], state[DELTA], state[MU])
        f0, f1 = -square * g_lam, -square * square * g_mu
        if f0 == 0.0 and f1 == 0.0:
            return AT_REST
        old_mode = counts[LAST_MODE]
        steep = _STEEP if old_mode == IN_TIME else _TOO_STEEP
        if old_mode == IN_TIME and _mode(-f0, -f1, -state[MU], width, steep) == IN_SCALE:
            # on the other side of scale 0 from where the run began
            f0, f1 = -f0, -f1
            for k in (LAM, DELTA, MU, SIGN):
                state[k] = -state[k]
            state[LAST_H] = 0.0
        lam, delta, mu = state[LAM], state[DELTA], state[MU]
        mode = _mode(f0, f1, mu, width, steep) if counts[HELD] == 0 else IN_TIME
        counts[HELD] = max(0, counts[HELD] - 1)
        if mode != old_mode or state[NEXT_H] == 0.0:
            counts[LAST_MODE] = mode
            f0, f1 = slopes(mode, lam, delta, mu, 0.0, 0.0, 0.0, square)
            jacobian = slopes_by_increments(mode, lam, delta, mu, 0.0, 0.0, 0.0, square, f0, f1)
            state[NEXT_H] = _first_length(mode, lam, mu, f0, f1, jacobian)
            state[LAST_H] = 0.0

        here = n if keep else 0
        h = state[NEXT_H]
        rejections = 0
        while True:
            last_step = mode == IN_TIME and state[TIME] + h >= t_end
            if last_step:
                h = t_end - state[TIME]
            error = step(
                mode, state, h, state[TIME], width, tolerances, rows[here], last_rows,
                state[LAST_H], work, pivots, counts,
            )  # fmt: skip
            if error <= 1.0:
                break
            rejections += 1
            if rejections > (_REJECTIONS_IN_SCALE if mode == IN_SCALE else _MOST_REJECTIONS):
                break
            h *= max(_SHRINK, _SAFETY * error ** (-1.0 / _ORDER)) if error < inf else _FAILED
        if not error <= 1.0:
            if mode == IN_TIME:
                return STUCK
            counts[HELD] = _HELD_IN_TIME
            continue

        for k in range(SIGN + 1):
            kept[here, k] = state[k]
        kept[here, H], kept[here, MODE], kept[here, END] = h, mode, 1.0
        for k in range(2):
            for i in range(STAGES):
                last_rows[k, i] = rows[here, k, i]
        n += 1
        counts[N_STEPS] += 1
        state[LAM], state[DELTA], state[MU], state[TIME] = at_place(kept[here], rows[here], 1.0)
        # The smaller of the two is carried, or their roundings would drift apart: at scale 1e20 the
        # excess knows nothing of a label score of 50, with which the head ends near the origin.
        if abs(state[LAM]) <= abs(state[DELTA]):
            state[DELTA] = state[LAM] - state[MU]
        else:
            state[LAM] = state[DELTA] + state[MU]
        state[LAST_H] = h
        grow = _SAFETY * max(error, 1e-30) ** (-1.0 / _ORDER)
        if mode == IN_SCALE:
            grow *= state[MU] / mu  # lengths go with the scale
        state[NEXT_H] = h * min(max(grow, _SHRINK), 1.0 if rejections else _GROW)
        if last_step:
            state[TIME] = t_end
        elif state[TIME] > t_end:
            kept[here, END] = place_of_time(kept[here], rows[here], t_end)
            state[LAM], state[DELTA], state[MU], _ = at_place(
                kept[here], rows[here], kept[here, END]
            )
            state[TIME] = t_end

        if level == level:
            way = 1.0 if level >= 0.0 else -1.0
            inside = way * state[SIGN] * state[MU] >= way * level * width
            found = 0
            if inside or mode == IN_TIME:
                one, its_rows = kept[here : here + 1], rows[here : here + 1]
                found = find_passages(one, its_rows, width, level, nan, way, entrance)
            if inside and not found:  # by a rounding that no passage shows
                fill_point(kept[here], rows[here], kept[here, END], width, entrance[:, 0])
            if inside or found:
                entrance[0, 0] = min(entrance[0, 0], t_end)
                return AT_LEVEL
            side = -way * state[SIGN]
            if side * state[MU] >= _CAPTURED and side * state[DELTA] >= 0.0:
                return ON_OTHER_SIDE
