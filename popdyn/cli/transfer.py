"""`popdyn transfer`: the error of a frozen checkpoint on fresh contexts of every size."""

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
from popdyn.cli.parsing import (
    Commands,
    UsageError,
    coordinates_of,
    number,
    positive_integer,
    seed,
)
from popdyn.cli.progress import waiting

if TYPE_CHECKING:
    from popdyn.transfer_curve import TransferCurve

__all__ = ["add_to"]

ORIGIN = ("n_tasks", "n_examples", "stopping_scale", "reached")
SAMPLED = (
    "bias",
    "bias_standard_error",
    "mean_square_error",
    "mean_square_error_standard_error",
)


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "transfer",
        help="the error of a frozen checkpoint on fresh contexts",
        usage="%(prog)s FILE.npz --thresholds A [A ...] --sizes N [N ...] [options]",
        description="Bias and root mean square of the error F - alpha of a frozen checkpoint, for "
        "every threshold and context size, exactly, and from drawn contexts as a check.",
    )
    parser.add_argument("checkpoint", metavar="FILE.npz", help="what popdyn pretrain wrote")
    parser.add_argument(
        "--thresholds",
        type=number,
        nargs="+",
        metavar="A",
        required=True,
        help="tasks, in the units of the half width",
    )
    parser.add_argument(
        "--sizes",
        type=positive_integer,
        nargs="+",
        metavar="N",
        required=True,
        help="numbers of examples in a fresh context",
    )
    parser.add_argument(
        "--contexts",
        type=positive_integer,
        metavar="K",
        help="draw so many contexts for each threshold and size as a check; with --seed",
    )
    parser.add_argument("--seed", type=seed, metavar="S", help="of the drawn contexts")
    add_output_options(parser, "error against context size")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    check_outputs(arguments)
    if (arguments.contexts is None) != (arguments.seed is None):
        raise UsageError("--contexts and --seed want each other, got one of them")

    from popdyn.pretraining import Checkpoint
    from popdyn.transfer_curve import transfer

    try:
        checkpoint = Checkpoint.load(arguments.checkpoint)
    except OSError as error:
        raise UsageError(f"cannot read {arguments.checkpoint!r}: {error.strerror}") from None
    with waiting("errors on fresh contexts"):
        curve = transfer(
            checkpoint,
            arguments.thresholds,
            arguments.sizes,
            n_contexts=arguments.contexts,
            rng=arguments.seed,
        )
    record = _record(curve)
    record |= {name: getattr(checkpoint, name) for name in ORIGIN}
    if arguments.out is not None:
        write_whole(arguments.out, lambda stream: np.savez(stream, **record))
    if arguments.plot is not None:
        from popdyn.plotting.transfer import draw

        write_picture(arguments.plot, draw(curve))
    if arguments.json:
        print_json(record)
    else:
        print_table(_columns(record))


def _record(curve: "TransferCurve") -> dict[str, Any]:
    names = ("thresholds", "context_sizes", "bias", "root_mean_square", "floor")
    record: dict[str, Any] = {name: getattr(curve, name) for name in names}
    if curve.sampled is not None:
        record |= {f"sampled_{name}": getattr(curve.sampled, name) for name in SAMPLED}
    return record | coordinates_of(curve.head)


def _columns(record: dict[str, Any]) -> dict[str, Any]:
    """One row for each threshold and context size."""
    shape = record["bias"].shape
    columns = {
        "threshold": np.broadcast_to(record["thresholds"][:, np.newaxis], shape),
        "context_size": np.broadcast_to(record["context_sizes"], shape),
        "bias": record["bias"],
        "root_mean_square": record["root_mean_square"],
    }
    if "sampled_bias" in record:
        mean_square, error = (record[f"sampled_{name}"] for name in SAMPLED[2:])
        columns["sampled_rms"] = np.sqrt(mean_square)
        columns["its_standard_error"] = error / (2.0 * np.sqrt(mean_square))
    return {name: column.ravel() for name, column in columns.items()}
