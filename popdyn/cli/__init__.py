"""The command `popdyn`: data on stdout, talk on stderr, one line per error.

Exit codes: 0 done, 1 numerical failure, 2 usage, 130 interrupted. The commands import what they
compute with only when they run, so that `--help` and usage errors are quick.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from popdyn.cli import figures, flow, hit, map, pretrain, risk, transfer
from popdyn.cli.parsing import CommandParser, UsageError

__all__ = ["main"]

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (by default that of the process) and return its exit code."""
    name = "popdyn"
    try:
        try:
            arguments = _parser().parse_args(argv)
            name = f"popdyn {arguments.command}"
            with _warnings_in_one_line(name):
                arguments.run(arguments)
            code = DONE
        except SystemExit as stop:  # argparse has printed its help or its line
            code = stop.code if isinstance(stop.code, int) else USAGE
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _complain(name, "interrupted", INTERRUPTED)
    except BrokenPipeError:
        _give_up_stdout()
        return DONE  # the reader has what it wanted
    except (UsageError, ValueError) as error:
        return _complain(name, f"error: {error}", USAGE)
    except OSError as error:
        _give_up_stdout()
        return _complain(name, f"error: {error}", FAILED)
    except (RuntimeError, ArithmeticError, MemoryError) as error:
        return _complain(name, f"error: {str(error) or type(error).__name__}", FAILED)


def _give_up_stdout() -> None:
    """Send what can no longer be written nowhere: Python would try again at exit, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="popdyn",
        description="Population dynamics of one-head softmax attention on decision stumps.",
        epilog="exit codes: 0 done, 1 numerical failure, 2 usage, 130 interrupted",
    )
    parser.add_argument(
        "--version", action=_Version, help="say which popdyn this is and where it is installed"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (risk, flow, hit, map, pretrain, transfer, figures):
        command.add_to(commands)
    return parser


class _Version(argparse.Action):
    """Looks the version up when asked, not at every start."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        place = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        print(f"popdyn-attention {version('popdyn-attention')} ({place})")
        parser.exit()


@contextmanager
def _warnings_in_one_line(name: str) -> Iterator[None]:
    shown = set()

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if category not in shown:  # a flow comes to the same warning at a thousand heads
            shown.add(category)
            _complain(name, f"warning: {message}", DONE)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def _complain(name: str, message: str, code: int) -> int:
    print(f"{name}: {' '.join(message.split())}", file=sys.stderr)
    return code
