"""Times at which the gradient flow takes many heads to a scale."""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.coordinates import Head, require_head
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

    def time(head: Head) -> float:
        return hitting_time(risk, head, scale=scale, t_end=t_end).time

    with ThreadPoolExecutor(int(workers)) as pool:
        times = list(pool.map(time, _single(heads)))
    return np.array(times, dtype=float64).reshape(heads.shape)


def _single(heads: Head) -> Iterator[Head]:
    name, given = heads.given
    make = getattr(Head, "from_scores" if name == "label_score" else f"from_{name}")
    for coordinate, scale in zip(np.ravel(given), np.ravel(heads.scale), strict=True):
        yield make(coordinate, scale, heads.half_width)
