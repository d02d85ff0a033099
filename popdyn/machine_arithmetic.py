"""Operations on doubles that kernels ask of the processor by name.

Plain arithmetic in a kernel is rounded operation by operation, in the order written: right where a
formula counts on it, and a hindrance to vector instructions in long sums. Flags of a whole kernel
would free all of its sums to be reordered, those that catch rounding errors too; these free or bind
one operation where it is written.
"""

from collections.abc import Callable
from typing import Any, cast

from numba import types
from numba.extending import intrinsic

__all__ = [
    "bits_of",
    "double_of",
    "fusable_product",
    "fused_multiply_add",
    "multiply_add",
    "reordered_add",
]


def _fused_multiply_add(_: Any, a: Any, b: Any, c: Any) -> Any:
    """`a b + c`, rounded once on every processor: a call of a function where it has no such
    instruction."""

    def build(_: Any, builder: Any, __: Any, numbers: Any) -> Any:
        return builder.fma(*numbers)

    return types.float64(types.float64, types.float64, types.float64), build


def _multiply_add(_: Any, a: Any, b: Any, c: Any) -> Any:
    """`a b + c`, rounded once where the processor can: half the latency in a Horner scheme."""

    def build(_: Any, builder: Any, __: Any, numbers: Any) -> Any:
        product = builder.fmul(*numbers[:2], flags=("contract",))
        return builder.fadd(product, numbers[2], flags=("contract",))

    return types.float64(types.float64, types.float64, types.float64), build


def _reordered_add(_: Any, total: Any, term: Any) -> Any:
    """`total + term`, of a sum whose terms may be added in any order and in several parts."""

    def build(_: Any, builder: Any, __: Any, numbers: Any) -> Any:
        return builder.fadd(*numbers, flags=("reassoc", "contract"))

    return types.float64(types.float64, types.float64), build


def _fusable_product(_: Any, a: Any, b: Any) -> Any:
    """`a b`, which may be rounded together with the sum of `reordered_add` that it is a term of."""

    def build(_: Any, builder: Any, __: Any, numbers: Any) -> Any:
        return builder.fmul(*numbers, flags=("contract",))

    return types.float64(types.float64, types.float64), build


def _bits_of(_: Any, number: Any) -> Any:
    """The 64 bits of a double as a whole number."""

    def build(context: Any, builder: Any, _: Any, numbers: Any) -> Any:
        return builder.bitcast(numbers[0], context.get_value_type(types.int64))

    return types.int64(types.float64), build


def _double_of(_: Any, bits: Any) -> Any:
    """The double of these 64 bits."""

    def build(context: Any, builder: Any, _: Any, numbers: Any) -> Any:
        return builder.bitcast(numbers[0], context.get_value_type(types.float64))

    return types.float64(types.int64), build


fused_multiply_add = cast(Callable[[float, float, float], float], intrinsic(_fused_multiply_add))
multiply_add = cast(Callable[[float, float, float], float], intrinsic(_multiply_add))
reordered_add = cast(Callable[[float, float], float], intrinsic(_reordered_add))
fusable_product = cast(Callable[[float, float], float], intrinsic(_fusable_product))
bits_of = cast(Callable[[float], int], intrinsic(_bits_of))
double_of = cast(Callable[[int], float], intrinsic(_double_of))
