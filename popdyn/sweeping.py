"""Sweeps: one work over many cells, serial or by many workers, in a store that outlives a kill."""

import hashlib
import json
import multiprocessing
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    as_completed,
)
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from popdyn.archive import PathLike, load_arrays, save_arrays

__all__ = ["CellResult", "cluster_executor", "sweep"]

Cell = TypeVar("Cell")
CellResult: TypeAlias = dict[str, NDArray[Any]]

_FORMAT = "popdyn cell 1"
_RESULT = "result."  # before the names that the work gives, which are then free to be any
_NUMBERS_AND_TEXT = "biufcU"  # kinds of arrays that a file without pickles gives back as they were


def sweep(
    cells: Iterable[Cell],
    work: Callable[[Cell], Mapping[str, ArrayLike]],
    *,
    executor: Executor | None = None,
    store: PathLike | None = None,
    key: object = None,
    progress: Callable[[int, int], object] | None = None,
) -> list[CellResult]:
    """Results of `work(cell)` for every cell, in the order of the cells.

    The results are the same to the last bit for any executor, number of workers, start method and
    order, and after a resume, if the work is a function of its cell alone: random numbers come from
    a seed of the cell (`cell_seed`), never from a generator that cells share.

    With a store, every finished cell is a file of its own, whole or not there, and a cell whose
    file is there is not computed again. A run that was killed or interrupted or that failed loses
    nothing but the cells under way: start it again with the same store.

    Parameters
    ----------
    cells : iterable
        All different. A cell is plain: made of None, numbers, strings and arrays of numbers, and of
        tuples, lists, dicts and dataclasses of these.
    work : callable
        Returns a mapping of identifiers to arrays of numbers or strings. A function that another
        process can find by its name, or `functools.partial` of one with plain parameters; such
        functions are plain themselves (the densities of a `Design`).
    executor : concurrent.futures.Executor, optional
        Processes, threads, or the cells of a dask cluster (`client.get_executor()`). Default: here,
        one after the other. A script that starts processes needs `if __name__ == "__main__":`.
    store : path, optional
        Folder of the cell files, made if missing. A file belongs to one cell, one name and
        parameters of the work and one key; a damaged one is noticed and its cell done again.
    key : optional
        Plain. Whatever else the results depend on, such as a version of the work, whose code is not
        looked at: another key never meets the stored cells of this one.
    progress : callable, optional
        Called as `progress(n_finished, n_cells)` at the beginning, with the cells found in the
        store, and after every cell that was computed.

    Returns
    -------
    list of dict
        One a cell: the names that the work gave, with arrays in C order, numbers as arrays of shape
        `()`.

    Raises
    ------
    TypeError
        At once, if the work is a lambda or a local function, or if a cell, a parameter or the key
        is not plain.
    ValueError
        If two cells are the same.
    RuntimeError
        If cells failed, after all others are done and kept; it names the first of them and has its
        traceback as a note. If a worker process died; a dask cluster does its cells elsewhere.
    OSError
        If the store cannot be read or written.

    Warns
    -----
    RuntimeWarning
        For every damaged file.
    """
    if isinstance(cells, str) or not isinstance(cells, Iterable):
        raise TypeError(f"sweep wants cells and then the work to do, got {cells!r} and {work!r}")
    given = list(cells)
    identities = _identities(given, work, key)
    folder = None if store is None else Path(store)
    results: dict[int, CellResult] = {}
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for i, identity in enumerate(identities):
            stored = _stored(folder, identity)
            if stored is not None:
                results[i] = stored
    todo = {i: cell for i, cell in enumerate(given) if i not in results}
    finished = len(results)
    if progress is not None:
        progress(finished, len(given))
    failures: dict[int, _Failure] = {}
    outcomes = _one_by_one(work, todo) if executor is None else _handed_out(executor, work, todo)
    try:
        for i, outcome in outcomes:
            if isinstance(outcome, _Failure):
                failures[i] = outcome
            else:
                if folder is not None:
                    _keep(folder, identities[i], outcome)
                results[i] = outcome
            finished += 1
            if progress is not None:
                progress(finished, len(given))
    except (BrokenExecutor, CancelledError) as broken:
        raise RuntimeError(
            f"the workers were lost with {len(given) - finished} of {len(given)} cells to do "
            f"({type(broken).__name__}): one was killed or ran out of memory, their scheduler is "
            f'gone, or a script without `if __name__ == "__main__":` started them; {_remedy(store)}'
        ) from broken
    if failures:
        first = min(failures)
        error = RuntimeError(
            f"{len(failures)} of {len(given)} cells failed, all others are done; the first is cell "
            f"{first}, {given[first]!r}: {failures[first].message}; {_remedy(store)}"
        )
        error.add_note(failures[first].traceback)
        raise error
    return [results[i] for i in range(len(given))]


def _remedy(store: PathLike | None) -> str:
    if store is None:
        return "with a store the finished cells would have been kept"
    return "start again with the same store to go on"


@contextmanager
def cluster_executor(address: str) -> Iterator[Executor]:
    """Executor of the workers of a running dask.distributed scheduler, such as "tcp://host:8786".

    The workers need the same popdyn, and the module of the work. A cell whose worker is lost is
    done by another. Left early, it drops the cells that have not been started.

    Raises
    ------
    ModuleNotFoundError
        If distributed, the extra `cluster`, is not installed.
    OSError
        If no scheduler answers.
    """
    try:
        client_class = import_module("distributed").Client
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "a scheduler is reached through dask.distributed, which is not installed; "
            'pip install "popdyn-attention[cluster]"'
        ) from None
    try:
        client = client_class(address, set_as_default=False)
    except OSError as failure:
        raise OSError(
            f"scheduler must be the address of a running dask scheduler, got {address!r} "
            f"({failure}); start one with `dask scheduler`"
        ) from None
    with client:
        # A pure call may be answered from the memory of the cluster: with an older work's results.
        yield client.get_executor(pure=False)


# --- doing the cells ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Failure:
    """What went wrong in a cell, in words: an exception need not survive the way from a worker."""

    message: str
    traceback: str


_Outcome: TypeAlias = CellResult | _Failure


def _outcome(work: Callable[[Cell], Mapping[str, ArrayLike]], cell: Cell) -> _Outcome:
    try:
        return _named_arrays(work(cell))
    except Exception as error:
        message = " ".join("".join(traceback.format_exception_only(error)).split())
        return _Failure(message, traceback.format_exc())


def _outcome_of_child(work: Callable[[Cell], Mapping[str, ArrayLike]], cell: Cell) -> _Outcome:
    _end_with_parent()
    return _outcome(work, cell)


@cache
def _end_with_parent() -> None:
    """The workers of a pool whose process was killed would wait for their next cell for ever."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _named_arrays(result: Mapping[str, ArrayLike]) -> CellResult:
    """The one form of a result: what a file of it gives back."""
    if not isinstance(result, Mapping):
        raise TypeError(
            f"work must return a mapping of names to arrays, got {type(result).__name__}"
        )
    arrays = {name: np.array(entry, order="C") for name, entry in result.items()}
    for name, array in arrays.items():
        if not (isinstance(name, str) and name.isidentifier()):
            raise TypeError(f"work must name its arrays by identifiers, got {name!r}")
        if array.dtype.kind not in _NUMBERS_AND_TEXT:
            raise TypeError(
                f"work must return arrays of numbers or strings, got {name!r} of {array.dtype}"
            )
    return arrays


def _one_by_one(
    work: Callable[[Cell], Mapping[str, ArrayLike]], cells: Mapping[int, Cell]
) -> Iterator[tuple[int, _Outcome]]:
    for i, cell in cells.items():
        yield i, _outcome(work, cell)


def _handed_out(
    executor: Executor,
    work: Callable[[Cell], Mapping[str, ArrayLike]],
    cells: Mapping[int, Cell],
) -> Iterator[tuple[int, _Outcome]]:
    """Outcomes as they come. Whatever ends the sweep early, no further cell is begun."""
    outcome = _outcome_of_child if isinstance(executor, ProcessPoolExecutor) else _outcome
    waiting: dict[Future[_Outcome], int] = {}
    try:
        for i, cell in cells.items():
            waiting[executor.submit(outcome, work, cell)] = i
        for future in as_completed(list(waiting)):
            i = waiting.pop(future)
            error = future.exception()
            if error is None:
                # Arrays may come out of a message that they cannot be written in.
                found = future.result()
                if not isinstance(found, _Failure):
                    found = {name: np.require(found[name], requirements="W") for name in found}
                yield i, found
            elif isinstance(error, BrokenExecutor) or not isinstance(error, Exception):
                raise error
            else:
                message = f"{type(error).__name__}: {' '.join(str(error).split())}"
                yield i, _Failure(message, "".join(traceback.format_exception(error)))
    finally:
        for future in waiting:
            future.cancel()


# --- the store ------------------------------------------------------------------------------------


def _file(folder: Path, identity: str) -> Path:
    return folder / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.npz"


def _keep(folder: Path, identity: str, result: CellResult) -> None:
    arrays: dict[str, ArrayLike] = {_RESULT + name: array for name, array in result.items()}
    # The sums in an archive cover its arrays, but not which there are: one bit can hide an array.
    seals = {"identity": identity, "digests": _digests(result)}
    save_arrays(_file(folder, identity), _FORMAT, seals | arrays)


def _digests(result: CellResult) -> str:
    return json.dumps(_spelled("result", result))


def _stored(folder: Path, identity: str) -> CellResult | None:
    path = _file(folder, identity)
    try:
        with load_arrays(path, _FORMAT, "popdyn.sweep, which does its cell again") as archive:
            if str(archive["identity"]) != identity:
                raise ValueError("it holds another cell")
            names = [name for name in archive if name.startswith(_RESULT)]
            result = {name.removeprefix(_RESULT): archive[name] for name in names}
            if str(archive["digests"]) != _digests(result):
                raise ValueError("its arrays are not those that were stored")
            return result
    except FileNotFoundError:
        return None
    except ValueError as damage:
        warnings.warn(str(damage), RuntimeWarning, stacklevel=3)
        return None


# --- what a cell is called ------------------------------------------------------------------------


def _identities(cells: list[Any], work: Callable[..., object], key: object) -> list[str]:
    """What the result of each cell depends on, in words that differ if anything does."""
    if not callable(work):
        raise TypeError(f"work must be callable, got {type(work).__name__}")
    common = {"work": _spelled("work", work), "key": _spelled("key", key)}
    seen: dict[str, int] = {}
    for i, cell in enumerate(cells):
        identity = json.dumps(common | {"cell": _spelled(f"cell {i}", cell)}, sort_keys=True)
        if identity in seen:
            raise ValueError(
                f"cells must differ, got {cell!r} as cells {seen[identity]} and {i}; "
                "give every cell a number of its own, such as its replicate"
            )
        seen[identity] = i
    return list(seen)


def _spelled(name: str, entry: Any) -> Any:
    """`entry` as JSON, in which a dataclass is a dict of one, and a function its name."""
    if isinstance(entry, np.generic):
        entry = entry.item()
    if entry is None or isinstance(entry, str | int | float):
        return entry
    if isinstance(entry, tuple | list):
        return [_spelled(name, part) for part in entry]
    if isinstance(entry, dict) and all(isinstance(word, str) for word in entry):
        return {word: _spelled(name, part) for word, part in entry.items()}
    if isinstance(entry, np.ndarray) and entry.dtype.kind in _NUMBERS_AND_TEXT:
        digest = hashlib.sha256(entry.tobytes()).hexdigest()
        return {"ndarray": [entry.dtype.str, entry.shape, digest]}
    if isinstance(entry, partial):
        return {"partial": _spelled(name, [entry.func, entry.args, entry.keywords])}
    if is_dataclass(entry) and not isinstance(entry, type):
        parts = {field.name: _spelled(name, getattr(entry, field.name)) for field in fields(entry)}
        return {type(entry).__qualname__: parts}
    if callable(entry):
        return {"function": _function_name(name, entry)}
    raise TypeError(
        f"{name} must be made of numbers, strings, arrays, tuples, lists, dicts and dataclasses, "
        f"got {type(entry).__name__}; build it in the work from what it is made of"
    )


def _function_name(name: str, function: Callable[..., object]) -> str:
    module = getattr(function, "__module__", None)
    path = getattr(function, "__qualname__", None)
    found: object = sys.modules.get(module) if isinstance(module, str) else None
    for part in path.split(".") if isinstance(path, str) else ():
        found = getattr(found, part, None)
    if found is not function or isinstance(found, type):
        raise TypeError(
            f"{name} must be a function that other processes find by its name, got {function!r}; "
            "define it with def at the top of a module and bind parameters with functools.partial"
        )
    if module == "__main__":
        # Two scripts that share a store have both their work in a module of this name.
        module = Path(getattr(sys.modules[module], "__file__", None) or module).stem
    return f"{module}.{path}"
