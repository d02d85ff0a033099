"""`popdyn risk`: risk, gradient and Hessian at one head."""

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np

from popdyn.cli.output import print_json
from popdyn.cli.parsing import (
    Commands,
    UsageError,
    add_gradient_option,
    add_head_options,
    add_method_option,
    coordinates_of,
    head_of,
    risk_of,
)
from popdyn.cli.progress import waiting

if TYPE_CHECKING:
    from popdyn.coordinates import Head

__all__ = ["add_to"]

_DIGITS = 20  # of a midpoint; the printed radius covers its rounding


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
    parser.add_argument(
        "--enclose",
        action="store_true",
        help="also print balls [midpoint +/- radius] that provably contain risk and gradient, "
        "whatever --gradient says (needs python-flint)",
    )
    parser.add_argument("--json", action="store_true", help="print one line of strict JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    head, risk = head_of(arguments), risk_of(arguments)
    with waiting("risk, gradient and Hessian"):
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
    balls = _balls(head) if arguments.enclose else {}
    if arguments.json:
        print_json({**record, **balls})
        return
    for name, entry in record.items():
        print(f"{name:<12}", *(repr(float(part)) for part in np.ravel(entry)))
    for name, texts in balls.items():
        print(f"{name:<12}", *np.ravel(texts))


def _balls(head: "Head") -> dict[str, Any]:
    try:
        from popdyn.enclosures import risk_balls
    except ImportError:
        raise UsageError(
            "--enclose needs python-flint; install popdyn-attention[enclosures]"
        ) from None
    balls = risk_balls(head)
    return {
        "risk_ball": balls.risk.str(_DIGITS),
        "gradient_balls": [ball.str(_DIGITS) for ball in balls.gradient],
    }
