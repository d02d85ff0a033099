"""How training depends on the radius it starts from (MODEL §5).

The claim of the paper's Figure 7: the zero head is stationary and nearby ones escape slowly; the
gradient vanishes linearly in the radius; the risk after a common time depends on it strongly.
"""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from numpy import float64
from numpy.typing import NDArray
from scipy.optimize import brentq

from popdyn.archive import PathLike
from popdyn.asymptotics import escape_time, gradient_slope, saddle_eigenvalues
from popdyn.coordinates import Head
from popdyn.dynamics.flow import gradient_flow
from popdyn.experiments.finding import Finding
from popdyn.experiments.observation import flow_at
from popdyn.risk.closed_form import ClosedFormRisk

__all__ = ["Config", "Result", "findings", "run"]

_OUTSIDE = 1.0  # the radius that counts as escaped
# Time for an escape beyond the law, which leaves out a constant of the direction: 2.5 at 45
# degrees, and more than this within 1e-4 of the direction that does not escape.
_ROOM = 150.0
# Below it the next terms, relative to the radius squared, are 1e-5 and less.
_SMALL = 1e-2
_ROUNDING = 4 * np.finfo(float).eps


@dataclass(frozen=True)
class Config:
    """Radii of the starts, all in one direction. Half width 1.

    Attributes
    ----------
    radii : tuple of float
        Positive, increasing: of the gradients, the escapes and the risks at the end.
    shown : tuple of float
        Radii whose risks are followed in time; 0 is the zero head.
    angle : float
        Of `(lam, mu)`, in degrees.
    t_end : float
        The common time.
    n_times : int
    """

    radii: tuple[float, ...]
    shown: tuple[float, ...] = (0.0, 1e-6, 1e-4, 1e-2, 0.1, 1.0)
    angle: float = 45.0
    t_end: float = 300.0
    n_times: int = 301

    @classmethod
    def paper(cls) -> "Config":
        """Four radii a decade from 1e-8 to 10."""
        return cls(tuple(10.0 ** (quarter / 4.0) for quarter in range(-32, 5)))

    @classmethod
    def quick(cls) -> "Config":
        """One radius a decade."""
        return cls(tuple(10.0**power for power in range(-8, 2)), n_times=101)


@dataclass(frozen=True)
class Result:
    """Risks, gradients and escapes of flows in closed form.

    Attributes
    ----------
    angle : float
        In degrees.
    t : ndarray, shape (n_times,)
    shown : ndarray, shape (n_shown,)
        Radii of the starts.
    shown_risk : ndarray, shape (n_shown, n_times)
    radii : ndarray, shape (n_radii,)
    gradient_norm : ndarray, shape (n_radii,)
        Of the risk at the start.
    escape : ndarray, shape (n_radii,)
        First time at radius 1; nan where the start is not inside, or it takes far longer than the
        law says.
    final_risk : ndarray, shape (n_radii,)
        At the last time.
    """

    angle: float
    t: NDArray[float64]
    shown: NDArray[float64]
    shown_risk: NDArray[float64]
    radii: NDArray[float64]
    gradient_norm: NDArray[float64]
    escape: NDArray[float64]
    final_risk: NDArray[float64]


def run(
    config: Config, *, executor: Executor | None = None, store: PathLike | None = None
) -> Result:
    """Flows in closed form; some seconds, so in this process."""
    risk = ClosedFormRisk()
    t = np.linspace(0.0, config.t_end, config.n_times)
    heads = [_head(radius, config.angle) for radius in config.radii]
    return Result(
        angle=config.angle,
        t=t,
        shown=np.array(config.shown),
        shown_risk=np.array([flow_at(risk, _head(r, config.angle), t).risk for r in config.shown]),
        radii=np.array(config.radii),
        gradient_norm=np.array([np.linalg.norm(risk.gradient(head)) for head in heads]),
        escape=np.array([_escape(risk, head) for head in heads]),
        final_risk=np.array([flow_at(risk, head, t[-1:]).risk[-1] for head in heads]),
    )


def findings(result: Result) -> tuple[Finding, ...]:
    """Slope of the gradient, price of a smaller radius, and what a common time leads to."""
    small = result.radii <= _SMALL
    slope = gradient_slope(result.angle)
    slopes = (result.gradient_norm / result.radii)[small]
    delay = -np.polyfit(np.log(result.radii[small]), result.escape[small], 1)[0]
    said = [
        Finding(
            f"|grad L|/r at {result.angle:g} degrees, farthest for r <= {_SMALL:g}",
            slope,
            float(slopes[np.argmax(np.abs(slopes - slope))]),
        ),
        Finding(
            "delay of the escape to radius 1 when r is divided by e",
            float(-1.0 / saddle_eigenvalues()[0]),
            float(delay),
        ),
    ]
    end = f"risk after t = {result.t[-1]:g}"
    last = dict(zip(result.shown, result.shown_risk[:, -1], strict=True))
    if 0.0 in last:
        said.append(Finding(f"{end} from the zero head", 1 / 3, float(last.pop(0.0))))
    radii = ", ".join(f"{radius:g}" for radius in last)
    risks = ", ".join(f"{risk:.4f}" for risk in last.values())
    said.append(Finding(f"{end} from r = {radii}", "falls with r", risks))
    return tuple(said)


def _head(radius: float, angle: float) -> Head:
    direction = np.deg2rad(angle)
    return Head.from_scores(radius * np.cos(direction), radius * np.sin(direction))


def _escape(risk: ClosedFormRisk, head: Head) -> float:
    def gap(at: Head) -> float:
        return float(np.hypot(at.label_score, at.scale)) - _OUTSIDE

    if gap(head) >= 0.0:
        return np.nan
    end = float(escape_time(gap(head) + _OUTSIDE)) + _ROOM
    path = gradient_flow(
        risk, head, end, dense_output=True, callback=lambda _, head: gap(head) >= 0.0
    )
    if gap(path.stop_head) < 0.0:
        return np.nan
    return float(brentq(lambda t: gap(path.sol(t)), path.t[-2], path.stop_time, rtol=_ROUNDING))
