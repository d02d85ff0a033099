"""The population risk to any number of digits: the judge of every other route (MODEL §2, §3).

Half widths scale out, `L_l(lam, mu) = l^2 L_1(lam, mu l)`; the formulas for `l = 1` are in
`risk_jets`. A result is returned once two runs agree in every component, at different working
precisions and, near `mu = 0`, with different nodes or borders.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ldexp
from typing import Any

import mpmath
import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.coordinates import Head
from popdyn.risk.protocol import require_half_width
from popdyn.risk.risk_jets import closed_form, context, interpolated_in_scale, taylor

__all__ = ["ArbitraryPrecisionRisk", "RiskEvaluation"]

_COORDINATES = ("label_score", "excess", "ratio", "tube")
_LARGEST = mpmath.mpf("1e400")  # an exponential needs as many digits as its exponent has
_GUARD = 15  # digits beyond those asked for in the first run
_STEP = 20  # more digits in every second run: what an agreement by chance would have to match
_MAX_DIGITS = 20_000  # working digits at which two runs that still disagree are given up
_DIGITS_OF_DOUBLE = 20  # at least these before rounding to float64

# Interpolation and Taylor series serve where the scale, or both scores, are below
# `10^(-digits / _REACH)`; then a few nodes and terms suffice at any number of digits.
_REACH = 4


@dataclass(frozen=True)
class RiskEvaluation:
    """Risk, gradient and Hessian at one head, to the digits that were asked for.

    The numbers are `mpmath.mpf` and carry all their digits whatever `mpmath.mp.dps` says; show
    them with `mpmath.nstr(x, n)`.

    Attributes
    ----------
    risk : mpf
    gradient : tuple of 2 mpf
        `(dL/dlam, dL/dmu)`.
    hessian : tuple of 3 mpf
        `(d2L/dlam2, d2L/dlam dmu, d2L/dmu2)`.
    digits : int
        Significant digits to which every component is right.
    """

    risk: Any
    gradient: tuple[Any, Any]
    hessian: tuple[Any, Any, Any]
    digits: int


@dataclass(frozen=True)
class ArbitraryPrecisionRisk:
    """Population risk of an infinite context in arbitrary precision (MODEL §2, §3).

    Valid on the whole plane: every finite label score and scale, of any sign, zero included. As a
    `popdyn.risk.protocol.Risk` it reads the exact coordinate that a head was given, and rounds each
    result once to float64. `evaluate` and `limit_error` give all digits.

    Parameters
    ----------
    half_width : float
        `l`; its exact binary value is used.
    digits : int
        Significant digits of every component. A result is returned when two runs at different
        working precisions agree to that many digits; `RuntimeError` if they never do.

    Notes
    -----
    A float argument stands for its exact binary value and a string for its decimal value: 0.1 and
    "0.1" differ in the 17th digit, and so do their results.

    Precision is local: `mpmath.mp` is neither read nor changed.

    Examples
    --------
    >>> import mpmath
    >>> risk = ArbitraryPrecisionRisk(digits=30)
    >>> mpmath.nstr(risk.evaluate(label_score=0, scale=1000).risk, 30)
    '1.33133433333333333333333333333'
    >>> mpmath.nstr(risk.limit_error("-1", ratio="0.2", scale=800), 20)
    '1.99875'
    """

    half_width: float = 1.0
    digits: int = 50

    def __post_init__(self) -> None:
        width = self.half_width
        if not (isinstance(width, float | int | np.floating) and 0 < width < np.inf):
            raise ValueError(f"half_width must be one positive finite number, got {width!r}")
        if not isinstance(self.digits, int) or not 1 <= self.digits <= _MAX_DIGITS // 10:
            raise ValueError(
                f"digits must be an integer from 1 to {_MAX_DIGITS // 10}, got {self.digits!r}"
            )
        object.__setattr__(self, "half_width", float(width))

    def evaluate(
        self,
        *,
        scale: Any,
        label_score: Any = None,
        excess: Any = None,
        ratio: Any = None,
        tube: Any = None,
    ) -> RiskEvaluation:
        """Risk, gradient and Hessian at one head, to `digits` digits.

        Parameters
        ----------
        scale, label_score, excess, ratio, tube : float, int, str or mpf
            The scale and exactly one of the other coordinates.

        Raises
        ------
        ValueError
            If a number is not finite, if not exactly one coordinate is given, or if a ratio or a
            tube coordinate comes with a scale that is not positive.
        """
        head = _ExactHead(self.half_width, scale, label_score, excess, ratio, tube)
        return RiskEvaluation(*_unpacked(head.risk_jet(self.digits)), self.digits)

    def limit_error(
        self,
        threshold: Any,
        *,
        scale: Any,
        label_score: Any = None,
        excess: Any = None,
        ratio: Any = None,
        tube: Any = None,
    ) -> Any:
        """Error `F - alpha` on an infinite clean context, to `digits` digits (MODEL §2).

        Parameters
        ----------
        threshold : float, int, str or mpf
            The task, in `[-half_width, half_width]`.
        scale, label_score, excess, ratio, tube : float, int, str or mpf
            As in `evaluate`.

        Returns
        -------
        mpf

        Raises
        ------
        ValueError
            As `evaluate`, and if the threshold lies outside the interval.
        """
        head = _ExactHead(self.half_width, scale, label_score, excess, ratio, tube)
        alpha = _checked("threshold", threshold)
        if abs(context(_MAX_DIGITS).mpf(alpha)) > self.half_width:
            raise ValueError(
                f"threshold must lie in [-{self.half_width!r}, {self.half_width!r}], "
                f"got {threshold!r}"
            )
        return mpmath.mp.make_mpf(head.limit_error(alpha, self.digits)._mpf_)

    def value(self, head: Head) -> NDArray[float64]:
        """Risk, shape `(...)`, rounded once."""
        return self._components(head)[..., 0]

    def gradient(self, head: Head) -> NDArray[float64]:
        """Gradient, shape `(..., 2)`, rounded once."""
        return self._components(head)[..., 1:3]

    def value_and_gradient(self, head: Head) -> tuple[NDArray[float64], NDArray[float64]]:
        """Risk and gradient from one pass, shapes `(...)` and `(..., 2)`."""
        components = self._components(head)
        return components[..., 0], components[..., 1:3]

    def hessian(self, head: Head) -> NDArray[float64]:
        """Hessian, shape `(..., 2, 2)`, rounded once."""
        return self._components(head)[..., [[3, 4], [4, 5]]]

    def _components(self, head: Head) -> NDArray[float64]:
        require_half_width(self, head)
        name, given = head.given
        result = np.empty((*head.shape, 6))
        for index in np.ndindex(head.shape):
            point = {name: float(np.asarray(given)[index])}
            exact = _ExactHead(self.half_width, float(np.asarray(head.scale)[index]), **point)
            jet = exact.risk_jet(max(self.digits, _DIGITS_OF_DOUBLE))
            result[index] = [_nearest_double(component) for component in jet]
        return result


class _ExactHead:
    """The coordinates of one head as they were given, read anew at each working precision."""

    def __init__(
        self,
        half_width: float,
        scale: Any,
        label_score: Any = None,
        excess: Any = None,
        ratio: Any = None,
        tube: Any = None,
    ) -> None:
        given = dict(zip(_COORDINATES, (label_score, excess, ratio, tube), strict=True))
        named = [name for name in _COORDINATES if given[name] is not None]
        if len(named) != 1:
            raise ValueError(
                f"give exactly one of {', '.join(_COORDINATES)}, "
                f"got {' and '.join(named) or 'none'}"
            )
        (self.name,) = named
        self.half_width = half_width
        self.scale = _checked("scale", scale)
        self.given = _checked(self.name, given[self.name])
        if self.name in ("ratio", "tube") and not context(_GUARD).mpf(self.scale) > 0:
            raise ValueError(
                f"scale must be positive where a {self.name} is given, got {scale!r}; "
                "give label_score or excess"
            )

    def scores(self, ctx: Any) -> tuple[Any, Any, Any]:
        """Label score, scale and excess at half width 1, in the precision of `ctx`."""
        width, scale, given = ctx.mpf(self.half_width), ctx.mpf(self.scale), ctx.mpf(self.given)
        mu = scale * width
        if self.name == "label_score":
            return given, mu, given - mu
        if self.name == "ratio":
            return given * scale, mu, (given - width) * scale
        excess = given if self.name == "excess" else given + ctx.log(scale)
        return excess + mu, mu, excess

    def _wide_enough(self, ctx: Any) -> Any:
        """`ctx` with the digits in front of the point, which exponentials of the scores lose."""
        size = max(1, *map(abs, self.scores(ctx)))
        return context(ctx.dps + int(ctx.log10(size)))

    def risk_jet(self, digits: int) -> Sequence[Any]:
        """Risk, gradient and Hessian: the six components of the jet, right to `digits` digits."""

        def run(ctx: Any) -> Sequence[Any]:
            tiny = ctx.mpf(10) ** (-ctx.dps / _REACH)
            ctx = self._wide_enough(ctx)
            lam, mu, _ = self.scores(ctx)
            if abs(mu) >= tiny:
                jet = closed_form(ctx, self.scores, mu)
            elif abs(lam) >= tiny:
                jet = interpolated_in_scale(ctx, lam, mu, tiny)
            else:
                jet = taylor(ctx, lam, mu)
            width = ctx.mpf(self.half_width)
            return [c * width**power for c, power in zip(jet, (2, 2, 3, 2, 3, 4), strict=True)]

        # Components vanish at scale 0 only, where the risk is l^2/3 for every label score.
        vanish = not context(_GUARD).mpf(self.scale)
        return _agreeing(run, digits, vanish, f"risk at {self}")

    def limit_error(self, threshold: Any, digits: int) -> Any:
        """Error on an infinite context, right to `digits` digits."""

        def run(ctx: Any) -> Sequence[Any]:
            ctx = self._wide_enough(ctx)
            lam, mu, excess = self.scores(ctx)
            alpha = ctx.mpf(threshold) / self.half_width
            if mu < 0:
                return [-_limit_error(ctx, -alpha, -lam, -mu, -excess) * self.half_width]
            return [_limit_error(ctx, alpha, lam, mu, excess) * self.half_width]

        ctx = context(_GUARD)
        vanishes = not any(map(ctx.mpf, (threshold, self.scale, self.given)))
        return _agreeing(run, digits, vanishes, f"limit error at {self}")[0]

    def __str__(self) -> str:
        return f"{self.name} {self.given!r}, scale {self.scale!r}, half width {self.half_width!r}"


def _checked(name: str, number: Any) -> Any:
    """A finite number as mpmath reads it exactly: a Python float or int, a string, an mpf."""
    try:
        if isinstance(number, np.integer):
            number = int(number)
        if isinstance(number, np.floating):  # long doubles too
            numerator, denominator = number.as_integer_ratio()
            number = context(_GUARD * 2).mpf(numerator) / denominator
        if isinstance(number, bool) or not (
            isinstance(number, float | int | str) or hasattr(number, "_mpf_")
        ):
            raise TypeError
        size = abs(context(_GUARD).mpf(number))
    except OverflowError:
        size = mpmath.inf
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a finite float, int, decimal string or mpf, got {number!r}"
        ) from None
    if not size <= _LARGEST:
        raise ValueError(f"{name} must be finite and at most 1e400, got {number!r}")
    return number


def _agreeing(
    run: Callable[[Any], Sequence[Any]], digits: int, zeros: bool, what: str
) -> Sequence[Any]:
    """The result of `run` in the first pair of working precisions that agree to `digits` digits.

    Unless exact `zeros` are possible, a zero is a sum of which nothing is left, and two of them do
    not count as an agreement.
    """
    working = digits + _GUARD
    while working < _MAX_DIGITS:
        rough, ctx = run(context(working)), context(working + _STEP)
        fine = run(ctx)
        tolerance = ctx.mpf(10) ** -(digits + 2)
        if all(
            abs(a - b) <= tolerance * abs(b) and (zeros or b)
            for a, b in zip(rough, fine, strict=True)
        ):
            return fine
        working = 2 * working
    raise RuntimeError(
        f"{what}: working precisions up to {_MAX_DIGITS} digits disagree at {digits} digits; "
        "ask for fewer digits"
    )


def _unpacked(jet: Sequence[Any]) -> tuple[Any, tuple[Any, Any], tuple[Any, Any, Any]]:
    f, f_l, f_m, f_ll, f_lm, f_mm = (mpmath.mp.make_mpf(component._mpf_) for component in jet)
    return f, (f_l, f_m), (f_ll, f_lm, f_mm)


def _nearest_double(x: Any) -> float:
    """Round an mpf once, into the subnormal range as well."""
    if 0 < abs(x) < 2.0**-1021:
        return ldexp(float(x.context.nint(x * x.context.mpf(2) ** 1074)), -1074)
    return float(x)


def _limit_error(ctx: Any, alpha: Any, lam: Any, mu: Any, excess: Any) -> Any:
    """`F - alpha = -1/mu + (s + q r) / (expm1(mu s) - q expm1(-mu r))`, `mu >= 0` (MODEL §2)."""
    s, r = 1 + alpha, 1 - alpha
    if mu == 0:
        p = ctx.exp(-2 * lam)
        return (p * r**2 - s**2) / (p * r + s) / 2
    q = ctx.exp(-2 * excess)
    return (s + q * r) / (ctx.expm1(mu * s) - q * ctx.expm1(-mu * r)) - 1 / mu
