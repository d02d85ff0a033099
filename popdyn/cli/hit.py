"""`popdyn hit`: when the flow reaches a scale."""

import argparse
import math

from popdyn.cli.output import print_json, print_lines
from popdyn.cli.parsing import (
    Commands,
    add_gradient_option,
    add_head_options,
    add_method_option,
    head_of,
    number,
    risk_of,
)
from popdyn.cli.progress import waiting

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "hit",
        help="when the flow reaches a scale",
        description="First time at which the gradient flow from a head has at least a given scale "
        "(a negative one: at most). A scale that is never reached is an answer: exit code 0, and "
        "the message says why.",
    )
    add_head_options(parser)
    parser.add_argument(
        "--scale-level", type=number, metavar="S", required=True, help="the scale to reach"
    )
    parser.add_argument(
        "--t-end", type=number, metavar="T", default=math.inf, help="give up then (default never)"
    )
    add_gradient_option(parser)
    add_method_option(parser)
    parser.add_argument("--json", action="store_true", help="print one line of strict JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    from popdyn.dynamics.hitting import hitting_time

    with waiting(f"flow to scale {arguments.scale_level:g}"):
        hit = hitting_time(
            risk_of(arguments),
            head_of(arguments),
            scale=arguments.scale_level,
            t_end=arguments.t_end,
            method=arguments.method,
        )
    record = {
        "reached": hit.reached,
        "time": hit.time,
        "scale": hit.head.scale,
        "tube": hit.head.tube,
        "label_score": hit.head.label_score,
        "message": hit.message,
    }
    if arguments.json:
        print_json(record)
    else:
        print_lines(record)
