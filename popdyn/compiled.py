"""Compilation of the scalar kernels, cached on disk wherever a cache can be kept."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

__all__ = ["kernel"]

P = ParamSpec("P")
T = TypeVar("T")


def kernel(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a function of floats and arrays to machine code that holds no lock.

    Division by zero gives inf or nan as in NumPy. The machine code is cached beside the source or
    in the user's cache folder; where neither can be written, every process compiles anew.
    """
    try:
        compiled = numba.njit(cache=True, error_model="numpy", nogil=True)(function)
    except RuntimeError:
        compiled = numba.njit(error_model="numpy", nogil=True)(function)
    return cast(Callable[P, T], compiled)
