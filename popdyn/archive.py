"""Files of named arrays: `.npz` without pickles, each whole or not there.

They are read without NumPy's own reader, which would unpack what is compressed, and make room for
what is declared, however much that is: here reading takes no more memory than the file is long.
"""

import errno
import math
import os
import re
import secrets
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["PathLike", "load_arrays", "save_arrays", "write_whole"]

PathLike: TypeAlias = str | os.PathLike[str]

# What the block that takes the arrays over may find them to be.
_DAMAGE = (ValueError, KeyError, TypeError, OverflowError)
# Version 1.0 of NumPy's format as `np.savez` writes it, with numbers or text.
_ARRAY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|][biufcU]\d{1,9})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,19}, ?)*(?:\d{1,19})?)\), \} *\n",
    re.DOTALL,
)
_SHOWN = 200  # characters of what is wrong: zipfile shows whole headers of 64 kB


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
            yield _arrays(file, form)
        except _DAMAGE as damage:
            raise ValueError(
                f"{os.fspath(path)!r} is not a whole {form!r} file "
                f"({' '.join(str(damage)[:_SHOWN].split()) or type(damage).__name__}); "
                f"make it with {maker}"
            ) from None


def _arrays(file: IO[bytes], form: str) -> dict[str, NDArray[Any]]:
    try:
        contents = _contents(file, form)
    except (ValueError, MemoryError):
        raise
    except Exception as damage:  # zipfile raises nearly anything over a damaged archive
        raise ValueError(str(damage) or type(damage).__name__) from None
    return {name.removesuffix(".npy"): _array(content) for name, content in contents.items()}


def _contents(file: IO[bytes], form: str) -> dict[str, bytes]:
    """The members of an archive, refused where they would unpack to more than there is."""
    length = os.fstat(file.fileno()).st_size
    if not zipfile.is_zipfile(file):
        raise ValueError("it is no archive, or cut off")
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("it is compressed")
        if sum(max(member.file_size, member.compress_size) for member in members) > length:
            raise ValueError("it declares more than it holds")
        found = str(_array(archive.read("format.npy")))
        if found != form:
            raise ValueError(f"its format is {found}")
        return {member.filename: archive.read(member) for member in members}


def _array(content: bytes) -> NDArray[Any]:
    header = _ARRAY.match(content)
    if header is None:
        raise ValueError("it holds something else than arrays of numbers and text")
    dtype = np.dtype(header[1].decode())
    shape = tuple(int(length) for length in header[3].replace(b",", b" ").split())
    if header.end() + dtype.itemsize * math.prod(shape) != len(content):
        raise ValueError("it holds an array that is not as long as it declares")
    order: Literal["F", "C"] = "F" if header[2] == b"True" else "C"
    return np.ndarray(shape, dtype, content, header.end(), order=order).copy(order="K")


def write_whole(path: PathLike, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file beside its place and move it there once whole, so that a failure leaves the
    file that stood there as it was."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    partial = target.with_name(f".popdyn-{secrets.token_hex(8)}")
    try:
        with open(partial, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except OSError as error:  # of the file that was asked for, not of the one beside it
        if error.errno is not None:
            raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
        raise
    finally:
        partial.unlink(missing_ok=True)
