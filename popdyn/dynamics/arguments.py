"""What runs of the flow are asked with: times, levels, methods, tolerances."""

import math
from numbers import Integral

from popdyn.arguments import one_number
from popdyn.coordinates import Head, require_head
from popdyn.risk.closed_form import ClosedFormRisk
from popdyn.risk.protocol import Risk, require_half_width

__all__ = [
    "ATOL",
    "COLLOCATION",
    "LAST_TIME",
    "MAX_STEPS",
    "METHOD",
    "METHODS",
    "RTOL",
    "checked_method",
    "checked_number",
    "checked_time",
    "require_one_head",
]

# The closed form is smooth and quick enough to be followed in compiled code; any other risk is left
# to one of scipy's solvers.
COLLOCATION = "collocation"
METHOD = "LSODA"
# A tolerance bounds the error of a step and not that of the path: at these, paths from the
# reference starts are good to 1e-11, at ten times these to 1e-10.
RTOL = 1e-12
ATOL = 1e-13
_SMALLEST_RTOL = 2.3e-14  # scipy's solvers take a hundred roundings at least

MAX_STEPS = 50_000  # from radius 1e-12 to time 1e40 take under 2000, from 1e-300 some 20,000
LAST_TIME = 1e300  # where a search without end gives up: the clock must not overflow

_SOLVERS = ("LSODA", "Radau", "BDF", "DOP853", "RK45", "RK23")
METHODS = (COLLOCATION, *_SOLVERS)


def checked_time(name: str, time: object, *, allow_inf: bool = False) -> float:
    """A time from 0 on as a float."""
    limit = math.inf if allow_inf else LAST_TIME
    as_float = one_number(time)
    if not 0 <= as_float <= limit:
        raise ValueError(f"{name} must be one time from 0 to {limit!r}, got {time!r}")
    return as_float


def checked_number(name: str, number: object) -> float:
    """A finite number as a float."""
    as_float = one_number(number)
    if not math.isfinite(as_float):
        raise ValueError(f"{name} must be one finite number, got {number!r}")
    return as_float


def require_one_head(risk: Risk, head: Head) -> None:
    """Refuse what is not one head of the half width of the risk."""
    if isinstance(risk, type) or not hasattr(risk, "value_and_gradient"):
        raise ValueError(f"risk must be a risk such as ClosedFormRisk(), got {risk!r}")
    require_head(head)
    if head.shape:
        raise ValueError(f"head must be one head, got heads of shape {head.shape}; loop over them")
    require_half_width(risk, head)


def checked_method(
    risk: Risk,
    head: Head,
    method: str | None,
    rtol: float,
    atol: float,
    max_steps: int | None = None,
) -> str:
    """The method to use, by default collocation for the closed form; refuses bad arguments."""
    require_one_head(risk, head)
    closed = type(risk) is ClosedFormRisk
    if method is None:
        method = COLLOCATION if closed else METHOD
    methods = METHODS if closed else _SOLVERS
    if method not in methods:
        only = f" ({COLLOCATION} is for ClosedFormRisk alone)" if method == COLLOCATION else ""
        raise ValueError(f"method must be one of {', '.join(methods)}, got {method!r}{only}")
    if not _SMALLEST_RTOL <= one_number(rtol) < 1:
        raise ValueError(f"rtol must be one number from {_SMALLEST_RTOL} to 1, got {rtol!r}")
    if not 0 < one_number(atol) < math.inf:
        raise ValueError(
            f"atol must be one positive number, got {atol!r}; a coordinate that passes through "
            "zero has no relative accuracy"
        )
    if max_steps is not None and not (isinstance(max_steps, Integral) and max_steps >= 1):
        raise ValueError(f"max_steps must be a whole number from 1 on, or None, got {max_steps!r}")
    return method
