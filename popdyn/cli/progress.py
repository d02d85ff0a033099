"""A line on the terminal that says how far a long run has come."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from popdyn.coordinates import Head

__all__ = ["progress"]

QUIET_SECONDS = 2.0  # a run shorter than this needs no progress
REFRESH_SECONDS = 0.2


@contextmanager
def progress(
    name: str, end: float, reading: "Callable[[float, Head], float]"
) -> "Iterator[Callable[[float, Head], None] | None]":
    """A callback for the steps of a run, or None where nobody would read it.

    `reading(t, head)` is how far the run has come, `name` what it is, `end` where it goes.
    """
    if not sys.stderr.isatty():
        yield None
        return
    due = time.monotonic() + QUIET_SECONDS
    shown = False

    def callback(t: float, head: "Head") -> None:
        nonlocal due, shown
        now = time.monotonic()
        if now >= due:
            due, shown = now + REFRESH_SECONDS, True
            line = f"\r{name} = {reading(t, head):.3e} of {end:.3e}"
            print(line, end="", file=sys.stderr, flush=True)

    try:
        yield callback
    finally:
        if shown:
            print(file=sys.stderr)
