"""`popdyn pretrain`: descent on a drawn corpus, stopped and frozen as a checkpoint."""

import argparse

from popdyn.cli.output import (
    add_plot_option,
    check_outputs,
    print_json,
    print_lines,
    say_written,
    write_picture,
)
from popdyn.cli.parsing import (
    Commands,
    add_head_options,
    coordinates_of,
    head_if_any,
    number,
    positive_integer,
    seed,
)
from popdyn.cli.progress import progress

__all__ = ["add_to"]

OUTCOME = (
    "n_tasks",
    "n_examples",
    "seed",
    "step_size",
    "n_steps",
    "step_budget",
    "stopping_scale",
    "reached",
    "message",
)


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "pretrain",
        help="descent on a drawn corpus, frozen as a checkpoint",
        description="Constant-step gradient descent on a corpus of uniform tasks, stopped at a "
        "scale that goes with min(M, N), by a rule made before any fresh task is seen. A corpus "
        "that falls short of the scale is an answer: exit code 0, and the message says why.",
    )
    parser.add_argument(
        "--tasks", type=positive_integer, metavar="M", required=True, help="tasks drawn"
    )
    parser.add_argument(
        "--examples", type=positive_integer, metavar="N", required=True, help="examples a task"
    )
    parser.add_argument(
        "--seed",
        type=seed,
        metavar="S",
        required=True,
        help="the corpus is sample_corpus(Design(W), M, N, cell_seed(S, M, N, 0))",
    )
    add_head_options(parser, default="ratio 1.5 and scale 8 at half width 1")
    parser.add_argument(
        "--step-size",
        type=number,
        metavar="ETA",
        help="default 0.39 times the stability limit at the start, 100 at that of half width 1",
    )
    parser.add_argument("--json", action="store_true", help="print one line of strict JSON")
    parser.add_argument("--out", metavar="FILE.npz", required=True, help="write the checkpoint")
    add_plot_option(parser, "the way to the frozen head and its errors")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    check_outputs(arguments)
    start = head_if_any(arguments)

    from popdyn.design import Design
    from popdyn.pretraining import pretrain, stopping_scale
    from popdyn.sampling import cell_seed, sample_corpus

    width, m, n = arguments.half_width, arguments.tasks, arguments.examples
    until = float(stopping_scale(m, n, width))
    corpus = sample_corpus(Design(width), m, n, cell_seed(arguments.seed, m, n, 0))
    with progress("scale", until, lambda _, head: float(head.scale)) as callback:
        checkpoint = pretrain(
            corpus,
            start=start,
            step_size=arguments.step_size,
            seed=arguments.seed,
            callback=callback,
        )
    checkpoint.save(arguments.out)
    say_written(arguments.out)
    if arguments.plot is not None:
        write_picture(arguments.plot, checkpoint.plot())
    record = coordinates_of(checkpoint.head)
    record |= {name: getattr(checkpoint, name) for name in OUTCOME}
    if arguments.json:
        print_json(record)
    else:
        print_lines(record)
