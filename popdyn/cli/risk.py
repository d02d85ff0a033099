"""`popdyn risk`: risk, gradient and Hessian at one head."""

import argparse
from typing import Any

import numpy as np

from popdyn.cli.output import print_json
from popdyn.cli.parsing import (
    Commands,
    add_gradient_option,
    add_head_options,
    add_method_option,
    coordinates_of,
    head_of,
    risk_of,
)

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "risk",
        help="risk, gradient and Hessian at one head",
        description="Population risk, gradient and Hessian at one head; derivatives are with "
        "respect to (label score, scale). Nothing is integrated in time: --method is taken, as by "
        "the other commands, and changes nothing.",
    )
    add_head_options(parser)
    add_gradient_option(parser)
    add_method_option(parser)
    parser.add_argument("--json", action="store_true", help="print one line of strict JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    head, risk = head_of(arguments), risk_of(arguments)
    value, gradient = risk.value_and_gradient(head)
    hessian = risk.hessian(head)
    if not all(np.isfinite(array).all() for array in (value, gradient, hessian)):
        raise FloatingPointError(f"the risk or a derivative of it is not finite at {head!r}")
    record: dict[str, Any] = {
        "risk": value,
        "gradient": gradient,
        "hessian": hessian,
        **coordinates_of(head),
    }
    if arguments.json:
        print_json(record)
        return
    for name, entry in record.items():
        print(f"{name:<12}", *(repr(float(part)) for part in np.ravel(entry)))
