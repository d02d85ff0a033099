"""Run popdyn and its peers on the same work: `python -m benchmarks [--only A,C] [--quick] ...`.

Sections: A population risk, B flow and hitting times, C corpus step, D pretraining, E moments of
contexts, F start-up. In each case every way is first held to the right answer, from another source
than the code that is timed, and only then are all of them timed in turns, in one process and one
thread. A peer that is not installed is named as absent (the extra `peers` installs them), a wrong
answer is shown as wrong by how much, and the first calls, which compile, are in no time but named.

What counts are ratios: absolute times drift with the load. The exit code is 1 if popdyn is wrong.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.record import Record

ROOT = Path(__file__).parent.parent
MODULES = {
    "A": "population",
    "B": "flow",
    "C": "corpus",
    "D": "pretraining",
    "E": "moments",
    "F": "startup",
}
SECONDS, QUICK_SECONDS = 0.4, 0.01  # a way and case
BAD = ("wrong", "failed")
THREADS = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMEXPR")


def one_thread() -> None:
    """Keep all libraries to one thread, and to the kernels that suit the processor."""
    for library in THREADS:
        os.environ[f"{library}_NUM_THREADS"] = "1"
    os.environ["XLA_FLAGS"] = (
        "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1 "
        + os.environ.get("XLA_FLAGS", "")
    )
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ.pop("OPENBLAS_CORETYPE", None)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", metavar="A,C", default=",".join(MODULES), help="some sections")
    parser.add_argument("--quick", action="store_true", help="small work: answers, hardly times")
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="write results.json, report.md, benchmarks.png there",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="keep a full run: results.json and report.md here, docs/benchmarks.png, README.md",
    )
    chosen = parser.parse_args(arguments)
    letters = chosen.only.split(",")
    if unknown := set(letters) - set(MODULES):
        parser.error(f"--only must name sections {', '.join(MODULES)}, got {', '.join(unknown)}")
    if chosen.write and (chosen.quick or set(letters) != set(MODULES)):
        parser.error("--write keeps full runs only; leave --quick and --only out, or use --out")

    from benchmarks.record import headline, report, with_table

    readme = ROOT / "README.md"
    if chosen.write:
        with_table(readme.read_text(), "")  # refuses before the run, not after it
    record = measure(letters, chosen.quick)
    print(report(record))
    if chosen.out is not None:
        chosen.out.mkdir(parents=True, exist_ok=True)
        store(record, chosen.out, chosen.out)
    if chosen.write:
        store(record, ROOT / "benchmarks", ROOT / "docs")
        readme.write_text(with_table(readme.read_text(), headline(record)))
    return int(any(row.way.startswith("popdyn") and row.verdict in BAD for row in record.rows))


def measure(letters: Sequence[str], quick: bool) -> "Record":
    """All cases and ways of some sections."""
    from benchmarks.contest import compete
    from benchmarks.record import Record, machine

    here = machine()
    axes, rows, goals = {}, [], []
    for letter in letters:
        for section in import_module(f"benchmarks.{MODULES[letter]}").SECTIONS:
            found = compete(section, quick, QUICK_SECONDS if quick else SECONDS, say)
            axes[section.name] = section.axis
            rows += found
            goals += section.goals(found)
    return Record(quick, here, axes, tuple(rows), tuple(goals))


def say(line: str) -> None:
    print(line, file=sys.stderr)


def store(record: "Record", folder: Path, pictures: Path) -> None:
    """The record and its report into one folder, its picture into another."""
    from benchmarks.picture import draw
    from benchmarks.record import report
    from popdyn.plotting.look import save

    record.save(folder / "results.json")
    (folder / "report.md").write_text(report(record))
    with (pictures / "benchmarks.png").open("wb") as stream:
        save(draw(record), stream, "png")


if __name__ == "__main__":
    one_thread()
    sys.exit(main())
