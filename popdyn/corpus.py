"""A corpus: tasks, each with the examples of its context, drawn or a user's own (MODEL §6)."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy import float64, int8
from numpy.typing import ArrayLike, NDArray

from popdyn.archive import PathLike, load_arrays, save_arrays
from popdyn.arguments import one_width
from popdyn.display import html_table

__all__ = ["Corpus", "inside_interval", "require_corpus"]

_FORMAT = "popdyn corpus 1"


@dataclass(frozen=True, eq=False, repr=False)
class Corpus:
    """`m` tasks with `n` labelled examples each, the examples of a task sorted by feature.

    Made by `sample_corpus`, `sample_contexts`, `from_arrays` or `load`. Labels may contradict the
    threshold of their task, as noisy ones do. Corpora are compared by value.

    Attributes
    ----------
    features : ndarray, shape (m, n)
        Ascending along the last axis, in `[-half_width, half_width]`. All arrays are read-only.
    labels : ndarray of int8, shape (m, n)
        +1 or -1.
    thresholds : ndarray, shape (m,)
        In `[-half_width, half_width]`.
    half_width : float
        `l`.

    Raises
    ------
    ValueError
        If there is no task or no example, shapes do not fit, a number is not finite, a label is
        neither of -1 and +1 (or 0 and 1), or a feature or threshold lies outside the interval.

    Examples
    --------
    >>> corpus = Corpus.from_arrays([[0.5, -0.5]], [[0, 1]], thresholds=[0.25])
    >>> print(corpus.features, corpus.labels, corpus.n_tasks, corpus.n_examples)
    [[-0.5  0.5]] [[ 1 -1]] 1 2
    """

    features: NDArray[float64]
    labels: NDArray[int8]
    thresholds: NDArray[float64]
    half_width: float = 1.0

    def __post_init__(self) -> None:
        width = one_width(self.half_width)
        features = inside_interval("features", self.features, width, "(n_tasks, n_examples)")
        thresholds = inside_interval("thresholds", self.thresholds, width, "(n_tasks,)")
        labels = _signs(self.labels)
        if not features.size:
            raise ValueError(
                f"a corpus needs at least one task and one example, got features of shape "
                f"{features.shape}"
            )
        if labels.shape != features.shape or thresholds.shape != features.shape[:1]:
            raise ValueError(
                "features, labels and thresholds must have the shapes (n_tasks, n_examples), "
                f"(n_tasks, n_examples) and (n_tasks,), got {features.shape}, {labels.shape} and "
                f"{thresholds.shape}"
            )
        self._freeze(*_by_feature(features, labels), thresholds, width)

    @classmethod
    def from_arrays(
        cls,
        features: ArrayLike,
        labels: ArrayLike,
        thresholds: ArrayLike,
        half_width: float = 1.0,
    ) -> "Corpus":
        """Corpus of the user's own arrays, which are copied and never modified.

        Any integer or real type, memory order and byte order will do; labels are -1 and +1, or 0
        (for -1) and 1; the examples of a task come in any order.
        """
        return cls(features, labels, thresholds, half_width)  # type: ignore[arg-type]

    @property
    def n_tasks(self) -> int:
        return int(self.features.shape[0])

    @property
    def n_examples(self) -> int:
        return int(self.features.shape[1])

    def save(self, path: PathLike) -> None:
        """Write an `.npz` file without pickles, whole or not at all; replaces an older file."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        save_arrays(path, _FORMAT, arrays)

    @classmethod
    def load(cls, path: PathLike) -> "Corpus":
        """Corpus that `save` wrote.

        Raises
        ------
        ValueError
            If the file is damaged or something else.
        OSError
            If it cannot be read.
        """
        with load_arrays(path, _FORMAT, "Corpus.save") as arrays:
            return cls.from_arrays(
                arrays["features"],
                arrays["labels"],
                arrays["thresholds"],
                half_width=float(arrays["half_width"]),
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Corpus):
            return NotImplemented
        return self.half_width == other.half_width and all(
            np.array_equal(mine, theirs)
            for mine, theirs in zip(self._arrays(), other._arrays(), strict=True)
        )

    def __hash__(self) -> int:
        return hash((self.half_width, *(array.tobytes() for array in self._arrays())))

    def __repr__(self) -> str:
        return (
            f"<Corpus of {self.n_tasks} tasks with {self.n_examples} examples each, "
            f"half_width={self.half_width!r}>"
        )

    def _repr_html_(self) -> str:
        rows = zip(
            range(self.n_tasks),
            self.thresholds,
            np.count_nonzero(self.labels > 0, axis=1),
            np.count_nonzero(self.labels < 0, axis=1),
            strict=True,
        )
        header = ("task", "threshold", "positive examples", "negative examples")
        return html_table(repr(self).strip("<>"), rows, header)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._freeze(*(state[field.name] for field in fields(self)))

    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return self.features, self.labels, self.thresholds

    def _freeze(
        self,
        features: NDArray[float64],
        labels: NDArray[int8],
        thresholds: NDArray[float64],
        half_width: float,
    ) -> None:
        for array in (features, labels, thresholds):
            array.flags.writeable = False
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "thresholds", thresholds)
        object.__setattr__(self, "half_width", half_width)


def _by_feature(
    features: NDArray[float64], labels: NDArray[int8]
) -> tuple[NDArray[float64], NDArray[int8]]:
    """Both, with the examples of a task in the order of their features, equal ones by label."""
    if (features[:, :-1] < features[:, 1:]).all():
        return features, labels
    order = np.argsort(features, axis=1)
    order += features.shape[1] * np.arange(features.shape[0])[:, None]  # in the flat array
    features, labels = np.take(features, order), np.take(labels, order)
    # Sorting by both at once is three times the work, and drawn features are hardly ever equal.
    ties = np.flatnonzero((features[:, :-1] == features[:, 1:]).any(axis=1))
    for task in ties:
        labels[task] = labels[task][np.lexsort((labels[task], features[task]))]
    return features, labels


def require_corpus(corpus: object) -> None:
    """Refuse what is no corpus."""
    if not isinstance(corpus, Corpus):
        raise ValueError(
            f"corpus must be a Corpus, got {type(corpus).__name__}; "
            "make one with Corpus.from_arrays or sample_corpus"
        )


def inside_interval(
    name: str, numbers: ArrayLike, half_width: float, shape: str
) -> NDArray[float64]:
    """Copy of `numbers` in doubles; refused unless they have this shape and lie in the interval."""
    array = _real(name, numbers)
    if array.ndim != shape.count(",") + (not shape.endswith(",)")):
        raise ValueError(f"{name} must have the shape {shape}, got {array.shape}")
    with np.errstate(over="ignore"):
        inside = (
            np.array(array, dtype=float64, order="C") + 0.0
        )  # no -0.0: equal corpora hash alike
    wrong = ~(np.abs(inside) <= half_width)
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"{name} must be finite and in [-{half_width!r}, {half_width!r}], "
            f"got {array[where].item()!r} at {list(where)}; "
            "give the half_width of your interval, or rescale"
        )
    return inside


def _signs(labels: ArrayLike) -> NDArray[int8]:
    array = _real("labels", labels)
    if array.dtype.kind == "b":
        array = array.astype(int8)
    positive = array == 1
    lower = 0 if (array == 0).any() else -1
    wrong = ~(positive | (array == lower))
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            "labels must be -1 and +1, or 0 and 1 throughout, "
            f"got {array[where].item()!r} at {list(where)}"
        )
    return np.where(positive, int8(1), int8(-1))


def _real(name: str, numbers: ArrayLike) -> NDArray[Any]:
    try:
        array = np.asarray(numbers)
    except ValueError:  # rows of different lengths
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in ("biuf" if name == "labels" else "iuf"):
        raise ValueError(
            f"{name} must be an array of real numbers with rows of equal length, "
            f"got {type(numbers).__name__} of {array.dtype}"
        )
    return array
