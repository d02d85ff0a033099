"""The figures by their numbers: made, stored with where they came from, drawn again.

Figure `NN` is four files in one folder: `figureNN.pdf` and `.png`; `figureNN.npz`, its numbers,
from which it is drawn; `figureNN.json`, its record, which is written last: where it is, the others
are whole and of the same run.
"""

import hashlib
import json
import math
import platform
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import asdict, fields, replace
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

from popdyn.archive import load_arrays, save_arrays, write_whole
from popdyn.experiments.finding import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CLAIMS", "config_of", "make", "redraw"]

# Modules of `popdyn.experiments` and `popdyn.plotting`; the paper's figures are 1 to 9.
CLAIMS = {
    1: "finite_pretraining",
    2: "population",
    3: "step_sizes",
    4: "freeze_transfer",
    5: "scope",
    6: "convergence",
    7: "initialization",
    8: "inference_noise",
    9: "matched_noise",
    10: "infinite_tasks",
    11: "symmetrization",
    12: "pair_training",
}
PICTURES = ("pdf", "png")
CELLS = "cells"  # folder of the cells of sweeps, from which a run that was killed goes on
_VERSIONS = {"popdyn": "popdyn-attention"} | {
    name: name for name in ("numpy", "scipy", "numba", "matplotlib")
}


def config_of(number: int, *, quick: bool = False, seed: int | None = None) -> Any:
    """Parameters of a figure: of its quick or its full form, with a seed where one is used.

    Raises
    ------
    ValueError
        If there is no such figure.
    """
    config_type = _experiment(number).Config
    config = config_type.quick() if quick else config_type.paper()
    if seed is None or "seed" not in {field.name for field in fields(config)}:
        return config
    return replace(config, seed=seed)


def make(
    number: int, folder: Path, config: Any, *, executor: Executor | None = None
) -> tuple[Finding, ...]:
    """Compute a figure with these parameters, store it in a folder and return what it says.

    Cells of sweeps go through the executor and are kept in the folder `cells`, those of other code
    apart. What stood in the place of the figure stays there until all its numbers are found.
    """
    experiment = _experiment(number)
    begin = time.monotonic()
    result = experiment.run(config, executor=executor, store=folder / CELLS / _code())
    seconds = time.monotonic() - begin
    findings: tuple[Finding, ...] = experiment.findings(result)
    parameters = asdict(config)
    record = {
        "figure": number,
        "claim": CLAIMS[number],
        "parameters": parameters,
        "seed": parameters.get("seed"),
        "versions": _versions(),
        "commit": _commit(),
        "seconds": seconds,
    }
    _path(folder, number, "json").unlink(missing_ok=True)
    save_arrays(
        _path(folder, number, "npz"),
        _form(number),
        {"parameters": json.dumps(parameters, allow_nan=False)}
        | {field.name: getattr(result, field.name) for field in fields(result)},
    )
    _write_pictures(number, folder, result)
    _write_record(number, folder, record, findings)
    return findings


def redraw(number: int, folder: Path, config: Any) -> tuple[Finding, ...]:
    """Draw a figure from its stored numbers alone, and find anew what it says.

    Raises
    ------
    ValueError
        If no whole figure is stored, or one of other parameters.
    """
    experiment = _experiment(number)
    wanted = json.loads(json.dumps(asdict(config)))  # as stored: tuples are lists
    record = _read_record(number, folder)
    _require_equal(_path(folder, number, "json"), record["parameters"], wanted)
    numbers = _path(folder, number, "npz")
    if not numbers.exists():
        raise ValueError(_missing(number, folder))
    with load_arrays(numbers, _form(number), _maker(number)) as arrays:
        _require_equal(numbers, _json_object(str(arrays["parameters"])), wanted)
        entries = {field.name: arrays[field.name] for field in fields(experiment.Result)}
    result = experiment.Result(
        **{name: array if array.ndim else array.item() for name, array in entries.items()}
    )
    findings: tuple[Finding, ...] = experiment.findings(result)
    _write_pictures(number, folder, result)
    _write_record(number, folder, record, findings)
    return findings


def _experiment(number: int) -> ModuleType:
    if number not in CLAIMS:
        raise ValueError(f"figures are {', '.join(map(str, sorted(CLAIMS)))}, got {number!r}")
    return import_module(f"popdyn.experiments.{CLAIMS[number]}")


def _path(folder: Path, number: int, suffix: str) -> Path:
    return folder / f"figure{number:02}.{suffix}"


def _form(number: int) -> str:
    return f"popdyn figure {CLAIMS[number]}"


def _maker(number: int) -> str:
    return f"popdyn figures --only {number}"


def _write_pictures(number: int, folder: Path, result: Any) -> None:
    from popdyn.plotting.look import save

    figure: Figure = import_module(f"popdyn.plotting.{CLAIMS[number]}").draw(result)
    for picture in PICTURES:

        def write(stream: IO[bytes], picture: str = picture) -> None:
            save(figure, stream, picture)

        write_whole(_path(folder, number, picture), write)


def _write_record(
    number: int, folder: Path, record: Mapping[str, Any], findings: tuple[Finding, ...]
) -> None:
    said = {
        "findings": [
            {name: _strict(entry) for name, entry in finding._asdict().items()}
            for finding in findings
        ]
    }
    text = json.dumps({**record, **said}, indent=1, allow_nan=False) + "\n"

    def write(stream: IO[bytes]) -> None:
        stream.write(text.encode())

    write_whole(_path(folder, number, "json"), write)


def _strict(entry: float | str) -> float | str | None:
    """A number that is not finite is null in strict JSON."""
    if isinstance(entry, str):
        return entry
    return float(entry) if math.isfinite(entry) else None


def _read_record(number: int, folder: Path) -> dict[str, Any]:
    path = _path(folder, number, "json")
    try:
        record = _json_object(path.read_text(encoding="utf-8"))
        if not isinstance(record["parameters"], dict):
            raise TypeError
    except FileNotFoundError:
        raise ValueError(_missing(number, folder)) from None
    except (ValueError, TypeError, KeyError):
        raise ValueError(
            f"{str(path)!r} is no record of a figure; make it with {_maker(number)}"
        ) from None
    return record


def _json_object(text: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no strict JSON")

    try:
        found = json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    return found


def _missing(number: int, folder: Path) -> str:
    return f"there is no whole figure {number} in {str(folder)!r}; make it with {_maker(number)}"


def _require_equal(path: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for name in (*wanted, *found):
        if name not in found or name not in wanted or found[name] != wanted[name]:
            raise ValueError(
                f"{str(path)!r} has other parameters, {name} = {found.get(name)!r} where "
                f"{wanted.get(name)!r} was asked for; give the options it was made with, or make "
                "the figure again"
            )


def _versions() -> dict[str, str]:
    installed = {name: metadata.version(wheel) for name, wheel in _VERSIONS.items()}
    return {"python": platform.python_version(), **installed}


def _code() -> str:
    """What cells depend on besides their parameters: the code of this package and its numbers."""
    root = Path(__file__).parent
    digest = hashlib.sha256(json.dumps(_versions()).encode())
    for path in sorted(root.rglob("*.py")) + sorted(root.rglob("*.json")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _commit() -> str | None:
    """The commit of the clone this package runs from, with `-dirty` if files differ from it."""
    root = Path(__file__).resolve().parent.parent

    def git(*words: str) -> str:
        command = ["git", "-C", str(root), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        # An environment may lie in some other clone.
        if Path(git("rev-parse", "--show-toplevel")) != root:
            return None
        return git("describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    except (OSError, subprocess.CalledProcessError):
        return None
