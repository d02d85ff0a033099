"""Thresholds in panels that grow away from the ends and from cuts, those of flipped labels too.

The risk changes over a distance of `1 / mu` near the ends, where heavy negatives or flipped labels
begin to outweigh the positives at the threshold, and where a break point of the flips leaves the
interval; next to an end its layer can be thinner still. Panels that grow by 4 away from such points
resolve the poles around them, real and complex ones. Inside, half width 1 and `mu >= 0`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.coordinates import Head
from popdyn.legendre import legendre_rule
from popdyn.noise import LabelFlips
from popdyn.quadrature import Nodes, unit_scores

__all__ = ["Cut", "FlipGraded", "cut_panels", "flip_cuts", "nodes_of_heads"]

Cut = tuple[float, float]  # distances of a threshold from the lower and the upper end

# With panels that grow by 4 and 16 nodes each, risk and gradient change by less than 1e-14 when
# panels are halved or nodes added; with 12 nodes by 1e-10.
_GROWTH = 4.0
_THINNEST = 1e-40  # what a thinner layer adds to the risk is below rounding
_LOWEST_RATE = 1e-3  # of mu l: below it the weights no longer depend on the scale
_INSIDE = 1e-9  # of a piece: so far from its end its flips are those of its inside
_PASSES = 3  # to find where flips of varying probability take over, to a fraction of 1 / mu


@dataclass(frozen=True)
class FlipGraded:
    """Rule over thresholds for infinite contexts of flipped labels, for either sign of the scale.

    Attributes
    ----------
    noise : LabelFlips
    order : int
        Nodes of a panel.
    """

    noise: LabelFlips
    order: int
    is_sample = False

    def __call__(self, head: Head) -> Nodes:
        return nodes_of_heads(head, self._unit_nodes)

    @property
    def companion(self) -> "FlipGraded":
        return FlipGraded(self.noise, self.order - max(2, self.order // 5))

    def _unit_nodes(self, lam: float, delta: float, mu: float, unit: float) -> NDArray[float64]:
        cuts, layers = flip_cuts(self.noise, unit, lam, mu)
        return cut_panels(cuts, layers, self.order)


def nodes_of_heads(
    head: Head, of_one: Callable[[float, float, float, float], NDArray[float64]]
) -> Nodes:
    """Nodes for each head from `of_one(lam, delta, mu, unit)`, which answers as `cut_panels`.

    It is asked with `mu >= 0`; `unit` is the half width, negative for the mirror image.
    """
    rows = []
    for lam, delta, mu in zip(*map(np.ravel, unit_scores(head)), strict=True):
        sign = -1.0 if mu < 0.0 else 1.0
        row = of_one(sign * lam, sign * delta, sign * mu, sign * head.half_width)
        rows.append(row if sign > 0.0 else row[[1, 0, 2]])
    size = max((row.shape[1] for row in rows), default=0)
    nodes = np.empty((3, len(rows), size))
    nodes[:2], nodes[2] = 1.0, 0.0  # nodes of weight 0 fill the shorter rows
    for i, row in enumerate(rows):
        nodes[:, i, : row.shape[1]] = row
    nodes[:2] *= head.half_width
    return Nodes(*nodes.reshape(3, *head.shape, size))


def cut_panels(cuts: list[Cut], layers: list[float], order: int) -> NDArray[float64]:
    """Distances to the two ends and weights, shape `(3, nodes)`; the weights sum to 1.

    The cuts ascend from one end to the other. Panels of `order` nodes grow on both sides of each,
    from at most the width that its entry of `layers` gives.
    """
    places, weights = legendre_rule(order)
    parts = []
    for (low, low_layer), (high, high_layer) in pairwise(zip(cuts, layers, strict=True)):
        # a difference of the smaller distances
        half = 0.5 * (high[0] - low[0] if high[0] < low[1] else low[1] - high[1])
        if half <= 0.0:
            continue
        for origin, side, layer in ((low, 1.0, low_layer), (high, -1.0, high_layer)):
            n_panels = 1 + max(0, int(np.ceil(np.log(half / layer) / np.log(_GROWTH))))
            edges = half * _GROWTH ** -np.arange(n_panels, dtype=float64)
            edges = np.append(edges, 0.0)
            widths = edges[:-1] - edges[1:]
            offsets = side * (edges[1:, None] + 0.5 * widths[:, None] * places).ravel()
            shares = (0.25 * widths[:, None] * weights).ravel()
            parts.append((origin[0] + offsets, origin[1] - offsets, shares))
    return np.concatenate(parts, axis=1)


def flip_cuts(
    flips: LabelFlips, unit: float, lam: float, mu: float
) -> tuple[list[Cut], list[float]]:
    """Cuts for flipped labels, and the width of the layer of the risk at each of them.

    `unit` is what the distance 1 is in the units of the flips, negative for the mirror image.

    In units of a positive example at the threshold, the examples at a distance `d` above it weigh
    `c exp(mu d)`, `c = rho + (1 - rho) exp(-2 lam)`, those below it with `1 - rho` for `rho`. A
    threshold that moves up by more than a layer lets the next piece between two break points take
    over from all that lay inside so far; where it does so further on, there is a cut.
    """
    breaks = sorted(point / unit for point in flips.breaks)
    above = [0.0, *(point for point in breaks if 0.0 < point < 2.0), 2.0]
    below = [0.0, *(-point for point in reversed(breaks) if -2.0 < point < 0.0), 2.0]
    rate = max(mu, _LOWEST_RATE)
    widest = 1.0 / max(mu, 1.0)

    def log_weight(distance: float) -> float:
        rho = float(flips.probability(np.array([unit * distance]))[0])
        flipped, kept = (rho, 1.0 - rho) if distance > 0.0 else (1.0 - rho, rho)
        return float(np.logaddexp(np.log(flipped), np.log(kept) - 2.0 * lam))

    def log_mass(low: float, high: float, sign: float) -> float:
        near = high if sign > 0.0 else -low  # where the piece is heaviest
        length = -np.expm1(rate * (low - high)) / rate
        return log_weight(sign * 0.5 * (low + high)) + rate * near + float(np.log(length))

    layers: dict[Cut, float] = {}
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        of_above = [log_mass(low, high, 1.0) for low, high in pairwise(above)]
        of_below = [log_mass(low, high, -1.0) for low, high in pairwise(below)]
        for i, (low, high) in enumerate(pairwise(above)):
            inside = np.logaddexp.reduce(of_below + of_above[:i])
            at = log_weight(low + _INSIDE * (high - low)) + rate * low
            layers[2.0 - low, low] = np.exp(inside - at)
            turn = high
            for _ in range(_PASSES):
                at = log_weight(min(turn, 0.5 * (low + high))) + rate * low
                turn = low + np.logaddexp(0.0, inside - at + np.log(rate)) / rate
            if low + widest < turn < high:  # else it lies in the panels next to the break
                layers[2.0 - turn, turn] = widest
        for i, (low, high) in enumerate(pairwise(below)):
            inside = np.logaddexp.reduce(of_above + of_below[:i])
            at = log_weight(-low - _INSIDE * (high - low)) - rate * low
            layers[low, 2.0 - low] = np.exp(inside - at)
    cuts = sorted(layers)
    return cuts, [min(max(float(layers[cut]), _THINNEST), widest) for cut in cuts]
