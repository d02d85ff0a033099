"""`popdyn figures`: every figure with its numbers and its record, in one folder."""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from popdyn.cli.output import print_json, say_written
from popdyn.cli.parsing import Commands, UsageError, positive_integer, seed

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from popdyn.experiments.finding import Finding

__all__ = ["add_to"]

COLUMNS = ("figure", "claim", "predicted", "measured")
WIDTHS = (6, 72, 22, 22)  # of the table; a longer text pushes the rest of its line to the right
DIGITS = 7  # of a finding in the table; all of them are in the record


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "figures",
        help="the figures, their numbers and what they find",
        description="Make figures: for each a .pdf and a .png, the numbers it is drawn from (.npz) "
        "and its record (.json). What the figures find is printed beside what was predicted.",
    )
    parser.add_argument(
        "--only", type=_numbers, metavar="N,M", help="make these figures alone; all by default"
    )
    parser.add_argument("--quick", action="store_true", help="smaller forms of the figures")
    parser.add_argument(
        "--out", metavar="DIR", default="figures", help="the folder to fill (default figures)"
    )
    parser.add_argument("--seed", type=seed, metavar="S", help="of what is drawn (default 0)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--workers",
        type=positive_integer,
        metavar="N",
        help="processes to compute with (default one a processor); 1 is this process alone",
    )
    where.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="a running dask.distributed scheduler to hand the work to",
    )
    where.add_argument(
        "--replot",
        action="store_true",
        help="draw from the stored numbers alone; they must be of the same parameters",
    )
    parser.add_argument("--json", action="store_true", help="print one line of strict JSON")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> None:
    from popdyn import figures

    numbers = sorted(figures.CLAIMS) if arguments.only is None else arguments.only
    configs = {
        number: figures.config_of(number, quick=arguments.quick, seed=arguments.seed)
        for number in numbers
    }
    folder = _folder(arguments.out)
    found: dict[int, tuple[Finding, ...]] = {}
    failures = []
    if not arguments.json:
        _print_row(COLUMNS)
    with _executor(arguments) as executor:
        for number, config in configs.items():
            try:
                with _announced(number, figures.CLAIMS[number]):
                    found[number] = (
                        figures.redraw(number, folder, config)
                        if arguments.replot
                        else figures.make(number, folder, config, executor=executor)
                    )
            except (RuntimeError, ArithmeticError, MemoryError) as error:
                failures.append(f"figure {number}: {str(error) or type(error).__name__}")
                continue
            say_written(str(folder / f"figure{number:02}.pdf"))
            if not arguments.json:
                _print_findings(number, found[number])
    if arguments.json:
        print_json(
            {str(number): [finding._asdict() for finding in of] for number, of in found.items()}
        )
    if failures:
        raise RuntimeError("; ".join(failures))


def _numbers(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.strip().isdecimal() for word in words):
        raise argparse.ArgumentTypeError(f"wanted numbers of figures such as 1,4, got {text!r}")
    return sorted({int(word) for word in words})


def _folder(name: str) -> Path:
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out wants a folder, got {name!r}: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"--out wants a folder that can be written, got {name!r}")
    return folder


@contextmanager
def _executor(arguments: argparse.Namespace) -> "Iterator[Executor | None]":
    """What computes the cells of sweeps; None is this process."""
    if arguments.scheduler is not None:
        from popdyn.sweeping import cluster_executor

        with ExitStack() as stack:
            try:
                cluster = stack.enter_context(cluster_executor(arguments.scheduler))
            except ModuleNotFoundError as missing:
                raise UsageError(str(missing)) from None
            yield cluster
        return
    workers = arguments.workers or os.cpu_count() or 1
    if workers == 1 or arguments.replot:
        yield None
        return
    from concurrent.futures import ProcessPoolExecutor

    others = set(multiprocessing.active_children())
    # Spawned, since a fork would copy threads that hold locks; started when there is work.
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _leave_interrupts)
    try:
        yield pool
    except BaseException:
        # Waiting for cells under way would make an interrupt take as long as they do.
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_interrupts() -> None:
    """Ctrl-C reaches every process of a terminal; only the one that started the others acts."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _announced(number: int, claim: str) -> Iterator[None]:
    """Say on a terminal which figure is under way, and how long it took."""
    if not sys.stderr.isatty():
        yield
        return
    print(f"figure {number}, {claim} ...", end="", file=sys.stderr, flush=True)
    begin = time.monotonic()
    try:
        yield
    finally:
        print(f" {time.monotonic() - begin:.1f} s", file=sys.stderr)


def _print_findings(number: int, findings: "Iterable[Finding]") -> None:
    for finding in findings:
        _print_row((number, finding.claim, finding.predicted, finding.measured))
    sys.stdout.flush()  # the next figure may take minutes


def _print_row(entries: Iterable[Any]) -> None:
    cells = [entry if isinstance(entry, str) else f"{entry:.{DIGITS}g}" for entry in entries]
    print("  ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)).rstrip())
