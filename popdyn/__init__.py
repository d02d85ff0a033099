"""Population dynamics of a one-head softmax attention that learns thresholds in context.

Every public name is found here and loaded on first use, so that `import popdyn` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from popdyn.attention import limit_error as limit_error
    from popdyn.certification import Certificate as Certificate
    from popdyn.certification import certificate as certificate
    from popdyn.coordinates import Head as Head
    from popdyn.corpus import Corpus as Corpus
    from popdyn.design import Design as Design
    from popdyn.design import tilted as tilted
    from popdyn.design import wavy as wavy
    from popdyn.dynamics.arrivals import hitting_times as hitting_times
    from popdyn.dynamics.descent import gradient_descent as gradient_descent
    from popdyn.dynamics.flow import gradient_flow as gradient_flow
    from popdyn.dynamics.hitting import crossings as crossings
    from popdyn.dynamics.hitting import hitting_time as hitting_time
    from popdyn.dynamics.hitting import tube_entrance as tube_entrance
    from popdyn.dynamics.saddle import separatrix as separatrix
    from popdyn.dynamics.trajectory import Hit as Hit
    from popdyn.dynamics.trajectory import Trajectory as Trajectory
    from popdyn.moments import ContextMoments as ContextMoments
    from popdyn.moments import context_moments as context_moments
    from popdyn.noise import LabelFlips as LabelFlips
    from popdyn.noise import localized as localized
    from popdyn.noise import massart as massart
    from popdyn.noise import tsybakov as tsybakov
    from popdyn.pretraining import Checkpoint as Checkpoint
    from popdyn.pretraining import default_start as default_start
    from popdyn.pretraining import pretrain as pretrain
    from popdyn.pretraining import stopping_scale as stopping_scale
    from popdyn.projected_gradient import ProgressMoments as ProgressMoments
    from popdyn.projected_gradient import progress_direction as progress_direction
    from popdyn.projected_gradient import progress_moments as progress_moments
    from popdyn.quadrature import UnresolvedLayerWarning as UnresolvedLayerWarning
    from popdyn.quadrature import boundary_graded as boundary_graded
    from popdyn.quadrature import equal_weights as equal_weights
    from popdyn.quadrature import gauss_legendre as gauss_legendre
    from popdyn.reflected_moments import bayes_moments as bayes_moments
    from popdyn.reflected_moments import midpoint_moments as midpoint_moments
    from popdyn.reflected_moments import pair_moments as pair_moments
    from popdyn.reflection import bayes_estimates as bayes_estimates
    from popdyn.reflection import midpoints as midpoints
    from popdyn.reflection import pair_predictions as pair_predictions
    from popdyn.reflection import predictions as predictions
    from popdyn.risk.arbitrary_precision import ArbitraryPrecisionRisk as ArbitraryPrecisionRisk
    from popdyn.risk.closed_form import ClosedFormRisk as ClosedFormRisk
    from popdyn.risk.corpus import CorpusRisk as CorpusRisk
    from popdyn.risk.finite_context import FiniteContextRisk as FiniteContextRisk
    from popdyn.risk.finite_context import end_graded as end_graded
    from popdyn.risk.infinite_context import InfiniteContextRisk as InfiniteContextRisk
    from popdyn.risk.reflected_pair import ReflectedPairRisk as ReflectedPairRisk
    from popdyn.sampled_moments import SampledMoments as SampledMoments
    from popdyn.sampled_moments import context_moments_sampled as context_moments_sampled
    from popdyn.sampled_moments import pair_moments_sampled as pair_moments_sampled
    from popdyn.sampling import cell_seed as cell_seed
    from popdyn.sampling import sample_contexts as sample_contexts
    from popdyn.sampling import sample_corpus as sample_corpus
    from popdyn.sweeping import sweep as sweep
    from popdyn.transfer_curve import TransferCurve as TransferCurve
    from popdyn.transfer_curve import TwoTermFit as TwoTermFit
    from popdyn.transfer_curve import fit_two_terms as fit_two_terms
    from popdyn.transfer_curve import transfer as transfer

_MODULES = {
    "ArbitraryPrecisionRisk": "popdyn.risk.arbitrary_precision",
    "Certificate": "popdyn.certification",
    "Checkpoint": "popdyn.pretraining",
    "ClosedFormRisk": "popdyn.risk.closed_form",
    "ContextMoments": "popdyn.moments",
    "Corpus": "popdyn.corpus",
    "CorpusRisk": "popdyn.risk.corpus",
    "Design": "popdyn.design",
    "FiniteContextRisk": "popdyn.risk.finite_context",
    "Head": "popdyn.coordinates",
    "Hit": "popdyn.dynamics.trajectory",
    "InfiniteContextRisk": "popdyn.risk.infinite_context",
    "LabelFlips": "popdyn.noise",
    "ProgressMoments": "popdyn.projected_gradient",
    "ReflectedPairRisk": "popdyn.risk.reflected_pair",
    "SampledMoments": "popdyn.sampled_moments",
    "Trajectory": "popdyn.dynamics.trajectory",
    "TransferCurve": "popdyn.transfer_curve",
    "TwoTermFit": "popdyn.transfer_curve",
    "UnresolvedLayerWarning": "popdyn.quadrature",
    "bayes_estimates": "popdyn.reflection",
    "bayes_moments": "popdyn.reflected_moments",
    "boundary_graded": "popdyn.quadrature",
    "cell_seed": "popdyn.sampling",
    "certificate": "popdyn.certification",
    "context_moments": "popdyn.moments",
    "context_moments_sampled": "popdyn.sampled_moments",
    "crossings": "popdyn.dynamics.hitting",
    "default_start": "popdyn.pretraining",
    "end_graded": "popdyn.risk.finite_context",
    "equal_weights": "popdyn.quadrature",
    "fit_two_terms": "popdyn.transfer_curve",
    "gauss_legendre": "popdyn.quadrature",
    "gradient_descent": "popdyn.dynamics.descent",
    "gradient_flow": "popdyn.dynamics.flow",
    "hitting_time": "popdyn.dynamics.hitting",
    "hitting_times": "popdyn.dynamics.arrivals",
    "limit_error": "popdyn.attention",
    "localized": "popdyn.noise",
    "massart": "popdyn.noise",
    "midpoint_moments": "popdyn.reflected_moments",
    "midpoints": "popdyn.reflection",
    "pair_moments": "popdyn.reflected_moments",
    "pair_moments_sampled": "popdyn.sampled_moments",
    "pair_predictions": "popdyn.reflection",
    "predictions": "popdyn.reflection",
    "pretrain": "popdyn.pretraining",
    "progress_direction": "popdyn.projected_gradient",
    "progress_moments": "popdyn.projected_gradient",
    "sample_contexts": "popdyn.sampling",
    "sample_corpus": "popdyn.sampling",
    "separatrix": "popdyn.dynamics.saddle",
    "stopping_scale": "popdyn.pretraining",
    "sweep": "popdyn.sweeping",
    "tilted": "popdyn.design",
    "transfer": "popdyn.transfer_curve",
    "tsybakov": "popdyn.noise",
    "tube_entrance": "popdyn.dynamics.hitting",
    "wavy": "popdyn.design",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version("popdyn-attention")
    if name not in _MODULES:
        raise AttributeError(f"module 'popdyn' has no attribute {name!r}{_advice(name)}")
    return getattr(import_module(_MODULES[name]), name)


def _advice(name: str) -> str:
    """What somebody may have meant by a name that is none: a module, or names like it."""
    from difflib import get_close_matches
    from importlib.util import find_spec

    if name.startswith("_"):
        return ""
    if find_spec(f"popdyn.{name}") is not None:
        return f"; it is a module: import popdyn.{name}"
    by_letters = {public.lower().replace("_", ""): public for public in _MODULES}
    letters = name.lower().replace("_", "")
    near = get_close_matches(letters, by_letters, n=3)
    near += [word for word in by_letters if letters in word and word not in near][: 3 - len(near)]
    return f"; did you mean {' or '.join(by_letters[word] for word in near)}?" if near else ""


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
