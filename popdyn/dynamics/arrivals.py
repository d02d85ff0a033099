"""Times at which the gradient flow takes many heads to a scale."""

import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.coordinates import Head, require_head
from popdyn.dynamics.arguments import (
    ATOL,
    COLLOCATION,
    LAST_TIME,
    MAX_STEPS,
    METHOD,
    RTOL,
    checked_method,
    checked_number,
    checked_time,
)
from popdyn.dynamics.collocation import tolerances
from popdyn.dynamics.collocation.march import (
    AT_END,
    AT_LEVEL,
    COUNTS,
    ON_OTHER_SIDE,
    STATES,
    advance,
    first_state,
)
from popdyn.dynamics.collocation.pieces import FIELDS
from popdyn.dynamics.collocation.radau import STAGES
from popdyn.dynamics.hitting import hitting_time
from popdyn.risk.protocol import Risk

__all__ = ["hitting_times"]


def hitting_times(
    risk: Risk, heads: Head, scale: float, *, t_end: float = math.inf, workers: int = 2
) -> NDArray[float64]:
    """Time of the first entrance to `{mu >= scale}` from every one of many heads (MODEL §4, §5).

    Parameters
    ----------
    risk : Risk
        `ClosedFormRisk` is followed in compiled code, about 0.2 ms a head; any other as by
        `hitting_time`.
    heads : Head, fields of shape (...)
        The starts, of the half width of the risk.
    scale : float
        The level, as in `hitting_time`; a negative one asks for `{mu <= scale}`.
    t_end : float
        Time to give up at.
    workers : int
        Threads that share the heads.

    Returns
    -------
    ndarray, shape (...)
        What `hitting_time` finds for each head: inf where the level is not entered.

    Raises
    ------
    ValueError, RuntimeError
        As in `hitting_time`.

    Examples
    --------
    >>> from popdyn import ClosedFormRisk, Head, hitting_times
    >>> starts = Head.from_scores([7.5, 0.0, -7.5], [5.0, 0.0, -5.0])
    >>> print(hitting_times(ClosedFormRisk(), starts, 10.0).round(6))
    [3116.789422         inf         inf]
    """
    require_head(heads)
    if not (isinstance(workers, int | np.integer) and workers >= 1):
        raise ValueError(f"workers must be a whole number from 1 on, got {workers!r}")
    workers = int(workers)
    level = checked_number("scale level", scale)
    end = checked_time("t_end", t_end, allow_inf=True)
    times = np.full(heads.shape, np.nan).reshape(-1)
    if not times.size:
        return times.reshape(heads.shape)

    method = checked_method(risk, _one(heads, 0), None, RTOL, ATOL)
    with ThreadPoolExecutor(workers) as pool:
        if method == COLLOCATION:
            follow = partial(_follow, heads, level, min(end, LAST_TIME), times, stride=workers)
            list(pool.map(follow, range(workers)))
            method = METHOD

        def fill(index: int) -> None:
            head = _one(heads, index)
            hit = hitting_time(risk, head, scale=level, t_end=end, method=method)
            times[index] = hit.time

        for _ in pool.map(fill, np.flatnonzero(np.isnan(times)).tolist()):
            pass
    return times.reshape(heads.shape)


def _follow(
    heads: Head, level: float, t_end: float, times: NDArray[float64], first: int, stride: int
) -> None:
    """Times of every so manieth head; left as they are where collocation gives up."""
    width = heads.half_width
    state, counts = np.empty(STATES), np.empty(COUNTS, dtype=np.int64)
    steps, rows = np.empty((1, FIELDS)), np.empty((1, 2, STAGES))
    tolerance, entrance = tolerances(RTOL, ATOL), np.empty((6, 1))
    label_score, excess = np.ravel(heads.label_score), np.ravel(heads.excess)
    scale = np.ravel(heads.scale)
    outside = scale < level if level >= 0 else scale > level
    for i in range(first, len(times), stride):
        if not outside[i]:
            times[i] = 0.0
            continue
        counts.fill(0)
        first_state(label_score[i], excess[i], scale[i], width, state)
        why = advance(
            state, counts, width, t_end, level, tolerance, MAX_STEPS, False, steps, rows, entrance
        )
        if why == AT_LEVEL:
            times[i] = entrance[0, 0]
        elif why in (AT_END, ON_OTHER_SIDE):
            times[i] = math.inf


def _one(heads: Head, index: int) -> Head:
    """One of many heads, by the coordinate that it was given."""
    name, given = heads.given
    make = getattr(Head, "from_scores" if name == "label_score" else f"from_{name}")
    one: Head = make(np.ravel(given)[index], np.ravel(heads.scale)[index], heads.half_width)
    return one
