"""Compilation of the scalar kernels, cached on disk wherever a cache can be kept."""

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba

__all__ = ["kernel"]

P = ParamSpec("P")
T = TypeVar("T")

_FOLDER = Path(__file__).parent.parent  # which the package lies in


def kernel(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a function of floats and arrays to machine code that holds no lock.

    Division by zero gives inf or nan as in NumPy. The machine code is cached beside the source or
    in the user's cache folder; where neither can be written, every process compiles anew. What is
    damaged there is replaced.
    """
    options: dict[str, Any] = {"error_model": "numpy", "nogil": True}
    try:
        compiled = numba.njit(cache=True, **options)(function)
        # Numba renews a cached kernel when its own file changes, but not when that of a kernel it
        # calls does, and would go on with the old code after an update: stamp it with them all. The
        # code of a file that was imported under another name cannot be loaded under its own.
        file = compiled._cache._cache_file
        sources = _kernel_sources(function.__code__.co_filename)
        file._source_stamp = (file._source_stamp, sources, function.__module__)
        _forgive(compiled._cache)
    except (RuntimeError, AttributeError):  # no folder to write to; a Numba that cannot be stamped
        compiled = numba.njit(**options)(function)
    return cast(Callable[P, T], compiled)


def _forgive(cache: Any) -> None:
    """Let a cache whose files are cut off, or cannot be written, cost time and nothing else.

    Numba raises what it comes to there, from a full disk to whatever unpickling damage raises.
    """
    load, save = cache.load_overload, cache.save_overload

    def load_overload(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except Exception:
            return None

    def save_overload(*arguments: Any) -> None:
        try:
            save(*arguments)
        except Exception:
            with suppress(Exception):
                cache.flush()
                save(*arguments)

    cache.load_overload, cache.save_overload = load_overload, save_overload


@cache
def _kernel_sources(file: str) -> str:
    """Digest of a source file and of those it imports kernels or constants from, or may do."""
    digest = hashlib.sha256()
    seen, todo = set(), [Path(file)]
    while todo:
        path = todo.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        source = path.read_bytes()
        digest.update(source)
        modules = re.findall(r"^from ([\w.]+) import", source.decode(), re.MULTILINE)
        todo += [_FOLDER.joinpath(*name.split(".")).with_suffix(".py") for name in modules]
    return digest.hexdigest()
