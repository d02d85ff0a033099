"""Risks whose gradient flow is known in closed form, and risks that misbehave."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class QuadraticRisk:
    """`z' A z / 2` with `z = (lam, mu) - center`: for diagonal `A` each score relaxes by itself."""

    curvature: tuple  # ((A11, A12), (A12, A22))
    center: tuple = (0.0, 0.0)
    half_width: float = 1.0

    def _offset(self, head):
        lam, mu = np.broadcast_arrays(head.label_score, head.scale)
        return np.stack([lam - self.center[0], mu - self.center[1]], axis=-1)

    def value(self, head):
        offset = self._offset(head)
        return (offset * self.gradient(head)).sum(axis=-1) / 2

    def gradient(self, head):
        return self._offset(head) @ np.array(self.curvature)

    def value_and_gradient(self, head):
        return self.value(head), self.gradient(head)

    def hessian(self, head):
        return np.broadcast_to(np.array(self.curvature), (*np.shape(head.scale), 2, 2))


@dataclass(frozen=True)
class LinearRisk:
    """`-(a lam + b mu)`: the head moves at the constant velocity `(a, b)`."""

    velocity: tuple
    half_width: float = 1.0

    def value(self, head):
        return -(self.velocity[0] * head.label_score + self.velocity[1] * head.scale)

    def gradient(self, head):
        return np.broadcast_to(-np.array(self.velocity), (*np.shape(head.scale), 2))

    def value_and_gradient(self, head):
        return self.value(head), self.gradient(head)

    def hessian(self, head):
        return np.zeros((*np.shape(head.scale), 2, 2))


@dataclass(frozen=True)
class DriftingRisk:
    """`exp(-2 lam) + (mu - mu*)^2 / 2`: the scale relaxes, the label score drifts like `log t`."""

    resting_scale: float
    half_width: float = 1.0

    def value(self, head):
        return np.exp(-2 * head.label_score) + (head.scale - self.resting_scale) ** 2 / 2

    def gradient(self, head):
        return np.stack(
            [-2 * np.exp(-2 * head.label_score), head.scale - self.resting_scale], axis=-1
        )

    def value_and_gradient(self, head):
        return self.value(head), self.gradient(head)

    def hessian(self, head):
        curvature = 4 * np.exp(-2 * head.label_score)
        zero, one = np.zeros_like(curvature), np.ones_like(curvature)
        return np.stack([np.stack([curvature, zero], -1), np.stack([zero, one], -1)], -2)


@dataclass
class SpoiltRisk:
    """Another risk with its gradient replaced from one call on: by nan, or with noise added."""

    clean: object
    from_call: int = 1
    noise: float = np.nan
    calls: int = 0

    @property
    def half_width(self):
        return self.clean.half_width

    def value(self, head):
        return self.clean.value(head)

    def gradient(self, head):
        self.calls += 1
        gradient = self.clean.gradient(head)
        if self.calls < self.from_call:
            return gradient
        # A hash of the head: the same noise at the same head, none of it smooth.
        shake = np.sin(1e17 * np.array([head.label_score, head.scale]))
        return gradient + self.noise * shake

    def value_and_gradient(self, head):
        return self.value(head), self.gradient(head)

    def hessian(self, head):
        return self.clean.hessian(head)
