"""A proof by computer that the logarithmic tube captures the flow (MODEL §3, §4).

In the band `|c - c*| <= width`, with `Q = exp(-2 c)`, `eta = 1/mu` and `e = exp(-2 mu l)`, both
`mu^3 dc/dt` and `mu^3 dmu/dt` are explicit functions of `(Q, eta)` that stay finite as `eta -> 0`.
They are enclosed in ball arithmetic on cells that cover every scale from `scale` to infinity; on
the cells at `eta = 0`, `eta^2 log(eta)` and the terms in `e` are enclosed by their monotonicity.

Needs python-flint (the extra `enclosures`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, nextafter
from typing import Any, TypeAlias

from flint import arb

from popdyn.ball_polylog import polylogs, polylogs_over_argument, working_precision

__all__ = ["Cell", "NotProven", "TrappingRegion", "smallest_trapping_scale", "trapping_region"]

_BITS = 128  # the balls are as wide as their cells, and rounding adds nothing that counts
_LEAST_SCALE = 0.51  # times the half width: mu exp(-2 mu l) falls from 1/(2 l) on
# A cell is halved until the sign shows, at most so often; one of the growth also until it is known
# this well (it is of order 1), or is positive and has been halved often enough.
_MOST_HALVINGS = 16
_GROWTH_RADIUS = 0.05
_GROWTH_HALVINGS = 10

_Interval: TypeAlias = tuple[float, float]


class NotProven(RuntimeError):
    """The balls do not show that the band is a trapping region: it may or may not be one."""


@dataclass(frozen=True)
class Cell:
    """What was enclosed on one cell of the band; all numbers are doubles, read as exact.

    Attributes
    ----------
    inverse_scale : tuple of 2 floats
        The cell is `low <= 1/mu <= high`; with `low = 0` it reaches to infinity.
    offset : tuple of 2 floats
        And `low <= c - c* <= high`; on an edge both are the edge's.
    enclosure : tuple of 2 floats
        Bounds of `mu^3 dc/dt` on an edge, of `mu^3 dmu/dt` inside.
    """

    inverse_scale: tuple[float, float]
    offset: tuple[float, float]
    enclosure: tuple[float, float]


@dataclass(frozen=True)
class TrappingRegion:
    """A band of the plane that the flow never leaves, with its proof.

    Attributes
    ----------
    half_width, width, scale : float
        The region is `mu >= scale`, `|c - c*| <= width`, `c* = log(2 (1 + l^2))/2`.
    lower_edge, upper_edge : tuple of Cell
        On these cells, which cover the edges, `c` increases and decreases.
    growth : tuple of Cell
        On these, which cover the region, `mu` increases.
    """

    half_width: float
    width: float
    scale: float
    lower_edge: tuple[Cell, ...]
    upper_edge: tuple[Cell, ...]
    growth: tuple[Cell, ...]

    @property
    def slopes(self) -> tuple[float, float]:
        """`(a, b)` with `mu0^4 + a (t - t0) <= mu^4 <= mu0^4 + b (t - t0)` for ever after.

        For every run that is in the region, at scale `mu0`, at a time `t0`.
        """
        low = min(cell.enclosure[0] for cell in self.growth)
        high = max(cell.enclosure[1] for cell in self.growth)
        return nextafter(4 * low, -inf), nextafter(4 * high, inf)


def trapping_region(half_width: float, width: float, scale: float) -> TrappingRegion:
    """Show that the band around the tube is forward invariant from a scale on (MODEL §4).

    Parameters
    ----------
    half_width : float
        `l`.
    width : float
        Of the band `|c - c*| <= width`, on either side. From `log(1 + 1/l^2)/2` on nothing can be
        proved: at the lower edge `mu` decreases, at all large scales.
    scale : float
        From which on; above `0.51/l`, since `mu exp(-2 mu l)` decreases from `1/(2 l)` on.

    Returns
    -------
    TrappingRegion
        With every cell and its enclosure.

    Raises
    ------
    ValueError
        If an argument is not positive and finite, or the scale is too small.
    NotProven
        If a sign does not show on some cell. Nothing is proved then, neither way.

    Examples
    --------
    >>> region = trapping_region(1.0, 0.2, 20.0)
    >>> a, b = region.slopes
    >>> a < 4 < b
    True
    """
    for name, number in (("half_width", half_width), ("width", width), ("scale", scale)):
        if not (isinstance(number, float | int) and 0 < number < inf):
            raise ValueError(f"{name} must be one positive finite number, got {number!r}")
    if not half_width * scale > _LEAST_SCALE:
        raise ValueError(
            f"scale must be above {_LEAST_SCALE}/half_width, got {scale!r}; give a larger one"
        )
    return _prove(float(half_width), float(width), float(scale), _grows)


def _prove(
    half_width: float, width: float, scale: float, grows: Callable[[Any, int], bool]
) -> TrappingRegion:
    inverse = (0.0, nextafter(1 / scale, inf))

    with working_precision(_BITS):

        def drift(eta: _Interval, offset: _Interval) -> Any:
            return _velocity(half_width, eta, offset)[0]

        def growth(eta: _Interval, offset: _Interval) -> Any:
            return _velocity(half_width, eta, offset)[1]

        lower = _cover(drift, inverse, (-width, -width), 1, _is_positive)
        upper = _cover(drift, inverse, (width, width), -1, _is_positive)
        inside = _cover(growth, inverse, (-width, width), 1, grows)
    return TrappingRegion(half_width, width, scale, lower, upper, inside)


def smallest_trapping_scale(half_width: float, width: float) -> float:
    """Smallest scale, to 1 %, from which on `trapping_region` proves the band to be invariant.

    The region from a larger scale on is a part of that from a smaller one, whose cells prove it
    too; so the proven scales are found by bisection, in 1 to 15 s. Raises `NotProven` if 10^6 is
    not proven.

    =========== ======= ======= =======
    half width  0.2     0.1     0.05
    =========== ======= ======= =======
    1/2         2.273   2.567*  11.14*
    1           1.914   1.570   5.938*
    2           never*  1.293   2.879*
    =========== ======= ======= =======

    With a star, a velocity points outwards (or `mu` decreases) just below; without, the cells there
    are still too coarse after all their halvings.
    """
    _prove(half_width, width, 1e6, _is_positive)
    low, high = _LEAST_SCALE / half_width, 1e6
    while high > 1.01 * low:
        middle = float(f"{(low * high) ** 0.5:.4g}")
        if not low < middle < high:
            break
        try:
            _prove(half_width, width, middle, _is_positive)
        except NotProven:
            low = middle
        else:
            high = middle
    return high


def _is_positive(ball: Any, halvings: int) -> bool:
    return bool(ball > 0)


def _grows(ball: Any, halvings: int) -> bool:
    if not ball > 0:
        return False
    return halvings >= _GROWTH_HALVINGS or bool(ball.rad() <= _GROWTH_RADIUS)


def _cover(
    velocity: Callable[[_Interval, _Interval], Any],
    inverse_scale: _Interval,
    offset: _Interval,
    sign: int,
    shows: Callable[[Any, int], bool],
) -> tuple[Cell, ...]:
    """Cells on which the velocity's ball `shows` the sign wanted, by halving where it does not.

    The last halves are the first to be looked at, those of the smallest scales and offsets: there
    a proof that fails does so, and some thirty cells show it where all of them are thousands.
    """
    waiting, cells = [(inverse_scale, offset, 0)], []
    while waiting:
        eta, band, halvings = waiting.pop()
        ball = velocity(eta, band)
        if ball.is_finite() and shows(sign * ball, halvings):
            cells.append(Cell(eta, band, _bounds(ball)))
            continue
        middle, centre = sum(eta) / 2, sum(band) / 2
        at_point = velocity((middle, middle), (centre, centre))
        if halvings == _MOST_HALVINGS or not sign * at_point > 0:
            raise NotProven(
                f"not proven: at scale {1 / middle:.6g} and c - c* = {centre:.4g} the velocity is "
                f"{at_point.str(4)}, and around it {ball.str(4)}; try a larger scale or another "
                "width"
            )
        if halvings % 2 and band[0] < band[1]:
            halves = [(eta, (centre, band[1])), (eta, (band[0], centre))]
        else:
            halves = [((eta[0], middle), band), ((middle, eta[1]), band)]
        waiting.extend((*half, halvings + 1) for half in halves)
    return tuple(cells)


def _bounds(ball: Any) -> tuple[float, float]:
    """Doubles below and above every number of a ball."""
    return nextafter(float(ball.lower()), -inf), nextafter(float(ball.upper()), inf)


def _velocity(half_width: float, inverse: _Interval, offset: _Interval) -> Any:
    """Balls of `mu^3 dc/dt` and `mu^3 dmu/dt` on a cell, from the closed form (MODEL §3).

    With `kappa = (1 - q) e/(1 - q e)`, the value of `z` at the upper end, `1 - z` is
    `p = q (1 - kappa)` at the lower end, and the risk is

        eta^2 + (Phi(2 l q/(1 - q), 1 - p) - Phi(2 l/(1 - q), kappa))/(2 l),
        Phi(u, z) = eta u^2 (Li_0 - Li_1) - 2 eta^2 u Li_2 - 2 eta^3 Li_3.

    Below are its derivatives by `log q` and by `mu` at a fixed excess, divided by `eta^3` term by
    term; with `q = Q eta^2` no negative power of `eta` is left but beside `e`.
    """
    l = arb(half_width)
    eta = _hull(arb(inverse[0]), arb(inverse[1]))
    Q = (-2 * _hull(arb(offset[0]), arb(offset[1]))).exp() / (2 * (1 + l**2))
    q = Q * _square(inverse)
    e, mu_e = _exponentials(l, inverse)
    kappa_by_e = (1 - q) / (1 - q * e)
    kappa = e * kappa_by_e
    kappa_slope = e * (1 - e) / (1 - q * e) ** 2  # -d kappa/dq
    e_slope = 2 * l * (1 - q) / (1 - q * e) ** 2  # -(d kappa/d mu)/e
    p = q * (1 - kappa)
    square_log = _square_times_log(inverse)  # eta^2 log eta
    p_log = _square(inverse) * ((Q * (1 - kappa)).log()) + 2 * square_log  # eta^2 log p
    two, three = _polylogs_below_one(p, Q * (1 - kappa) * p_log)
    above = polylogs_over_argument(kappa)

    # The lower end. `low` is u/eta^2 and `slope` (du/dlog q)/eta^2, of the upper u as well.
    low, high, slope = 2 * l * Q / (1 - q), 2 * l / (1 - q), 2 * l * Q / (1 - q) ** 2
    zero_minus_one = (1 - p) / (Q * (1 - kappa)) + p_log  # eta^2 (Li_0 - Li_1)
    p_slope = 1 - kappa + q * kappa_slope  # (dp/dlog q)/q
    # (dPhi/dz) q/eta^3 at the lower end
    by_z = (
        low**2 * (1 - p) / (Q * (1 - kappa) ** 2)
        + 2 * eta * Q * low * p_log / (1 - p)
        - 2 * q * two / (1 - p)
    )
    theta = 2 * low * slope * zero_minus_one - 2 * eta * slope * two - by_z * p_slope
    by_mu = (
        -eta * low**2 * zero_minus_one
        + 4 * _square(inverse) * low * two
        + 6 * eta * three
        - by_z * e * e_slope
    )

    # The upper end: all of it holds e.
    one_at_kappa, two_at_kappa, three_at_kappa = above
    gap = kappa / (1 - kappa) - kappa * one_at_kappa  # Li_0 - Li_1
    gap_mu = mu_e * kappa_by_e * (1 / (1 - kappa) - one_at_kappa)
    theta -= 2 * high * slope * gap - 2 * eta * slope * kappa * two_at_kappa
    theta += (
        Q
        * kappa_slope
        * (
            high**2 * kappa / (1 - kappa) ** 2
            - 2 * high * eta * one_at_kappa
            - 2 * _square(inverse) * two_at_kappa
        )
    )
    by_mu += high**2 * gap_mu - 4 * high * kappa * two_at_kappa
    by_mu -= 6 * eta * kappa * three_at_kappa
    by_mu += e_slope * (
        high**2 * mu_e**2 * kappa_by_e / (1 - kappa) ** 2
        - 2 * high * mu_e * one_at_kappa
        - 2 * e * two_at_kappa
    )

    theta, by_mu = theta / (2 * l), by_mu / (2 * l) - 2
    drift = 2 * (1 + l**2 + l * eta) * theta + (l + eta) * by_mu
    return drift, -by_mu - 2 * l * theta


def _hull(low: Any, high: Any) -> Any:
    return low.union(high)


def _square(inverse: _Interval) -> Any:
    return _hull(arb(inverse[0]) ** 2, arb(inverse[1]) ** 2)


def _square_times_log(inverse: _Interval) -> Any:
    """`eta^2 log(eta)`, which falls from 0 at 0 to `-1/(2 e)` at `exp(-1/2)`, then rises."""
    low, high = arb(inverse[0]), arb(inverse[1])
    if inverse[0] > 0:
        return _hull(low, high) ** 2 * _hull(low.log(), high.log())
    at_high = high**2 * high.log()
    return _hull(arb(0), at_high if high < 0.6 else _hull(at_high, arb(-0.2)))


def _exponentials(l: Any, inverse: _Interval) -> tuple[Any, Any]:
    """`e = exp(-2 mu l)` and `mu e`, both of which fall with `mu` from `1/(2 l)` on."""

    def at(eta: float) -> tuple[Any, Any]:
        if not eta:
            return arb(0), arb(0)
        e = (-2 * l / eta).exp()
        return e, e / eta

    (e_low, mu_e_low), (e_high, mu_e_high) = at(inverse[0]), at(inverse[1])
    return _hull(e_low, e_high), _hull(mu_e_low, mu_e_high)


def _polylogs_below_one(p: Any, p_log_p: Any) -> tuple[Any, Any]:
    """`Li_2(1 - p)` and `Li_3(1 - p)`, also on a ball of `p >= 0` that reaches to 0."""
    if p.abs_upper() > 0.5:
        _, two, three = polylogs(1 - p, p)
        return two, three
    one_over_p, two_over_p, _ = polylogs_over_argument(p)
    zeta2, zeta3 = arb.pi() ** 2 / 6, arb(3).zeta()
    two = zeta2 + one_over_p * p_log_p - p * two_over_p
    middle = arb(p.mid())
    # The slope of Li_3(1 - p) is -Li_2(1 - p)/(1 - p), and that falls from zeta(2) to 1 in size.
    if p.contains(0):
        return two, zeta3 - p * _hull(arb(1), zeta2)
    return two, polylogs(1 - middle, middle)[2] - (p - middle) * two / (1 - p)
