"""Derivatives of the mean square error on contexts of n examples, without sampling (MODEL §6).

Those of `F` are covariances under the softmax weights, sums over pairs of examples:

    dF/dtheta = (1/2) sum_ij w_i w_j k_ij / (sum w)^2,
    k_ij = (x_i - x_j) (y_i - y_j) for theta = lam,   (x_i - x_j)^2 for theta = mu.

With `1 / W^3 = (1/2) int u^2 exp(-u W) du` the average of `2 (F - alpha) dF/dtheta` becomes

    (n (n-1) / 2) int (n-2) A1 K(g1, g1) phi^(n-3) + 2 K(d g2, g1) phi^(n-2) dy,

where `g_k = (u w)^k exp(-u w)`, `A1 = E[d g1]`, and `K(f, h)` is the average of `f_i h_j k_ij` over
two independent examples. The differences in `k` are taken from where the weights are, so that
nothing cancels; differentiating `E[(F - alpha)^2]` as it stands would lose `mu^3 / n` in digits.
The Hessian differentiates these integrands: `d/dmu` brings down `d = x - alpha`, and `d/dlam`
`y - 1`, which is 0 for the positives and -2 for the negatives.
"""

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.compiled import kernel
from popdyn.design import Design
from popdyn.uniform_moments import has_closed_form, uniform_segments, uniform_transform
from popdyn.weight_transform import (
    FINE,
    G1,
    G1_SLOPE,
    G2,
    G2_SLOPE,
    Transform,
    example_panels,
    transform,
)

__all__ = ["unit_gradient", "unit_hessian"]

# Moments of z for each function of t, in the order in which the kernels read them.
_GRADIENT = np.array([(G1, 0), (G1, 1), (G1, 2), (G2, 0), (G2, 1), (G2, 2), (G2, 3)])
_HESSIAN = np.concatenate(
    [_GRADIENT, [(G1_SLOPE, j) for j in range(4)], [(G2_SLOPE, j) for j in range(5)]]
)
_AT_G2, _AT_G1_SLOPE, _AT_G2_SLOPE = 3, 7, 11
# Below this scale the whole interval is where the weights are.
_LOCAL_SCALE = 1.0
_LOWEST_POWER = -80.0  # exp of it is nothing beside the peak of the integrands


def unit_gradient(
    lam: float,
    delta: float,
    mu: float,
    s: float,
    r: float,
    n_examples: float,
    design: Design,
) -> NDArray[float64]:
    """Mean square error and its derivatives with respect to `lam` and `mu`, shape `(3,)`.

    Scores, distances `s` and `r` to the ends, and results are in units of the half width.
    """
    example, centres = _example((lam, delta, mu, s, r), n_examples, design, _GRADIENT)
    found = _gradient_integrals(example.weights, *example[2:], centres, n_examples)
    if mu < 0.0:
        found[1:] *= -1.0
    return found


def unit_hessian(
    lam: float,
    delta: float,
    mu: float,
    s: float,
    r: float,
    n_examples: float,
    design: Design,
) -> NDArray[float64]:
    """Second derivatives of the mean square error, `[lam lam, lam mu, mu mu]`, shape `(3,)`."""
    example, centres = _example((lam, delta, mu, s, r), n_examples, design, _HESSIAN)
    return _hessian_integrals(example.weights, *example[2:], centres, n_examples)


def _example(
    task: tuple[float, float, float, float, float],
    n_examples: float,
    design: Design,
    channels: NDArray[np.int64],
) -> tuple[Transform, NDArray[float64]]:
    """One example's averages, and `x - alpha` where `z = 0`, by label: shape `(2, size)`."""
    scale = abs(task[2])
    local = scale >= _LOCAL_SCALE
    # In most of the integral the largest of all weights is about 1 / u.
    level = -np.log(max(1.0, 0.5 * n_examples / scale)) if local else 0.0
    origin = (1.0 / scale, level) if local else (0.0, 0.0)
    if has_closed_form(design):
        segments = uniform_segments(task, n_examples, n_examples, design)
        base, example = segments.base, uniform_transform(segments, channels, *origin)
    else:
        law = example_panels(*task, n_examples, design)
        base, example = law.base, transform(law, channels, *origin, FINE)
    if not local:
        return example, np.zeros((2, example.y.size))
    return example, (level - example.y - np.array([[0.0], [base]])) / scale


@kernel
def _gradient_integrals(
    weights: NDArray[float64],
    phi: NDArray[float64],
    log_phi: NDArray[float64],
    moments: NDArray[float64],
    centres: NDArray[float64],
    n: float,
) -> NDArray[float64]:
    found = np.zeros(3)
    g1, g2, gap_g2 = np.empty((2, 3)), np.empty((2, 4)), np.empty((2, 3))
    for k in range(phi.size):
        power = weights[k] * _power(phi[k], log_phi[k], moments[:, _AT_G2, k], n)
        if power == 0.0:
            continue
        centre = centres[:, k]
        _read(g1, moments[:, :, k], 0)
        _read(g2, moments[:, :, k], _AT_G2)
        _times_gap(gap_g2, g2, centre)
        a1, a2 = _mean_gap(g1, centre), _mean_gap(gap_g2, centre)
        found[0] += power * (a2 * phi[k] + (n - 1.0) * a1 * a1)
        pair_power = 0.5 * (n - 1.0) * power
        for theta in range(2):
            triple = a1 * _pairs(theta, g1, g1, centre) / phi[k]
            double = _pairs(theta, gap_g2, g1, centre)
            found[1 + theta] += pair_power * ((n - 2.0) * triple + 2.0 * double)
    return found


@kernel
def _hessian_integrals(
    weights: NDArray[float64],
    phi: NDArray[float64],
    log_phi: NDArray[float64],
    moments: NDArray[float64],
    centres: NDArray[float64],
    n: float,
) -> NDArray[float64]:
    found = np.zeros(3)
    g1, g2, gap_g2 = np.empty((2, 3)), np.empty((2, 4)), np.empty((2, 3))
    slope1, slope2, gap_slope2 = np.empty((2, 4)), np.empty((2, 5)), np.empty((2, 4))
    change1, change2 = np.empty((2, 3)), np.empty((2, 3))  # d/d eta of g1 and of d g2
    for k in range(phi.size):
        power = weights[k] * _power(phi[k], log_phi[k], moments[:, _AT_G2, k], n)
        if power == 0.0:
            continue
        centre = centres[:, k]
        _read(g1, moments[:, :, k], 0)
        _read(g2, moments[:, :, k], _AT_G2)
        _read(slope1, moments[:, :, k], _AT_G1_SLOPE)
        _read(slope2, moments[:, :, k], _AT_G2_SLOPE)
        _times_gap(gap_g2, g2, centre)
        _times_gap(gap_slope2, slope2, centre)
        a1 = _mean_gap(g1, centre)
        pair_power = 0.5 * (n - 1.0) * power
        for eta in range(2):
            if eta == 0:
                _times_label(change1, slope1)
                _times_label(change2, gap_slope2)
                log_phi_change = 2.0 * g1[1, 0] / phi[k]
            else:
                _times_gap(change1, slope1, centre)
                _times_gap(change2, gap_slope2, centre)
                log_phi_change = -a1 / phi[k]
            a1_change = _mean_gap(change1, centre)
            for theta in range(eta + 1):
                pair = _pairs(theta, g1, g1, centre)
                double = _pairs(theta, gap_g2, g1, centre)
                triple_change = (
                    ((n - 3.0) * log_phi_change * a1 + a1_change) * pair
                    + 2.0 * a1 * _pairs(theta, change1, g1, centre)
                ) / phi[k]
                double_change = (
                    (n - 2.0) * log_phi_change * double
                    + _pairs(theta, change2, g1, centre)
                    + _pairs(theta, gap_g2, change1, centre)
                )
                found[theta + eta] += pair_power * ((n - 2.0) * triple_change + 2.0 * double_change)
    return found


@kernel
def _power(phi: float, log_phi: float, g2: NDArray[float64], n: float) -> float:
    """`n phi^(n-2)`, or 0 where the integrands are nothing."""
    if phi == 0.0 or g2[0] + g2[1] == 0.0 or (n - 1.0) * log_phi < _LOWEST_POWER:
        return 0.0
    return float(n * np.exp((n - 2.0) * log_phi))


@kernel
def _read(f: NDArray[float64], moments: NDArray[float64], first: int) -> None:
    for group in range(2):
        for j in range(f.shape[1]):
            f[group, j] = moments[group, first + j]


@kernel
def _times_gap(product: NDArray[float64], f: NDArray[float64], centre: NDArray[float64]) -> None:
    """Moments of `d f` from those of `f`."""
    for group in range(2):
        for j in range(product.shape[1]):
            product[group, j] = f[group, j + 1] + centre[group] * f[group, j]


@kernel
def _times_label(product: NDArray[float64], f: NDArray[float64]) -> None:
    """Moments of `(y - 1) f`."""
    for j in range(product.shape[1]):
        product[0, j] = 0.0
        product[1, j] = -2.0 * f[1, j]


@kernel
def _mean_gap(f: NDArray[float64], centre: NDArray[float64]) -> float:
    """Average of `d f`."""
    return float(f[0, 1] + centre[0] * f[0, 0] + f[1, 1] + centre[1] * f[1, 0])


@kernel
def _pairs(theta: int, f: NDArray[float64], h: NDArray[float64], centre: NDArray[float64]) -> float:
    """`K(f, h)` for `theta` = 0 (`lam`) or 1 (`mu`), from moments about the two centres."""
    shift = centre[0] - centre[1]
    # moments of the positives about the centre of the negatives
    f1, h1 = f[0, 1] + shift * f[0, 0], h[0, 1] + shift * h[0, 0]
    if theta == 0:
        total = f1 * h[1, 0] - f[0, 0] * h[1, 1] + h1 * f[1, 0] - h[0, 0] * f[1, 1]
        return float(2.0 * total)
    f2 = f[0, 2] + shift * (2.0 * f[0, 1] + shift * f[0, 0])
    h2 = h[0, 2] + shift * (2.0 * h[0, 1] + shift * h[0, 0])
    total = f2 * h[1, 0] - 2.0 * f1 * h[1, 1] + f[0, 0] * h[1, 2]
    total += h2 * f[1, 0] - 2.0 * h1 * f[1, 1] + h[0, 0] * f[1, 2]
    for group in range(2):
        total += f[group, 2] * h[group, 0] - 2.0 * f[group, 1] * h[group, 1]
        total += f[group, 0] * h[group, 2]
    return float(total)
