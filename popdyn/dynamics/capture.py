"""From which moment on a run is inside a region that is proven to hold it for ever (MODEL §4).

Needs python-flint (the extra `enclosures`), as all of `popdyn.trapping` does.
"""

import math
from typing import NamedTuple

from popdyn.asymptotics import tube_limit
from popdyn.coordinates import Head, require_head
from popdyn.dynamics.arguments import ATOL, RTOL, checked_number
from popdyn.dynamics.flow import gradient_flow
from popdyn.dynamics.hitting import crossings, hitting_time
from popdyn.dynamics.trajectory import Hit
from popdyn.risk.closed_form import ClosedFormRisk
from popdyn.trapping import (
    NotProven,
    TrappingRegion,
    smallest_trapping_scale,
    trapping_region,
)

__all__ = ["Capture", "tube_capture"]

_WIDTH = 0.2
_PROVABLE = 0.9  # part of the width log(1 + 1/l^2)/2, from which on nothing can be proved
# What the flow promises of its scale, relative, and of its tube coordinate, absolute. A head that
# lies so far inside stands for a true one that is inside.
_MARGIN = 1e-9


class Capture(NamedTuple):
    """When a run entered a proven region, and which.

    Attributes
    ----------
    hit : Hit
        The moment and the head there; `reached` is False, and the time inf, if the run is in no
        proven region of the width up to its end.
    region : TrappingRegion or None
        Around that head, or around the reflected one where the scale is negative.
    """

    hit: Hit
    region: TrappingRegion | None


def tube_capture(
    head: Head,
    t_end: float,
    *,
    width: float | None = None,
    method: str | None = None,
    rtol: float = RTOL,
    atol: float = ATOL,
) -> Capture:
    """Moment from which on the population flow of one head provably stays in the tube (MODEL §4).

    The run is that of `ClosedFormRisk`, of which the region is proven: the band `|c - c*| <= width`
    from a scale on, which no flow leaves. So the moment is the run's last entrance to the band,
    if the band is proven from the scale there on, or else the one at which the run comes to the
    smallest scale that is. For ever after, `region.slopes` bound the growth of `mu^4`.

    Parameters
    ----------
    head : Head
        One head at time 0. A run that ends at a negative scale is held to the mirrored region.
    t_end : float
        Time up to which the run is followed.
    width : float, optional
        Of the band; by default 0.2, or 9/10 of `log(1 + 1/l^2)/2`, from which on nothing can be
        proved, where that is less.
    method, rtol, atol
        As in `gradient_flow`. The head of the moment is 1e-9 inside the region, which is more than
        the flow's error at the default tolerances.

    Returns
    -------
    Capture
        After 1 to 5 s, or 20 s where the smallest proven scale has to be found. There the lower
        slope is next to 0; from a larger scale on it is better.

    Raises
    ------
    ValueError
        On bad arguments.
    RuntimeError
        If the solver gives up, or if no scale up to 10^6 is proven (`NotProven`).

    Examples
    --------
    >>> capture = tube_capture(Head.from_tube(1.5, 10.0), 1e6)
    >>> print(f"{capture.hit.time:.4g} {capture.hit.head.scale:.5g}")
    623.8 10.732
    """
    require_head(head)
    l, risk = head.half_width, ClosedFormRisk(head.half_width)
    if width is None:
        width = min(_WIDTH, _PROVABLE * math.log1p(1.0 / l / l) / 2)
    elif not (checked_number("width", width) > _MARGIN):
        raise ValueError(f"width must be above {_MARGIN}, got {width!r}")

    stop = gradient_flow(
        risk, head, t_end, t_eval=[], method=method, rtol=rtol, atol=atol
    ).stop_head
    mirrored = bool(stop.scale < 0)
    if mirrored:
        head, stop = head.reflected, stop.reflected
    centre, inner = tube_limit(l), width - _MARGIN
    band = f"|c - {centre:.6g}| <= {width:.6g}"

    def never(reason: str) -> Capture:
        return _capture(Hit(math.inf, stop, False, reason), None, mirrored)

    if not abs(stop.tube - centre) <= inner:
        return never(f"the run ends outside {band}")
    entrances = [
        *crossings(
            risk, head, tube=centre + inner, t_end=t_end, direction="down",
            method=method, rtol=rtol, atol=atol,
        ),
        *crossings(
            risk, head, tube=centre - inner, t_end=t_end, direction="up",
            method=method, rtol=rtol, atol=atol,
        ),
    ]  # fmt: skip
    hit = Hit(0.0, head, True, f"{band} holds at the start")
    if entrances:
        last = max(entrances, key=lambda entrance: entrance.time)
        hit = Hit(last.time, last.head, True, f"{band} was entered")
    try:
        region = _region_around(hit.head, width)
    except (NotProven, ValueError):  # ValueError: too small a scale for the proof to begin
        least = smallest_trapping_scale(l, width) * (1.0 + 2.0 * _MARGIN)
        if stop.scale < least:
            return never(f"the run ends below {least:.6g}, the smallest scale proven for {band}")
        later = hitting_time(risk, hit.head, scale=least, method=method, rtol=rtol, atol=atol)
        hit = Hit(hit.time + later.time, later.head, True, f"in {band} from scale {least:.6g} on")
        region = _region_around(hit.head, width)
    return _capture(hit, region, mirrored)


def _region_around(head: Head, width: float) -> TrappingRegion:
    return trapping_region(head.half_width, width, float(head.scale) * (1.0 - _MARGIN))


def _capture(hit: Hit, region: TrappingRegion | None, mirrored: bool) -> Capture:
    if not mirrored:
        return Capture(hit, region)
    return Capture(Hit(hit.time, hit.head.reflected, hit.reached, hit.message), region)
