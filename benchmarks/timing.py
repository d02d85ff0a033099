"""Times of several works, taken in turns: what slows the machine down slows all of them down."""

import gc
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

ROUNDS = 9
SAMPLE = 2e-3  # seconds that one turn takes at least: the clock and the loop cost 1e-7 in it


def interleaved(works: Sequence[Callable[[], Any]], seconds: float) -> list[list[float]]:
    """Seconds a call, turn by turn, for each work; no work is given much more than `seconds`.

    All works have been called before, so that nothing compiles now. A turn makes as many calls as
    fill a sample; the turns of slow works are fewer and spread over the rounds, the least is one.
    """
    single = [_turn(work, 1) for work in works]
    calls = [max(1, round(SAMPLE / max(time, 1e-8))) for time in single]
    turns = [
        min(max(int(seconds / (time * count)), 1), ROUNDS)
        for time, count in zip(single, calls, strict=True)
    ]
    times: list[list[float]] = [[] for _ in works]
    for round_ in range(ROUNDS):
        for work, count, number, found in zip(works, calls, turns, times, strict=True):
            if round_ * number % ROUNDS < number:
                found.append(_turn(work, count))
    return times


def _turn(work: Callable[[], Any], calls: int) -> float:
    collecting = gc.isenabled()
    gc.disable()
    try:
        start = perf_counter()
        for _ in range(calls):
            work()
        return (perf_counter() - start) / calls
    finally:
        if collecting:
            gc.enable()
