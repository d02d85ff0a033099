"""`popdyn map`: hitting times over ratio and scale of the start, and the phase portrait."""

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np

from popdyn.cli.output import (
    add_output_options,
    check_outputs,
    print_json,
    print_table,
    write_picture,
    write_whole,
)
from popdyn.cli.parsing import Commands, UsageError, number, positive_integer
from popdyn.cli.progress import waiting

if TYPE_CHECKING:
    from popdyn.experiments.hitting_map import Config

__all__ = ["add_to"]

FIELDS = ("half_width", "level", "ratios", "scales", "times", "separatrix")


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "map",
        help="when the flow reaches a scale, over all starts",
        description="Time at which the population flow reaches a scale, for a grid of starts. "
        "Starts of a ratio below the separatrix of their scale never do: they end at the "
        "reflected head. The picture has the flow in the plane (c, 1/mu) beside the map.",
    )
    parser.add_argument(
        "--scale-level", type=number, metavar="S", help="the scale to reach (default 3/W)"
    )
    for name, letter, default in (("ratios", "K", "-W to 3 W"), ("scales", "M", "0.001/W to 2/W")):
        parser.add_argument(
            f"--{name}",
            type=number,
            nargs=2,
            metavar=(f"{letter}1", f"{letter}2"),
            help=f"first and last of the {name} of the starts (default {default})",
        )
    parser.add_argument(
        "--points",
        type=positive_integer,
        nargs=2,
        metavar=("N", "M"),
        help="numbers of ratios, evenly spaced, and of scales, evenly spaced in the logarithm "
        "(default 121 and 81)",
    )
    parser.add_argument(
        "--half-width", type=number, metavar="W", default=1.0, help="l of [-l, l] (default 1)"
    )
    add_output_options(parser, "the map and the phase portrait")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    check_outputs(arguments)
    config = _config(arguments)

    from popdyn.experiments import hitting_map

    with waiting(f"flows from {config.n_ratios * config.n_scales} starts"):
        result = hitting_map.run(config)
    record: dict[str, Any] = {name: getattr(result, name) for name in FIELDS}
    if arguments.out is not None:
        write_whole(arguments.out, lambda stream: np.savez(stream, **record))
    if arguments.plot is not None:
        from popdyn.experiments import phase_portrait
        from popdyn.plotting.hitting_map import draw_beside_portrait

        with waiting("the phase portrait"):
            portrait = phase_portrait.run(phase_portrait.Config(half_width=config.half_width))
        write_picture(arguments.plot, draw_beside_portrait(result, portrait))
    if arguments.json:
        print_json(record)
    else:
        scale, ratio = np.meshgrid(result.scales, result.ratios, indexing="ij")
        columns = {"ratio": ratio, "scale": scale, "time": result.times}
        print_table({name: column.ravel() for name, column in columns.items()})


def _config(arguments: argparse.Namespace) -> "Config":
    from popdyn.experiments.hitting_map import Config

    width = arguments.half_width
    if not 0 < width < np.inf:
        raise UsageError(f"--half-width wants a positive number, got {width!r}")
    default = Config.paper()
    n_ratios, n_scales = arguments.points or (default.n_ratios, default.n_scales)
    level = arguments.scale_level
    return Config(
        level=default.level / width if level is None else level,
        ratios=tuple(arguments.ratios or (width * k for k in default.ratios)),
        scales=tuple(arguments.scales or (mu / width for mu in default.scales)),
        n_ratios=n_ratios,
        n_scales=n_scales,
        half_width=width,
    )
