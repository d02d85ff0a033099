"""How a derivation is written down and held to its word.

A script states one claim in its docstring (first line: the claim; then MODEL section, assumptions,
symbols with their signs) and has one entry point, `derive(chain)`, which takes the steps one by one
and returns a named result (a `NamedTuple` of sympy expressions, one field a quantity):

    def derive(chain: Chain) -> Limit:
        chain.proved("the antiderivative differentiates to the integrand", F.diff(s), f)
        chain.checked("it is the definition", F, definition, [{ell: 1, mu: 3}], digits=30)
        return Limit(center=...)

    if __name__ == "__main__":
        show(derive)

A chain knows two words. `proved`: sympy reduces the difference of two expressions to zero.
`checked`: both sides agree at stated points to stated digits, the second being an independent
evaluation. A step that earns neither raises `DerivationError`, which shows what is left over.
Tests call `derive(Chain())` and compare the result with the popdyn function that uses it.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from textwrap import shorten
from typing import Any, NamedTuple

import mpmath
import sympy

__all__ = ["Chain", "DerivationError", "Step", "show"]

GUARD_DIGITS = 15  # carried beyond the digits that a step states
SHOWN = 600  # characters of a result that `show` prints

Side = sympy.Expr | Callable[..., Any]
Point = Mapping[sympy.Symbol, int | str]


class DerivationError(Exception):
    """A step whose two sides differ; the message shows by what."""


class Step(NamedTuple):
    words: str
    verdict: str
    evidence: str = ""

    def __str__(self) -> str:
        return f"  {self.verdict:7}  {self.words}" + f"\n           ({self.evidence})" * bool(
            self.evidence
        )


class Chain:
    """The steps of one derivation, in order, each with the verdict it earned.

    Parameters
    ----------
    echo : callable, optional
        Called with every step as it is made, for instance `print`.
    """

    def __init__(self, echo: Callable[[Step], object] | None = None) -> None:
        self.steps: list[Step] = []
        self._echo = echo

    def proved(self, words: str, left: Any, right: Any = 0) -> None:
        """Record that `left - right` reduces to zero; both are expressions, or both matrices."""
        for one, other in zip(_entries(left), _entries(right), strict=True):
            rest = _reduced(one - other)
            if rest != 0:
                raise DerivationError(f"not proved: {words}\n  left over: {rest}")
        self._record(Step(words, "proved"))

    def checked(
        self, words: str, left: Side, right: Side, points: Sequence[Point], digits: int
    ) -> None:
        """Record that two sides agree at every point, to `digits` digits of the larger one.

        A side is a sympy expression, or a function called as `side(mp, *numbers)`: an mpmath
        context of its own, with `GUARD_DIGITS` more than the digits asked for, and the point's
        numbers in the order in which the point names its symbols. A point's numbers are integers
        or strings such as "1/3", so that they are exact.
        """
        if not points:
            raise ValueError("points must name at least one point, got none")
        for point in points:
            mp = mpmath.mp.clone()
            mp.dps = digits + GUARD_DIGITS
            one, other = _number(mp, left, point), _number(mp, right, point)
            # not (a <= b), so that a nan fails
            if not abs(one - other) <= mp.mpf(10) ** -digits * max(abs(one), abs(other)):
                shown = mp.nstr(one - other, 6)
                raise DerivationError(
                    f"not checked to {digits} digits: {words}\n  at {_place(point)}: "
                    f"{mp.nstr(one, digits)} against {mp.nstr(other, digits)}, left over: {shown}"
                )
        places = "; ".join(_place(point) for point in points)
        self._record(Step(words, "checked", f"{digits} digits at {places}"))

    def _record(self, step: Step) -> None:
        self.steps.append(step)
        if self._echo is not None:
            self._echo(step)


def show(derive: Callable[[Chain], tuple[Any, ...]]) -> None:
    """Print a derivation: its claim, its steps as they are made, its named result."""
    print(sys.modules[derive.__module__].__doc__)
    result = derive(Chain(echo=print))
    print()
    for name, quantity in zip(result._fields, result, strict=True):  # type: ignore[attr-defined]
        print(f"  {name} = {shorten(str(quantity), SHOWN)}")
    print()


def _entries(side: Any) -> list[sympy.Expr]:
    if isinstance(side, sympy.MatrixBase):
        return list(side)
    return [sympy.sympify(side)]


def _reduced(difference: sympy.Expr) -> sympy.Expr:
    """Zero if the cheap or else the dear simplification finds it; otherwise what is left over."""
    for reduce in (sympy.expand, lambda rest: sympy.cancel(sympy.together(rest)), sympy.simplify):
        difference = reduce(difference)
        if difference == 0:
            break
    return difference


def _number(mp: Any, side: Side, point: Point) -> Any:
    exact = {symbol: sympy.Rational(number) for symbol, number in point.items()}
    if callable(side) and not isinstance(side, sympy.Basic):
        return mp.mpmathify(side(mp, *(mp.mpf(value.p) / value.q for value in exact.values())))
    value = sympy.N(sympy.sympify(side).subs(exact), mp.dps)
    if value.free_symbols:
        raise ValueError(f"point must give every symbol a number, {value.free_symbols} has none")
    real, imaginary = value.as_real_imag()
    return mp.mpc(str(real), str(imaginary)) if imaginary else mp.mpf(str(real))


def _place(point: Point) -> str:
    return ", ".join(f"{symbol} = {number}" for symbol, number in point.items())
