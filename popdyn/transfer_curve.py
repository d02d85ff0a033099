"""Transfer: the error of a frozen head on fresh contexts of every size (MODEL §6)."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import float64, int64
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from popdyn.arguments import count
from popdyn.attention import limit_error
from popdyn.coordinates import Head
from popdyn.corpus import inside_interval
from popdyn.design import Design
from popdyn.display import html_table
from popdyn.moments import ContextMoments, context_moments
from popdyn.pretraining import Checkpoint, sampling_term
from popdyn.sampled_moments import SampledMoments, context_moments_sampled
from popdyn.sampling import Seed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TransferCurve", "TwoTermFit", "fit_two_terms", "transfer"]


@dataclass(frozen=True, eq=False, repr=False)
class TransferCurve:
    """Error `F - alpha` of a frozen head at `k` thresholds on contexts of `s` sizes.

    Arrays are read-only; errors are in the units of the half width.

    Attributes
    ----------
    head : Head
    checkpoint : Checkpoint or None
        Where the head came from, if it was told.
    thresholds : ndarray, shape (k,)
    context_sizes : ndarray of int, shape (s,)
    bias, root_mean_square : ndarray, shape (k, s)
        Exact, without sampling.
    floor : ndarray, shape (k,)
        Limit of the root mean square for large contexts, near `1/mu` at interior thresholds.
    sampled : SampledMoments or None
        The same moments from drawn contexts, shape (k, s), if asked for.
    """

    head: Head
    checkpoint: Checkpoint | None
    thresholds: NDArray[float64]
    context_sizes: NDArray[int64]
    bias: NDArray[float64]
    root_mean_square: NDArray[float64]
    floor: NDArray[float64]
    sampled: SampledMoments | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            array = getattr(self, field.name)
            if isinstance(array, np.ndarray):
                array.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrays come back from a pickle writeable: the constructor freezes them again.
        return TransferCurve, tuple(getattr(self, field.name) for field in fields(self))

    def __repr__(self) -> str:
        return (
            f"<TransferCurve at {self.thresholds.size} thresholds and {self.context_sizes.size} "
            f"context sizes, scale={float(self.head.scale):.6g}>"
        )

    def _repr_html_(self) -> str:
        rows = zip(self.context_sizes, *self.root_mean_square, strict=True)
        header = ("N", *(f"RMS at {threshold:g}" for threshold in self.thresholds))
        return html_table(repr(self).strip("<>"), rows, header)

    def plot(self) -> "Figure":
        """Picture of the errors against the context size, with their law and floor (MODEL §6).

        Returns
        -------
        matplotlib Figure
            Outside of pyplot; a notebook shows it.
        """
        figure: Figure = import_module("popdyn.plotting.transfer").draw(self)
        return figure


def transfer(
    pretrained: Checkpoint | Head,
    thresholds: ArrayLike,
    context_sizes: ArrayLike,
    design: Design | None = None,
    *,
    n_contexts: int | None = None,
    rng: Seed = None,
) -> TransferCurve:
    """Error of a frozen head on fresh tasks, exactly (MODEL §6).

    Accuracy and limits are those of `context_moments`.

    Parameters
    ----------
    pretrained : Checkpoint or Head
    thresholds : array_like, shape (k,)
        In the interval of the head; one number is a row of one.
    context_sizes : array_like of whole numbers, shape (s,)
        At least 1.
    design : Design, optional
        Uniform on the head's interval by default. Its threshold density plays no part.
    n_contexts : int, optional
        Contexts to draw for each threshold and size as a check, at least 2; none by default.
    rng : Generator, SeedSequence, int or None
        Source of the drawn contexts.

    Raises
    ------
    ValueError
        On bad arguments, as `context_moments` does.

    Examples
    --------
    >>> curve = transfer(Head.from_tube(np.log(2), 32), 0.0, [8, 128, 65536])
    >>> print(curve.root_mean_square.round(5), curve.floor)
    [[0.29757 0.04032 0.03126]] [0.03125]
    """
    checkpoint = pretrained if isinstance(pretrained, Checkpoint) else None
    head = pretrained.head if isinstance(pretrained, Checkpoint) else pretrained
    if not isinstance(head, Head) or head.shape:
        raise ValueError(f"transfer wants a Checkpoint or one Head, got {pretrained!r}")
    alpha = _row("thresholds", thresholds)
    alpha = inside_interval("thresholds", alpha, head.half_width, "(n_thresholds,)")
    sizes = _row("context_sizes", context_sizes)
    if n_contexts is not None:
        n_contexts = count("n_contexts", n_contexts, least=2)
    cells = head, alpha[:, np.newaxis], sizes
    exact: ContextMoments = context_moments(*cells, design)
    return TransferCurve(
        head=head,
        checkpoint=checkpoint,
        thresholds=alpha,
        context_sizes=sizes.astype(int64),
        bias=exact.bias,
        root_mean_square=exact.root_mean_square,
        floor=np.abs(limit_error(head, alpha, design)),
        sampled=None
        if n_contexts is None
        else context_moments_sampled(*cells, n_contexts, rng, design),
    )


@dataclass(frozen=True)
class TwoTermFit:
    """Root mean square error of frozen heads as `A log(M)^2/M + B/N` (MODEL §6).

    Attributes
    ----------
    A, B : float
        Not negative, in the units of the half width: the share of a corpus of size `M = min(m, n)`
        and the share of a fresh context of `N` examples.
    residual : float
        Root mean square of the relative error over all points.
    n_checkpoints, n_short : int
        Checkpoints in the fit, and how many of them fell short of their stopping scale.
    """

    A: float
    B: float
    residual: float
    n_checkpoints: int
    n_short: int

    def predicted(self, corpus_size: ArrayLike, context_size: ArrayLike) -> NDArray[float64]:
        """`A log(M)^2/M + B/N`, broadcast; below `M = e^2` the logarithm is 2."""
        terms = _terms(corpus_size, context_size)
        return np.asarray(self.A * terms[0] + self.B * terms[1], dtype=float64)


def fit_two_terms(curves: Sequence[TransferCurve]) -> TwoTermFit:
    """Fit of `A log(M)^2/M + B/N` to the exact errors of curves, in relative error (MODEL §6).

    Least squares with `A` and `B` not negative, over all curves, thresholds and context sizes. All
    checkpoints count, those too that fell short of their stopping scale.

    Raises
    ------
    ValueError
        If there are no curves, or one does not know its checkpoint.
    """
    if not (isinstance(curves, Sequence) and curves):
        raise ValueError(f"curves must be a list of one or more TransferCurves, got {curves!r}")
    checkpoints, rows = [], []
    for curve in curves:
        if not isinstance(curve, TransferCurve):
            raise ValueError(
                f"curves must be a list of one or more TransferCurves, got {curve!r} in it"
            )
        if curve.checkpoint is None:
            raise ValueError(
                f"curves must know the size of their corpus, got {curve!r} of a bare head; "
                "transfer a Checkpoint"
            )
        checkpoints.append(curve.checkpoint)
        terms = _terms(curve.checkpoint.corpus_size, curve.context_sizes)
        rows.append(terms[:, np.newaxis] / curve.root_mean_square)
    matrix = np.concatenate([row.reshape(2, -1) for row in rows], axis=1).T
    coefficients, norm = nnls(matrix, np.ones(len(matrix)))
    return TwoTermFit(
        A=float(coefficients[0]),
        B=float(coefficients[1]),
        residual=float(norm / np.sqrt(len(matrix))),
        n_checkpoints=len(checkpoints),
        n_short=sum(not checkpoint.reached for checkpoint in checkpoints),
    )


def _terms(corpus_size: ArrayLike, context_size: ArrayLike) -> NDArray[float64]:
    """`log(M)^2/M` and `1/N`, shape (2, ...)."""
    size, n = np.broadcast_arrays(corpus_size, context_size)
    return np.stack([sampling_term(size.astype(float64)), 1.0 / n])


def _row(name: str, numbers: ArrayLike) -> NDArray[Any]:
    row = np.atleast_1d(numbers)
    if row.ndim != 1 or not row.size or row.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be a row of one or more numbers, got {numbers!r}")
    return row
