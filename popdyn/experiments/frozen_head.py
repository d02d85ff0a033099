"""What a checkpoint leads to: its place beside the population flow, its errors (MODEL §6)."""

from dataclasses import dataclass

import numpy as np

from popdyn.dynamics.flow import gradient_flow
from popdyn.dynamics.hitting import hitting_time
from popdyn.dynamics.trajectory import Trajectory
from popdyn.pretraining import Checkpoint
from popdyn.risk.closed_form import ClosedFormRisk
from popdyn.transfer_curve import TransferCurve, transfer

__all__ = ["Result", "observe"]

_THRESHOLDS = np.array([0.0, 0.5, -0.5])  # in half widths
_CONTEXT_SIZES = 2 ** np.arange(3, 17)  # from few examples to beyond the floor of any checkpoint


@dataclass(frozen=True)
class Result:
    """A checkpoint, the flow that all tasks would have led from its start, its errors.

    Attributes
    ----------
    checkpoint : Checkpoint
    flow : Trajectory
        Of the population from the same start to the larger of the stopping scale and that of the
        frozen head; for the time of the descent where it does not come there.
    curve : TransferCurve
    """

    checkpoint: Checkpoint
    flow: Trajectory
    curve: TransferCurve


def observe(checkpoint: Checkpoint) -> Result:
    """The population flow beside a checkpoint, and its exact errors on fresh contexts."""
    population = ClosedFormRisk(checkpoint.half_width)
    end = max(checkpoint.stopping_scale, float(checkpoint.head.scale))
    hit = hitting_time(population, checkpoint.start, scale=end)
    time = hit.time if hit.reached else checkpoint.n_steps * checkpoint.step_size
    return Result(
        checkpoint=checkpoint,
        flow=gradient_flow(population, checkpoint.start, time),
        curve=transfer(checkpoint, checkpoint.half_width * _THRESHOLDS, _CONTEXT_SIZES),
    )
