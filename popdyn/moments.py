"""Bias and mean square error of a head on contexts of n examples, exactly (MODEL §6).

    E[F - alpha]     = int n A1 phi^(n-1) dy
    E[(F - alpha)^2] = int n A2 phi^(n-1) + n (n-1) A1^2 phi^(n-2) dy

with `phi`, `A1` and `A2` the averages of `exp(-u w)`, `d u w exp(-u w)` and `(d u w)^2 exp(-u w)`
over one example, `d = x - alpha` and `y = log u`, for all context sizes in one pass. For uniform
features and label flips that are constant between breaks the averages have closed forms, and few
panels in `y` do. For any other law they are tabulated, for the plain trapezoid rule.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from popdyn.arguments import thresholds_inside
from popdyn.compiled import kernel
from popdyn.coordinates import Head, require_head
from popdyn.design import Design, require_design
from popdyn.display import html_table
from popdyn.quadrature import unit_scores
from popdyn.uniform_moments import has_closed_form, uniform_segments, uniform_transform
from popdyn.weight_transform import G1, G2, example_panels, transform

__all__ = ["ContextMoments", "context_moments"]

LARGEST_SCALE = 1e5  # of mu l: other laws than the uniform one take half a second and 200 MB


@dataclass(frozen=True, eq=False, repr=False)
class ContextMoments:
    """First two moments of the threshold error `F - alpha` over contexts of n examples.

    Attributes
    ----------
    bias : ndarray, shape (...)
        `E[F - alpha]`, in the units of the half width.
    mean_square_error : ndarray, shape (...)
        `E[(F - alpha)^2]`, in their square.
    root_mean_square : ndarray, shape (...)
        Its square root.
    """

    bias: NDArray[float64]
    mean_square_error: NDArray[float64]

    @property
    def root_mean_square(self) -> NDArray[float64]:
        return np.sqrt(self.mean_square_error)

    def __repr__(self) -> str:
        shape = np.shape(self.bias)
        if shape:
            return f"<{type(self).__name__} of shape {shape}>"
        bias, error = float(self.bias), float(self.root_mean_square)
        return f"<{type(self).__name__}, bias={bias:.6g}, root_mean_square={error:.6g}>"

    def _repr_html_(self) -> str:
        names = ("bias", "root_mean_square")
        places = np.ndindex(np.shape(self.bias))
        columns = (np.ravel(getattr(self, name)) for name in names)
        rows = zip(places, *columns, strict=True)
        return html_table(repr(self).strip("<>"), rows, ("index", *names))


def context_moments(
    head: Head, threshold: ArrayLike, n_examples: ArrayLike, design: Design | None = None
) -> ContextMoments:
    """Exact moments of `F - alpha` over contexts of `n_examples`, without sampling (MODEL §6).

    All three arguments broadcast; the sizes of one head and threshold share one pass. The bias in
    units of the root mean square and the mean square error, relative, are good to 2e-14 for 1 to
    1e7 examples, any label score, and thresholds up to the ends; a head and threshold with 14 sizes
    take 0.2 to 0.35 ms at any scale, up to 0.6 ms with `massart` noise and 1 ms with `localized`.
    Where the bias of a vast context is nearly all of the error at a scale of 1e-2, 6e-14 is left.

    With a feature density, or label flips without levels, they are good to 1e-13 for
    `|mu| l <= 60` and to 2e-13 at 1e4, for up to 1e6 examples; time and memory then grow with the
    scale: about 0.4 ms at `mu l = 30`, 3 ms at 1000.

    Parameters
    ----------
    head : Head, fields of shape (...)
        With `|scale| * half_width` at most 1e5.
    threshold : array_like, shape (...)
        The task, in the units of `head.half_width`.
    n_examples : array_like of whole numbers, shape (...)
        At least 1.
    design : Design, optional
        Uniform and clean on the head's interval by default. The threshold law plays no part.

    Raises
    ------
    ValueError
        If a threshold lies outside the interval, a size is no whole number of at least 1, shapes do
        not broadcast, the half widths differ, or the scale is too large.

    Examples
    --------
    >>> moments = context_moments(Head.from_tube(np.log(2), 32), 0.0, [8, 128, 65536])
    >>> print(moments.root_mean_square.round(5))
    [0.29757 0.04032 0.03126]
    """
    cells = context_cells(head, threshold, n_examples, design)
    moments = np.empty((2, cells.sizes.size))
    for units, of_pair in cells.pairs():
        moments[:, of_pair] = unit_moments(*units, cells.sizes[of_pair], cells.design)
    width = head.half_width
    return ContextMoments(
        (width * moments[0]).reshape(cells.shape),
        (width * (width * moments[1])).reshape(cells.shape),
    )


def unit_moments(
    lam: float,
    delta: float,
    mu: float,
    s: float,
    r: float,
    sizes: NDArray[float64],
    design: Design,
) -> NDArray[float64]:
    """Bias and mean square error for each context size, shape `(2, sizes)`.

    Scores, distances to the ends and moments are in units of the half width.
    """
    task = lam, delta, mu, s, r
    if has_closed_form(design):
        law = uniform_segments(task, float(sizes.min()), float(sizes.max()), design)
        example = uniform_transform(law, _CHANNELS)
    else:
        example = transform(example_panels(*task, float(sizes.max()), design), _CHANNELS)
    averages = example.moments.sum(axis=0)
    moments = _integrals(example.weights, example.phi, example.log_phi, averages, sizes)
    if mu < 0.0:
        moments[0] *= -1.0
    return moments


_CHANNELS = np.array([(G1, 1), (G2, 2)])
_LOWEST_POWER = -80.0  # exp of it is nothing beside the peak of n A1 phi^(n-1)


@kernel
def _integrals(
    weights: NDArray[float64],
    phi: NDArray[float64],
    log_phi: NDArray[float64],
    averages: NDArray[float64],
    sizes: NDArray[float64],
) -> NDArray[float64]:
    moments = np.zeros((2, sizes.size))
    for k in range(phi.size):
        a1, a2 = averages[0, k], averages[1, k]
        if a2 == 0.0 or phi[k] == 0.0:
            continue
        for j in range(sizes.size):
            n = sizes[j]
            exponent = (n - 1.0) * log_phi[k]
            if exponent > _LOWEST_POWER:
                power = weights[k] * n * np.exp(exponent)
                moments[0, j] += power * a1
                moments[1, j] += power * (a2 + (n - 1.0) * a1 * a1 / phi[k])
    return moments


_Units: TypeAlias = tuple[float, float, float, float, float]


class ContextCells(NamedTuple):
    """Checked arguments, flat: every cell has a context size and a pair of head and threshold."""

    design: Design
    shape: tuple[int, ...]
    sizes: NDArray[float64]  # (cells,)
    pair: NDArray[np.int64]  # (cells,)
    units: NDArray[float64]  # (5, pairs): lam, delta, mu l, s / l, r / l

    def pairs(self) -> Iterator[tuple[_Units, NDArray[np.int64]]]:
        """Each pair that has cells, as a row of `units`, and these cells."""
        order = np.argsort(self.pair, kind="stable")
        starts = np.flatnonzero(np.diff(self.pair[order], prepend=-1))
        for cells in np.split(order, starts)[1:]:
            lam, delta, mu, s, r = self.units[:, self.pair[cells[0]]].tolist()
            yield (lam, delta, mu, s, r), cells


def context_cells(
    head: Head, threshold: ArrayLike, n_examples: ArrayLike, design: Design | None
) -> ContextCells:
    """Arguments of `context_moments`, with the errors that it raises."""
    require_head(head)
    width = head.half_width
    design = Design(width) if design is None else design
    require_design(design, width)
    alpha = thresholds_inside(threshold, width)
    sizes = context_sizes(n_examples)
    try:
        pair_shape = np.broadcast_shapes(head.shape, alpha.shape)
        shape = np.broadcast_shapes(pair_shape, sizes.shape)
    except ValueError:
        raise ValueError(
            "head, threshold and n_examples must broadcast, got shapes "
            f"{head.shape}, {alpha.shape} and {sizes.shape}"
        ) from None
    lam, delta, mu = require_moderate(head)
    pairs = np.broadcast_arrays(lam, delta, mu, (alpha + width) / width, (width - alpha) / width)
    index = np.arange(pairs[0].size).reshape(pair_shape)
    return ContextCells(
        design,
        shape,
        np.broadcast_to(sizes, shape).ravel(),
        np.broadcast_to(index, shape).ravel(),
        np.array([column.ravel() for column in pairs]),
    )


def context_sizes(n_examples: ArrayLike) -> NDArray[float64]:
    """`n_examples` as doubles; refused unless they are whole numbers of at least 1."""
    sizes = np.asarray(n_examples)
    if sizes.dtype.kind not in "iuf" or not ((sizes >= 1) & (sizes == np.floor(sizes))).all():
        raise ValueError(f"n_examples must be whole numbers of at least 1, got {n_examples!r}")
    if not np.isfinite(sizes).all():
        raise ValueError("n_examples must be finite, got inf; limit_error is the infinite context")
    return sizes.astype(float64)


def require_moderate(head: Head) -> tuple[NDArray[float64], NDArray[float64], NDArray[float64]]:
    """`lam`, `delta` and `mu l`; refused where the scale makes an exact moment too long."""
    scores = unit_scores(head)
    if (np.abs(scores[2]) > LARGEST_SCALE).any():
        raise ValueError(
            f"scale * half_width must be at most {LARGEST_SCALE:g} for exact finite contexts, got "
            f"{float(np.abs(scores[2]).max())!r}; use limit_error or context_moments_sampled"
        )
    return scores
