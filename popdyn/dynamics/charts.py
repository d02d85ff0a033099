"""Charts of the plane of heads, and the velocity of the flow in them (MODEL §4).

What a solver sees: a state of two coordinates that suit the place, a clock in log time, and the
derivative of the one by the other.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.coordinates import Head
from popdyn.risk.protocol import Risk

__all__ = ["Chart", "Clock", "Field", "LinearChart", "TubeChart", "chart_at"]

# Borders of the tube chart in units of `mu l`. Below one the tube coordinate follows `log mu` and
# not the head; the gap between the borders keeps a head that lingers there from switching to and
# fro.
TUBE_FROM = 2.0
TUBE_UNTIL = 1.0

# Trial steps of a solver can go astray, most of all where a layer is met after a long quiet. They
# are held to these factors of the border and of the unit; the solver then sees that they are bad.
_STRAY_BELOW = 1e-3
_STRAY_ABOVE = 1e100


@dataclass(frozen=True)
class LinearChart:
    """The two linear scores in units that are powers of two, so that no rounding is added.

    Valid on the whole plane. The state is `(lam / unit, mu / scale_unit)`; with the units of
    `around` it is of order one at the head it is made for, and so is the tolerance.
    """

    half_width: float
    unit: float
    scale_unit: float

    name = "linear"

    @classmethod
    def around(cls, head: Head) -> "LinearChart":
        """Chart whose unit is the radius of the head or one, whichever is smaller."""
        scale_unit = _power_of_two(1.0 / head.half_width)
        radius = max(abs(head.label_score), abs(head.scale) / scale_unit)
        unit = _power_of_two(min(1.0, radius)) if radius > 0 else 1.0
        return cls(head.half_width, unit, unit * scale_unit)

    def state(self, head: Head) -> NDArray[float64]:
        return np.array([head.label_score / self.unit, head.scale / self.scale_unit])

    def head(self, states: NDArray[float64]) -> Head:
        """Head of a state, shape (2,), or heads of many, shape (2, n)."""
        return Head.from_scores(
            states[0] * self.unit, states[1] * self.scale_unit, half_width=self.half_width
        )

    def head_at_scale(self, state: NDArray[float64], scale: float) -> Head:
        """Head of a state whose scale is known more exactly than the state."""
        return Head.from_scores(state[0] * self.unit, scale, half_width=self.half_width)

    def velocity(self, state: NDArray[float64], gradient: NDArray[float64]) -> NDArray[float64]:
        """Time derivative of the state under `d(lam, mu)/dt = -gradient`."""
        return np.array([-gradient[0] / self.unit, -gradient[1] / self.scale_unit])

    def jacobian(
        self, state: NDArray[float64], gradient: NDArray[float64], hessian: NDArray[float64]
    ) -> NDArray[float64]:
        """Derivative of the velocity with respect to the state, shape (2, 2)."""
        ratio = self.scale_unit / self.unit
        return np.multiply(hessian, [[-1.0, -ratio], [-1.0 / ratio, -1.0]])

    def scale_above(self, states: NDArray[float64], level: float) -> Any:
        """A multiple of `mu - level`, exact near the level."""
        return states[1] - level / self.scale_unit

    def scale_rate(self, velocity: NDArray[float64]) -> float:
        """Derivative of `scale_above` along a velocity of the state."""
        return float(velocity[1])

    def tube(self, states: NDArray[float64]) -> Any:
        """Tube coordinate, inf where `mu <= 0`."""
        tube = self.head(states).tube
        return np.where(np.isnan(tube), np.inf, tube)

    def tube_rate(self, state: NDArray[float64], velocity: NDArray[float64]) -> float:
        """Derivative of the tube coordinate along a velocity of the state, 0 where `mu <= 0`."""
        if state[1] <= 0:
            return 0.0
        slope = self.half_width * self.scale_unit + 1.0 / state[1]
        return float(self.unit * velocity[0] - slope * velocity[1])

    def held(self, state: NDArray[float64]) -> NDArray[float64]:
        """The state itself: no trial step leaves the plane."""
        return state

    def left_by(self, state: NDArray[float64]) -> bool:
        """Whether a head has gone where the tube chart serves better."""
        return bool(abs(state[1]) * self.scale_unit * self.half_width >= TUBE_FROM)


@dataclass(frozen=True)
class TubeChart:
    """The tube coordinate and the logarithm of the scale, `(c, log(mu / unit))` (MODEL §4).

    Valid where `sign * mu > 0`: with `sign = -1` the state is that of the reflected head. The unit
    is the scale of the head that the chart is made for, which therefore keeps its scale exactly.
    """

    half_width: float
    unit: float
    sign: int

    @classmethod
    def around(cls, head: Head) -> "TubeChart":
        return cls(head.half_width, abs(float(head.scale)), 1 if head.scale > 0 else -1)

    @property
    def name(self) -> str:
        return "tube" if self.sign > 0 else "reflected tube"

    def state(self, head: Head) -> NDArray[float64]:
        upright = head if self.sign > 0 else head.reflected
        return np.array([upright.tube, _log_ratio(float(upright.scale), self.unit)])

    def head(self, states: NDArray[float64]) -> Head:
        """Head of a state, shape (2,), or heads of many, shape (2, n)."""
        head = Head.from_tube(states[0], self.unit * np.exp(states[1]), half_width=self.half_width)
        return head if self.sign > 0 else head.reflected

    def head_at_scale(self, state: NDArray[float64], scale: float) -> Head:
        """Head of a state whose scale is known more exactly than the state."""
        head = Head.from_tube(state[0], self.sign * scale, half_width=self.half_width)
        return head if self.sign > 0 else head.reflected

    def velocity(self, state: NDArray[float64], gradient: NDArray[float64]) -> NDArray[float64]:
        """Time derivative of the state under `d(lam, mu)/dt = -gradient`."""
        mu = self.unit * math.exp(state[1])
        g_lam, g_mu = self.sign * gradient
        return np.array([(self.half_width + 1.0 / mu) * g_mu - g_lam, -g_mu / mu])

    def jacobian(
        self, state: NDArray[float64], gradient: NDArray[float64], hessian: NDArray[float64]
    ) -> NDArray[float64]:
        """Derivative of the velocity with respect to the state, shape (2, 2)."""
        mu = self.unit * math.exp(state[1])
        width = self.half_width
        g_mu = self.sign * gradient[1]
        # columns: the head moves by (1, 0) with c and by (1 + l mu, mu) with log mu
        turned = hessian @ np.array([[1.0, 1.0 + width * mu], [0.0, mu]])
        rates = np.array([(width + 1.0 / mu) * turned[1] - turned[0], -turned[1] / mu])
        rates[:, 1] += np.array([-g_mu / mu, g_mu / mu])
        return rates

    def scale_above(self, states: NDArray[float64], level: float) -> Any:
        """A monotone function of `mu - level` with its sign, exact near the level."""
        if not self.sign * level > 0:
            return np.full(np.shape(states[1]), float(self.sign))
        return self.sign * (states[1] - _log_ratio(self.sign * level, self.unit))

    def scale_rate(self, velocity: NDArray[float64]) -> float:
        """Derivative of `scale_above` along a velocity of the state."""
        return float(self.sign * velocity[1])

    def tube(self, states: NDArray[float64]) -> Any:
        """Tube coordinate, inf where `mu <= 0`."""
        return states[0] if self.sign > 0 else np.full(np.shape(states[0]), np.inf)

    def tube_rate(self, state: NDArray[float64], velocity: NDArray[float64]) -> float:
        """Derivative of the tube coordinate along a velocity of the state, 0 where `mu <= 0`."""
        return float(velocity[0]) if self.sign > 0 else 0.0

    def held(self, state: NDArray[float64]) -> NDArray[float64]:
        """The state, or the nearest one whose scale is not astray."""
        lowest = math.log(_STRAY_BELOW * TUBE_UNTIL / (self.unit * self.half_width))
        highest = math.log(_STRAY_ABOVE)
        if lowest <= state[1] <= highest:
            return state
        return np.array([state[0], min(max(state[1], lowest), highest)])

    def left_by(self, state: NDArray[float64]) -> bool:
        """Whether a head has gone where the linear chart serves better."""
        return bool(self.unit * math.exp(state[1]) * self.half_width <= TUBE_UNTIL)


Chart = LinearChart | TubeChart


@dataclass(frozen=True)
class Clock:
    """Log time `s`, with `t = origin + unit expm1(s)`: the origin is exact and 1e300 is near."""

    unit: float
    origin: float = 0.0

    def time(self, s: float) -> float:
        if s < 700.0:
            return self.origin + self.unit * math.expm1(s)
        return math.exp(s + math.log(self.unit))

    def log_time(self, t: float) -> float:
        elapsed = t - self.origin
        ratio = elapsed / self.unit
        return math.log1p(ratio) if ratio < 1e300 else math.log(elapsed) - math.log(self.unit)

    def rate(self, s: float) -> float:
        """`dt/ds`."""
        return self.unit * math.exp(s) if s < 700.0 else math.exp(s + math.log(self.unit))


@dataclass
class Field:
    """Velocity of a state in log time, and its Jacobian; counts its evaluations."""

    risk: Risk
    clock: Clock
    chart: Chart
    nfev: int = 0
    njev: int = 0

    def velocity(self, s: float, state: NDArray[float64]) -> NDArray[float64]:
        state = self.chart.held(state)
        with np.errstate(over="ignore"):
            velocity = self.chart.velocity(state, self.gradient(s, state)) * self.clock.rate(s)
        if not np.isfinite(velocity).all():
            raise RuntimeError(
                f"the flow is too fast for doubles at t={self.clock.time(s)!r}, "
                f"{self.chart.head(state)!r}; use a smaller t_end"
            )
        return velocity

    def jacobian(self, s: float, state: NDArray[float64]) -> NDArray[float64]:
        state = self.chart.held(state)
        gradient = self.gradient(s, state)
        return self.chart.jacobian(state, gradient, self.hessian(state)) * self.clock.rate(s)

    def hessian(self, state: NDArray[float64]) -> NDArray[float64]:
        self.njev += 1
        return np.asarray(self.risk.hessian(self.chart.head(state)))

    def gradient(self, s: float, state: NDArray[float64]) -> NDArray[float64]:
        self.nfev += 1
        try:
            head = self.chart.head(state)
        except ValueError as error:
            raise RuntimeError(
                f"a trial step at t={self.clock.time(s)!r} left the plane of heads: {error}; "
                "use a smaller rtol, or an implicit method"
            ) from error
        gradient = np.asarray(self.risk.gradient(head))
        if not (math.isfinite(gradient[0]) and math.isfinite(gradient[1])):
            raise RuntimeError(
                f"gradient of the risk is {gradient.tolist()} at t={self.clock.time(s)!r}, "
                f"{head!r}; the flow cannot go on"
            )
        return gradient


def chart_at(head: Head) -> Chart:
    """The chart to start in: the tube chart from `|mu| l = 2` on, else the linear one."""
    if abs(head.scale) * head.half_width >= TUBE_FROM:
        return TubeChart.around(head)
    return LinearChart.around(head)


def _power_of_two(number: float) -> float:
    return math.ldexp(1.0, math.frexp(number)[1])


def _log_ratio(number: float, unit: float) -> float:
    # The difference of neighbouring doubles is exact, that of their logarithms is lost.
    if 0.5 <= number / unit <= 2.0:
        return math.log1p((number - unit) / unit)
    return math.log(number) - math.log(unit)
