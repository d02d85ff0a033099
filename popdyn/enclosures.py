"""Balls that provably contain the predictor's error, the risk and its gradient (MODEL §1, §2, §3).

A ball is a `flint.arb`, midpoint and radius; arithmetic on balls rounds outwards, so that the true
value at the head as it was given (its exact doubles) lies inside. There are two routes, which have
no formula in common: the closed form, and rigorous integration of the definition, where each
evaluation on a box of thresholds bounds the integrand there.

Needs python-flint (the extra `enclosures`). Its working precision, `flint.ctx.prec`, is global: it
is set for the time of a call and restored, under a lock, so that threads may call these functions
at once; other ball arithmetic in another thread meanwhile runs at the precision set here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import frexp
from typing import Any, TypeVar

from flint import acb, acb_series, arb

from popdyn.ball_polylog import working_precision
from popdyn.closed_form_balls import closed_form, closed_form_error, slope_at_scale_zero
from popdyn.coordinates import Head
from popdyn.integrated_balls import integrated_error, integrated_risk
from popdyn.trapping import NotProven, TrappingRegion, smallest_trapping_scale, trapping_region

__all__ = [
    "NotProven",
    "RiskBalls",
    "TrappingRegion",
    "error_ball",
    "integrated_error_ball",
    "integrated_risk_balls",
    "risk_balls",
    "smallest_trapping_scale",
    "trapping_region",
]

_ACCURACY = 64  # bits: radii of results are below 2^-64 of their size
_GUARD = 64  # bits beyond these in the first run
_MOST_BITS = 1 << 16  # working precision at which a result that is still too wide is given up
# Bits that the closed form loses where the scale halves: a first guess, which saves runs.
_LOST_PER_HALVING = 7
# The least double: a gradient or an error that is 0 is known to this, times 2^-64.
_LEAST = arb(2) ** -1074

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class RiskBalls:
    """Balls that contain the risk and its gradient at one head.

    Attributes
    ----------
    risk : flint.arb
        Its radius is below 2^-64 of its value.
    gradient : tuple of 2 flint.arb
        `(dL/dlam, dL/dmu)`. Radii are below 2^-64 of the larger of `|dL/dlam|` and `|dL/dmu|/l`
        (times `l` for the second).
    """

    risk: Any
    gradient: tuple[Any, Any]


def risk_balls(head: Head) -> RiskBalls:
    """Balls of the risk and its gradient from the closed form, on the whole plane (MODEL §3).

    Parameters
    ----------
    head : Head, fields of shape ()
        Its given coordinate, its scale and its half width are read as exact numbers.

    Returns
    -------
    RiskBalls
        At scale 0 the risk is `l^2/3` and `dL/dlam` is 0, exactly.

    Raises
    ------
    ValueError
        If the head is an array of heads.
    RuntimeError
        If radii stay too large up to 65536 bits.

    Examples
    --------
    >>> from popdyn import Head
    >>> balls = risk_balls(Head.from_ratio(1.5, 5))
    >>> print(balls.risk.str(12), balls.gradient[0].str(12))
    [0.0322261753284 +/- 1.65e-14] [-0.00358790856442 +/- 1.46e-15]
    """
    exact = _ExactHead(head)
    return exact.narrow(lambda: _closed_form(exact), _are_narrow)


def integrated_risk_balls(head: Head) -> RiskBalls:
    """The same balls from rigorous integration of the definition over all thresholds (MODEL §1).

    Parameters, results and errors are those of `risk_balls`; it takes 0.1 to 5 s a head.
    """
    exact = _ExactHead(head)
    return exact.narrow(lambda: _integrated(exact), _are_narrow)


def error_ball(head: Head, threshold: float) -> Any:
    """Ball of the error `F - alpha` on an infinite clean context, in closed form (MODEL §2).

    Parameters
    ----------
    head : Head, fields of shape ()
        Read as in `risk_balls`.
    threshold : float
        `alpha` in `[-l, l]`, an exact number.

    Returns
    -------
    flint.arb
        Its radius is below 2^-64 of its value.

    Raises
    ------
    ValueError
        If the head is an array, or the threshold lies outside the interval.
    RuntimeError
        If the radius stays too large up to 65536 bits.
    """
    exact = _ExactHead(head)
    alpha = exact.checked_threshold(threshold)
    return exact.narrow(lambda: _closed_form_error(exact, alpha), _is_narrow)


def integrated_error_ball(head: Head, threshold: float) -> Any:
    """The same ball from the definition: an average of `x - alpha` under the softmax weights.

    Both integrals of `exp(lam y + mu x)` are taken rigorously (MODEL §1). Parameters, results and
    errors are those of `error_ball`; it takes 0.01 to 1 s.
    """
    exact = _ExactHead(head)
    alpha = exact.checked_threshold(threshold)
    return exact.narrow(lambda: _integrated_error(exact, alpha), _is_narrow)


class _ExactHead:
    """The coordinates of one head as they were given, read anew at each working precision."""

    def __init__(self, head: Head) -> None:
        if head.shape != ():
            raise ValueError(f"head must be one head, got an array of shape {head.shape}")
        self.name, given = head.given
        self.given, self.scale, self.half_width = float(given), float(head.scale), head.half_width

    def checked_threshold(self, threshold: float) -> float:
        if not (isinstance(threshold, float | int) and abs(threshold) <= self.half_width):
            raise ValueError(
                f"threshold must be one number in [-{self.half_width!r}, {self.half_width!r}], "
                f"got {threshold!r}"
            )
        return float(threshold)

    def scores(self) -> tuple[Any, Any, Any]:
        """Balls of the label score, the scale times the half width, and the excess."""
        given, scale, width = arb(self.given), arb(self.scale), arb(self.half_width)
        mu = scale * width
        if self.name == "label_score":
            return given, mu, given - mu
        if self.name == "ratio":
            return given * scale, mu, (given - width) * scale
        excess = given + scale.log() if self.name == "tube" else given
        return excess + mu, mu, excess

    def narrow(
        self, balls: Callable[[], _Result], is_narrow: Callable[[_Result, Any], bool]
    ) -> _Result:
        """What `balls` returns at the first working precision where it is narrow enough."""
        halvings = max(0, -frexp(self.scale * self.half_width)[1]) if self.scale else 0
        bits = _ACCURACY + _GUARD + _LOST_PER_HALVING * halvings
        while bits <= _MOST_BITS:
            with working_precision(bits):
                result = balls()
                if is_narrow(result, self.half_width):
                    return result
            bits *= 2
        raise RuntimeError(
            f"balls at {self.name} {self.given!r}, scale {self.scale!r}, half width "
            f"{self.half_width!r} stay too wide up to {_MOST_BITS} bits; move the head"
        )


def _is_narrow(ball: Any, half_width: float) -> bool:
    size = max(abs(ball).lower(), _LEAST) * arb(2) ** -_ACCURACY
    return bool(ball.is_finite() and ball.rad() <= size)


def _are_narrow(balls: RiskBalls, half_width: float) -> bool:
    by_lam, by_mu = balls.gradient[0], balls.gradient[1] / half_width
    if not (_is_narrow(balls.risk, half_width) and by_lam.is_finite() and by_mu.is_finite()):
        return False
    size = max(abs(by_lam).lower(), abs(by_mu).lower(), _LEAST) * arb(2) ** -_ACCURACY
    return bool(by_lam.rad() <= size and by_mu.rad() <= size)


def _closed_form(head: _ExactHead) -> RiskBalls:
    """From half width 1, where the gradient is odd in the head and the risk is even."""
    lam, mu, excess = head.scores()
    width = arb(head.half_width)
    if head.scale == 0:
        slope = slope_at_scale_zero(abs(lam)) * (-1 if lam < 0 else 1) if head.given else arb(0)
        return RiskBalls(width**2 / 3, (arb(0), width**3 * slope))
    sign = -1 if head.scale < 0 else 1
    # One complex direction gives both derivatives: the risk is real and analytic in both scores.
    series = closed_form(
        acb_series([sign * lam, 1], prec=2),
        acb_series([sign * mu, acb(0, 1)], prec=2),
        acb_series([sign * excess, acb(1, -1)], prec=2),
    )
    value, slope = series[0], series[1]
    return RiskBalls(
        width**2 * value.real, (sign * width**2 * slope.real, sign * width**3 * slope.imag)
    )


def _closed_form_error(head: _ExactHead, alpha: float) -> Any:
    sign = -1 if head.scale < 0 else 1
    width = arb(head.half_width)
    s, r = 1 + sign * alpha / width, 1 - sign * alpha / width
    return sign * width * closed_form_error(s, r, *(sign * score for score in head.scores()))


def _integrated(head: _ExactHead) -> RiskBalls:
    risk, by_lam, by_mu = integrated_risk(head.scores()[0], arb(head.scale), arb(head.half_width))
    return RiskBalls(risk, (by_lam, by_mu))


def _integrated_error(head: _ExactHead, alpha: float) -> Any:
    return integrated_error(head.scores()[0], arb(head.scale), arb(head.half_width), alpha)
