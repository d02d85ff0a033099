"""Operations on doubles that let a loop be compiled to vector instructions.

Flags of a whole kernel would free all of its sums to be reordered, those that catch rounding errors
too. These free one operation where it is written.
"""

from collections.abc import Callable
from typing import Any, cast

from numba import types
from numba.extending import intrinsic

__all__ = ["bits_of", "double_of", "fused", "plus", "times"]


def _fused(_: Any, a: Any, b: Any, c: Any) -> Any:
    """`a b + c`, rounded once."""

    def build(_: Any, builder: Any, __: Any, numbers: Any) -> Any:
        return builder.fma(*numbers)

    return types.float64(types.float64, types.float64, types.float64), build


def _plus(_: Any, total: Any, term: Any) -> Any:
    """`total + term`, of a sum whose terms may be added in any order and in several parts."""

    def build(_: Any, builder: Any, __: Any, numbers: Any) -> Any:
        return builder.fadd(*numbers, flags=("reassoc", "contract"))

    return types.float64(types.float64, types.float64), build


def _times(_: Any, a: Any, b: Any) -> Any:
    """`a b`, which may be rounded together with the sum that it is a term of."""

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


fused = cast(Callable[[float, float, float], float], intrinsic(_fused))
plus = cast(Callable[[float, float], float], intrinsic(_plus))
times = cast(Callable[[float, float], float], intrinsic(_times))
bits_of = cast(Callable[[float], int], intrinsic(_bits_of))
double_of = cast(Callable[[int], float], intrinsic(_double_of))
