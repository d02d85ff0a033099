"""Runs in threads and processes, in odd places, and cut short."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from popdyn import (
    ClosedFormRisk,
    CorpusRisk,
    Design,
    Head,
    context_moments,
    gradient_flow,
    hitting_time,
    sample_corpus,
)

RISK = ClosedFormRisk()
STARTS = [Head.from_ratio(1.5, 5.0), Head.from_scores(0.3, -0.1), Head.from_tube(0.7, 100.0)]
SECONDS = 120.0  # of a process: measured 5 to 20


def bits(trajectory):
    return trajectory.scale.tobytes(), trajectory.label_score.tobytes(), trajectory.t.tobytes()


# --- threads and processes ------------------------------------------------------------------------


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_flows_in_processes_have_the_bits_of_those_here(method):
    here = [bits(gradient_flow(RISK, start, 1e3)) for start in STARTS]
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        waiting = [pool.submit(gradient_flow, RISK, start, 1e3) for start in STARTS]
        assert [bits(future.result(timeout=SECONDS)) for future in waiting] == here


CORPUS = CorpusRisk(sample_corpus(Design(), 30, 30, rng=0))
MANY = {
    "moments": lambda i: context_moments(Head.from_ratio(1.5, 5.0 + i), 0.1 * i, 16).bias.tobytes(),
    "hit": lambda i: hitting_time(RISK, Head.from_ratio(1.5, 5.0 + i), scale=20.0).time,
    "corpus": lambda i: CORPUS.gradient(Head.from_ratio(1.5, 5.0 + i)).tobytes(),
    "draws": lambda i: sample_corpus(Design(), 5, 5, rng=i).features.tobytes(),
}


@pytest.mark.parametrize("work", MANY.values(), ids=MANY)
def test_eight_threads_at_once_give_what_one_gives(work):
    alone = [work(i) for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == alone


# --- odd places -----------------------------------------------------------------------------------

ODD = "a folder é ö 数"
NAMES = ["Größe 数.npz", "é ö.npz", "é ö.pdf"]
TOUR = """
import sys
from popdyn.cli import main

checkpoint, arrays, picture = sys.argv[1:]
flow = ["flow", "--ratio", "1.5", "--scale", "5", "--t-end", "9", "--points", "3"]
transfer = ["transfer", checkpoint, "--thresholds", "0", "--sizes", "4"]
pretrain = ["pretrain", "--tasks", "3", "--examples", "3", "--seed", "0", "--out", checkpoint]
assert main(pretrain) == 0
assert main(transfer) == 0
assert main([*flow, "--out", arrays, "--plot", picture]) == 0
transfer[1] = arrays
assert main(transfer) == 2
"""
ASCII = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.skipif(os.name != "posix", reason="names of files are bytes on POSIX only")
@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, ASCII], ids=["C", "C without UTF-8"])
def test_commands_work_in_a_folder_with_spaces_and_letters_of_any_language(tmp_path, locale):
    folder = tmp_path / ODD
    folder.mkdir()
    nowhere = os.devnull + "/home"  # nothing can be made there, not even by root
    places = {"HOME": nowhere, "XDG_CACHE_HOME": nowhere, "XDG_CONFIG_HOME": nowhere}
    environment = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    done = subprocess.run(
        [sys.executable, "-c", TOUR, *(name.encode() for name in NAMES)],
        cwd=folder,
        env=environment | locale | places | {"MPLCONFIGDIR": str(tmp_path)},
        capture_output=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    lines = done.stderr.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == [b"wrote"] * 3
    assert lines[-1].startswith(b"popdyn transfer: error:")
    assert {path.name for path in folder.iterdir()} == set(NAMES)


# --- cut short ------------------------------------------------------------------------------------


def wait_for(path: Path, process: subprocess.Popen) -> None:
    end = time.monotonic() + SECONDS
    while not path.exists():
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.02)


@pytest.mark.skipif(os.name != "posix", reason="interrupts are sent as on POSIX")
def test_an_interrupted_figure_run_keeps_what_is_finished(tmp_path):
    words = ["figures", "--quick", "--only", "2,3", "--workers", "1", "--json", "--out"]
    command = [sys.executable, "-m", "popdyn", *words, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        wait_for(tmp_path / "figure02.json", run)
        run.send_signal(signal.SIGINT)
        output, error = run.communicate(timeout=SECONDS)
    assert run.returncode == 130
    assert error.splitlines()[-1] == b"popdyn figures: interrupted"
    assert b"Traceback" not in error and output == b""
    files = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert {f"figure02.{kind}" for kind in ("pdf", "png", "npz", "json")} <= files
    assert not any(name.startswith(".popdyn") for name in files)
    with np.load(tmp_path / "figure02.npz", allow_pickle=False) as arrays:
        assert len(arrays.files) > 1
