"""Times at which the gradient flow reaches a scale, crosses a level, is inside the tube."""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np

from popdyn.asymptotics import tube_limit
from popdyn.coordinates import Head
from popdyn.dynamics.arguments import (
    ATOL,
    COLLOCATION,
    METHOD,
    RTOL,
    checked_method,
    checked_number,
    checked_time,
)
from popdyn.dynamics.collocation import Collocation, CollocationPath
from popdyn.dynamics.integration import Integration, Run, Step, step_limit_message
from popdyn.dynamics.levels import Passage, ScaleLevel, TubeLevel, passages
from popdyn.dynamics.trajectory import Hit
from popdyn.risk.protocol import Risk

__all__ = ["ScaleEntrance", "crossings", "hitting_time", "tube_entrance"]

# From here on a head beyond the endpoint has no way back: its scale falls by no more than the
# logarithm of itself on the way to the tube, and grows for ever after.
_CAPTURED = 10.0

# A scale has saturated once it moved by less than this part of itself while time grew by this
# factor, and the head moves no faster per e-folding of time than before: at most like log t. Along
# the tube and away from the origin it moves faster and faster. Levels closer than the last number
# might still be reached.
_SATURATED_MOTION = 1e-9
_SATURATED_FACTOR = 100.0
_SATURATED_MARGIN = 1e-6


class ScaleEntrance:
    """First entrance to `{mu >= scale}`, or to `{mu <= scale}` for a negative scale."""

    def __init__(self, scale: float) -> None:
        self.scale = checked_number("scale level", scale)
        self.level = ScaleLevel(self.scale)
        self.name = f"scale {'>=' if self.scale >= 0 else '<='} {self.scale!r}"

    def holds(self, head: Head) -> bool:
        return bool(head.scale >= self.scale if self.scale >= 0 else head.scale <= self.scale)

    def at_start(self, head: Head) -> Hit | None:
        if self.holds(head):
            return Hit(0.0, head, True, f"{self.name} holds at the start")
        return None

    def in_step(self, integration: Integration, step: Step) -> Hit | None:
        for passage in passages(integration, step, self.level):
            if passage.upwards == (self.scale >= 0):
                return _hit(passage, f"{self.name} was entered")
        if self.holds(integration.head):  # inside by a rounding that no passage shows
            return Hit(integration.time, integration.head, True, f"{self.name} was entered")
        return None

    def on_path(self, path: CollocationPath, stop: Head) -> Hit | None:
        for passage in path.passages(self.level, way=1 if self.scale >= 0 else -1, first=True):
            return _hit(passage, f"{self.name} was entered")
        if self.holds(stop):  # inside by a rounding that no passage shows
            return Hit(path.stop, stop, True, f"{self.name} was entered")
        return None

    def missed(self, run: Run, *, saturated: bool = False) -> Hit:
        """The answer where the flow ended outside, with the reason."""
        head = run.head
        where = f"at t={run.time:.6g}, scale={float(head.scale):.6g}"
        if run.stationary:
            reason = (
                f"the head is stationary from t={run.rest_time:.6g} on, at "
                f"scale={float(head.scale):.6g}"
            )
        elif self._escaped(head):
            side = "reflected head (both scores negative)" if self.scale >= 0 else "upright head"
            reason = f"the flow runs to the {side}, {where}"
        elif saturated:
            reason = f"the scale saturates, {where}"
        else:
            reason = f"the time ran out {where}"
        return Hit(math.inf, head, False, f"{self.name} was not entered: {reason}")

    def _escaped(self, head: Head) -> bool:
        side = head.reflected if self.scale >= 0 else head
        return bool(side.scale * side.half_width >= _CAPTURED and side.excess >= 0)

    def is_out_of_reach(self, integration: Integration) -> bool:
        return integration.stationary or self._escaped(integration.head)


def hitting_time(
    risk: Risk,
    head: Head,
    scale: float,
    *,
    t_end: float = math.inf,
    method: str | None = None,
    rtol: float = RTOL,
    atol: float = ATOL,
) -> Hit:
    """First entrance of the gradient flow to `{mu >= scale}` (MODEL §4, §5).

    A negative scale asks for `{mu <= scale}`, the mirror image. A head that is there already has
    entered at time 0. The search always ends, also without `t_end`: at the entrance; where the
    scale saturates, that is where it moved by less than 1e-9 of itself while time grew a
    hundredfold, and the head no faster per e-folding of time than before; where the head is
    stationary, that is where the gradient is 0, or the risk convex, its minimum nearer than
    1e-12 of the head and 30 relaxation times of the slowest mode gone by; where the flow has gone
    to the other side for good, that is to a scale of the other sign with `|mu| l >= 10` and the
    label score beyond the endpoint, `|lam| >= |mu| l`, from where it runs along the tube; at time
    1e300.

    Parameters
    ----------
    risk : Risk
    head : Head
        One head, of the half width of the risk.
    scale : float
        The level, in inverse units of the half width.
    t_end : float
        Time to give up at.
    method, rtol, atol
        As in `gradient_flow`.

    Returns
    -------
    Hit
        With `reached` False and time inf if the level was not entered, and the reason.

    Raises
    ------
    ValueError
        On bad arguments.
    RuntimeError
        If the solver gives up or the risk is not finite: then nothing is known.
    """
    entrance = ScaleEntrance(scale)
    end = checked_time("t_end", t_end, allow_inf=True)
    method = checked_method(risk, head, method, rtol, atol)
    hit = entrance.at_start(head)
    if hit is not None:
        return hit
    if method == COLLOCATION:
        run = Collocation(head, end, rtol=rtol, atol=atol, level=entrance.scale, keep=False)
        if run.entered:
            return _hit(run.entrance(entrance.level), f"{entrance.name} was entered")
        if not (run.gave_up or run.exhausted):
            return entrance.missed(run)
        method = METHOD
    integration = Integration(risk, head, end, method=method, rtol=rtol, atol=atol)
    saturation = _Saturation(risk, entrance.scale)
    for step in _all_steps(integration):
        hit = entrance.in_step(integration, step)
        if hit is not None:
            return hit
        if entrance.is_out_of_reach(integration):
            break
        if saturation.seen(integration):
            return entrance.missed(integration, saturated=True)
    return entrance.missed(integration)


class _Saturation:
    """Whether the scale has come to rest short of a level while the label score drifts on."""

    def __init__(self, risk: Risk, level: float) -> None:
        self._risk, self._level = risk, level
        self._past: deque[tuple[float, float, Head]] = deque()

    def seen(self, integration: Integration) -> bool:
        s, time, head = integration.s, integration.time, integration.head
        if self._past and s < self._past[-1][0]:  # another chart, another clock
            self._past.clear()
        self._past.append((s, time, head))
        while len(self._past) > 1 and s - self._past[1][0] >= math.log(_SATURATED_FACTOR):
            self._past.popleft()
        s_then, time_then, then = self._past[0]
        if s - s_then < math.log(_SATURATED_FACTOR):
            return False
        size = abs(head.scale)
        return bool(
            abs(head.scale - then.scale) <= _SATURATED_MOTION * size
            and abs(self._level - head.scale) > _SATURATED_MARGIN * size
            and self._pace(time, head) <= 2.0 * self._pace(time_then, then)
        )

    def _pace(self, time: float, head: Head) -> float:
        """Motion per e-folding of time, in units of the half width."""
        g_lam, g_mu = np.abs(self._risk.gradient(head))
        return time * max(float(g_lam), float(g_mu) * head.half_width)


def crossings(
    risk: Risk,
    head: Head,
    *,
    scale: float | None = None,
    tube: float | None = None,
    t_end: float,
    direction: Literal["up", "down", "both"] = "both",
    method: str | None = None,
    rtol: float = RTOL,
    atol: float = ATOL,
) -> list[Hit]:
    """All crossings of one level of the scale or of the tube coordinate, in order of time.

    Two crossings in one step of the solver are both found. A start on the level is no crossing.
    The tube coordinate counts as inf where `mu <= 0`.

    Parameters
    ----------
    risk, head, method, rtol, atol
        As in `hitting_time`.
    scale, tube : float
        The level; exactly one of the two.
    t_end : float
        End of the search.
    direction : {"up", "down", "both"}
        Which crossings to return: of the level from below, from above, or both.

    Raises
    ------
    ValueError, RuntimeError
        As in `hitting_time`.
    """
    if direction not in ("up", "down", "both"):
        raise ValueError(f"direction must be 'up', 'down' or 'both', got {direction!r}")
    if (scale is None) == (tube is None):
        raise ValueError(f"give one of scale and tube, got scale={scale!r} and tube={tube!r}")
    level: ScaleLevel | TubeLevel
    name, level = (
        (f"scale {scale!r}", ScaleLevel(checked_number("scale", scale)))
        if tube is None
        else (f"tube {tube!r}", TubeLevel(checked_number("tube", tube)))
    )
    end = checked_time("t_end", t_end)
    found, _ = _all_passages(risk, head, [level], end, method, rtol, atol)
    return [
        _hit(passage, f"{name} was crossed {_way(passage)}")
        for passage in found
        if direction in ("both", _way(passage))
    ]


def tube_entrance(
    risk: Risk,
    head: Head,
    *,
    width: float,
    t_end: float,
    center: float | None = None,
    method: str | None = None,
    rtol: float = RTOL,
    atol: float = ATOL,
) -> tuple[Hit, Hit]:
    """First and last time with `|c - center| <= width` up to `t_end` (MODEL §4).

    The last time is `t_end` for a head that is inside then. A head that was never inside has two
    hits that were not reached.

    Parameters
    ----------
    risk, head, t_end, method, rtol, atol
        As in `crossings`.
    width : float
        Half width of the band around the center.
    center : float, optional
        The limit `c* = log(2 (1 + l^2)) / 2` by default.

    Raises
    ------
    ValueError, RuntimeError
        As in `hitting_time`.
    """
    if not checked_number("width", width) > 0:
        raise ValueError(f"width must be positive, got {width!r}")
    end = checked_time("t_end", t_end)
    checked_method(risk, head, method, rtol, atol)
    if center is None:
        center = tube_limit(head.half_width)
    center = checked_number("center", center)
    band = f"|c - {center:.6g}| <= {width:.6g}"
    edges = [TubeLevel(center - width), TubeLevel(center + width)]
    times = []
    if abs(head.tube - center) <= width:
        times.append(Hit(0.0, head, True, f"{band} holds at the start"))
    found, run = _all_passages(risk, head, edges, end, method, rtol, atol)
    times += [_hit(passage, f"border of {band}") for passage in found]
    stop = run.head
    if abs(stop.tube - center) <= width:
        times.append(Hit(run.time, stop, True, f"{band} holds at t_end"))
    if not times:
        never = Hit(math.inf, stop, False, f"{band} held at no time up to t_end")
        return never, never
    return times[0], times[-1]


def _all_steps(integration: Integration) -> Iterator[Step]:
    yield from integration.steps()
    if integration.exhausted:
        raise RuntimeError(step_limit_message(integration))


def _all_passages(
    risk: Risk,
    head: Head,
    levels: Sequence[ScaleLevel | TubeLevel],
    t_end: float,
    method: str | None,
    rtol: float,
    atol: float,
) -> tuple[list[Passage], Run]:
    """Passages up to an end in order of time, and the run that made them."""
    method = checked_method(risk, head, method, rtol, atol)
    if method == COLLOCATION:
        run = Collocation(head, t_end, rtol=rtol, atol=atol)
        if not (run.gave_up or run.exhausted):
            found = [passage for level in levels for passage in run.path.passages(level)]
            return sorted(found, key=lambda passage: passage.time), run
        method = METHOD
    integration = Integration(risk, head, t_end, method=method, rtol=rtol, atol=atol)
    found = []
    for step in _all_steps(integration):
        of_step = [passage for level in levels for passage in passages(integration, step, level)]
        found += sorted(of_step, key=lambda passage: passage.time)
    return found, integration


def _hit(passage: Passage, message: str) -> Hit:
    return Hit(passage.time, passage.head, True, message)


def _way(passage: Passage) -> str:
    return "up" if passage.upwards else "down"
