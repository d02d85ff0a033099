"""Rules over thresholds: distances to BOTH ends of the interval and weights (MODEL §2, a-d).

A rule is called with a head and answers with `Nodes`. It never returns a threshold: near the lower
end the risk of a head of scale `mu` has a layer of width `q / mu`, `q = exp(-2 delta)`, which a
number near `-half_width` cannot resolve, while the distance to that end can be of any size.
"""

import math
import warnings
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from popdyn.arguments import count
from popdyn.compiled import kernel
from popdyn.coordinates import Head
from popdyn.exponentials import mass
from popdyn.legendre import legendre_rule

__all__ = [
    "BoundaryGraded",
    "EqualWeights",
    "GaussLegendre",
    "Nodes",
    "Rule",
    "UnresolvedLayerWarning",
    "boundary_graded",
    "equal_weights",
    "gauss_legendre",
]


class Nodes(NamedTuple):
    """Thresholds with weights; all arrays broadcast against the head, nodes last.

    Attributes
    ----------
    lower, upper : ndarray, shape (..., n)
        Distances `s` and `r` to the lower and the upper end, each to full relative precision.
    weights : ndarray, shape (..., n)
        They sum to 1. Nodes of weight 0 pad the heads that need fewer of them.
    exponent : ndarray, shape (..., n), or None
        `mu r - 2 lam = -2 delta - mu s`, of the mirror image where the scale is negative. A rule
        that places its nodes around a zero of it knows it better than the two distances do: at
        `mu = 1e9` their last digit is worth 1e-7. None: to be had from the distances.
    """

    lower: NDArray[float64]
    upper: NDArray[float64]
    weights: NDArray[float64]
    exponent: NDArray[float64] | None = None


class Rule(Protocol):
    """A quadrature rule over thresholds that may depend on the head."""

    def __call__(self, head: Head) -> Nodes:
        """Nodes for this head."""

    @property
    def is_sample(self) -> bool:
        """Whether the nodes are drawn tasks; else the threshold density multiplies the weights."""

    @property
    def companion(self) -> "Rule | None":
        """A rule to compare with, so that the difference bounds the error; None for drawn tasks."""


class UnresolvedLayerWarning(UserWarning):
    """A Gauss-Legendre rule of too low an order for the head it is called with."""


# --- Gauss-Legendre on the whole interval ---------------------------------------------------------

# A rule of this relative error or better in risk and gradient passes in silence.
RESOLVED = 1e-12
# log of the factor before rho^(-2 n) in the error of the gradient; see `order_needed`.
_LOG_AMPLITUDE = 8.0
_ENTIRE = 3.5  # growth of exp(-mu s) that an ellipse may take in, measured where no pole is left
_FEWEST = 3  # nodes beyond the estimate, which count where the layer is wide
_MAX_ORDER = 100_000  # a minute: the nodes come from a recurrence, at a cost of order squared


def gauss_legendre(order: int) -> "GaussLegendre":
    """Gauss-Legendre rule of `order` nodes on the whole interval, the same for every head.

    On the logarithmic tube the order needed grows like `25 (mu l)^1.5`; a head that needs more
    than `order` raises `UnresolvedLayerWarning`, which names the order. The nodes keep their
    distances to both ends to full relative precision at any order.

    The order is a whole number from 1 to 100000; anything else raises ValueError.
    """
    return GaussLegendre(count("order", order, most=_MAX_ORDER))


@dataclass(frozen=True)
class GaussLegendre:
    """What `gauss_legendre` returns."""

    order: int
    is_sample = False

    def __call__(self, head: Head) -> Nodes:
        needed = np.max(order_needed(head), initial=1.0)
        if needed > self.order:
            warnings.warn(
                f"a Gauss-Legendre rule of order {self.order} does not resolve the boundary layer "
                f"of this head, about {needed:.6g} nodes are needed for {RESOLVED:g}; "
                "use the boundary-graded rule",
                UnresolvedLayerWarning,
                stacklevel=2,
            )
        distances, weights = legendre_rule(self.order)
        lower = head.half_width * distances
        return Nodes(lower, lower[::-1], 0.5 * weights)

    @property
    def companion(self) -> Rule:
        return BoundaryGraded()


def order_needed(head: Head) -> NDArray[float64]:
    """Gauss-Legendre order for a relative error of about 1e-12 in the gradient, shape `(...)`.

    The rule converges like `rho^(-2 n)`, where the ellipse of semi-axis sum `rho` around the
    interval goes through the nearest pole of the predictor. With `l = 1` the poles are the zeros
    of the softmax normalization (MODEL §2), `exp(mu s) = (1 - q) / (1 - q e)`: beyond the lower end
    for `delta > 0`, beyond the upper one for `lam < 0`, at `Im s = pi / mu` in between.
    """
    lam, delta, mu = unit_scores(head)
    sign = np.where(mu < 0.0, -1.0, 1.0)
    lam, delta, mu = sign * lam, sign * delta, sign * mu
    rate = np.maximum(mu, 1e-3)  # below it the poles no longer move
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        outside = np.maximum(delta, -lam)  # the pole is real and outside where this is positive
        beyond = np.maximum(lam, -delta)
        ratio = np.exp(-2.0 * outside) * np.expm1(-2.0 * rate) / np.expm1(-2.0 * beyond)
        distance = -np.log1p(-np.minimum(ratio, 1.0)) / rate  # of it from the end
        shift = -2.0 * delta + np.log1p(-np.exp(2.0 * delta)) - np.log1p(-np.exp(-2.0 * lam))
        pole = (shift + 1j * np.pi) / rate - 1.0
        axis = 0.5 * (np.abs(pole - 1.0) + np.abs(pole + 1.0))
        excess = np.where(outside >= 0.0, distance, axis - 1.0)  # of the semi-major axis over 1
        log_rho = np.arcsinh(np.sqrt(excess * (excess + 2.0)))
    # exp(-mu s) is entire; on the ellipse log_rho it costs mu (cosh(log_rho) - 1).
    entire = np.arcsinh(np.sqrt(_ENTIRE / rate * (_ENTIRE / rate + 2.0)))
    log_rho = np.minimum(log_rho, entire)
    goal = _LOG_AMPLITUDE - math.log(RESOLVED)
    with np.errstate(divide="ignore"):  # inf where the pole is at the end to the last digit
        return np.ceil(goal / (2.0 * log_rho)) + _FEWEST


# --- graded towards the ends ----------------------------------------------------------------------

# Panels in mu s around the point where the labels lose to the features (the lower end for
# lam >= mu l). Beyond 45 the exponentials are below 1e-19 and what is left is a polynomial.
_OFFSETS = np.array([-45.0, -24.0, -12.0, -5.0, -1.5, 0.0, 1.5, 5.0, 12.0, 24.0, 45.0])
_MILD_RADIUS = 0.5  # below it the softmax weights have nothing to resolve
_LEAST_RATE = 3.0  # at smaller scales the panels stay as at this one: the polynomials are left
_GRADED_SPAN = 8.0  # panel width in v; exp(v) is resolved to 1e-16 by 16 nodes
_LOWEST_LAYER = 1e-300  # a thinner layer contributes nothing above underflow
_MAX_PANELS = _OFFSETS.size + 1 + math.ceil(-math.log(_LOWEST_LAYER) / _GRADED_SPAN)
_DEFAULT_ORDER = 20
_LARGEST_SCALE = 1e300  # some multiples of it must not overflow


def boundary_graded(order: int = _DEFAULT_ORDER) -> "BoundaryGraded":
    """Gauss-Legendre panels of `order` nodes, graded towards the layers of each head (MODEL §2).

    Towards an end with a layer of width `w` the nodes are `s = w expm1(v)`, with panels of width 8
    in `v`; elsewhere panels follow the exponentials around the point where the labels lose to the
    features. Some 120 to 250 nodes for most heads, whatever the scale.

    The order is a whole number from 4 to 100; anything else raises ValueError. The default gives
    full double precision for the uniform design; densities that vary on a scale much below
    `half_width` may need more.
    """
    return BoundaryGraded(count("order", order, 4, 100))


@dataclass(frozen=True)
class BoundaryGraded:
    """What `boundary_graded` returns."""

    order: int = _DEFAULT_ORDER
    is_sample = False

    def __call__(self, head: Head) -> Nodes:
        lam, delta, mu = unit_scores(head)
        distances, weights = legendre_rule(self.order)
        panels, counts = _panels(lam.ravel(), delta.ravel(), mu.ravel())
        nodes = np.empty((4, lam.size, self.order * int(counts.max(initial=1))))
        _panel_nodes(panels, counts, distances, weights, head.half_width, nodes)
        return Nodes(*nodes.reshape(4, *head.shape, nodes.shape[-1]))

    @property
    def companion(self) -> Rule:
        return BoundaryGraded(self.order - max(2, self.order // 5))


@kernel
def _panels(
    label_scores: NDArray[float64], excesses: NDArray[float64], scales: NDArray[float64]
) -> tuple[NDArray[float64], NDArray[np.int64]]:
    """Panels of each head on `[0, 2]` and their number; `_panel_nodes` reads the rows.

    A row is: measured from the upper end?, first point and width, exponent at the first point,
    its slope; and for a graded panel, whose points are `v`, its layer and the factor of `exp(v)`.
    """
    panels = np.zeros((scales.size, _MAX_PANELS, 7))
    counts = np.zeros(scales.size, dtype=np.int64)
    edges = np.empty((_OFFSETS.size + 2, 4))  # distances to both ends, exponent, offset
    for i in range(scales.size):
        mirrored = scales[i] < 0.0
        sign = -1.0 if mirrored else 1.0
        lam, delta, mu = sign * label_scores[i], sign * excesses[i], sign * scales[i]
        edges[0] = 0.0, 2.0, -2.0 * delta, -np.inf
        n_edges = 1
        if max(abs(lam), mu) > _MILD_RADIUS:
            centre_lower, centre_upper, centre_exponent = -2.0 * delta / mu, 2.0 * lam / mu, 0.0
            if delta >= 0.0:
                centre_lower, centre_upper, centre_exponent = 0.0, 2.0, -2.0 * delta
            elif lam <= 0.0:
                centre_lower, centre_upper, centre_exponent = 2.0, 0.0, -2.0 * lam
            rate = max(mu, _LEAST_RATE)
            for offset in _OFFSETS:
                lower = centre_lower + offset / rate
                upper = centre_upper - offset / rate
                further = lower > edges[n_edges - 1, 0] or upper < edges[n_edges - 1, 1]
                if further and lower > 0.0 and upper > 0.0:
                    edges[n_edges] = (
                        lower,
                        upper,
                        centre_exponent - offset * (mu / rate),
                        offset / rate,
                    )
                    n_edges += 1
        edges[n_edges] = 2.0, 0.0, -2.0 * lam, np.inf
        reach = 2.0 * mass(2.0 * mu)
        layer_lower = max(reach * np.exp(-2.0 * delta), _LOWEST_LAYER * edges[1, 0])
        layer_upper = max(reach * np.exp(2.0 * lam), _LOWEST_LAYER * edges[n_edges - 1, 1])
        count = 0
        for j in range(n_edges):
            upper_end, layer = edges[j, 0] + edges[j + 1, 0] > 2.0, 0.0
            if j == 0 and layer_lower < edges[1, 0]:
                upper_end, layer = False, layer_lower
            if j == n_edges - 1 and layer_upper < edges[j, 1]:
                upper_end, layer = True, layer_upper
            if upper_end:
                first, last, exponent, slope = edges[j + 1, 1], edges[j, 1], edges[j + 1, 2], mu
            else:
                first, last, exponent, slope = edges[j, 0], edges[j + 1, 0], edges[j, 2], -mu
            near_end = 1.0 if upper_end != mirrored else 0.0
            if layer == 0.0:
                # between offsets, not distances: of a panel of 1e-12 these keep four digits
                local = edges[j + 1, 3] - edges[j, 3]
                width = local if local < np.inf else last - first
                panels[i, count] = near_end, first, width, exponent, slope, 0.0, 0.0
                count += 1
                continue
            span = np.log1p(last / layer)
            n_parts = int(np.ceil(span / _GRADED_SPAN))
            width = span / n_parts
            for part in range(n_parts):
                v, factor = width * part, layer
                if 2 * part >= n_parts and part > 0:  # from the far end, or exp(v) costs digits
                    v, factor = v - span, layer + last
                panels[i, count] = near_end, v, width, exponent, slope, layer, factor
                count += 1
        counts[i] = count
    return panels, counts


@kernel
def _panel_nodes(
    panels: NDArray[float64],
    counts: NDArray[np.int64],
    distances: NDArray[float64],
    weights: NDArray[float64],
    half_width: float,
    nodes: NDArray[float64],
) -> None:
    order = distances.size
    for i in range(counts.size):
        nodes[:2, i, order * counts[i] :] = half_width
        nodes[2:, i, order * counts[i] :] = 0.0
        for j in range(counts[i]):
            near_end, first, width, exponent, slope, layer, factor = panels[i, j]
            near = int(near_end)
            for m in range(order):
                step = 0.5 * width * distances[m]
                point = first + step
                weight = 0.25 * width * weights[m]
                if layer > 0.0:
                    growth = np.exp(point)
                    weight *= factor * growth
                    # close to the end the difference would cancel
                    point = layer * np.expm1(point) if factor == layer else factor * growth - layer
                    step = point
                nodes[near, i, order * j + m] = half_width * point
                nodes[1 - near, i, order * j + m] = half_width * (2.0 - point)
                nodes[2, i, order * j + m] = weight
                nodes[3, i, order * j + m] = exponent + slope * step


# --- drawn tasks ----------------------------------------------------------------------------------


def equal_weights(thresholds: ArrayLike) -> "EqualWeights":
    """Drawn tasks, each of weight `1 / m`: the risk of `m` tasks with infinite contexts.

    Parameters
    ----------
    thresholds : array_like, shape (m,)
        In the units of the head's half width, which must contain them.

    Raises
    ------
    ValueError
        If they are not a finite row of at least one number, or, when called, outside the interval.
    """
    try:
        array = np.array(thresholds, dtype=float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(
            f"thresholds must be a row of one or more finite numbers, got {thresholds!r}"
        )
    array.flags.writeable = False
    return EqualWeights(array)


@dataclass(frozen=True, eq=False)
class EqualWeights:
    """What `equal_weights` returns."""

    thresholds: NDArray[float64]
    is_sample = True
    companion = None

    def __call__(self, head: Head) -> Nodes:
        lower = self.thresholds + head.half_width
        upper = head.half_width - self.thresholds
        outside = (lower < 0.0) | (upper < 0.0)
        if outside.any():
            raise ValueError(
                f"thresholds must lie in [-{head.half_width!r}, {head.half_width!r}], "
                f"got {float(self.thresholds[np.argmax(outside)])!r}"
            )
        return Nodes(lower, upper, np.full(lower.shape, 1.0 / lower.size))


def unit_scores(head: Head) -> tuple[NDArray[float64], NDArray[float64], NDArray[float64]]:
    """`lam`, `delta` and `mu l`: the head on the interval `[-1, 1]`."""
    mu = np.asarray(head.scale * head.half_width, dtype=float64)
    if mu.size and max(mu.max(), -mu.min()) > _LARGEST_SCALE:
        raise ValueError(f"scale * half_width must be within {_LARGEST_SCALE:g}, got {mu!r}")
    return np.asarray(head.label_score), np.asarray(head.excess), mu
