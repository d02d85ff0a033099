"""What all commands write: strict JSON, tables, and files that are whole or absent."""

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from popdyn import archive
from popdyn.cli.parsing import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "add_output_options",
    "add_plot_option",
    "check_outputs",
    "check_writable",
    "print_json",
    "print_lines",
    "print_table",
    "say_written",
    "write_picture",
    "write_whole",
]

PICTURES = (".pdf", ".png", ".svg")


def print_json(record: Mapping[str, Any]) -> None:
    """Print a record as one line of strict JSON; what is not finite becomes null."""
    print(json.dumps({name: _plain(entry) for name, entry in record.items()}, allow_nan=False))


def _plain(entry: Any) -> Any:
    if isinstance(entry, np.ndarray | np.generic):
        entry = entry.tolist()
    if isinstance(entry, dict):
        return {name: _plain(part) for name, part in entry.items()}
    if isinstance(entry, list | tuple):
        return [_plain(part) for part in entry]
    if isinstance(entry, float) and not math.isfinite(entry):
        return None
    return entry


def print_lines(record: Mapping[str, Any]) -> None:
    """Print a record of single entries, one a line, with all the digits of a double."""
    for name, entry in record.items():
        shown = repr(float(entry)) if isinstance(entry, float | np.floating) else entry
        print(f"{name:<14}", shown)


def print_table(columns: Mapping[str, Any]) -> None:
    """Print columns of equal length under their names: whole numbers, or all digits of a double."""
    width = 24
    print("".join(name.rjust(width) for name in columns))
    for row in zip(*columns.values(), strict=True):
        print("".join(_digits(entry).rjust(width) for entry in row))


def _digits(entry: Any) -> str:
    return str(int(entry)) if isinstance(entry, np.integer) else repr(float(entry))


def add_output_options(parser: argparse.ArgumentParser, drawn: str) -> None:
    """The ways in which arrays leave a command: JSON, a file, a picture of what is drawn."""
    parser.add_argument("--json", action="store_true", help="print one line of strict JSON")
    parser.add_argument("--out", metavar="FILE.npz", help="write the arrays to a file")
    add_plot_option(parser, drawn)


def add_plot_option(parser: argparse.ArgumentParser, drawn: str) -> None:
    parser.add_argument("--plot", metavar="FILE", help=f"draw {drawn} to a .pdf, .png or .svg")


def check_outputs(arguments: argparse.Namespace) -> None:
    """Refuse the files of `add_output_options` that could not be written."""
    if arguments.out is not None:
        check_writable("--out", arguments.out, (".npz",))
    if arguments.plot is not None:
        check_writable("--plot", arguments.plot, PICTURES)


def check_writable(option: str, path: str, suffixes: tuple[str, ...]) -> None:
    """Refuse a file that could not be written, before anything is computed for it."""
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.splitext(path)[1].lower() not in suffixes:
        raise UsageError(f"{option} wants a file name ending in {_or(suffixes)}, got {path!r}")
    if os.path.isdir(path):
        raise UsageError(f"{option} wants a file, got the folder {path!r}")
    if not os.path.isdir(folder):
        raise UsageError(f"{option} wants an existing folder, got {path!r}; make {folder!r}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{option} wants a folder that can be written, got {folder!r}")


def _or(words: tuple[str, ...]) -> str:
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def write_whole(path: str, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file, whole or not at all, and say so."""
    archive.write_whole(path, write)
    say_written(path)


def say_written(path: str) -> None:
    print(f"wrote {path}", file=sys.stderr)


def write_picture(path: str, figure: "Figure") -> None:
    """Write a figure in the format of its file name, as `write_whole` does."""
    from popdyn.plotting.look import save

    picture = os.path.splitext(path)[1].lower().removeprefix(".")
    write_whole(path, lambda stream: save(figure, stream, picture))
