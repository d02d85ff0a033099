"""The predicted laws of the flow, at large scale and at small radius (MODEL §4, §5).

An independent witness: nothing here evaluates a risk. The series in `1/mu` are read from
`tube_coefficients.json`, which `derivations/tube_expansion.py` derives and stores in exact numbers.
Every `order` counts powers of `1/mu` relative to the leading one, each with all its logarithms;
the error at a scale is about the first neglected term, while `exp(-2 mu l)` is neglected for good.
"""

import json
import operator
from fractions import Fraction
from functools import cache
from importlib.resources import files
from math import fsum, log, prod, sqrt
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from popdyn.arguments import one_width, positive

__all__ = [
    "MAX_ORDER",
    "boundary_error",
    "escape_time",
    "fourth_power_increment",
    "fourth_power_rate",
    "gradient_slope",
    "growth_rate",
    "interior_error",
    "relaxation_rate",
    "risk_in_tube",
    "saddle_eigenvalues",
    "scale_at",
    "stable_step",
    "time_at",
    "time_offset",
    "tube_center",
    "tube_limit",
]

MAX_ORDER = 8  # what the stored expansion carries
_ZETA = {"zeta2": np.pi**2 / 6, "zeta3": 1.2020569031595942854}
_NEWTON_STEPS = 50  # from the leading law 3 to 6 suffice wherever the series is of use
_NEWTON_TOLERANCE = 4e-15  # of time^(1/4); a few roundings of it
_FIRST_WITH_OFFSET = 4  # the order at which `time_at` has its mu^0
_FLOW_ACCURACY = 1e-11  # relative, of a flow's times: `gradient_flow` at its own tolerances


def tube_center(scale: ArrayLike, half_width: float = 1.0, order: int = 1) -> NDArray[float64]:
    """Tube coordinate `c(mu)` that every flow settles on (MODEL §4).

    `log(2 (1 + l^2))/2 + b/mu + ...`, through `mu^-order`. First neglected term: at order 1
    `-log(mu)/((1 + l^2) mu^2)`, at order p `mu^-(p+1) log(mu)^floor((p+1)/2)`.

    Parameters
    ----------
    scale : array_like, shape (...)
        `mu > 0`, in inverse units of `half_width`; the series is of use for `mu l` above about 5.
    half_width : float
        `l > 0`.
    order : int, 0 to 8

    Returns
    -------
    ndarray, shape (...)

    Raises
    ------
    ValueError
        If a scale or the half width is not positive and finite, or the order is not one carried.
    """
    mu, width, order = positive("scale", scale), one_width(half_width), _order(order)
    return _series("tube_center", mu, width, order)


def tube_limit(half_width: float = 1.0) -> float:
    """Limit `c* = log(2 (1 + l^2))/2` of the tube coordinate at large scale (MODEL §4)."""
    return log(2 * (1 + one_width(half_width) ** 2)) / 2


def time_at(scale: ArrayLike, half_width: float = 1.0, order: int = 4) -> NDArray[float64]:
    """Time `t(mu)` at which the flow reaches a scale, up to its `time_offset` (MODEL §4).

    `(1 + l^2) mu^4/8 (1 + (2 l^2/(3 (1 + l^2)) + 2 zeta(3))/(mu l) + ...)`, through
    `mu^(4 - order)`. The constant, that is the coefficient of `mu^0` with logarithms written as
    `log mu`, is 0: a flow's time minus `time_at` tends to its `time_offset` at order 4 or above.
    First neglected term at order p: `mu^(3 - p) log(mu)^floor(p/2)`, at order 3 `log(mu)^2`.

    Parameters and errors are those of `tube_center`.
    """
    mu, width, order = positive("scale", scale), one_width(half_width), _order(order)
    return (1 + width**2) / 8 * mu**4 * _series("time", mu, width, order)


def scale_at(time: ArrayLike, half_width: float = 1.0, order: int = 4) -> NDArray[float64]:
    """Scale `mu(t)` of the flow: the inverse of `time_at` at the same order (MODEL §4).

    `(8 t/(1 + l^2))^(1/4)` at order 0. First neglected term: `mu^-p` with the logarithms of
    `time_at`; at order 4 or above subtract the flow's `time_offset` from its time.

    Parameters
    ----------
    time : array_like, shape (...)
        Positive, and large enough for the series to increase there.
    half_width, order
        As in `time_at`.

    Returns
    -------
    ndarray, shape (...)
        `time_at` of it is `time` to 2e-14 relative.

    Raises
    ------
    ValueError
        As `tube_center`, and if no scale on the increasing end of the series has this time.
    """
    t, width, order = positive("time", time), one_width(half_width), _order(order)
    root = t**0.25
    mu = np.asarray((8 / (1 + width**2)) ** 0.25 * root)
    with np.errstate(all="ignore"):  # a series without a root here is refused below
        for _ in range(_NEWTON_STEPS):
            reached = time_at(mu, width, order) ** 0.25
            slope = reached**-3 / (4 * growth_rate(mu, width, order))
            step = (root - reached) / slope
            mu = np.where(mu + step > 0, mu + step, mu / 2)
            if ((np.abs(root - reached) <= _NEWTON_TOLERANCE * root) & (slope > 0)).all():
                return mu
    raise ValueError(
        f"time must be one that the series of order {order} reaches where it increases, "
        f"got {float(np.min(t))!r}; take a larger time or a lower order"
    )


def growth_rate(scale: ArrayLike, half_width: float = 1.0, order: int = 4) -> NDArray[float64]:
    """Velocity `dmu/dt` of the scale along the tube: one over the slope of `time_at` (MODEL §4).

    `2/((1 + l^2) mu^3)` at order 0. First neglected term at order p: relative,
    `mu^-(p+1) log(mu)^floor(p/2)`.

    Parameters and errors are those of `tube_center`.
    """
    mu, width, order = positive("scale", scale), one_width(half_width), _order(order)
    slowness = _series("pace", mu, width, order)
    return 2 / ((1 + width**2) * mu**3 * slowness)


def fourth_power_rate(half_width: float = 1.0) -> float:
    """Limit `8/(1 + l^2)` of `mu^4/t`, and of what `mu^4` gains a step over its size (MODEL §4).

    First neglected term: relative, of order `1/mu`.
    """
    return 8 / (1 + one_width(half_width) ** 2)


def interior_error(time: ArrayLike, half_width: float = 1.0, order: int = 4) -> NDArray[float64]:
    """Largest `|F - alpha|` over interior thresholds along the flow, `1/scale_at` (MODEL §4).

    `((1 + l^2)/8)^(1/4) t^(-1/4)` at order 0. First neglected term: relative, `mu^-(p+1)` with the
    logarithms of `time_at`; besides, on `[-a, a]`, one of order `exp(-mu (l - a))`.

    Parameters and errors are those of `scale_at`.
    """
    return 1 / scale_at(time, half_width, order)


def boundary_error(scale: ArrayLike, half_width: float = 1.0) -> NDArray[float64]:
    """Error `F - alpha` at the threshold `-l`, where no example is positive (MODEL §2).

    `2 l/(1 - exp(-2 mu l)) - 1/mu`, exact for every label score: it tends to `2 l`.
    """
    mu, width = positive("scale", scale), one_width(half_width)
    return -2 * width / np.expm1(-2 * mu * width) - 1 / mu


def risk_in_tube(scale: ArrayLike, half_width: float = 1.0, order: int = 4) -> NDArray[float64]:
    """Risk along the tube, at `c(mu)` (MODEL §4).

    `mu^-2 (1 + (l^2/(1 + l^2) - zeta(3))/(mu l) + ...)`, through `mu^-(2 + order)`. First neglected
    term at order p: `mu^-(p+3) log(mu)^floor(p/2)`.

    Parameters and errors are those of `tube_center`.
    """
    mu, width, order = positive("scale", scale), one_width(half_width), _order(order)
    return _series("risk", mu, width, order) / mu**2


def time_offset(
    time: ArrayLike, scale: ArrayLike, half_width: float = 1.0, order: int = MAX_ORDER
) -> float:
    """Offset `tau = lim t - time_at(mu)` of one flow: what its start leaves behind (MODEL §4).

    All flows fall onto one `c(mu)`, and then share `dt/dmu` up to `exp(-2 l (1 + l^2) mu)`: their
    times at one scale differ by a constant of the start. On the tube it is `-time_at` of the
    starting scale. A start above the tube grows at up to `1 + l^2` times the pace of the tube until
    it falls onto it, so its offset is lower: -364.35 against -345.45 from `(ratio, scale) =
    (1.5, 5)`, -719.36 against -183.21 from (2.5, 4). A start below first lets its scale fall, so
    its offset is higher: -954.05 against -1585.03 from (1.05, 8), -221.79 against -607.36 from
    (0.8, 6). At other half widths (where the second number is a guide, `mu l` being small):
    -478.37 against -642.84 from (0.75, 5) at `l = 1/2`, above the tube yet slow while `mu l` is
    small, and -1096.67 against -1077.11 from (2.5, 6) at `l = 2`.

    Parameters
    ----------
    time, scale : array_like, shape (n,)
        Of one flow, for instance a trajectory's `t` and `scale`; samples at which the scale is not
        positive yet are left out.
    half_width : float
        `l > 0`.
    order : int, 4 to 8

    Returns
    -------
    float
        Read at the sample where the last term kept and the flow's own error (1e-11 of its time)
        are smallest together. Measured error: 2e-4 from a default `gradient_flow`.

    Raises
    ------
    ValueError
        If times and scales do not match, no scale is positive, the half width is not positive, or
        the order is below 4.
    """
    width, order = one_width(half_width), _order(order)
    t, mu = np.asarray(time, dtype=float64), np.asarray(scale, dtype=float64)
    if t.shape != mu.shape or t.ndim != 1:
        raise ValueError(
            f"time and scale must be sequences of one length, got shapes {t.shape} and {mu.shape}"
        )
    if order < _FIRST_WITH_OFFSET:
        raise ValueError(
            f"order must be at least {_FIRST_WITH_OFFSET} for the limit to exist, got {order}"
        )
    if not (mu > 0).any():
        raise ValueError("scale must become positive, got none that is; take a longer flow")
    t, mu = t[mu > 0], mu[mu > 0]
    predicted = time_at(mu, width, order)
    doubt = np.abs(predicted - time_at(mu, width, order - 1)) + _FLOW_ACCURACY * t
    best = np.argmin(doubt)
    return float(t[best] - predicted[best])


def relaxation_rate(half_width: float = 1.0) -> float:
    """Rate `2 l (1 + l^2)`, per unit of `mu`, at which a flow falls onto the tube (MODEL §4).

    Deviations of `c` decay like `exp(-2 l (1 + l^2) mu)`; neglected are powers of `mu` before it.
    """
    width = one_width(half_width)
    return 2 * width * (1 + width**2)


def stable_step(scale: ArrayLike, half_width: float = 1.0) -> NDArray[float64]:
    """Step size `mu^3/(2 l)` below which gradient descent is stable on the tube (MODEL §4).

    First neglected term: relative, of order `1/mu`.
    """
    return positive("scale", scale) ** 3 / (2 * one_width(half_width))


def fourth_power_increment(
    step_size: ArrayLike, n_steps: int, start_scale: float, half_width: float = 1.0
) -> NDArray[float64]:
    """What `mu^4` gains a step of gradient descent over the step size, on the tube (MODEL §4).

    The flow's scale at the same time, from the same scale on the tube, and of the step size the
    first term: a step gains `6 (mu dmu)^2` more than the flow, `3 eta/(1 + l^2) log(mu^4/mu0^4)`
    in all. A start off the tube is neglected.
    """
    eta, width = positive("step_size", step_size), one_width(half_width)
    time = eta * n_steps
    fourth = scale_at(time + time_at(start_scale, width), width) ** 4
    more = 3.0 / 8.0 * fourth_power_rate(width) * eta * np.log(fourth / start_scale**4)
    return np.asarray((fourth - start_scale**4 + more) / time, dtype=float64)


def saddle_eigenvalues(half_width: float = 1.0) -> NDArray[float64]:
    """Eigenvalues `l^3 (5 l -+ sqrt(25 l^2 + 36))/45` of the Hessian at the origin (MODEL §5).

    Returns
    -------
    ndarray, shape (2,)
        The negative one first.
    """
    width = one_width(half_width)
    root = sqrt(25 * width**2 + 36)
    # 25 l^2 - (25 l^2 + 36) = -36: the first without its cancellation at large l
    return width**3 / 45 * np.array([-36 / (5 * width + root), 5 * width + root])


def gradient_slope(angle: float, half_width: float = 1.0) -> float:
    """Limit of `|grad L| / r` at small radius in the direction `angle`, in degrees (MODEL §5).

    The entries `0`, `-a` twice and `b` of the Hessian at the origin follow from its eigenvalues:
    `a^2` is minus their product and `b` their sum.
    """
    low, high = saddle_eigenvalues(half_width)
    a, b = np.sqrt(-low * high), low + high
    cos, sin = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    return float(np.hypot(-a * sin, -a * cos + b * sin))


def escape_time(radius: ArrayLike, half_width: float = 1.0) -> NDArray[float64]:
    """Time `-log(radius)/rate` that the flow takes from a small radius to order one (MODEL §5).

    The rate is minus the negative eigenvalue at the origin. First neglected term: a constant of
    the direction of the start.
    """
    r = positive("radius", radius)
    return np.asarray(np.log(r) / saddle_eigenvalues(half_width)[0], dtype=float64)


def _series(name: str, mu: NDArray[float64], width: float, order: int) -> NDArray[float64]:
    logarithm = np.log(mu) + tube_limit(width)
    total: NDArray[float64] = np.zeros_like(mu)
    for coefficients in reversed(_polynomials(name, width)[: order + 1]):
        term = np.polynomial.polynomial.polyval(logarithm, coefficients)
        total = np.asarray(total / (mu * width) + term, dtype=float64)
    return total


@cache
def _stored() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(
        files("popdyn").joinpath("tube_coefficients.json").read_text(encoding="utf-8")
    )
    return data


@cache
def _polynomials(name: str, width: float) -> list[list[float]]:
    """For each power of `1/(mu l)` the coefficients of the powers of `log mu + c*`."""
    values = _ZETA | {"h": width**2 / (1 + width**2), "center": tube_limit(width)}
    return [[_number(text, values) for text in powers] for powers in _stored()[name]]


def _number(polynomial: str, values: dict[str, float]) -> float:
    """Value of a sum of monomials, written like `3/4*zeta3 - 1/2*h^2*zeta2`."""

    def factor(text: str) -> float:
        name, _, power = text.partition("^")
        return values[name] ** int(power or 1) if name in values else float(Fraction(text))

    def monomial(text: str) -> float:
        size = prod(map(factor, text.lstrip("-").split("*")))
        return -size if text.startswith("-") else size

    return fsum(map(monomial, polynomial.replace(" - ", " + -").split(" + ")))


def _order(order: int) -> int:
    try:
        number = operator.index(order)
    except TypeError:
        number = -1
    if not 0 <= number <= MAX_ORDER:
        raise ValueError(f"order must be an integer from 0 to {MAX_ORDER}, got {order!r}")
    return number
