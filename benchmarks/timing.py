"""Times of several works, taken in turns: what slows the machine down slows all of them down.

Processor time, all threads together: on a machine with other work a short call often has the core
to itself and a long one never, so that wall time would make ratios too large. On a quiet machine,
and in one thread, the two are the same.
"""

import gc
from collections.abc import Callable, Sequence
from time import perf_counter, process_time
from typing import Any

ROUNDS = 9
SAMPLE = 1e-2  # seconds that one turn takes at least: the clock and the loop cost 1e-7 in it
SHORT = 0.1  # seconds a call, below which a turn begins with one call that is not timed


def interleaved(
    works: Sequence[Callable[[], Any]], seconds: float, walls: Sequence[bool] | None = None
) -> list[list[float]]:
    """Seconds a call, turn by turn, for each work; no work is given much more than `seconds`.

    All works have been called before, so that nothing compiles now. A turn makes as many calls as
    fill a sample; the turns of slow works are fewer and spread over the rounds, the least is one.
    What counts is a call among calls: the data and the code of a short one are brought back to the
    processor's caches, where the work before may have left nothing of them, before it is timed.
    `walls` says which are timed by the wall clock.
    """
    clocks = [perf_counter if wall else process_time for wall in walls or [False] * len(works)]
    single = [_turn(work, 1, clock) for work, clock in zip(works, clocks, strict=True)]
    calls = [max(1, round(SAMPLE / max(time, 1e-8))) for time in single]
    turns = [
        min(max(int(seconds / (time * count)), 1), ROUNDS)
        for time, count in zip(single, calls, strict=True)
    ]
    times: list[list[float]] = [[] for _ in works]
    for round_ in range(ROUNDS):
        for work, clock, time, count, number, found in zip(
            works, clocks, single, calls, turns, times, strict=True
        ):
            if round_ * number % ROUNDS < number:
                if time < SHORT:
                    work()
                found.append(_turn(work, count, clock))
    return times


def _turn(work: Callable[[], Any], calls: int, clock: Callable[[], float]) -> float:
    collecting = gc.isenabled()
    gc.disable()
    try:
        start = clock()
        for _ in range(calls):
            work()
        return (clock() - start) / calls
    finally:
        if collecting:
            gc.enable()
