"""Where the scale grows: small starts, other designs, corrupted labels (MODEL §5, §7).

The claims of the paper's Figure 5: at a common time a start of small radius has hardly begun, as
the gradient vanishes at the origin; two nonuniform feature densities grow like the uniform one; one
percent of flipped labels in training ends the growth. Here `l = 1`.
"""

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from popdyn.archive import PathLike
from popdyn.asymptotics import fourth_power_rate
from popdyn.coordinates import Head
from popdyn.design import Design, tilted, wavy
from popdyn.experiments.finding import Finding
from popdyn.experiments.observation import flow_at
from popdyn.limit_laws import density_tube_center, saturation_scale
from popdyn.noise import massart
from popdyn.quadrature import boundary_graded
from popdyn.risk.closed_form import ClosedFormRisk
from popdyn.risk.infinite_context import InfiniteContextRisk
from popdyn.risk.protocol import Risk
from popdyn.sweeping import sweep

__all__ = ["DESIGNS", "Config", "Result", "findings", "run"]

DESIGNS = ("uniform", "tilted", "wavy", "corrupted")
# Of the solver: the last scales move by 1e-6 relative. With less, a run would spend its time at the
# rest point of corrupted labels, where only the rounding of the gradient moves.
_RTOL, _ATOL = 1e-6, 1e-8

Cell: TypeAlias = tuple[str, float, tuple[float, float], tuple[float, ...]]


@dataclass(frozen=True)
class Config:
    """Radii and times of the sweep of starts; start, time and designs of the long runs.

    Attributes
    ----------
    radii : tuple of float
        Of starts with `lam = mu > 0`.
    common_times : tuple of float
        At which they are looked at, increasing.
    start : (float, float)
        Ratio and scale of the long runs.
    t_end : float
    n_times : int
        Evenly in log time, from 1.
    amplitude : float
        Of the tilt and the wave of the feature densities.
    corruption : float
        Probability that a label is flipped.
    """

    radii: tuple[float, ...]
    common_times: tuple[float, ...] = (30.0, 100.0, 300.0)
    start: tuple[float, float] = (1.5, 8.0)
    t_end: float = 10**9.75
    n_times: int = 120
    amplitude: float = 0.3
    corruption: float = 0.01

    @classmethod
    def paper(cls) -> "Config":
        """Four radii a decade."""
        return cls(tuple(10.0 ** (k / 4) for k in range(-24, 1)))

    @classmethod
    def quick(cls) -> "Config":
        """One radius a decade, and fewer times."""
        return cls(tuple(10.0**k for k in range(-6, 1)), n_times=40)


@dataclass(frozen=True)
class Result:
    """Risks of the sweep, and a path for each of `DESIGNS`.

    Attributes
    ----------
    radii : ndarray, shape (p,)
    common_times : ndarray, shape (q,)
    common_risk : ndarray, shape (q, p)
    origin_risk : float
        Of the start at the origin, which stays there.
    amplitude, corruption : float
    t : ndarray, shape (n,)
    label_score, scale, tube, risk : ndarray, shape (4, n)
        `risk` is the one trained on.
    """

    radii: NDArray[float64]
    common_times: NDArray[float64]
    common_risk: NDArray[float64]
    origin_risk: float
    amplitude: float
    corruption: float
    t: NDArray[float64]
    label_score: NDArray[float64]
    scale: NDArray[float64]
    tube: NDArray[float64]
    risk: NDArray[float64]


def run(
    config: Config, *, executor: Executor | None = None, store: PathLike | None = None
) -> Result:
    """Sweep the radii, and run the flow of every design."""
    times = np.concatenate(([0.0], np.geomspace(1.0, config.t_end, config.n_times - 1)))
    ratio, scale = config.start
    long_start = float(Head.from_ratio(ratio, scale).label_score), scale
    parameters = {
        "uniform": 0.0,
        "tilted": config.amplitude,
        "wavy": config.amplitude,
        "corrupted": config.corruption,
    }
    cells: list[Cell] = [
        (name, parameter, long_start, tuple(times.tolist()))
        for name, parameter in parameters.items()
    ]
    cells += [
        ("uniform", 0.0, (radius / np.sqrt(2.0), radius / np.sqrt(2.0)), config.common_times)
        for radius in config.radii
    ]
    paths = sweep(cells, _path, executor=executor, store=store)
    long = {name: np.stack([path[name] for path in paths[:4]]) for name in paths[0]}
    origin = Head.from_scores(0.0, 0.0)
    return Result(
        radii=np.array(config.radii),
        common_times=np.array(config.common_times),
        common_risk=np.stack([path["risk"] for path in paths[4:]], axis=1),
        origin_risk=float(ClosedFormRisk().value(origin)),
        amplitude=config.amplitude,
        corruption=config.corruption,
        t=times,
        **long,
    )


def findings(result: Result) -> tuple[Finding, ...]:
    """Delay of the smallest start against the largest; ends of the long runs beside their laws."""
    found = []
    least, most = int(np.argmin(result.radii)), int(np.argmax(result.radii))
    for time, row in zip(result.common_times, result.common_risk, strict=True):
        claim = (
            f"risk at t = {time:g} from radius {result.radii[least]:.3g} over that from "
            f"{result.radii[most]:.3g}"
        )
        found.append(Finding(claim, "above 1", float(row[least] / row[most])))
    end = f"at t = {result.t[-1]:.5g}"
    clean = dict(zip(DESIGNS[:3], result.scale[:3, -1], strict=True))
    for name, scale in clean.items():
        power = float(scale**4 / result.t[-1])
        found.append(Finding(f"mu^4 / t {end}, {name}", fourth_power_rate(), power))
    for name in DESIGNS[1:3]:
        ratio = float(clean[name] / clean["uniform"])
        found.append(Finding(f"mu over that of the uniform design {end}, {name}", 1.0, ratio))
    a = result.amplitude
    for i, end_ratio in ((1, (1.0 + a) / (1.0 - a)), (2, 1.0)):
        law = float(density_tube_center(end_ratio))
        claim = f"tube coordinate c {end}, {DESIGNS[i]}"
        found.append(Finding(claim, law, float(result.tube[i, -1])))
    law = float(saturation_scale(result.corruption))
    found.append(Finding(f"mu {end}, corrupted", law, float(result.scale[3, -1])))
    found.append(Finding(f"risk {end}, corrupted", "a floor above 0", float(result.risk[3, -1])))
    return tuple(found)


def _path(cell: Cell) -> dict[str, NDArray[float64]]:
    """Flow of one design from `(lam, mu)`, at given times."""
    name, parameter, (label_score, scale), times = cell
    risk = _risk(name, parameter)
    start = Head.from_scores(label_score, scale)
    flow = flow_at(risk, start, np.array(times), rtol=_RTOL, atol=_ATOL)
    return {field: getattr(flow, field) for field in ("label_score", "scale", "tube", "risk")}


def _risk(name: str, parameter: float) -> Risk:
    if name == "uniform":
        return ClosedFormRisk()
    if name == "corrupted":
        return InfiniteContextRisk(Design(noise=massart(parameter)), boundary_graded())
    density = tilted(parameter) if name == "tilted" else wavy(parameter)
    return InfiniteContextRisk(Design(feature_density=density), boundary_graded())
