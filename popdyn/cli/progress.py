"""A line on the terminal that says how far a long run has come."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress"]

QUIET_SECONDS = 2.0  # a run shorter than this needs no progress
REFRESH_SECONDS = 0.2


@contextmanager
def progress(t_end: float) -> Iterator[Callable[[float, object], None] | None]:
    """A callback for the steps of a flow, or None where nobody would read it."""
    if not sys.stderr.isatty():
        yield None
        return
    due = time.monotonic() + QUIET_SECONDS
    shown = False

    def callback(t: float, _: object) -> None:
        nonlocal due, shown
        now = time.monotonic()
        if now >= due:
            due, shown = now + REFRESH_SECONDS, True
            print(f"\rt = {t:.3e} of {t_end:.3e}", end="", file=sys.stderr, flush=True)

    try:
        yield callback
    finally:
        if shown:
            print(file=sys.stderr)
