"""What all commands read: numbers, the starting head, the route of the gradient."""

import argparse
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

if TYPE_CHECKING:
    from popdyn.coordinates import Head
    from popdyn.risk.protocol import Risk

__all__ = [
    "METHODS",
    "CommandParser",
    "Commands",
    "UsageError",
    "add_gradient_option",
    "add_head_options",
    "add_method_option",
    "coordinates_of",
    "head_if_any",
    "head_of",
    "number",
    "positive_integer",
    "risk_of",
    "seed",
]

# A token that starts like a negative number is a value and no option: "-1e-3", "-.5", "-inf".
_NEGATIVE_NUMBER = re.compile(r"-\.?\d|-inf|-nan", re.IGNORECASE)

# Those of the flow, which is not imported before it runs; a test holds the two lists together.
METHODS = ("collocation", "LSODA", "Radau", "BDF", "DOP853", "RK45", "RK23")

Commands: TypeAlias = "argparse._SubParsersAction[CommandParser]"


class UsageError(Exception):
    """The command line asks for what cannot be done; the message is one line."""


class CommandParser(argparse.ArgumentParser):
    """An argument parser without abbreviations, whose errors are one line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)
        self._negative_number_matcher = _NEGATIVE_NUMBER  # argparse's own knows no exponents

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        # What is missing because it was misspelled argparse would call missing.
        if self._subparsers is None:
            for word in args or ():
                if word == "--":
                    break
                name = word.partition("=")[0]
                if name.startswith("--") and name not in self._option_string_actions:
                    near = get_close_matches(name, self._option_string_actions, n=1)
                    advice = f"; did you mean {near[0]}?" if near else ""
                    self.error(f"unrecognized option {name}{advice}")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def number(text: str) -> float:
    """A real number; whether it is a sensible one is for the function that takes it."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"wanted a number, got {text!r}") from None


def positive_integer(text: str) -> int:
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise argparse.ArgumentTypeError(f"wanted a whole number from 1 on, got {text!r}")
    return count


def seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"wanted a whole number from 0 on, got {text!r}")
    return int(text)


def add_head_options(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Options of one head; they may all be missing if there is a `default`."""
    title = "the head (one coordinate, and the scale)"
    group = parser.add_argument_group(title if default is None else f"{title}; default {default}")
    coordinate = group.add_mutually_exclusive_group(required=default is None)
    for name, letter, meaning in (
        ("ratio", "K", "relative label score k = lam/mu"),
        ("label-score", "L", "label score lam"),
        ("excess", "D", "excess label score lam - mu l"),
        ("tube", "C", "tube coordinate c = mu (k - l) - log mu"),
    ):
        coordinate.add_argument(f"--{name}", type=number, metavar=letter, help=meaning)
    group.add_argument(
        "--scale", type=number, metavar="M", required=default is None, help="attention scale mu"
    )
    group.add_argument(
        "--half-width", type=number, metavar="W", default=1.0, help="l of [-l, l] (default 1)"
    )


def head_of(arguments: argparse.Namespace) -> "Head":
    head = head_if_any(arguments)
    assert head is not None, "argparse requires one"
    return head


def head_if_any(arguments: argparse.Namespace) -> "Head | None":
    """The head of the options, or None if neither a coordinate nor the scale is given."""
    from popdyn.coordinates import Head

    makers = {
        "ratio": Head.from_ratio,
        "label_score": Head.from_scores,
        "excess": Head.from_excess,
        "tube": Head.from_tube,
    }
    given = [name for name in makers if getattr(arguments, name) is not None]
    if bool(given) != (arguments.scale is not None):
        options = [f"--{name.replace('_', '-')}" for name in makers]
        got = f"--{given[0].replace('_', '-')}" if given else "--scale"
        raise UsageError(f"a head wants one of {', '.join(options)} and --scale, got {got} alone")
    if not given:
        return None
    return makers[given[0]](getattr(arguments, given[0]), arguments.scale, arguments.half_width)


def coordinates_of(head: "Head") -> dict[str, float]:
    """All coordinates of one head under their names."""
    names = ("label_score", "excess", "ratio", "tube", "scale", "half_width")
    return {name: float(getattr(head, name)) for name in names}


def add_gradient_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--gradient",
        type=_route,
        metavar="ROUTE",
        default="closed-form",
        help="closed-form (default), graded (a rule that follows the boundary layer), or "
        "gauss-legendre:ORDER (a fixed rule; needs an order of about 25 (mu l)^1.5)",
    )


def _route(text: str) -> str:
    name, _, order = text.partition(":")
    if text in ("closed-form", "graded"):
        return text
    if name == "gauss-legendre" and order.isdecimal() and int(order) > 0:
        return text
    raise argparse.ArgumentTypeError(
        f"wanted closed-form, graded or gauss-legendre:ORDER, got {text!r}"
    )


def add_method_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--method",
        choices=METHODS,
        metavar="NAME",
        help="integrator: collocation (default; for the gradient in closed form alone), or by "
        "scipy's name LSODA (default of the other gradients), Radau, BDF, DOP853, RK45 or RK23",
    )


def risk_of(arguments: argparse.Namespace) -> "Risk":
    """The population risk by the route that `--gradient` names."""
    route, _, order = arguments.gradient.partition(":")
    if route == "closed-form":
        from popdyn.risk.closed_form import ClosedFormRisk

        return ClosedFormRisk(arguments.half_width)
    from popdyn.design import Design
    from popdyn.quadrature import boundary_graded, gauss_legendre
    from popdyn.risk.infinite_context import InfiniteContextRisk

    rule = boundary_graded() if route == "graded" else gauss_legendre(int(order))
    return InfiniteContextRisk(Design(arguments.half_width), rule)
