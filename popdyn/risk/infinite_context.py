"""Risk on infinite contexts by quadrature over thresholds, or of drawn tasks (MODEL §2, §7)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.attention import (
    density_groups,
    exponent_at,
    exponents,
    first_derivatives,
    noisy_groups,
    second_derivatives,
    uniform_groups,
)
from popdyn.compiled import kernel
from popdyn.coordinates import Head
from popdyn.design import Design, require_design
from popdyn.exponentials import changes_from_uniform
from popdyn.quadrature import BoundaryGraded, Rule, unit_scores
from popdyn.risk.cut_panels import FlipGraded
from popdyn.risk.protocol import require_half_width

__all__ = ["InfiniteContextRisk", "change_from_origin"]

_Rows = tuple[NDArray[float64], NDArray[float64], NDArray[float64], NDArray[float64]]

# Of the sums, relative; with a margin of two over the worst error measured on the whole plane.
_ROUNDING = 2e-14
_BLOCK = 256  # heads whose nodes are held in memory at a time
# Radius below which the gradient is taken as the change from the origin, where it is zero: the sum
# of its parts of order one would leave rounding errors of 1e-17 there.
_SMALL_RADIUS = 0.25


@dataclass(frozen=True)
class InfiniteContextRisk:
    """Risk of a head on infinite contexts, integrated over thresholds by a rule (MODEL §2).

    The differentiated integrand is integrated, `dF/dlam = Cov_w(x, y)` and `dF/dmu = Var_w(x)`; a
    rule is never differentiated. With `gauss_legendre` and `equal_weights`, whose nodes are fixed,
    derivatives are those of the discretized risk exactly; with `boundary_graded`, whose nodes move
    with the head, up to quadrature error.

    Measured with `boundary_graded()` and the uniform design against arbitrary precision, over the
    whole plane (`mu l` from 1e-300 to 1e12 and either sign, `lam` and `delta` of any size): value
    3e-15, gradient 7e-15 in the norm `max(|g_lam|, |g_mu| / l)`, or one spacing of an input.
    Hessian 1e-13, but for `0 < lam < mu l`, where the integrals of second derivatives cancel, and
    `1e-16 mu l` of them is left. Nonuniform smooth densities, positive at both ends: 4e-15; but
    where a symmetric one makes the gradient vanish at the origin, 1e-17 of rounding stay there.

    With label noise `boundary_graded` stands for panels that are graded for the flips too. Measured
    for the laws of MODEL §7 and `|mu| l` up to 100: value 1e-14, gradient 2e-14, Hessian 1e-13, or
    1e-16 where derivatives nearly cancel; in 2 ms at `mu l = 3` and 10 ms at 100, and in time that
    grows with the scale. Of a law that varies over 1/10 of the half width without break points the
    gradient is known to 1e-10, and better with a rule of higher order.

    Attributes
    ----------
    design : Design
        Half width, laws of features, thresholds and flips.
    rule : Rule
        `boundary_graded()`, `gauss_legendre(order)`, or `equal_weights(thresholds)` for the risk
        of drawn tasks (whose weights take no threshold density: they were drawn from it).

    Raises
    ------
    ValueError
        If `design` or `rule` is something else. Methods: if the head has another half width or a
        scale beyond `1e300 / half_width`, or a drawn threshold lies outside the interval.

    Examples
    --------
    >>> from popdyn.quadrature import boundary_graded
    >>> risk = InfiniteContextRisk(Design(), boundary_graded())
    >>> print(f"{risk.value(Head.from_ratio(1.5, 5)):.14f}")
    0.03222617532842
    """

    design: Design
    rule: Rule

    def __post_init__(self) -> None:
        require_design(self.design)
        if not (callable(self.rule) and hasattr(self.rule, "is_sample")):
            raise ValueError(
                f"rule must be a quadrature rule, got {self.rule!r}; use boundary_graded()"
            )

    @property
    def half_width(self) -> float:
        return self.design.half_width

    def value(self, head: Head) -> NDArray[float64]:
        """Risk, shape `(...)`."""
        return self.value_and_gradient(head)[0]

    def gradient(self, head: Head) -> NDArray[float64]:
        """Gradient, shape `(..., 2)`."""
        return self.value_and_gradient(head)[1]

    def value_and_gradient(self, head: Head) -> tuple[NDArray[float64], NDArray[float64]]:
        """Risk and gradient from one pass, shapes `(...)` and `(..., 2)`."""
        width = self.half_width
        found = self._integrate(head, hessian=False)
        scaled: NDArray[float64] = found * np.array([width**2, width**2, width**3])
        value: NDArray[float64] = scaled[..., 0][()]
        return value, scaled[..., 1:]

    def hessian(self, head: Head) -> NDArray[float64]:
        """Hessian, shape `(..., 2, 2)`."""
        width = self.half_width
        found = self._integrate(head, hessian=True)
        scaled: NDArray[float64] = found * np.array([width**2, width**3, width**4])
        entries: NDArray[float64] = scaled[..., [0, 1, 1, 2]]
        return entries.reshape(*head.shape, 2, 2)

    def error_estimate(self, head: Head) -> tuple[NDArray[float64], NDArray[float64]]:
        """Bound on the error of `value` and `gradient`, shapes `(...)` and `(..., 2)`.

        The change from the rule to its companion (the graded rule of fewer nodes a panel, or the
        graded rule itself for a plain one), and rounding.

        Raises
        ------
        ValueError
            If the rule is a sample of drawn tasks, which has no quadrature error.
        """
        companion = self.rule.companion
        if companion is None:
            raise ValueError(
                f"error_estimate needs a rule that approximates an integral, got {self.rule!r}; "
                "drawn tasks are summed exactly"
            )
        value, gradient = self.value_and_gradient(head)
        other = InfiniteContextRisk(self.design, companion)
        other_value, other_gradient = other.value_and_gradient(head)
        size = np.maximum(np.abs(gradient[..., 0]), np.abs(gradient[..., 1]) / self.half_width)
        rounding = _ROUNDING * size[..., None] * np.array([1.0, self.half_width])
        return (
            np.abs(value - other_value) + _ROUNDING * value,
            np.abs(gradient - other_gradient) + rounding,
        )

    def _integrate(self, head: Head, *, hessian: bool) -> NDArray[float64]:
        """Risk and gradient, or the three entries of the Hessian, on `[-1, 1]`: `(..., 3)`."""
        require_half_width(self, head)
        lam, delta, mu = (np.array(score).ravel() for score in unit_scores(head))
        found = np.empty((mu.size, 3))
        for start in range(0, mu.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            nodes = self._unit_nodes(_as_seen_by_rule(head, block, self._layer_shift))
            rows = *nodes, lam[block], delta[block], mu[block]
            if self.design.feature_density is not None or self.design.noise is not None:
                found[block] = self._sums_of_groups(rows, hessian)
            else:
                centred = self.design.is_uniform and not self.rule.is_sample
                found[block] = _uniform_sums(*rows, centred, hessian)
        return found.reshape(*head.shape, 3)

    @cached_property
    def _layer_shift(self) -> float:
        """Half the log of `f(l) / f(-l)`: by so much the label score looks lower near the ends.

        The boundary layers have width `q f(l) / (f(-l) mu)` (MODEL §7). A rule graded for another
        width has a pole of the integrand close to the end of its first panel.
        """
        density = self.design.feature_density
        if density is None:
            return 0.0
        at_lower, at_upper = np.asarray(density(np.array([-1.0, 1.0]) * self.half_width))
        return 0.5 * float(np.log(at_upper / at_lower)) if at_lower > 0.0 < at_upper else 0.0

    def _unit_nodes(self, head: Head) -> _Rows:
        """Distances for half width 1, weights and exponents: rows, one for all heads or one each.

        No row of exponents if the rule gives none.
        """
        width = self.half_width
        rule, noise = self.rule, self.design.noise
        if noise is not None and isinstance(rule, BoundaryGraded):
            rule = FlipGraded(noise, rule.order)
        lower, upper, weights, exponent = rule(head)
        density = self.design.threshold_density
        if density is not None and not self.rule.is_sample:
            thresholds = np.where(lower < upper, lower - width, width - upper)
            weights = weights * (2.0 * width * np.asarray(density(thresholds), dtype=float64))
        if exponent is None:
            exponent = np.empty((0, lower.shape[-1]))
        s, r, weights, exponent = (
            np.ascontiguousarray(array).reshape(-1, array.shape[-1])
            for array in (lower / width, upper / width, weights, exponent)
        )
        return s, r, weights, exponent

    def _sums_of_groups(
        self, rows: tuple[NDArray[float64], ...], hessian: bool
    ) -> NDArray[float64]:
        s, r, weights, _, lam, delta, mu = rows
        sums = np.empty((mu.size, 3))
        for i in range(mu.size):
            row = i if len(s) > 1 else 0
            sign = -1.0 if mu[i] < 0.0 else 1.0
            ends = (s[row], r[row]) if sign > 0.0 else (r[row], s[row])
            seen = self.design if sign > 0.0 else self.design.mirrored
            groups = _groups(seen, ends, sign * lam[i], sign * delta[i], sign * mu[i])
            if hessian:
                sums[i] = _hessian_sums(groups, weights[row])
            else:
                sums[i] = _gradient_sums(groups, weights[row])
                sums[i, 1:] *= sign
        return sums


def _groups(
    design: Design,
    ends: tuple[NDArray[float64], NDArray[float64]],
    lam: float,
    delta: float,
    mu: float,
) -> NDArray[float64]:
    """What `uniform_groups` returns, for each task, where features or labels are not uniform."""
    if design.noise is not None:
        return noisy_groups(design, *ends, lam, delta, mu)
    assert design.feature_density is not None
    lams, deltas, rates = (np.full(ends[0].size, score) for score in (lam, delta, mu))
    exponent = exponents(*ends, lams, deltas, rates)
    return density_groups(design.feature_density, design.half_width, *ends, exponent, rates)


def _as_seen_by_rule(head: Head, block: slice, shift: float) -> Head:
    """Some of the heads, in their order in the ravelled array, with layers like theirs."""
    if shift == 0.0 and np.size(head.scale) <= _BLOCK:
        return head
    excess = np.ravel(head.excess)[block] - shift
    return Head(
        np.ravel(head.label_score)[block] - shift,
        excess,
        np.ravel(head.scale)[block],
        head.half_width,
        ("excess", excess),
    )


@kernel
def _uniform_sums(
    lower: NDArray[float64],
    upper: NDArray[float64],
    weights: NDArray[float64],
    exponents: NDArray[float64],
    label_scores: NDArray[float64],
    excesses: NDArray[float64],
    scales: NDArray[float64],
    centred: bool,
    hessian: bool,
) -> NDArray[float64]:
    """Risk and gradient of each head, or the entries of its Hessian.

    `centred`: near the origin the gradient is summed as its change from there.
    """
    sums = np.empty((scales.size, 3))
    groups = np.empty((8, lower.shape[1]))
    for i in range(scales.size):
        row = i if lower.shape[0] > 1 else 0
        mirrored = scales[i] < 0.0
        sign = -1.0 if mirrored else 1.0
        lam, delta, mu = sign * label_scores[i], sign * excesses[i], sign * scales[i]
        low, high = (upper[row], lower[row]) if mirrored else (lower[row], upper[row])
        for j in range(low.size):
            if exponents.shape[0] > 0:
                exponent = exponents[row, j]
            else:
                exponent = exponent_at(low[j], high[j], lam, delta, mu)
            groups[:, j] = uniform_groups(low[j], high[j], exponent, mu)
        if hessian:
            sums[i] = _hessian_sums(groups, weights[row])
            continue
        value, d_lam, d_mu = _gradient_sums(groups, weights[row])
        if centred and max(abs(lam), mu) < _SMALL_RADIUS:
            d_lam, d_mu = _centred_gradient(groups, weights[row], low, high, lam, mu)
        sums[i] = value, sign * d_lam, sign * d_mu
    return sums


@kernel
def _centred_gradient(
    groups: NDArray[float64],
    weights: NDArray[float64],
    lower: NDArray[float64],
    upper: NDArray[float64],
    lam: float,
    mu: float,
) -> tuple[float, float]:
    """The gradient from changes since the zero head: see `change_from_origin`."""
    d_lam, d_mu = 0.0, 0.0
    for j in range(weights.size):
        _, covariance, variance = first_derivatives(
            groups[0, j], groups[1, j], groups[2, j], groups[3, j], groups[4, j], groups[5, j]
        )
        moved, more_covariance, more_variance = change_from_origin(lower[j], upper[j], lam, mu)
        threshold = 0.5 * (lower[j] - upper[j])
        d_lam += weights[j] * (moved * covariance - threshold * more_covariance)
        d_mu += weights[j] * (moved * variance - threshold * more_variance)
    return 2.0 * d_lam, 2.0 * d_mu


@kernel
def change_from_origin(s: float, r: float, lam: float, mu: float) -> tuple[float, float, float]:
    """`F`, `Cov - Cov_0` and `Var - Var_0` for uniform features, `_0` at the zero head.

    `F_0 = 0`; so `E[(F - alpha) Cov] = E[F Cov - alpha (Cov - Cov_0)]` on a symmetric rule, where
    every term is of the order of the radius.
    """
    a_s, v_s, log_mass_s = changes_from_uniform(mu * s)
    a_r, v_r, log_mass_r = changes_from_uniform(mu * r)
    positive, negative = 0.5 * s, 0.5 * r  # weights of the groups at the zero head
    odds = mu - 2.0 * lam + log_mass_r - log_mass_s
    growth = np.expm1(odds)
    shift = -positive * negative * growth / (1.0 + negative * growth)  # of the positive weight
    more_spread = s * a_s - r * a_r  # A + B is 1 at the zero head
    spread = 1.0 + more_spread
    now = positive + shift
    more_both = shift * (negative - positive) - shift * shift
    moved = -shift * spread - positive * s * a_s - negative * r * a_r
    more_covariance = -2.0 * (more_both * spread + positive * negative * more_spread)
    more_variance = (
        shift * (s * s - r * r) / 12.0
        + now * s * s * v_s
        + (1.0 - now) * r * r * v_r
        + more_both * spread * spread
        + positive * negative * more_spread * (2.0 + more_spread)
    )
    return moved, more_covariance, more_variance


@kernel
def _gradient_sums(
    groups: NDArray[float64], weights: NDArray[float64]
) -> tuple[float, float, float]:
    value, d_lam, d_mu = 0.0, 0.0, 0.0
    for j in range(weights.size):
        error, covariance, variance = first_derivatives(
            groups[0, j], groups[1, j], groups[2, j], groups[3, j], groups[4, j], groups[5, j]
        )
        value += weights[j] * error * error
        d_lam += weights[j] * error * covariance
        d_mu += weights[j] * error * variance
    return value, 2.0 * d_lam, 2.0 * d_mu


@kernel
def _hessian_sums(
    groups: NDArray[float64], weights: NDArray[float64]
) -> tuple[float, float, float]:
    ll, ls, ss = 0.0, 0.0, 0.0
    for j in range(weights.size):
        p, n, below, above, v_plus, v_minus, slope_plus, slope_minus = groups[:, j]
        error, covariance, variance = first_derivatives(p, n, below, above, v_plus, v_minus)
        f_ll, f_ls, f_ss = second_derivatives(
            p, n, below, above, v_plus, v_minus, slope_plus, slope_minus
        )
        ll += weights[j] * (covariance * covariance + error * f_ll)
        ls += weights[j] * (covariance * variance + error * f_ls)
        ss += weights[j] * (variance * variance + error * f_ss)
    return 2.0 * ll, 2.0 * ls, 2.0 * ss
