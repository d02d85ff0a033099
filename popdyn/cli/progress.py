"""A line on the terminal that says how far a long command has come."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from popdyn.coordinates import Head

__all__ = ["progress", "waiting"]

QUIET_SECONDS = 2.0  # what is shorter than this needs no progress
REFRESH_SECONDS = 0.2


@contextmanager
def progress(
    name: str, end: float, reading: "Callable[[float, Head], float]"
) -> "Iterator[Callable[[float, Head], None] | None]":
    """A callback for the steps of a run, or None where nobody would read it.

    `reading(t, head)` is how far the run has come, `name` what it is, `end` where it goes.
    """
    come: float | None = None

    def callback(t: float, head: "Head") -> None:
        nonlocal come
        come = reading(t, head)

    def so_far() -> str:
        return f"{name} up to {end:.3e}" if come is None else f"{name} = {come:.3e} of {end:.3e}"

    with _line(so_far) as is_read:
        yield callback if is_read else None


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say on a terminal what is being done, if it takes long, and since when."""
    with _line(lambda: what):
        yield


@contextmanager
def _line(so_far: Callable[[], str]) -> Iterator[bool]:
    """Show `so_far()` and the seconds gone by while the block runs, if this is a terminal.

    By a thread: the first call of a compiled kernel takes seconds in which nobody calls back.
    """
    if not sys.stderr.isatty():
        yield False
        return
    begin, over = time.monotonic(), threading.Event()

    def show() -> None:
        shown = 0
        while not over.wait(REFRESH_SECONDS if shown else QUIET_SECONDS):
            shown = put(shown, "")
        if shown:  # where it ended
            put(shown, "\n")

    def put(length: int, end: str) -> int:
        line = f"{so_far()}, {time.monotonic() - begin:.0f} s".ljust(length)
        print(f"\r{line}", end=end, file=sys.stderr, flush=True)
        return len(line)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield True
    finally:
        over.set()
        thread.join()
