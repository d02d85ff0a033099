"""What every risk can do: its value, gradient and Hessian at a head."""

from typing import Protocol

from numpy import float64
from numpy.typing import NDArray

from popdyn.coordinates import Head, require_head

__all__ = ["Risk", "require_half_width"]


class Risk(Protocol):
    """Mean square threshold error `E (F - alpha)^2` as a function of the head (MODEL §1).

    Derivatives are with respect to (label score, scale), in this order. All methods broadcast over
    the head, whose fields have shape `(...)`, and refuse a head of another half width.
    """

    @property
    def half_width(self) -> float:
        """Half width of the interval that features and thresholds live on."""

    def value(self, head: Head) -> NDArray[float64]:
        """Risk, shape `(...)`."""

    def gradient(self, head: Head) -> NDArray[float64]:
        """Gradient, shape `(..., 2)`."""

    def value_and_gradient(self, head: Head) -> tuple[NDArray[float64], NDArray[float64]]:
        """Risk and gradient from one pass, shapes `(...)` and `(..., 2)`."""

    def hessian(self, head: Head) -> NDArray[float64]:
        """Hessian, shape `(..., 2, 2)`."""


def require_half_width(risk: Risk, head: Head) -> None:
    """Refuse what is no head, and a head that lives on another interval than the risk."""
    require_head(head)
    if head.half_width != risk.half_width:
        raise ValueError(
            f"head must have the half width {risk.half_width!r} of the risk, got "
            f"{head.half_width!r}; make the head or the risk with the other's half width"
        )
