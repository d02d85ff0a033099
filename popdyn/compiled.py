"""Compilation of the scalar kernels, cached on disk wherever a cache can be kept."""

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba

__all__ = ["kernel"]

P = ParamSpec("P")
T = TypeVar("T")


def kernel(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a function of floats and arrays to machine code that holds no lock.

    Division by zero gives inf or nan as in NumPy. The machine code is cached beside the source or
    in the user's cache folder; where neither can be written, every process compiles anew.
    """
    options: dict[str, Any] = {"error_model": "numpy", "nogil": True}
    try:
        compiled = numba.njit(cache=True, **options)(function)
        # Numba renews a cached kernel when its own file changes, but not when a kernel that it
        # calls does, and would go on with the old one after an update: stamp it with all of them.
        file = compiled._cache._cache_file
        file._source_stamp = (file._source_stamp, _kernel_sources())
    except (RuntimeError, AttributeError):  # no folder to write to; a Numba that cannot be stamped
        compiled = numba.njit(**options)(function)
    return cast(Callable[P, T], compiled)


@cache
def _kernel_sources() -> str:
    """Digest of every source file of the package that holds kernels."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        source = path.read_bytes()
        if b"import kernel" in source:
            digest.update(source)
    return digest.hexdigest()
