"""Files of named arrays: `.npz` without pickles, each whole or not there."""

import os
import secrets
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["PathLike", "load_arrays", "save_arrays", "write_whole"]

PathLike: TypeAlias = str | os.PathLike[str]

# What reading a file that is no archive, or the rest of one, has been seen to raise.
_DAMAGE = (
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    OSError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)


def save_arrays(path: PathLike, form: str, arrays: Mapping[str, ArrayLike]) -> None:
    """Write arrays under their names and the name of their form, in the place of an older file."""
    named: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
    write_whole(
        path, lambda file: np.savez(file, allow_pickle=False, format=np.array(form), **named)
    )


@contextmanager
def load_arrays(path: PathLike, form: str, maker: str) -> Iterator[Mapping[str, NDArray[Any]]]:
    """The arrays that `save_arrays` wrote, to be taken over inside the `with` block.

    Raises
    ------
    ValueError
        If the file is damaged or something else, or if the block finds its arrays to be; `maker`
        says what would have made a right one.
    OSError
        If it cannot be read.
    """
    with open(path, "rb") as file:
        try:
            if not zipfile.is_zipfile(file):  # NumPy would take it for a pickle, and say so
                raise ValueError("it is no archive, or cut off")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                if str(archive["format"]) != form:
                    raise ValueError(f"its format is {archive['format']!s}")
                yield archive
        except _DAMAGE as damage:
            raise ValueError(
                f"{os.fspath(path)!r} is not a whole {form!r} file "
                f"({' '.join(str(damage).split()) or type(damage).__name__}); "
                f"make it with {maker}"
            ) from None


def write_whole(path: PathLike, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file beside its place and move it there once whole, so that a failure leaves the
    file that stood there as it was."""
    target = Path(os.path.realpath(path))
    partial = target.with_name(f".popdyn-{secrets.token_hex(8)}")
    try:
        with open(partial, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
