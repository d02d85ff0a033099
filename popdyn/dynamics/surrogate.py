"""Patches of a tensor Chebyshev interpolant, which stand in for the gradient of a risk (MODEL §6).

The gradient is a smooth function of two variables, whatever it costs: a patch holds it on a box in
`log |mu|` and the excess, slanted along the path, to about 1e-13 of its largest value there.
"""

from typing import TypeAlias

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.compiled import kernel
from popdyn.coordinates import Head
from popdyn.risk.protocol import Risk

__all__ = ["NODES", "SCALES", "Patches", "Surrogate", "patch_gradient"]

# Nodes in `log |mu|` and in the excess. On the largest box the last coefficients of corpora with
# 300 and 1000 tasks are below 1e-13 of the largest gradient, from scale 10 to 100.
_SHAPE = (15, 13)
SCALES, NODES = _SHAPE[0], _SHAPE[0] * _SHAPE[1]
_HALF_WIDTHS = (0.2, 0.1)
_HALVINGS = 6  # a gradient that no box of 1/64 of the largest one holds is not smooth
# Of the last two coefficients in either direction, over the largest gradient: what they leave in a
# run was estimated at 1e-12 and less.
_TAIL = 1e-12
_NOISE = 1e-14  # of a patch, over the largest gradient: measured 1e-15 to 5e-15
_AHEAD = 0.9  # of the half width lies the center of a box beyond the point it is made for
# A box is slanted along the path. Where that is steep, it is narrowed in the scale until the excess
# changes by no more than this along half of it.
_HALF_SLANT = 0.3
_STEEPEST = 100.0 * _HALF_SLANT  # slant for a factor e of the scale
_KEPT = 16  # patches: the path leaves the others behind, but not its shadow

# For each patch its center in `log |mu|`, the inverse of its half width there, its center in the
# excess, the inverse of that half width, the slant, the sign of `mu` and the noise of the gradient;
# the coefficients, shape (patches, 13, 30), of both components in turn.
Patches: TypeAlias = tuple[NDArray[float64], NDArray[float64]]


class Surrogate:
    """Patches along a path, made where they are asked for."""

    def __init__(self, risk: Risk) -> None:
        self.risk = risk
        self.patches: Patches = (np.zeros((_KEPT, 7)), np.zeros((_KEPT, _SHAPE[1], 2 * _SHAPE[0])))
        self.n_made = 0
        self.n_evaluations = 0

    def gradient(self, excess: NDArray[float64], scale: NDArray[float64]) -> NDArray[float64]:
        """That of the risk itself, by excess and scale of the map: shape (..., 2)."""
        self.n_evaluations += np.size(scale)
        width = self.risk.half_width
        by_score = self.risk.value_and_gradient(Head.from_excess(excess, scale, width))[1]
        return np.stack([by_score[..., 0] - width * by_score[..., 1], by_score[..., 1]], axis=-1)

    def lasts(self, excess: float, scale: float, step: NDArray[float64], n_steps: int) -> bool:
        """Whether so many steps like one from a point stay on a patch made for it."""
        unit = excess_unit(excess, scale, self.risk.half_width)
        way = n_steps * np.abs(step[::-1])
        reach = np.array((_HALF_WIDTHS[0] * abs(scale), _HALF_SLANT * unit)) * (2.0 * _AHEAD)
        return bool((way <= reach).all())

    def cover(self, excess: float, scale: float) -> bool:
        """Make a patch that begins at a point and lies ahead of it; whether one holds there."""
        if scale == 0.0:
            return False
        slope = self.gradient(np.array(excess), np.array(scale))
        if not np.isfinite(slope).all():
            return False
        along = -np.sign(slope[1] * scale)
        unit = excess_unit(excess, scale, self.risk.half_width)
        steep = _STEEPEST * unit
        with np.errstate(over="ignore"):  # where the scale rests
            slant = float(np.clip(scale * slope[0] / slope[1], -steep, steep)) if along else 0.0
        too_far = abs(slant) * _HALF_WIDTHS[0] / (_HALF_SLANT * unit)
        half_log = _HALF_WIDTHS[0] / max(too_far, 1.0)
        half_excess = _HALF_WIDTHS[1] * unit
        for _ in range(_HALVINGS + 1):
            log_scale = float(np.log(abs(scale)) + along * _AHEAD * half_log)
            center = excess + slant * along * _AHEAD * half_log
            off = half_log * _nodes(_SHAPE[0])[:, None]
            found = self.gradient(
                center + slant * off + half_excess * _nodes(_SHAPE[1]),
                np.sign(scale) * np.exp(log_scale + off) * np.ones(_SHAPE[1]),
            )
            size = float(np.abs(found).max())
            coefficients = np.einsum("ai,bj,ijk->bak", *map(_transform, _SHAPE), found)
            fits_log = bool(np.abs(coefficients[:, -2:]).max() <= _TAIL * size)
            fits_excess = bool(np.abs(coefficients[-2:]).max() <= _TAIL * size)
            if fits_log and fits_excess:
                place = self.n_made % _KEPT
                self.n_made += 1
                self.patches[0][place] = (
                    log_scale,
                    1.0 / half_log,
                    center,
                    1.0 / half_excess,
                    slant,
                    np.sign(scale),
                    _NOISE * size,
                )
                self.patches[1][place] = coefficients.reshape(_SHAPE[1], -1)
                return True
            half_log /= 1.0 if fits_log else 2.0
            half_excess /= 1.0 if fits_excess else 2.0
        return False


def _excess_unit(excess: float, scale: float, width: float) -> float:
    """What errors and widths in the excess are measured by: 1, and less next to the origin."""
    return min(1.0, abs(excess) + width * abs(scale))


excess_unit = kernel(_excess_unit)


def _nodes(size: int) -> NDArray[float64]:
    nodes: NDArray[float64] = np.cos(np.pi * (np.arange(size) + 0.5) / size)
    return nodes


def _transform(size: int) -> NDArray[float64]:
    """Chebyshev coefficients from the numbers at the nodes."""
    rows: NDArray[float64] = np.cos(np.outer(np.arange(size), np.arccos(_nodes(size))))
    rows *= 2.0 / size
    rows[0] /= 2.0
    return rows


@kernel
def patch_gradient(
    patches: Patches,
    n_dropped: int,
    excess: float,
    scale: float,
    row: NDArray[float64],
) -> tuple[float, float, float]:
    """Gradient by excess and scale, and its noise; nan where no patch is.

    `n_dropped` of the last coefficients in both directions are left out; `row` is room for 30
    numbers.
    """
    boxes, coefficients = patches
    log_scale = np.log(abs(scale))
    for p in range(boxes.shape[0]):
        off = log_scale - boxes[p, 0]
        u = off * boxes[p, 1]
        v = (excess - boxes[p, 2] - boxes[p, 4] * off) * boxes[p, 3]
        if not (abs(u) <= 1.0 and abs(v) <= 1.0 and scale * boxes[p, 5] > 0.0):
            continue
        c = coefficients[p]
        n_rows, n_columns = c.shape[0] - n_dropped, c.shape[1] // 2 - n_dropped
        before, now = 1.0, v
        for i in range(2 * n_columns):
            row[i] = c[0, i] + v * c[1, i]
        for j in range(2, n_rows):
            before, now = now, 2.0 * v * now - before
            for i in range(2 * n_columns):
                row[i] += now * c[j, i]
        before, now = 1.0, u
        by_excess, by_scale = row[0] + u * row[2], row[1] + u * row[3]
        for i in range(2, n_columns):
            before, now = now, 2.0 * u * now - before
            by_excess += now * row[2 * i]
            by_scale += now * row[2 * i + 1]
        return by_excess, by_scale, boxes[p, 6]
    return np.nan, np.nan, np.nan
