"""What a figure says in numbers."""

from typing import NamedTuple

__all__ = ["Finding"]


class Finding(NamedTuple):
    """One claim of a figure, as predicted and as measured.

    Attributes
    ----------
    claim : str
        A short sentence.
    predicted : float or str
        By the laws of `popdyn.asymptotics`, `popdyn.limit_laws` or MODEL; a number or a text.
    measured : float or str
        From the numbers that the figure shows.
    """

    claim: str
    predicted: float | str
    measured: float | str
