"""The command that makes the figures: its files, what it refuses, and how it ends."""

import io
import json
import os
import re
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from popdyn import figures
from popdyn.cli import main
from popdyn.experiments import population
from popdyn.experiments.finding import Finding
from popdyn.plotting.look import Figure

FILES = {f"figure02.{suffix}" for suffix in ("json", "npz", "pdf", "png")}


def run(*argv) -> int:
    return main(["figures", *map(str, argv)])


def one(folder, *argv) -> int:
    return run("--quick", "--workers", "1", "--only", "2", "--out", folder, *argv)


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def re_spaced(line: str) -> str:
    return re.sub(" {2,}", "  ", line)


def complaint(capsys, code: int, *argv) -> str:
    """The last line on stderr of a command that ends with an exit code."""
    capsys.readouterr()
    assert run(*argv) == code
    return capsys.readouterr().err.splitlines()[-1]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    assert one(folder) == 0
    return folder


@dataclass(frozen=True)
class FakeConfig:
    size: int = 3
    seed: int = 0

    @classmethod
    def quick(cls):
        return cls(2)

    @classmethod
    def paper(cls):
        return cls()


@dataclass(frozen=True)
class FakeResult:
    row: np.ndarray
    level: float


def fake_experiment() -> ModuleType:
    experiment = ModuleType("experiment")
    experiment.Config, experiment.Result = FakeConfig, FakeResult
    experiment.run = lambda config, *, executor, store: FakeResult(
        np.full(config.size, config.seed, dtype=float), float(config.size)
    )
    experiment.findings = lambda result: (
        Finding("type of a number", "float", type(result.level).__name__),
        Finding("never", 1.0, np.nan),
    )
    return experiment


@pytest.fixture
def fake(monkeypatch):
    """Figure 3, whose `run` a test may replace, beside a figure 2 of the same kind."""
    experiment = fake_experiment()
    picture = ModuleType("picture")
    picture.draw = lambda _: Figure(figsize=(1.0, 1.0))
    for claim, module in (("first", fake_experiment()), ("fake", experiment)):
        monkeypatch.setitem(sys.modules, f"popdyn.experiments.{claim}", module)
        monkeypatch.setitem(sys.modules, f"popdyn.plotting.{claim}", picture)
    monkeypatch.setattr(figures, "CLAIMS", {2: "first", 3: "fake"})
    return experiment


# files


def test_a_figure_is_two_pictures_its_numbers_and_its_record(made):
    files = bytes_of(made)
    assert files.keys() == FILES
    assert files["figure02.pdf"].startswith(b"%PDF")
    assert files["figure02.png"].startswith(b"\x89PNG")
    with np.load(made / "figure02.npz", allow_pickle=False) as numbers:
        assert str(numbers["format"]) == "popdyn figure population"
        assert numbers["tube"].shape == (4, population.Config.quick().n_times)


def test_the_record_says_where_the_figure_came_from(made):
    record = json.loads((made / "figure02.json").read_text())
    assert record["parameters"]["starts"][0] == [1.5, 5.0]
    assert record["versions"].keys() == {
        "popdyn", "python", "numpy", "scipy", "numba", "matplotlib",
    }  # fmt: skip
    assert record["seconds"] > 0
    assert [finding["predicted"] for finding in record["findings"]][1] == 4.0


def test_the_record_names_the_commit_of_a_clone_and_of_nothing_else(made, monkeypatch, tmp_path):
    commit = json.loads((made / "figure02.json").read_text())["commit"]
    root = Path(figures.__file__).parent.parent
    assert (commit is None) == (not (root / ".git").exists())
    if commit is not None:
        assert len(commit.removesuffix("-dirty")) == 40
    # installed into a folder of some clone, but no part of it
    monkeypatch.setattr(figures, "__file__", str(root / "tests" / "popdyn" / "figures.py"))
    assert figures._commit() is None


def test_all_but_the_record_is_the_same_byte_for_byte(made, tmp_path):
    assert one(tmp_path) == 0
    first, second = bytes_of(made), bytes_of(tmp_path)
    for name in FILES - {"figure02.json"}:
        assert first[name] == second[name]


def test_findings_go_to_stdout_as_a_table_and_talk_to_stderr(capsys, fake, tmp_path):
    assert one(tmp_path) == 0
    seen = capsys.readouterr()
    assert [line.split("  ") for line in map(re_spaced, seen.out.splitlines())] == [
        ["figure", "claim", "predicted", "measured"],
        ["2", "type of a number", "float", "float"],
        ["2", "never", "1", "nan"],
    ]
    assert seen.err == f"wrote {tmp_path / 'figure02.pdf'}\n"


def test_a_terminal_is_told_which_figure_is_under_way(fake, monkeypatch, tmp_path):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    assert one(tmp_path) == 0
    assert re.match(r"figure 2, first \.\.\. \d+\.\d s\n", sys.stderr.getvalue())


def test_findings_are_one_line_of_strict_json(capsys, fake, tmp_path):
    assert run("--only", "3", "--json", "--out", tmp_path, "--workers", "1") == 0
    (line,) = capsys.readouterr().out.splitlines()
    _, never = json.loads(line)["3"]
    assert never == {"claim": "never", "predicted": 1.0, "measured": None}
    record = json.loads((tmp_path / "figure03.json").read_text())
    assert record["findings"][1] == never


def test_without_only_every_figure_is_made(fake, tmp_path):
    assert run("--quick", "--out", tmp_path) == 0
    assert {path.stem for path in tmp_path.iterdir()} == {"figure02", "figure03"}


def test_a_seed_is_a_parameter_where_something_is_drawn(fake):
    assert figures.config_of(3, seed=7) == FakeConfig(3, seed=7)
    assert figures.config_of(3, quick=True) == FakeConfig(2, seed=0)


def test_a_seed_is_no_parameter_where_nothing_is_drawn():
    assert figures.config_of(2, seed=7) == figures.config_of(2)


# drawing again


def test_replot_makes_the_same_pictures_from_the_numbers_alone(made, tmp_path, monkeypatch):
    for name, content in bytes_of(made).items():
        (tmp_path / name).write_bytes(content)
    for picture in ("pdf", "png"):
        (tmp_path / f"figure02.{picture}").unlink()
    monkeypatch.setattr(population, "run", None)
    assert run("--replot", "--quick", "--only", "2", "--out", tmp_path) == 0
    assert bytes_of(tmp_path) == bytes_of(made)


def test_numbers_come_back_as_they_were(fake, tmp_path):
    said = figures.make(3, tmp_path, FakeConfig())
    assert figures.redraw(3, tmp_path, FakeConfig())[0] == said[0]


@pytest.mark.parametrize("options", [(), ("--quick", "--seed", "1")])
def test_replot_refuses_numbers_of_other_parameters(capsys, fake, tmp_path, options):
    assert run("--only", "3", "--quick", "--out", tmp_path, "--workers", "1") == 0
    before = bytes_of(tmp_path)
    line = complaint(capsys, 2, "--only", "3", "--replot", "--out", tmp_path, *options)
    assert "has other parameters" in line
    assert bytes_of(tmp_path) == before


def test_replot_refuses_numbers_that_do_not_belong_to_the_record(capsys, fake, tmp_path):
    for seed in (0, 1):
        (tmp_path / str(seed)).mkdir()
        figures.make(3, tmp_path / str(seed), FakeConfig(seed=seed))
    os.replace(tmp_path / "0" / "figure03.npz", tmp_path / "1" / "figure03.npz")
    line = complaint(capsys, 2, "--only", "3", "--replot", "--seed", 1, "--out", tmp_path / "1")
    assert "figure03.npz' has other parameters, seed = 0 where 1 was asked for" in line


@pytest.mark.parametrize("missing", ["json", "npz"])
def test_replot_refuses_half_a_figure(capsys, made, tmp_path, missing):
    for name, content in bytes_of(made).items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / f"figure02.{missing}").unlink()
    line = complaint(capsys, 2, "--replot", "--quick", "--only", "2", "--out", tmp_path)
    assert "no whole figure 2" in line


@pytest.mark.parametrize("damaged", ["json", "npz"])
def test_replot_refuses_a_damaged_file(capsys, made, tmp_path, damaged):
    for name, content in bytes_of(made).items():
        (tmp_path / name).write_bytes(content)
    path = tmp_path / f"figure02.{damaged}"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    line = complaint(capsys, 2, "--replot", "--quick", "--only", "2", "--out", tmp_path)
    assert path.name in line


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "3",
        "[]",
        '{"parameters": 3}',
        '{"parameters": [1]}',
        '{"parameters": NaN}',
        "",
    ],
    ids=["deep", "number", "list", "no parameters", "a list of them", "not strict", "empty"],
)
def test_replot_refuses_a_record_that_is_none(capsys, fake, tmp_path, text):
    run("--only", "3", "--out", tmp_path, "--workers", "1")
    capsys.readouterr()
    (tmp_path / "figure03.json").write_text(text)
    line = complaint(capsys, 2, "--replot", "--only", "3", "--out", tmp_path)
    assert "figure03.json' is no record of a figure; make it with" in line


# ends


def test_a_figure_that_fails_leaves_the_others(capsys, fake, monkeypatch, tmp_path):
    monkeypatch.setattr(figures, "CLAIMS", {3: "fake", 4: "first"})

    def fail(*_, **__):
        raise RuntimeError("the solver gave up")

    fake.run = fail
    line = complaint(capsys, 1, "--quick", "--out", tmp_path, "--workers", "1")
    assert line == "popdyn figures: error: figure 3: the solver gave up"
    assert {path.stem for path in tmp_path.iterdir()} == {"figure04"}


def test_an_older_figure_stays_when_a_new_one_fails(fake, tmp_path):
    assert run("--only", "3", "--out", tmp_path, "--workers", "1") == 0
    before = bytes_of(tmp_path)

    def fail(*_, **__):
        raise RuntimeError("the solver gave up")

    fake.run = fail
    assert run("--only", "3", "--out", tmp_path, "--workers", "1") == 1
    assert bytes_of(tmp_path) == before


def test_an_interrupt_keeps_what_is_finished(capsys, fake, tmp_path):
    def interrupted(*_, **__):
        signal.raise_signal(signal.SIGINT)

    fake.run = interrupted
    line = complaint(capsys, 130, "--quick", "--out", tmp_path, "--workers", "1")
    assert line == "popdyn figures: interrupted"
    assert bytes_of(tmp_path).keys() == FILES


def test_a_crash_while_writing_leaves_no_record(fake, monkeypatch, tmp_path):
    figures.make(3, tmp_path, FakeConfig())

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(figures, "_write_pictures", fail)
    with pytest.raises(OSError, match="No space"):
        figures.make(3, tmp_path, FakeConfig())
    assert not (tmp_path / "figure03.json").exists()


@pytest.mark.parametrize(
    ("argv", "words"),
    {
        "no such figure": (("--only", "13"), "figures are 1, 2"),
        "no numbers": (("--only", "two"), "wanted numbers of figures"),
        "no workers": (("--workers", "0"), "from 1 on"),
        "two places to compute": (("--workers", "2", "--scheduler", "tcp://x:1"), "not allowed"),
        "nothing to compute": (("--replot", "--workers", "2"), "not allowed"),
        "a file as folder": (("--out", __file__), "--out wants a folder"),
    }.values(),
)
def test_a_wrong_option_is_one_line(capsys, argv, words):
    assert words in complaint(capsys, 2, *argv)


def test_a_missing_dask_is_one_line(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "distributed", None)
    line = complaint(capsys, 2, "--scheduler", "tcp://127.0.0.1:1", "--out", tmp_path)
    assert 'pip install "popdyn-attention[cluster]"' in line


# processes


def tell(number: int) -> tuple[int, int]:
    return os.getpid(), number * number


def test_workers_are_processes_that_run_cells(fake, tmp_path):
    seen = {}

    def with_cells(config, *, executor, store):
        assert store.parent == tmp_path / "cells"
        seen.update(executor.map(tell, range(3)))
        return FakeResult(np.zeros(1), 1.0)

    fake.run = with_cells
    assert run("--only", "3", "--workers", "2", "--out", tmp_path) == 0
    assert os.getpid() not in seen


def test_one_worker_is_this_process(fake, tmp_path):
    def alone(config, *, executor, store):
        assert executor is None
        return FakeResult(np.zeros(1), 1.0)

    fake.run = alone
    assert run("--only", "3", "--workers", "1", "--out", tmp_path) == 0


def sleep_long(_: int) -> None:
    time.sleep(60)


def test_an_interrupt_does_not_wait_for_cells_under_way(capsys, fake, tmp_path):
    def interrupted(config, *, executor, store):
        executor.submit(tell, 1).result()
        executor.submit(sleep_long, 0)
        time.sleep(0.5)
        signal.raise_signal(signal.SIGINT)

    fake.run = interrupted
    begin = time.monotonic()
    line = complaint(capsys, 130, "--only", "3", "--workers", "2", "--out", tmp_path)
    assert line == "popdyn figures: interrupted"
    assert time.monotonic() - begin < 30  # measured 2 s
