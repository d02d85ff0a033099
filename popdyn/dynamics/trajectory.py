"""Results of an evolution: the path of a head, and the times at which it reaches a level."""

from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.coordinates import Head
from popdyn.display import html_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Hit", "Trajectory"]


@dataclass(frozen=True)
class Hit:
    """Passage of a head through a level.

    Attributes
    ----------
    time : float
        Time of the passage; inf if there was none.
    head : Head
        The head at that time; the last head computed if there was no passage.
    reached : bool
        Whether there was a passage.
    message : str
        What was reached, or why the search ended.
    """

    time: float
    head: Head
    reached: bool
    message: str

    def __repr__(self) -> str:
        outcome = "reached" if self.reached else "not reached"
        return f"Hit({outcome}, time={self.time!r}, scale={float(self.head.scale)!r})"

    def _repr_html_(self) -> str:
        names = ("time", "scale", "tube", "label_score")
        entries = (self.time, *(float(getattr(self.head, name)) for name in names[1:]))
        return html_table(f"Hit: {self.message}", [entries], names)


class Path(Protocol):
    """A head at every time of a closed span."""

    def head(self, time: float) -> Head: ...


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """Path of a head under a gradient flow or descent. Arrays are read-only, of shape (n,).

    Attributes
    ----------
    t : ndarray
        Times of the points: those asked for, else the solver's own, its steps or the nodes of
        collocation. For a descent the number of steps times the step size.
    label_score, scale, excess, tube : ndarray
        Coordinates of the points (MODEL §1); `tube` is nan where `scale <= 0`.
    risk : ndarray
        Risk of the points.
    chart : ndarray of str
        Chart in which the solver carried each point: "linear", "tube", or "reflected tube" (the
        tube chart of the reflected head); "excess" throughout a descent, for excess and scale.
    half_width : float
    start : Head
        The head at time 0, as it was given.
    stop_time : float
        Time at which the run stopped, whatever the points asked for.
    stop_head : Head
        The head at that time.
    hits : tuple of Hit
        First entrance for each scale level, in the order asked for.
    success : bool
        Whether the end was reached, or the callback ended the run.
    status : int
        0: the end was reached; 1: the callback ended the run; -1: the step limit ended it. For a
        descent see `gradient_descent`.
    message : str
        Why the run stopped, and if it failed where and what to change.
    nfev, njev : int
        Evaluations of the gradient, and of the Hessian or a Jacobian in its place.
    n_steps : int
        Steps of the solver.
    path : Path or None
        What `sol` evaluates, if it was kept; a descent has none.
    error_estimate : float or None
        Of a descent with method "jumps": how far the points may be off the plain steps, relative
        in the scale and absolute in the excess.
    """

    t: NDArray[float64]
    label_score: NDArray[float64]
    scale: NDArray[float64]
    excess: NDArray[float64]
    tube: NDArray[float64]
    risk: NDArray[float64]
    chart: NDArray[np.str_]
    half_width: float
    start: Head
    stop_time: float
    stop_head: Head
    hits: tuple[Hit, ...]
    success: bool
    status: int
    message: str
    nfev: int
    njev: int
    n_steps: int
    path: Path | None
    error_estimate: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            array = getattr(self, field.name)
            if isinstance(array, np.ndarray):
                array.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrays come back from a pickle writeable: the constructor freezes them again.
        return Trajectory, tuple(getattr(self, field.name) for field in fields(self))

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        return (
            f"Trajectory({len(self)} points to t={self.stop_time:.6g}, "
            f"scale={float(self.stop_head.scale):.6g}, {self.message!r})"
        )

    def _repr_html_(self) -> str:
        names = ("label_score", "scale", "excess", "ratio", "tube")
        rows = [
            (place, time, *(float(getattr(head, name)) for name in names))
            for place, time, head in (
                ("start", 0.0, self.start),
                ("stop", self.stop_time, self.stop_head),
            )
        ]
        caption = f"Trajectory of {len(self)} points: {self.message}"
        return html_table(caption, rows, ("", "t", *names))

    def plot(self) -> "Figure":
        """Picture of the path: ratio, tube coordinate, scale and risk against time.

        The lines that a flow of the clean population nears are drawn beside it (MODEL §4).

        Returns
        -------
        matplotlib Figure
            Outside of pyplot; a notebook shows it.

        Raises
        ------
        ValueError
            If there is no point after time 0.
        """
        # By name at call time, as `popdyn` finds its own: dynamics is read without any plotting.
        figure: Figure = import_module("popdyn.plotting.trajectory").draw(self)
        return figure

    @property
    def ratio(self) -> NDArray[float64]:
        """`lam / mu`; nan where `scale <= 0`."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.where(self.scale > 0, self.label_score / self.scale, np.nan)

    def head(self, index: int) -> Head:
        """Head of one point, made from the coordinates that the solver carried there."""
        if self.t[index] == 0:
            return self.start
        if self.chart[index] == "tube":
            return Head.from_tube(self.tube[index], self.scale[index], self.half_width)
        if self.chart[index] in ("reflected tube", "excess"):
            return Head.from_excess(self.excess[index], self.scale[index], self.half_width)
        return Head.from_scores(self.label_score[index], self.scale[index], self.half_width)

    def sol(self, t: float) -> Head:
        """Head at one time of the span, by the solver's interpolant.

        Raises
        ------
        ValueError
            If the run was made without `dense_output=True`, or the time is outside `[0,
            stop_time]`.
        """
        if self.path is None:
            raise ValueError("no dense solution was kept; run gradient_flow with dense_output=True")
        if np.ndim(t) or not 0 <= t <= self.stop_time:
            raise ValueError(f"t must be one time in [0, {self.stop_time!r}], got {t!r}")
        return self.path.head(float(t))
