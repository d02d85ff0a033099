"""What a person waits for: imports, the first command, the first call that compiles."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.contest import Answer, Case, Goal, Row, Section, Way, Work, seconds_of

ROOT = Path(__file__).parent.parent
COMMAND = "popdyn risk --ratio 1.5 --scale 5"
PROCESS = "a new process"
RISK = f"`{COMMAND}`"
FIRST = f"{RISK}, nothing compiled yet"


def _starts(quick: bool) -> list[Case]:
    return [Case(PROCESS, None, 0.0)]


def _distance(answer: Answer, exact: float) -> float:
    """Exit code: 0 is right."""
    return float(answer[0] - exact)


def _process(_: None, *words: str, fresh: bool = False) -> Work:
    """A new interpreter; with an empty cache folder of compiled code if it is to be fresh."""

    def work() -> Answer:
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ) | ({"NUMBA_CACHE_DIR": folder} if fresh else {})
            run = subprocess.run(
                [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True
            )
        return np.array([run.returncode])

    return work


def _import(name: str, *needs: str) -> Way:
    return Way(f"import {name}", partial(_python, code=f"import {name}"), 0.0, needs, wall=True)


def _python(_: None, code: str) -> Work:
    return _process(None, "-c", code)


def _command(_: None, fresh: bool) -> Work:
    return _process(None, "-m", *COMMAND.split(), fresh=fresh)


def _goals(rows: Sequence[Row], wanted: dict[str, float]) -> list[Goal]:
    return [
        Goal("F", f"seconds for {way}", most, seconds_of(rows, way, PROCESS), False, "s")
        for way, most in wanted.items()
    ]


IMPORTS = Section(
    "F",
    "import of a library",
    "",
    _starts,
    (
        _import("popdyn"),
        Way("the interpreter alone", partial(_python, code="pass"), 0.0, wall=True),
        _import("numpy"),
        _import("scipy.integrate"),
        _import("jax", "jax"),
        _import("torch", "torch"),
    ),
    _distance,
    partial(_goals, wanted={"import popdyn": 0.5}),
)
COMMANDS = Section(
    "F",
    "a first command",
    "",
    _starts,
    (
        Way(RISK, partial(_command, fresh=False), 0.0, wall=True),
        Way(FIRST, partial(_command, fresh=True), 0.0, wall=True),
    ),
    _distance,
    partial(_goals, wanted={RISK: 1.0, FIRST: 8.0}),
)
SECTIONS = (IMPORTS, COMMANDS)
