"""`popdyn flow`: the gradient flow from one head, as a table, arrays or a picture."""

import argparse
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from popdyn.cli.output import (
    add_output_options,
    check_outputs,
    print_json,
    print_lines,
    print_table,
    write_picture,
    write_whole,
)
from popdyn.cli.parsing import (
    Commands,
    UsageError,
    add_gradient_option,
    add_head_options,
    add_method_option,
    head_of,
    number,
    positive_integer,
    risk_of,
)
from popdyn.cli.progress import progress, waiting

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    from popdyn.coordinates import Head
    from popdyn.dynamics.trajectory import Trajectory
    from popdyn.risk.protocol import Risk

__all__ = ["add_to"]

PICTURE_POINTS = 400  # more than anyone wants to read in a table
# The first point after the start. In units where the half width is one nothing happens before,
# and a short run shows three decades.
FIRST_TIME, FIRST_FRACTION = 1.0, 1e-3
COLUMNS = ("t", "label_score", "scale", "excess", "ratio", "tube", "risk")
OUTCOME = ("half_width", "success", "status", "message", "nfev", "njev", "n_steps", "stop_time")


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "flow",
        help="the gradient flow from one head",
        description="Population gradient flow d(lam, mu)/dt = -grad L from one head: a table, "
        "one line of JSON, arrays in a file, a picture of the run into the logarithmic tube.",
    )
    add_head_options(parser)
    parser.add_argument("--t-end", type=number, metavar="T", required=True, help="time to stop")
    parser.add_argument(
        "--points",
        type=positive_integer,
        metavar="N",
        default=50,
        help="points to show: time 0 and others evenly spaced in log time from the smaller of 1 "
        "and T/1000 to T (default 50); 1 is the end alone",
    )
    add_gradient_option(parser)
    add_method_option(parser)
    parser.add_argument(
        "--enclose",
        action="store_true",
        help="also say from which moment on the run, with the gradient in closed form, is inside a "
        "region that is proven to hold it for ever (needs python-flint; takes up to 20 s)",
    )
    add_output_options(parser, "ratio, tube, scale and error")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    check_outputs(arguments)
    if not 0.0 <= arguments.t_end < math.inf:
        raise UsageError(f"--t-end wants a finite time from 0 on, got {arguments.t_end!r}")
    if arguments.plot is not None and arguments.t_end == 0.0:
        raise UsageError("--plot wants a --t-end above 0, got 0: there is nothing to draw")
    head, risk = head_of(arguments), risk_of(arguments)
    shown = _times(arguments.t_end, arguments.points)
    drawn = _times(arguments.t_end, PICTURE_POINTS) if arguments.plot is not None else shown
    times = np.union1d(shown, drawn)

    from popdyn.dynamics.flow import gradient_flow

    with progress("t", arguments.t_end, lambda t, _: t) as callback:
        trajectory = gradient_flow(
            risk,
            head,
            arguments.t_end,
            t_eval=times,
            callback=callback,
            method=arguments.method,
        )
    rows = np.isin(trajectory.t, shown)
    columns = {name: getattr(trajectory, name)[rows] for name in COLUMNS}
    record: dict[str, Any] = columns | {"chart": trajectory.chart[rows]}
    record |= {name: getattr(trajectory, name) for name in OUTCOME}
    capture = _capture(arguments, head) if arguments.enclose else {}
    record |= capture
    if arguments.out is not None:
        write_whole(arguments.out, lambda stream: np.savez(stream, **record))
    if arguments.plot is not None:
        _draw(arguments.plot, risk, trajectory)
    if arguments.json:
        print_json(record)
    else:
        print_table(columns)
        print_lines(capture)
    if not trajectory.success:
        raise RuntimeError(trajectory.message)


def _capture(arguments: argparse.Namespace, head: "Head") -> dict[str, Any]:
    try:
        from popdyn.dynamics.capture import tube_capture
    except ImportError:
        raise UsageError(
            "--enclose needs python-flint; install popdyn-attention[enclosures]"
        ) from None
    with waiting("proving what holds the run"):
        hit, region = tube_capture(head, arguments.t_end, method=arguments.method)
    low, high = region.slopes if region is not None else (math.nan, math.nan)
    return {
        "captured": hit.reached,
        "capture_time": hit.time,
        "capture_scale": float(hit.head.scale) if hit.reached else math.nan,
        "band_width": region.width if region is not None else math.nan,
        "proven_from_scale": region.scale if region is not None else math.nan,
        # mu^4 grows at least and at most so fast, for ever after
        "least_slope": low,
        "greatest_slope": high,
        "capture": hit.message,
    }


def _times(t_end: float, points: int) -> "NDArray[float64]":
    """Time 0 and times evenly spaced in their logarithm, `points` in all, the last `t_end`."""
    if points == 1 or t_end == 0.0:
        return np.array([t_end])
    first = min(FIRST_TIME, FIRST_FRACTION * t_end)
    later = np.geomspace(first, t_end, points - 1) if points > 2 else np.array([t_end])
    return np.concatenate(([0.0], later))


def _draw(path: str, risk: "Risk", trajectory: "Trajectory") -> None:
    from popdyn.experiments.population import observe
    from popdyn.plotting.population import draw

    write_picture(path, draw(observe(risk, trajectory)))
