"""Pictures by a few numbers: what a slider turns, and a first look without one.

Each function computes something small and draws it; all arguments have defaults.
"""

import warnings

import numpy as np
from matplotlib.figure import Figure

from popdyn.attention import limit_error
from popdyn.coordinates import Head
from popdyn.design import Design, tilted
from popdyn.dynamics.flow import gradient_flow
from popdyn.dynamics.trajectory import Trajectory
from popdyn.experiments import phase_portrait
from popdyn.limit_laws import density_tube_center
from popdyn.moments import context_moments
from popdyn.noise import localized, massart
from popdyn.plotting.comparisons import compare_profiles, compare_sizes, compare_tubes
from popdyn.plotting.expansion import draw as draw_expansion
from popdyn.plotting.phase_portrait import draw as draw_portrait
from popdyn.quadrature import UnresolvedLayerWarning, boundary_graded, gauss_legendre
from popdyn.reflected_moments import midpoint_moments, pair_moments
from popdyn.risk.closed_form import ClosedFormRisk
from popdyn.risk.infinite_context import InfiniteContextRisk
from popdyn.risk.protocol import Risk
from popdyn.transfer_curve import transfer

__all__ = [
    "density_picture",
    "expansion_picture",
    "noise_picture",
    "pair_picture",
    "path_picture",
    "portrait_picture",
    "rule_picture",
    "transfer_picture",
]

_START = (1.5, 5.0)  # ratio in half widths, scale in their inverse
_LATE = 1e12
_ORDER_LAW = 25.0  # order over (mu l)^1.5 that a gradient on the tube needs
_THRESHOLDS = np.linspace(-1.0, 1.0, 401)
_CONTEXT_SIZES = 2 ** np.arange(3, 17)
_PAIR_SIZES = 4 ** np.arange(2, 8)  # few: the mixed moment of a pair is no quick one


def path_picture(
    ratio: float = 1.5, scale: float = 5.0, decades: float = 12.0, half_width: float = 1.0
) -> Figure:
    """The population flow from one start to time `10^decades`."""
    head = Head.from_ratio(ratio, scale, half_width)
    return gradient_flow(ClosedFormRisk(half_width), head, 10.0**decades).plot()


def portrait_picture(half_width: float = 1.0) -> Figure:
    """The flow in the plane `(c, 1/mu)`, with tube and separatrix."""
    return draw_portrait(phase_portrait.run(phase_portrait.Config(half_width=half_width)))


def expansion_picture(half_width: float = 1.0) -> Figure:
    """The expansion of the tube held against a flow, order by order."""
    return draw_expansion(_flow(ClosedFormRisk(half_width), _LATE * half_width**-2))


def rule_picture(order: int = 400, decades: float = 8.0) -> Figure:
    """The flow by a plain Gauss-Legendre rule of one order beside the exact one.

    The mark is the scale to which the order is said to suffice.
    """
    with warnings.catch_warnings():
        # That the rule does not resolve the layer is what the picture shows.
        warnings.simplefilter("ignore", UnresolvedLayerWarning)
        by_rule = _flow(InfiniteContextRisk(Design(), gauss_legendre(order)), 10.0**decades)
    exact = _flow(ClosedFormRisk(), 10.0**decades)
    enough = (order / _ORDER_LAW) ** (2.0 / 3.0)
    return compare_tubes(
        {"closed form": exact, f"order {order}": by_rule},
        scales={rf"order is $25\,\mu^{{3/2}}$: $\mu = {enough:.3g}$": enough},
    )


def density_picture(tilt: float = 0.3, decades: float = 9.0) -> Figure:
    """The flow on features of a tilted density beside that on uniform ones, with its limit."""
    density = tilted(tilt)
    law = float(density_tube_center((1.0 + tilt) / (1.0 - tilt)))
    tilted_risk = InfiniteContextRisk(Design(feature_density=density), boundary_graded())
    return compare_tubes(
        {
            "uniform features": _flow(ClosedFormRisk(), 10.0**decades),
            f"tilted by {tilt:g}": _flow(tilted_risk, 10.0**decades),
        },
        limits={f"limit $c^* = {law:.3f}$": law},
    )


def transfer_picture(scale: float = 20.0, tube: float = 0.7) -> Figure:
    """Exact errors of one head on contexts of every size."""
    return transfer(Head.from_tube(tube, scale), [0.0, 0.5, -0.5], _CONTEXT_SIZES).plot()


def noise_picture(probability: float = 0.01, scale: float = 20.0, tube: float = 0.7) -> Figure:
    """Error of one head on infinite contexts by threshold: clean, and with flipped labels.

    Labels are flipped everywhere, or within `1/mu` of the threshold only.
    """
    head = Head.from_tube(tube, scale)
    designs = {
        "clean": Design(),
        f"{100 * probability:g} % flipped": Design(noise=massart(probability)),
        r"within $1/\mu$ only": Design(noise=localized(probability, 1.0 / scale)),
    }
    return compare_profiles(
        _THRESHOLDS,
        {name: limit_error(head, _THRESHOLDS, design) for name, design in designs.items()},
    )


def pair_picture(scale: float = 32.0, threshold: float = 0.3) -> Figure:
    """Exact errors of one head, of its reflected pair and of the midpoint, by context size."""
    head = Head.from_tube(0.7, scale)
    return compare_sizes(
        _PAIR_SIZES,
        {
            "one head": context_moments(head, threshold, _PAIR_SIZES).root_mean_square,
            "reflected pair": pair_moments(head, threshold, _PAIR_SIZES).root_mean_square,
            "midpoint": midpoint_moments(threshold, _PAIR_SIZES).root_mean_square,
        },
    )


def _flow(risk: Risk, t_end: float) -> Trajectory:
    ratio, scale = _START
    head = Head.from_ratio(ratio * risk.half_width, scale / risk.half_width, risk.half_width)
    return gradient_flow(risk, head, t_end)
