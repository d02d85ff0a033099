"""Compilation of the scalar kernels, cached on disk wherever a cache can be kept."""

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property, update_wrapper
from pathlib import Path
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar

import numba

__all__ = ["kernel"]

P = ParamSpec("P")
T = TypeVar("T")

_FOLDER = Path(__file__).parent.parent  # which the package lies in


class _Kernel(Generic[P, T]):
    """A function that is compiled once for calls from Python and once for those from kernels.

    What a call from Python needs, to unpack its arguments and to box what is returned, takes as
    long to compile as a small kernel itself, and most kernels are called by kernels alone.
    """

    def __init__(self, function: Callable[P, T]) -> None:
        update_wrapper(self, function)
        self._function = function

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> T:
        return self.called(*arguments, **named)

    @cached_property
    def called(self) -> Callable[P, T]:
        """The dispatcher for calls from Python."""
        dispatcher: Callable[P, T] = _compiled(self._function)
        return dispatcher

    @cached_property
    def _linked(self) -> Any:
        """The dispatcher for calls from kernels, which no call from Python may come to."""
        code, name = self._function.__code__, f"{self._function.__name__}_linked"
        function = FunctionType(code, self._function.__globals__, name)
        # The cache files are named after this: those of the other dispatcher stay apart from them.
        function.__qualname__ = name
        function.__module__ = self._function.__module__
        return _compiled(function, no_cpython_wrapper=True)

    @property
    def _numba_type_(self) -> Any:
        """What Numba asks for where it finds a kernel in another."""
        return self._linked._numba_type_


def kernel(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a function of floats and arrays to machine code that holds no lock.

    Division by zero gives inf or nan as in NumPy. The machine code is cached beside the source or
    in the user's cache folder; where neither can be written, every process compiles anew. What is
    damaged there is replaced.
    """
    return _Kernel(function)


def _compiled(function: Callable[..., Any], **options: bool) -> Any:
    options |= {"nogil": True, "no_cfunc_wrapper": True}
    try:
        compiled = numba.njit(cache=True, error_model="numpy", **options)(function)
        # Numba renews a cached kernel when its own file changes, but not when that of a kernel it
        # calls does, and would go on with the old code after an update: stamp it with them all. The
        # code of a file that was imported under another name cannot be loaded under its own.
        file = compiled._cache._cache_file
        sources = _kernel_sources(function.__code__.co_filename)
        file._source_stamp = (file._source_stamp, sources, function.__module__)
        _forgive(compiled._cache)
    except (RuntimeError, AttributeError):  # no folder to write to; a Numba that cannot be stamped
        compiled = numba.njit(error_model="numpy", **options)(function)
    return compiled


def _forgive(cache: Any) -> None:
    """Let a cache whose files are cut off, or cannot be written, cost time and nothing else.

    Numba raises what it comes to there, from a full disk to whatever unpickling damage raises. It
    takes what stands under a name for what was looked for, and processes that compile at the same
    time, of two versions of a source for one, may have written another's code there.
    """
    load, save = cache.load_overload, cache.save_overload

    def load_overload(types: Any, *context: Any) -> Any:
        try:
            found = load(types, *context)
            return found if found is not None and found.signature.args == tuple(types) else None
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
