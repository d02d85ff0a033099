"""Sums and products that the compiler may fuse or reorder, for kernels that gain by it.

Plain arithmetic in a kernel is rounded operation by operation, in the order written: right where a
formula counts on it, and a hindrance to the processor in long sums. These mark single operations.
"""

from collections.abc import Callable
from typing import Any, cast

from numba.core.types import float64
from numba.extending import intrinsic

__all__ = ["multiply_add", "reordered_add"]


def _multiply_add(context: Any, a: Any, b: Any, c: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, y, z = arguments
        return builder.fadd(builder.fmul(x, y, flags=("contract",)), z, flags=("contract",))

    return float64(float64, float64, float64), generate


def _reordered_add(context: Any, a: Any, b: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fadd(*arguments, flags=("reassoc",))

    return float64(float64, float64), generate


# `a * b + c` with one rounding where the processor has it: half the latency in a Horner scheme.
multiply_add = cast(Callable[[float, float, float], float], intrinsic(_multiply_add))
# `a + b` as a term of a sum over a loop, whose terms then are computed several at a time.
reordered_add = cast(Callable[[float, float], float], intrinsic(_reordered_add))
