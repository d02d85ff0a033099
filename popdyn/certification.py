"""Certificate of a corpus: the scales up to which its gradient makes progress (MODEL §6).

The gradient of a corpus is off by order one in the label score as soon as the boundary layer holds
no task; what moves the scale is its projection on the direction `u = (l + 1/mu, 1)` of the
logarithmic tube. So the error is measured along `u` and relative to the population's own progress
there, which shrinks like `mu^-3`.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
from numpy import float64, int64
from numpy.typing import ArrayLike, NDArray

from popdyn.compiled import kernel
from popdyn.coordinates import Head
from popdyn.corpus import Corpus
from popdyn.display import html_table
from popdyn.dynamics.hitting import hitting_time
from popdyn.dynamics.trajectory import Trajectory
from popdyn.pretraining import default_start
from popdyn.projected_gradient import progress_direction, progress_moments
from popdyn.risk.closed_form import ClosedFormRisk
from popdyn.risk.corpus import CorpusRisk
from popdyn.risk.corpus_kernels import Tasks, corpus_gradient

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Certificate", "certificate"]

_PER_OCTAVE = 4  # default levels of the scale
# Default end of the levels in units of min(m, n) / l: half of all corpora fail before a third to a
# half of it along the population flow, and before 0.12 to 0.15 of it along their own runs.
_LAST = 1.0
_SHOWN = 12  # indices that the table shows before it breaks off


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """Error of a corpus gradient relative to the progress, level by level of the scale.

    Made by `certificate`. Gradients are projected on `u = (l + 1/mu, 1)`. Levels are the first axis
    of all arrays per level; `str()` is a table.

    Attributes
    ----------
    fraction : float
        Relative error up to which a level holds.
    heads : Head, fields of shape (levels,)
        The head of the path at each level.
    population_gradient : ndarray, shape (levels,)
        `u . grad L` of infinitely many tasks and examples, negative where the scale grows.
    corpus_gradient : ndarray, shape (levels,)
        `u . grad L` of the corpus.
    expected_gradient, standard_error : ndarray, shape (levels,)
        Mean of the latter over corpora of this size, and its standard deviation: the exact
        prediction for a head that does not depend on the corpus, without sampling.
    n_tasks, n_examples : int
        Size of the corpus.
    responsible_tasks : ndarray of int
        At the first level that fails, the fewest tasks whose own errors, added up, make the
        difference to a level that holds; largest first. Empty if no level fails.
    responsible_shares : ndarray, same shape
        What they contribute to the error there; all tasks together contribute 1, some of them with
        a negative sign.
    tasks_without_positives, tasks_without_negatives : ndarray of int
        Tasks that lack examples of a label; they tell nothing of where the threshold is.
    """

    fraction: float
    heads: Head
    population_gradient: NDArray[float64]
    corpus_gradient: NDArray[float64]
    expected_gradient: NDArray[float64]
    standard_error: NDArray[float64]
    n_tasks: int
    n_examples: int
    responsible_tasks: NDArray[int64]
    responsible_shares: NDArray[float64]
    tasks_without_positives: NDArray[int64]
    tasks_without_negatives: NDArray[int64]

    @property
    def scales(self) -> NDArray[float64]:
        """`mu` of each level, increasing."""
        return np.asarray(self.heads.scale)

    @property
    def deviation(self) -> NDArray[float64]:
        """`u . (grad L_mn - grad L)` in units of `u . grad L`.

        Below -1 the risk of the corpus rises in the direction of progress.
        """
        return (self.corpus_gradient - self.population_gradient) / self.population_gradient

    @property
    def relative_error(self) -> NDArray[float64]:
        """Magnitude of the deviation."""
        return np.abs(self.deviation)

    @property
    def expected_deviation(self) -> NDArray[float64]:
        """Mean of the deviation over corpora of this size; a function of `n_examples` alone."""
        return (self.expected_gradient - self.population_gradient) / self.population_gradient

    @property
    def expected_spread(self) -> NDArray[float64]:
        """Standard deviation of the deviation over corpora of this size, like `n_tasks^(-1/2)`."""
        return self.standard_error / np.abs(self.population_gradient)

    @property
    def expected_error(self) -> NDArray[float64]:
        """Root mean square of the deviation over corpora of this size."""
        return np.hypot(self.expected_deviation, self.expected_spread)

    @property
    def holds(self) -> NDArray[np.bool_]:
        """Whether a level and all levels below it have a relative error of at most `fraction`."""
        return np.logical_and.accumulate(self.relative_error <= self.fraction)

    @property
    def certified_scale(self) -> float:
        """The last level that holds; 0 if the first one fails."""
        return _last(self.scales, self.holds)

    @property
    def failing_scale(self) -> float:
        """The first level that fails; inf if all hold."""
        return float(np.append(self.scales, np.inf)[np.count_nonzero(self.holds)])

    @property
    def expected_scale(self) -> float:
        """What `certified_scale` would be with `expected_error` for the relative error."""
        return _last(self.scales, np.logical_and.accumulate(self.expected_error <= self.fraction))

    def __repr__(self) -> str:
        return (
            f"<Certificate of {self.n_tasks} tasks with {self.n_examples} examples each, "
            f"{len(self.scales)} levels, certified_scale={self.certified_scale:.6g}>"
        )

    def _repr_html_(self) -> str:
        names = ("scales", "deviation", "expected_deviation", "expected_spread", "holds")
        rows = zip(*(getattr(self, name) for name in names), strict=True)
        return html_table(repr(self).strip("<>"), rows, names)

    def plot(self) -> "Figure":
        """Picture of the deviation against the scale, beside what corpora of this size have."""
        figure: Figure = import_module("popdyn.plotting.certification").draw(self)
        return figure

    def __str__(self) -> str:
        lines = [
            f"{self.n_tasks} tasks with {self.n_examples} examples each: error of the projected "
            f"gradient within {self.fraction:g} of the progress",
            f"certified up to scale {self.certified_scale:.6g}, expected {self.expected_scale:.6g}",
            "     scale   population       corpus  deviation   expected     spread",
        ]
        rows = zip(
            self.scales,
            self.population_gradient,
            self.corpus_gradient,
            self.deviation,
            self.expected_deviation,
            self.expected_spread,
            self.holds,
            strict=True,
        )
        lines += [
            f"{scale:10.4f} {population:12.4e} {corpus:12.4e} {deviation:10.4f} {expected:10.4f} "
            f"{spread:10.4f}{'' if holds else '  fails'}"
            for scale, population, corpus, deviation, expected, spread, holds in rows
        ]
        if self.responsible_tasks.size:
            lines.append(f"responsible at the first failure: {_shown(self.responsible_tasks)}")
        lines.append(f"tasks without positive examples: {_shown(self.tasks_without_positives)}")
        lines.append(f"tasks without negative examples: {_shown(self.tasks_without_negatives)}")
        return "\n".join(lines)


def certificate(
    corpus: Corpus,
    path: Trajectory | None = None,
    *,
    start: Head | None = None,
    scales: ArrayLike | None = None,
    fraction: float = 0.5,
) -> Certificate:
    """Scales up to which the gradient of a corpus makes the population's progress (MODEL §6).

    Along a path of heads the projected gradient of the corpus is compared with that of the
    population. While the relative error stays below one, the risk of the corpus, too, falls in the
    direction of progress: descent need not stay near the population's own trajectory for that.

    What this certifies is what was computed: at the listed levels, and nowhere between them, in
    double precision, with exact formulas and no sampling, but without interval arithmetic. Along
    the population flow, the default, nothing is said of the heads that descent on the corpus itself
    goes through; give its trajectory as `path` for those. The population is the clean one of
    uniform features and thresholds: a corpus of another law, or with label noise, is measured
    against it all the same, and then `expected_gradient` and `standard_error` do not describe it.

    A level takes about 0.15 s, nearly all of it for the expected gradient.

    Parameters
    ----------
    corpus : Corpus
    path : Trajectory, optional
        Heads to go through: for each level the first of its points at or above the scale. Levels
        that it does not come to are left out.
    start : Head, optional
        Where the population flow starts if no path is given: `default_start`, as for `pretrain`.
    scales : array_like, shape (levels,), optional
        Increasing levels; where the start or the path begins above one, the head there stands for
        it. By default four to an octave from there to `min(m, n) / l`, one octave at least.
    fraction : float
        Relative error up to which a level holds, between 0 and 1.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        On bad arguments, if a scale is below `1 / l`, or if the path reaches none of the levels or
        the population flow not all of them.

    Examples
    --------
    >>> from popdyn import Design, sample_corpus
    >>> corpus = sample_corpus(Design(), n_tasks=256, n_examples=256, rng=0)
    >>> print(certificate(corpus, scales=[8, 20, 50]))
    256 tasks with 256 examples each: error of the projected gradient within 0.5 of the progress
    certified up to scale 20, expected 50
         scale   population       corpus  deviation   expected     spread
        8.0000  -3.0492e-03  -2.6226e-03    -0.1399    -0.0624     0.0848
       20.0000  -2.3607e-04  -1.6979e-04    -0.2808    -0.1453     0.1685
       50.0000  -1.5655e-05  -4.9074e-06    -0.6865    -0.2826     0.3996  fails
    responsible at the first failure: 1 (151)
    tasks without positive examples: 2 (151, 160)
    tasks without negative examples: 3 (24, 34, 45)
    """
    risk = CorpusRisk(corpus)
    fraction = _fraction(fraction)
    heads = (
        _flow_heads(corpus, start, scales)
        if path is None
        else _path_heads(corpus, path, start, scales)
    )
    along = progress_direction(heads)
    population = _projected(ClosedFormRisk(corpus.half_width).gradient(heads), along)
    by_task = np.array(
        [
            _projected(_task_gradients(risk.tasks, excess, 2.0 * corpus.half_width, scale), u)
            for excess, scale, u in zip(heads.excess, heads.scale, along, strict=True)
        ]
    )
    expected = progress_moments(heads, corpus.n_examples)
    of_corpus = by_task.mean(axis=1)
    responsible, shares = _responsible(by_task, population, fraction)
    return Certificate(
        fraction=fraction,
        heads=heads,
        population_gradient=population,
        corpus_gradient=of_corpus,
        expected_gradient=expected.mean,
        standard_error=expected.standard_deviation / np.sqrt(corpus.n_tasks),
        n_tasks=corpus.n_tasks,
        n_examples=corpus.n_examples,
        responsible_tasks=responsible,
        responsible_shares=shares,
        tasks_without_positives=np.flatnonzero((corpus.labels < 0).all(axis=1)),
        tasks_without_negatives=np.flatnonzero((corpus.labels > 0).all(axis=1)),
    )


@kernel
def _task_gradients(tasks: Tasks, score: float, base: float, mu: float) -> NDArray[float64]:
    """Gradient of every task, shape `(m, 2)`, where `lam = score + mu base / 2`."""
    features, n_positives, thresholds = tasks
    gradients = np.empty((thresholds.size, 2))
    for j in range(thresholds.size):
        one = features[j : j + 1], n_positives[j : j + 1], thresholds[j : j + 1]
        _, gradients[j, 0], gradients[j, 1] = corpus_gradient(one, score, base, mu)
    return gradients


def _projected(gradients: NDArray[float64], along: NDArray[float64]) -> NDArray[float64]:
    projected: NDArray[float64] = np.sum(gradients * along, axis=-1)
    return projected


def _responsible(
    by_task: NDArray[float64], population: NDArray[float64], fraction: float
) -> tuple[NDArray[int64], NDArray[float64]]:
    """Tasks that make the first failure, and their shares in the error."""
    errors = by_task - population[:, None]
    totals = np.abs(errors.mean(axis=1))
    failed = totals > fraction * np.abs(population)
    if not failed.any():
        return np.empty(0, dtype=int64), np.empty(0)
    level = int(np.argmax(failed))
    shares = errors[level] / errors[level].sum()
    order = np.argsort(-shares, kind="stable")
    excess = 1.0 - fraction * abs(population[level]) / totals[level]
    n_responsible = 1 + int(np.argmax(np.cumsum(shares[order]) >= excess))
    responsible = order[:n_responsible]
    return responsible, shares[responsible]


# --- heads ----------------------------------------------------------------------------------------


def _flow_heads(corpus: Corpus, start: Head | None, scales: ArrayLike | None) -> Head:
    """Heads of the population flow at the levels."""
    width = corpus.half_width
    head = default_start(width) if start is None else start
    if not isinstance(head, Head) or head.shape or not head.scale > 0:
        raise ValueError(f"start must be one Head of positive scale, got {start!r}")
    _require_width("start", head.half_width, width)
    levels = _levels(corpus, scales, float(head.scale))
    risk, heads = ClosedFormRisk(width), []
    for level in levels:
        hit = hitting_time(risk, head, scale=level)
        if not hit.reached:
            raise ValueError(
                f"scales must be ones that the population flow reaches from {head!r}, got "
                f"{level!r} ({hit.message}); take a start of larger scale"
            )
        head = hit.head
        heads.append(head)
    return _one_of_each(heads)


def _path_heads(
    corpus: Corpus, path: Trajectory, start: Head | None, scales: ArrayLike | None
) -> Head:
    """Heads of a trajectory at the levels that it comes to."""
    if start is not None:
        raise ValueError("give a path or a start, not both; a start is one of the population flow")
    if not isinstance(path, Trajectory):
        raise ValueError(
            f"path must be a Trajectory, got {type(path).__name__}; "
            "make one with gradient_flow or gradient_descent"
        )
    _require_width("path", path.half_width, corpus.half_width)
    if not (path.scale > 0).any():
        raise ValueError(f"path must have points of positive scale, got {path!r}")
    first = float(path.scale[np.argmax(path.scale > 0)])
    levels = _levels(corpus, scales, first)
    reached = levels[levels <= path.scale.max()]
    if not reached.size:
        raise ValueError(
            f"scales must begin with one that the path comes to, got {levels[0]!r} and a path up "
            f"to {float(path.scale.max())!r}"
        )
    return _one_of_each([path.head(int(np.argmax(path.scale >= level))) for level in reached])


def _one_of_each(heads: list[Head]) -> Head:
    """One Head of all that differ from the one before: a head may stand for several levels."""
    kept = [head for i, head in enumerate(heads) if i == 0 or head.scale != heads[i - 1].scale]
    excess, scale = [head.excess for head in kept], [head.scale for head in kept]
    return Head.from_excess(excess, scale, kept[0].half_width)


def _levels(corpus: Corpus, scales: ArrayLike | None, first: float) -> NDArray[float64]:
    if scales is None:
        last = _LAST * min(corpus.n_tasks, corpus.n_examples) / corpus.half_width
        n_levels = int(_PER_OCTAVE * np.log2(max(last / first, 2.0)))
        return first * 2.0 ** (np.arange(n_levels + 1) / _PER_OCTAVE)
    try:
        levels = np.array(scales, dtype=float64)
    except (TypeError, ValueError):
        levels = np.array(np.nan)
    if levels.ndim != 1 or not levels.size or not (np.isfinite(levels) & (levels > 0)).all():
        raise ValueError(f"scales must be a list of positive finite numbers, got {scales!r}")
    if (np.diff(levels) <= 0).any():
        raise ValueError(f"scales must be increasing, got {scales!r}; sort them")
    return levels


def _fraction(fraction: float) -> float:
    try:
        number = float(fraction)
    except (TypeError, ValueError):
        number = np.nan
    if not 0.0 < number < 1.0:
        raise ValueError(f"fraction must be a number between 0 and 1, got {fraction!r}")
    return number


def _require_width(name: str, width: float, of_corpus: float) -> None:
    if width != of_corpus:
        raise ValueError(
            f"{name} and corpus must have one half width, got {width!r} and {of_corpus!r}"
        )


def _last(scales: NDArray[float64], holds: NDArray[np.bool_]) -> float:
    return float(scales[holds][-1]) if holds.any() else 0.0


def _shown(tasks: NDArray[int64]) -> str:
    shown = ", ".join(map(str, tasks[:_SHOWN].tolist())) + (", ..." if tasks.size > _SHOWN else "")
    return f"{tasks.size}" + (f" ({shown})" if shown else "")
