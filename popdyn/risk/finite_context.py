"""Risk of infinitely many tasks with n examples each, without sampling (MODEL §6)."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.arguments import count
from popdyn.context_derivatives import unit_gradient, unit_hessian
from popdyn.coordinates import Head
from popdyn.design import Design
from popdyn.moments import require_moderate, unit_moments
from popdyn.noise import LabelFlips
from popdyn.quadrature import Nodes, Rule
from popdyn.risk.cut_panels import cut_panels, flip_cuts, nodes_of_heads
from popdyn.risk.protocol import require_half_width

__all__ = ["EndGraded", "FiniteContextRisk", "end_graded"]

_DEFAULT_ORDER = 16


def end_graded(
    n_examples: int, order: int = _DEFAULT_ORDER, noise: LabelFlips | None = None
) -> "EndGraded":
    """Gauss-Legendre panels that grow by 4 away from the layers of the risk on n examples.

    Near either end a context may have no positive or no negative example: a layer of width `l / n`,
    and one of `1 / mu` inside or outside it. For `0 < lam < mu l` there is a third, at the
    threshold where the best negatives begin to outweigh the best positives, `mu s = -2 delta`.
    About 100 nodes at `n = 16`, 200 at 1000. Label noise adds the thresholds where one of its break
    points leaves the interval, and those where flipped labels begin to outweigh the others.

    Parameters
    ----------
    n_examples : int
        Examples in a context.
    order : int
        Nodes of a panel, from 4 to 100. The default gives full double precision for the uniform
        design; densities that vary on a scale much below `half_width` may need more.
    noise : LabelFlips, optional
        Of the design.

    Raises
    ------
    ValueError
        If one of the two numbers is not a whole number in its range.
    """
    whole = isinstance(order, int | np.integer) and not isinstance(order, bool)
    if not (whole and 4 <= order <= 100):
        raise ValueError(f"order must be a whole number from 4 to 100, got {order!r}")
    return EndGraded(count("n_examples", n_examples), int(order), noise)


@dataclass(frozen=True)
class EndGraded:
    """What `end_graded` returns."""

    n_examples: int
    order: int = _DEFAULT_ORDER
    noise: LabelFlips | None = None
    is_sample = False

    def __call__(self, head: Head) -> Nodes:
        return nodes_of_heads(head, self._unit_nodes)

    @property
    def companion(self) -> Rule:
        return EndGraded(self.n_examples, self.order - max(2, self.order // 5), self.noise)

    def _unit_nodes(self, lam: float, delta: float, mu: float, unit: float) -> NDArray[float64]:
        if self.noise is None:
            turn = -2.0 * delta / mu if abs(delta) < mu else 0.0
            cuts = [(0.0, 2.0), (2.0, 0.0)]
            if 0.0 < turn < 2.0:
                cuts.insert(1, (turn, 2.0 - turn))
        else:
            cuts, *_ = flip_cuts(self.noise, unit, lam, mu)
        layer = 2.0 / max(mu, self.n_examples, 2.0)
        return cut_panels(cuts, [layer] * len(cuts), self.order)


@dataclass(frozen=True)
class FiniteContextRisk:
    """Risk of a head on contexts of n examples, at infinitely many tasks (MODEL §6).

    Nothing is sampled: the mean square error of every threshold is exact, and a rule averages over
    thresholds. Derivatives integrate the differentiated integrands; the rule is not differentiated.
    Measured with the default rule, for `mu l` from 0 to 400 and 1 to 1000 examples: value 1e-14,
    gradient 1e-13 and Hessian 1e-12 relative, derivatives in the norm of their largest component;
    near the origin, where it vanishes, 1e-16 of the gradient is left; so with label noise. Value
    and gradient take about 0.05 s at any scale up to the largest, 1e5; more with `massart` or
    `localized` noise. With a feature density or other noise, 0.1 s at `mu l = 50`, and the time
    grows with the scale.

    Attributes
    ----------
    n_examples : int
        Examples in a context, at least 1.
    design : Design
        Half width, laws of features, thresholds and flips; uniform and clean on `[-1, 1]` by
        default.
    rule : Rule
        `end_graded(n_examples, noise=design.noise)` by default; `equal_weights(thresholds)` for
        drawn tasks whose contexts are averaged over (and whose weights take no threshold density).

    Raises
    ------
    ValueError
        If an attribute is something else. Methods: if the head has another half width or too large
        a scale.

    Examples
    --------
    >>> risk = FiniteContextRisk(16)
    >>> print(f"{risk.value(Head.from_excess(0.9085, 14.8526)):.7f}")
    0.2088071
    """

    n_examples: int
    design: Design = field(default_factory=Design)
    rule: Rule | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_examples", count("n_examples", self.n_examples))
        if not isinstance(self.design, Design):
            raise ValueError(f"design must be a Design, got {self.design!r}")
        if self.rule is not None and not callable(self.rule):
            raise ValueError(
                f"rule must be a quadrature rule or None, got {self.rule!r}; use end_graded()"
            )

    @property
    def half_width(self) -> float:
        return self.design.half_width

    def value(self, head: Head) -> NDArray[float64]:
        """Risk, shape `(...)`."""
        value: NDArray[float64] = self._average(head, _unit_mean_square, 1)[..., 0]
        return value * self.half_width**2

    def gradient(self, head: Head) -> NDArray[float64]:
        """Gradient, shape `(..., 2)`."""
        return self.value_and_gradient(head)[1]

    def value_and_gradient(self, head: Head) -> tuple[NDArray[float64], NDArray[float64]]:
        """Risk and gradient from one pass, shapes `(...)` and `(..., 2)`."""
        width = self.half_width
        found = self._average(head, unit_gradient, 3)
        value: NDArray[float64] = found[..., 0] * width**2
        return value, found[..., 1:] * np.array([width**2, width**3])

    def hessian(self, head: Head) -> NDArray[float64]:
        """Hessian, shape `(..., 2, 2)`."""
        width = self.half_width
        found = self._average(head, unit_hessian, 3)
        scaled = found * np.array([width**2, width**3, width**4])
        hessian: NDArray[float64] = scaled[..., [0, 1, 1, 2]].reshape(*head.shape, 2, 2)
        return hessian

    def _average(
        self, head: Head, of_task: Callable[..., NDArray[float64]], size: int
    ) -> NDArray[float64]:
        """Average over thresholds of what `of_task(lam, delta, mu, s, r, n, design)` returns."""
        width = self.half_width
        require_half_width(self, head)
        scores = [np.ravel(score) for score in require_moderate(head)]
        rule = (
            end_graded(self.n_examples, noise=self.design.noise) if self.rule is None else self.rule
        )
        nodes = rule(head)
        lower, upper, weights = (
            np.broadcast_to(row, (*head.shape, row.shape[-1])).reshape(
                scores[0].size, row.shape[-1]
            )
            for row in nodes[:3]
        )
        density = self.design.threshold_density
        if density is not None and not rule.is_sample:
            alpha = np.clip(0.5 * (lower - upper), -width, width)
            weights = weights * (2.0 * width) * density(alpha)
        n_examples = float(self.n_examples)
        found = np.zeros((lower.shape[0], size))
        for i, (lam, delta, mu) in enumerate(zip(*scores, strict=True)):
            for j in np.flatnonzero(weights[i]):
                task = lam, delta, mu, lower[i, j] / width, upper[i, j] / width
                found[i] += weights[i, j] * of_task(*map(float, task), n_examples, self.design)
        return found.reshape(*head.shape, size)


def _unit_mean_square(
    lam: float, delta: float, mu: float, s: float, r: float, n_examples: float, design: Design
) -> NDArray[float64]:
    """Mean square error of one task, shape `(1,)`."""
    moments = unit_moments(lam, delta, mu, s, r, np.array([n_examples]), design)
    return moments[1:].ravel()
