"""One step of collocation along the gradient flow of the closed form, compiled (MODEL §4).

In time, the unknowns are the increments of label score and scale since the start of the step, so
that the excess keeps its digits. Where the scale grows and the label score with it, the scale takes
the place of time: the one unknown left, the increment of the tube coordinate, hardly changes along
the tube, and time is a quadrature. Everything is at unit half width, where the flow is

    dlam/dt = -l^2 dL/dlam,      dmu/dt = -l^4 dL/dmu.
"""

from math import inf, log, log1p

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.compiled import kernel
from popdyn.dynamics.collocation.radau import (
    INTEGRAL,
    MIDDLE,
    MISSED_AT_MIDDLE,
    MISSED_AT_START,
    NODES,
    STAGES,
    factor,
    interpolated,
    solve,
)
from popdyn.risk.closed_form import _risk

__all__ = ["IN_SCALE", "IN_TIME", "moved", "slopes", "slopes_by_increments", "step"]

IN_TIME, IN_SCALE = 0, 1

_MOST_ITERATIONS = 12
_DONE = 1e-3  # a correction, in units of the tolerance, after which no other is wanted
_LEFT = 0.05  # what a converging iteration may leave, in these units
_CONTRACTS = 0.1  # where corrections shrink by less, the Jacobians are renewed
# How many times longer than the last step one may be for its polynomial to give the first guess.
_LONGEST_GUESS = 2.5
# Rounding of the excess of two scores that move by a large amount, in units of the relative
# tolerance: at 1e-12 it is a hundred times the spacing of doubles.
_ROUNDED = 0.01
# Differences are over this part of the length on which the gradient changes, at least 1 away from
# the origin: by the label score the distance to the nearer of the lines `lam = 0` and `delta = 0`,
# by the scale the smaller of itself and the excess.
_DIFFERENCE = 2.0**-26


@kernel
def moved(
    mode: int, lam: float, delta: float, mu: float, z0: float, z1: float, grown: float
) -> tuple[float, float, float]:
    """Label score, excess and scale after the increments of a step.

    In time of label score and scale, in the scale of the tube coordinate as it grew by `grown`.
    """
    if mode == IN_SCALE:
        change = z0 + log1p(grown / mu)
        return lam + (change + grown), delta + change, mu + grown
    return lam + z0, delta + (z0 - z1), mu + z1


@kernel
def slopes(
    mode: int,
    lam: float,
    delta: float,
    mu: float,
    z0: float,
    z1: float,
    grown: float,
    square: float,
) -> tuple[float, float]:
    """Slopes after the increments of a step; `square` is `l^2`.

    In time `dlam/dt` and `dmu/dt`, in the scale `dc/dmu` and `dt/dmu`.
    """
    lam, delta, mu = moved(mode, lam, delta, mu, z0, z1, grown)
    _, g_lam, g_mu = _risk(lam, delta, mu)
    if mode == IN_TIME:
        return -square * g_lam, -square * square * g_mu
    if not g_mu < 0.0:  # the scale does not grow
        return inf, inf
    return g_lam / (square * g_mu) - 1.0 - 1.0 / mu, -1.0 / (square * square * g_mu)


@kernel
def slopes_by_increments(
    mode: int,
    lam: float,
    delta: float,
    mu: float,
    z0: float,
    z1: float,
    grown: float,
    square: float,
    f0: float,
    f1: float,
) -> tuple[float, float, float, float]:
    """Jacobian of the slopes `f0, f1` by the increments, by rows; in the scale by `z0` alone.

    By differences, so good that paths take as many steps and iterations as with the Hessian. That
    takes two seconds more to compile; to evaluate it takes more in the scale and less in time.
    """
    at_lam, at_delta, at_mu = moved(mode, lam, delta, mu, z0, z1, grown)
    least = min(max(abs(at_lam), abs(at_mu)), 1.0)
    near = abs(at_delta) if mode == IN_SCALE else min(abs(at_lam), abs(at_delta))
    moved0 = z0 + _DIFFERENCE * max(near, least)
    part = 1.0 / (moved0 - z0)
    g0, g1 = slopes(mode, lam, delta, mu, moved0, z1, grown, square)
    j00, j10 = (g0 - f0) * part, (g1 - f1) * part
    if mode == IN_SCALE:
        return j00, 0.0, j10, 0.0
    moved1 = z1 + _DIFFERENCE * max(min(abs(at_mu), abs(at_delta)), least)
    part = 1.0 / (moved1 - z1)
    g0, g1 = slopes(mode, lam, delta, mu, z0, moved1, grown, square)
    return j00, (g0 - f0) * part, j10, (g1 - f1) * part


@kernel
def step(
    mode: int,
    start: NDArray[float64],
    h: float,
    time: float,
    width: float,
    tolerances: NDArray[float64],
    rows: NDArray[float64],
    before: NDArray[float64],
    h_before: float,
    work: NDArray[float64],
    pivots: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> float:
    """Error of one step in units of the tolerance; inf if the equations were not solved.

    The error is that of the polynomial between the nodes; at the end of the step it is far smaller.

    Parameters
    ----------
    mode : int
        `IN_TIME` or `IN_SCALE`.
    start : ndarray
        Label score, excess and scale.
    h, time : float
        Length of the step, and the time at its start.
    tolerances : ndarray
        Relative and absolute.
    rows : ndarray, shape (2, STAGES)
        Gets the increments at the nodes, each divided by its node: in time those of label score
        and scale, in the scale those of the tube coordinate and of time.
    before, h_before
        Rows and length of the step before in the same mode; length 0 if there was none.
    work, pivots
        Room for the linear system.
    counts : ndarray
        Evaluations of the gradient, those for differences among them, and Jacobians are added to
        the first two.
    """
    lam, delta, mu = start[0], start[1], start[2]
    square = width * width
    rtol, atol = tolerances[0], tolerances[1]
    unknowns = 1 if mode == IN_SCALE else 2
    n = unknowns * STAGES
    z = np.empty((2, STAGES))
    f = np.empty((2, STAGES))
    jacobian = np.empty((4, STAGES))
    right = np.empty(n)

    first0, first1 = slopes(mode, lam, delta, mu, 0.0, 0.0, 0.0, square)
    if not abs(first0) + abs(first1) < inf:
        return inf
    per_jacobian = 1 if mode == IN_SCALE else 2
    counts[0] += 1

    for i in range(STAGES):
        z[1, i] = 0.0
    if 0.0 < h <= _LONGEST_GUESS * h_before:
        for k in range(unknowns):
            for i in range(STAGES):
                place = 1.0 + NODES[i] * h / h_before
                z[k, i] = place * interpolated(before[k], place) - before[k, STAGES - 1]
    else:
        stiff = 0.0
        if mode == IN_SCALE:  # a stiff c hardly moves
            j00, _, _, _ = slopes_by_increments(
                mode, lam, delta, mu, 0.0, 0.0, 0.0, square, first0, first1
            )
            stiff = max(0.0, -j00)
            counts[0] += 1
            counts[1] += 1
        for i in range(STAGES):
            z[0, i] = first0 * NODES[i] * h / (1.0 + stiff * NODES[i] * h)
            if mode == IN_TIME:
                z[1, i] = first1 * NODES[i] * h

    # In time relative to the radius: next to the origin the weights themselves may be no doubles.
    if mode == IN_SCALE:
        unit = 1.0
        weight0 = rtol * abs(delta - log(mu)) + atol
        weight1 = weight_excess = inf
    else:
        unit = max(abs(lam), abs(mu))
        floor = atol * min(1.0, 1.0 / unit)
        largest = 0.0
        for i in range(STAGES):
            largest = max(largest, abs(z[0, i]), abs(z[1, i]))
        weight0 = rtol * (abs(lam) / unit) + floor
        weight1 = rtol * (abs(mu) / unit) + floor
        weight_excess = rtol * ((abs(delta) + _ROUNDED * largest) / unit) + floor

    renew, solved = True, False
    last = inf
    for _ in range(_MOST_ITERATIONS):
        for i in range(STAGES):
            z0, z1, grown = z[0, i], z[1, i], NODES[i] * h
            f0, f1 = slopes(mode, lam, delta, mu, z0, z1, grown, square)
            if not abs(f0) + abs(f1) < inf:
                return inf
            f[0, i], f[1, i] = f0, f1
            if renew:
                j00, j01, j10, j11 = slopes_by_increments(
                    mode, lam, delta, mu, z0, z1, grown, square, f0, f1
                )
                jacobian[0, i], jacobian[1, i] = j00, j01
                jacobian[2, i], jacobian[3, i] = j10, j11
        counts[0] += STAGES
        if renew:
            counts[0] += STAGES * per_jacobian
            counts[1] += STAGES
            for i in range(STAGES):
                for j in range(STAGES):
                    part = -h * INTEGRAL[i, j]
                    for k in range(unknowns):
                        for m in range(unknowns):
                            work[unknowns * i + k, unknowns * j + m] = part * jacobian[2 * k + m, j]
            for i in range(n):
                work[i, i] += 1.0
            if not factor(work, pivots, n):
                return inf
        for i in range(STAGES):
            for k in range(unknowns):
                total = 0.0
                for j in range(STAGES):
                    total += INTEGRAL[i, j] * f[k, j]
                right[unknowns * i + k] = h * total - z[k, i]
        solve(work, pivots, right, n)
        size = 0.0
        for i in range(STAGES):
            u = right[unknowns * i]
            v = right[unknowns * i + 1] if mode == IN_TIME else 0.0
            z[0, i] += u
            z[1, i] += v
            # to first order, so that slopes and increments belong together
            f[0, i] += jacobian[0, i] * u + jacobian[1, i] * v
            f[1, i] += jacobian[2, i] * u + jacobian[3, i] * v
            part = _size(u / unit, v / unit, weight0, weight1, weight_excess)
            size = max(size, part) if part < inf else inf
        rate = size / last
        if not (size < inf and rate < 2.0):
            return inf
        if size <= _DONE or (rate < 1.0 and size * rate <= _LEFT * (1.0 - rate) and last < inf):
            solved = True
            break
        renew = rate > _CONTRACTS
        last = size
    if not solved:
        return inf

    for i in range(STAGES):
        rows[0, i] = z[0, i] / NODES[i]
        if mode == IN_TIME:
            rows[1, i] = z[1, i] / NODES[i]
        else:
            total = 0.0
            for j in range(STAGES):
                total += INTEGRAL[i, j] * f[1, j]
            rows[1, i] = h * total / NODES[i]

    error = 0.0
    for middle in range(2):
        place, short, near = 0.0, MISSED_AT_START * h, 0
        f0, f1 = first0, first1
        elapsed = short * first1
        if middle:
            place, short, near = MIDDLE, MISSED_AT_MIDDLE * h, STAGES // 2
            at0, at1 = place * interpolated(rows[0], place), place * interpolated(rows[1], place)
            f0, f1 = slopes(mode, lam, delta, mu, at0, at1, place * h, square)
            counts[0] += 1
            elapsed = at1
        j00, j01 = jacobian[0, near], jacobian[1, near]
        j10, j11 = jacobian[2, near], jacobian[3, near]
        u = short * (interpolated(f[0], place) - f0)
        v = short * (interpolated(f[1], place) - f1)
        if mode == IN_SCALE:
            # a stiff coordinate forgets what its slope missed
            error = max(error, abs(u) / (1.0 + short * max(0.0, -j00)) / weight0)
            part = abs(v) / (time + elapsed) / rtol
        else:
            u, v = u / unit, v / unit
            part = _size(u, v, weight0, weight1, weight_excess)
            m00, m01, m10, m11 = 1 - short * j00, -short * j01, -short * j10, 1 - short * j11
            if m00 + m11 >= 2.0:
                u, v = m11 * u - m01 * v, m00 * v - m10 * u
                determinant = abs(m00 * m11 - m01 * m10)
                part = min(part, _size(u, v, weight0, weight1, weight_excess) / determinant)
        error = max(error, part) if part < inf else inf
    return error


@kernel
def _size(u: float, v: float, weight0: float, weight1: float, weight_excess: float) -> float:
    """Largest of the errors of two coordinates and of their difference in units of the weights."""
    return max(abs(u) / weight0, abs(v) / weight1, abs(u - v) / weight_excess)
