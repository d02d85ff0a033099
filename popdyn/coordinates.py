"""Coordinates of one attention head: label score, scale, excess, ratio, tube (MODEL §1)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from popdyn.arguments import one_width, real_numbers
from popdyn.display import html_table
from popdyn.error_free import product_plus, two_sum

__all__ = ["Head", "require_head"]


@dataclass(init=False, frozen=True, eq=False, repr=False)
class Head:
    """One attention head `(lam, mu)`, or an array of them (MODEL §1).

    Made by `from_excess`, `from_ratio`, `from_scores` or `from_tube`. The coordinate given is kept
    exactly; the others are rounded once from it, because at large scale neither of `excess` and
    `label_score` can be recovered from the other. Heads are compared by value; an array of them
    is indexed, and looped over, as an array is.

    Attributes
    ----------
    label_score : float or ndarray, shape (...)
        `lam`.
    scale : float or ndarray, shape (...)
        `mu`, in inverse units of `half_width`.
    excess : float or ndarray, shape (...)
        `delta = lam - mu l`.
    ratio : float or ndarray, shape (...)
        `k = lam / mu`, in units of `half_width`; nan where `scale <= 0`.
    tube : float or ndarray, shape (...)
        `c = delta - log mu`; nan where `scale <= 0`.
    half_width : float
        `l`; features and thresholds live on `[-l, l]`.

    Raises
    ------
    ValueError
        If a coordinate is not finite or too large for its partners to be finite, if shapes do not
        broadcast, if `half_width` is not positive, or if a ratio or a tube coordinate is given
        with a scale that is not positive.

    Examples
    --------
    >>> head = Head.from_ratio(1.5, 5)
    >>> print(head.label_score, head.excess)
    7.5 2.5
    >>> head.reflected
    Head.from_scores(-7.5, -5.0, half_width=1.0)
    >>> [float(one.excess) for one in Head.from_ratio([1.5, 2.0], 5)]
    [2.5, 5.0]
    """

    label_score: Any
    excess: Any
    scale: Any
    half_width: float
    _given: tuple[str, Any]

    def __init__(self, *fields: Any, **named: Any) -> None:
        # The package gives all fields in their order; a user means one of the makers.
        names = tuple(self.__dataclass_fields__)
        if named or len(fields) != len(names):
            call = [repr(field) for field in fields]
            call += [f"{name}={field!r}" for name, field in named.items()]
            raise TypeError(
                "a Head is made by Head.from_ratio(ratio, scale), or from_scores, from_excess or "
                f"from_tube with that coordinate in the first place, got Head({', '.join(call)})"
            )
        for name, field in zip(names, fields, strict=True):
            object.__setattr__(self, name, field)

    @classmethod
    def from_scores(
        cls, label_score: ArrayLike, scale: ArrayLike, half_width: float = 1.0
    ) -> "Head":
        """Head of the two linear scores `(lam, mu)`, of any sign."""
        lam, mu, width = _checked("label_score", label_score, scale, half_width)
        return cls._frozen(lam, product_plus(-mu, width, lam), mu, width, "label_score", lam)

    @classmethod
    def from_excess(cls, excess: ArrayLike, scale: ArrayLike, half_width: float = 1.0) -> "Head":
        """Head of the excess label score `delta = lam - mu l` and the scale, of any sign."""
        delta, mu, width = _checked("excess", excess, scale, half_width)
        return cls._frozen(product_plus(mu, width, delta), delta, mu, width, "excess", delta)

    @classmethod
    def from_ratio(cls, ratio: ArrayLike, scale: ArrayLike, half_width: float = 1.0) -> "Head":
        """Head of the relative label score `k = lam / mu` and a positive scale."""
        k, mu, width = _checked("ratio", ratio, scale, half_width)
        _require_positive_scale("ratio", mu)
        with np.errstate(over="ignore", under="ignore"):
            gap, gap_tail = two_sum(k, -width)
            delta = product_plus(mu, gap, mu * gap_tail)
            return cls._frozen(mu * k, delta, mu, width, "ratio", k)

    @classmethod
    def from_tube(cls, tube: ArrayLike, scale: ArrayLike, half_width: float = 1.0) -> "Head":
        """Head of the tube coordinate `c = delta - log mu` and a positive scale."""
        c, mu, width = _checked("tube", tube, scale, half_width)
        _require_positive_scale("tube", mu)
        delta = c + np.log(mu)
        return cls._frozen(product_plus(mu, width, delta), delta, mu, width, "tube", c)

    @classmethod
    def _frozen(
        cls,
        label_score: NDArray[float64],
        excess: NDArray[float64],
        scale: NDArray[float64],
        half_width: float,
        name: str,
        given: NDArray[float64],
    ) -> "Head":
        if not (np.isfinite(label_score).all() and np.isfinite(excess).all()):
            raise ValueError(
                f"label score and excess must be finite, got {name} {_shown(given)} at scale "
                f"{_shown(scale)} and half width {half_width!r}; use smaller coordinates"
            )
        return cls(
            _read_only(label_score),
            _read_only(excess),
            _read_only(scale),
            half_width,
            (name, _read_only(given)),
        )

    @property
    def given(self) -> tuple[str, Any]:
        """Name and value of the coordinate that is kept exactly, next to the scale."""
        return self._given

    @property
    def ratio(self) -> Any:
        if self._given[0] == "ratio":
            return self._given[1]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return _read_only(
                np.where(self.scale > 0, np.divide(self.label_score, self.scale), np.nan)
            )

    @property
    def tube(self) -> Any:
        if self._given[0] == "tube":
            return self._given[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            return _read_only(np.where(self.scale > 0, self.excess - np.log(self.scale), np.nan))

    @property
    def reflected(self) -> "Head":
        """The head `(-lam, -mu)`, which reads the mirrored task."""
        name = "excess" if self._given[0] == "excess" else "label_score"
        given = -self.excess if name == "excess" else -self.label_score
        return self._frozen(
            -self.label_score, -self.excess, -self.scale, self.half_width, name, given
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.scale)

    def __getitem__(self, index: Any) -> "Head":
        """Those heads of an array that numpy's `index` picks."""
        if not self.shape:
            raise TypeError("one Head has no parts to index or loop over; an array of heads has")
        name, given = self._given
        fields = (*self._scores(), given)
        label_score, excess, scale, given = (_read_only(field[index]) for field in fields)
        return Head(label_score, excess, scale, self.half_width, (name, given))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Head):
            return NotImplemented
        return self.half_width == other.half_width and all(
            np.array_equal(mine, theirs)
            for mine, theirs in zip(self._scores(), other._scores(), strict=True)
        )

    def __hash__(self) -> int:
        return hash(
            (self.half_width, *(tuple(np.ravel(score).tolist()) for score in self._scores()))
        )

    def __repr__(self) -> str:
        name, given = self._given
        maker = "scores" if name == "label_score" else name
        return (
            f"Head.from_{maker}({_shown(given)}, {_shown(self.scale)}, "
            f"half_width={self.half_width!r})"
        )

    def _repr_html_(self) -> str:
        names = ("label_score", "scale", "excess", "ratio", "tube")
        rows = zip(*(np.ravel(getattr(self, name)) for name in names), strict=True)
        many = f" of shape {self.shape}" if self.shape else ""
        return html_table(f"Head{many}, half width {self.half_width:g}", rows, names)

    def __setstate__(self, state: dict[str, Any]) -> None:
        name, given = state["_given"]
        for field in ("label_score", "excess", "scale"):
            object.__setattr__(self, field, _read_only(state[field]))
        object.__setattr__(self, "half_width", state["half_width"])
        object.__setattr__(self, "_given", (name, _read_only(given)))

    def _scores(self) -> tuple[Any, Any, Any]:
        return self.label_score, self.excess, self.scale


def require_head(head: object) -> None:
    """Refuse what is no head."""
    if not isinstance(head, Head):
        raise ValueError(f"head must be a popdyn.Head, got {head!r}; use Head.from_scores(...)")


def _checked(
    name: str, coordinate: ArrayLike, scale: ArrayLike, half_width: float
) -> tuple[NDArray[float64], NDArray[float64], float]:
    width = one_width(half_width)
    arrays = _as_double(name, coordinate), _as_double("scale", scale)
    try:
        first, second = np.broadcast_arrays(*arrays)
    except ValueError:
        raise ValueError(
            f"{name} and scale must broadcast, got shapes {arrays[0].shape} and {arrays[1].shape}"
        ) from None
    return first.copy(), second.copy(), width


def _as_double(name: str, number: ArrayLike) -> NDArray[float64]:
    double = real_numbers(name, number)
    if not np.isfinite(double).all():
        raise ValueError(f"{name} must be finite, got {_shown(number)}")
    return double


def _require_positive_scale(name: str, scale: NDArray[float64]) -> None:
    if not (scale > 0).all():
        raise ValueError(
            f"scale must be positive where a {name} is given, got {_shown(scale)}; give the label "
            "score or the excess instead (Head.from_scores, Head.from_excess)"
        )


def _read_only(array: ArrayLike) -> Any:
    if np.ndim(array) == 0:
        return float64(array)  # type: ignore[arg-type]
    frozen = np.array(array, dtype=float64)
    frozen.flags.writeable = False
    return frozen


def _shown(array: ArrayLike) -> str:
    if np.ndim(array) == 0:
        return repr(np.asarray(array).item())
    return np.array2string(
        np.asarray(array),
        separator=", ",
        threshold=6,
        edgeitems=2,
        floatmode="unique",
        max_line_width=np.iinfo(np.int32).max,
    )
