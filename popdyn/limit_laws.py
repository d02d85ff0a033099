"""The predicted laws beyond the population flow: densities, noise, contexts, pairs (MODEL §6, §7).

An independent witness, as `popdyn.asymptotics`: nothing here evaluates a risk.
"""

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray
from scipy.special import lambertw

from popdyn.arguments import one_width, positive
from popdyn.asymptotics import scale_at, tube_limit

__all__ = [
    "averaged_risk_at",
    "boundary_limits",
    "context_rms",
    "density_tube_center",
    "label_score_cap",
    "localized_floor",
    "pair_fifth_power_rate",
    "pair_layer",
    "pair_risk_at",
    "pair_rms",
    "prior_averaged_risks",
    "saturation_scale",
]

_PAIR = np.pi**2 / 6 - 1.2020569031595942854  # zeta(2) - zeta(3)


def density_tube_center(end_ratio: ArrayLike, half_width: float = 1.0) -> NDArray[float64]:
    """Limit `log(2 (1 + l^2) f(l)/f(-l))/2` of `c` for features of density `f` (MODEL §7).

    `end_ratio` is `f(l)/f(-l)`; the growth of the scale is that of uniform features. First
    neglected term: of order `1/mu`.
    """
    return np.log(positive("end_ratio", end_ratio)) / 2 + tube_limit(half_width)


def label_score_cap(flip_probability: ArrayLike) -> NDArray[float64]:
    """Label score `atanh(1 - 2 p)` that training on labels flipped at rate `p` nears (MODEL §7).

    Exact: on an infinite context the flips act as `tanh(lam) -> (1 - 2 p) tanh(lam)`.
    """
    p = positive("flip_probability", flip_probability)
    if not (p < 0.5).all():
        raise ValueError(f"flip_probability must be below 1/2, got {flip_probability!r}")
    return np.asarray((np.log1p(-p) - np.log(p)) / 2, dtype=float64)


def saturation_scale(flip_probability: ArrayLike, half_width: float = 1.0) -> NDArray[float64]:
    """Scale `w/l`, `w exp(w) = exp(cap)/sqrt(2)`, at which label noise ends training (MODEL §7).

    Here `cap` is `label_score_cap`. First neglected term: relative, of order `1/(mu l)^2`.
    """
    weight = lambertw(np.exp(label_score_cap(flip_probability)) / np.sqrt(2))
    return np.asarray(weight.real / one_width(half_width), dtype=float64)


def localized_floor(scale: float, probability: float) -> float:
    """Error `|F - alpha|` on an infinite context with flips within `1/mu`, interior (MODEL §7).

    The positives have the density `exp(u)` at `u = mu (x - alpha) < 0`, less a share `p` on
    `[-1, 0]`, and a share `p` of it on `[0, 1]`; neglected is `exp(-mu l)`. Its mean is
    `-(1 - p (2 - 2/e)) / (1 + p (e - 2 + 1/e))`: flips offset the bias of the clean head.
    """
    p, e = probability, np.e
    return float(abs(1.0 - p * (2.0 - 2.0 / e)) / (1.0 + p * (e - 2.0 + 1.0 / e)) / scale)


def boundary_limits(
    examples_per_scale: float, probability: float, half_width: float = 1.0
) -> tuple[float, float]:
    """RMS at `-l` as `N -> oo` at one `N/mu`: clean, and flips within `1/mu` (MODEL §2, §7).

    Without a positive example the head answers near the far end, an error of `2 l`. Clean contexts
    never have one; with flips they lack one at the rate `exp(-p N/(2 l mu))`.
    """
    width = one_width(half_width)
    missing = np.exp(-probability * examples_per_scale / (2.0 * width))
    return 2.0 * width, float(2.0 * width * np.sqrt(missing))


def pair_layer(half_width: float = 1.0) -> float:
    """Limit `3 (zeta(2) - zeta(3))/(4 l (1 + l^2))` of `q mu^3` for a pair's training (MODEL §7).

    The reflected pair follows the risk of its average. First neglected term: relative, of order
    `log(mu)/mu`.
    """
    width = one_width(half_width)
    return 3 * _PAIR / (4 * width * (1 + width**2))


def pair_fifth_power_rate(half_width: float = 1.0) -> float:
    """Limit `15 (zeta(2) - zeta(3))/(2 l (1 + l^2))` of `mu^5/t` for a pair's training (MODEL §7).

    First neglected term: relative, of order `1/mu`, without a logarithm.
    """
    return 10 * pair_layer(half_width)


def pair_risk_at(time: ArrayLike, half_width: float = 1.0) -> NDArray[float64]:
    """Risk of a pair in training, `(zeta(2) - zeta(3))/(2 l) mu^-3` at `mu^5 ~ t` (MODEL §7).

    First neglected term: relative, of order `1/mu`.
    """
    t, width = positive("time", time), one_width(half_width)
    return _PAIR / (2 * width) * (pair_fifth_power_rate(width) * t) ** -0.6


def averaged_risk_at(time: ArrayLike, half_width: float = 1.0) -> NDArray[float64]:
    """Risk of the pair that a head trained for itself forms, by the tube's laws (MODEL §4, §7).

    The risk `l q/mu + (zeta(2) - zeta(3))/(2 l) mu^-3` of a pair where the flow of one head has
    brought it: `q mu^2 = exp(-2 c*)` at `mu^4 ~ t`. First neglected term: relative, of order
    `log(mu)/mu`.
    """
    width = one_width(half_width)
    share = width * np.exp(-2 * tube_limit(width)) + _PAIR / (2 * width)
    return np.asarray(share / scale_at(time, width, order=0) ** 3, dtype=float64)


def context_rms(
    scale: ArrayLike, n_examples: ArrayLike, half_width: float = 1.0
) -> NDArray[float64]:
    """RMS error `sqrt(1/mu^2 + 8 l^2/N^2)` at an interior threshold on `N` examples (MODEL §6).

    Exact in both limits of `N/(2 l mu)`. For `N` and `mu` both large the RMS is never below this,
    and at most 5.8 % above, near `N = 4.7 l mu`.
    """
    mu, n = positive("scale", scale), positive("n_examples", n_examples)
    width = one_width(half_width)
    return np.asarray(np.hypot(1 / mu, np.sqrt(8) * width / n), dtype=float64)


def pair_rms(scale: ArrayLike, n_examples: ArrayLike, half_width: float = 1.0) -> NDArray[float64]:
    """RMS error `sqrt(2 l^2/N^2 + l/(4 N mu))` of a reflected pair, as `context_rms` (MODEL §7).

    Exact in both limits. For `N` and `mu` both large the RMS is never above this, and at most 15 %
    below, near `N = 6.4 l mu`.
    """
    mu, n = positive("scale", scale), positive("n_examples", n_examples)
    width = one_width(half_width)
    spread = np.sqrt(width / (4 * n * mu))
    return np.asarray(np.hypot(np.sqrt(2) * width / n, spread), dtype=float64)


def prior_averaged_risks(n_examples: ArrayLike, half_width: float = 1.0) -> NDArray[float64]:
    """Risks on `N` examples as `mu -> oo`: of a head, of a reflected pair, of Bayes (MODEL §7).

    `4 l^2 N/((N + 1)(N + 2))`, `2 l^2/(N + 2)` and `2 l^2/((N + 2)(N + 3))`, exact where
    `lam > mu l`.

    Returns
    -------
    ndarray, shape (3, ...)
    """
    n, width = positive("n_examples", n_examples), one_width(half_width)
    shares = [2 * n / (n + 1), np.ones_like(n), 1 / (n + 3)]
    return np.asarray(2 * width**2 / (n + 2) * np.stack(shares), dtype=float64)
