"""Sweeps on a dask cluster: a real scheduler and two worker processes, one of which is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from test_sweeping import CELLS, SEED, as_bytes, contents, corpus_gradient

from popdyn import sweep
from popdyn.sweeping import cluster_executor

dask = pytest.importorskip("dask", reason="the extra cluster is not installed")
pytest.importorskip("distributed", reason="the extra cluster is not installed")

WORK = partial(corpus_gradient, SEED)
SECONDS = 60  # for a start; measured 3 to 8 on a loaded machine


@pytest.fixture
def start(tmp_path):
    """Start dask processes, which find the work and note its calls; end them after the test."""
    calls = tmp_path / "calls"
    calls.mkdir()
    python_path = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parent.parent)])
    environment = {
        "PYTHONPATH": python_path,
        "SWEEP_CALLS": str(calls),
        "SWEEP_SECONDS": "0.3",
    }
    processes = []

    def begin(command, *options):
        log = open(tmp_path / f"{command} {len(processes)}.log", "w")
        with log:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{command}", *map(str, options)],
                env=os.environ | environment,
                stdout=log,
                stderr=log,
            )
        processes.append(process)
        return process

    yield begin
    for process in reversed(processes):
        process.kill()
        process.wait()


@pytest.fixture
def scheduler(start, tmp_path):
    """Address of a running scheduler."""
    file = tmp_path / "scheduler.json"
    local = ("--host", "127.0.0.1", "--port", 0, "--no-dashboard")
    start("scheduler", *local, "--scheduler-file", file)
    due = time.monotonic() + SECONDS
    while time.monotonic() < due:
        try:
            return json.loads(file.read_text())["address"]
        except (FileNotFoundError, ValueError):
            time.sleep(0.05)
    raise TimeoutError((tmp_path / "scheduler 0.log").read_text())


def test_a_killed_worker_costs_time_and_nothing_else(start, scheduler, tmp_path):
    expected = tmp_path / "serial"
    serial = sweep(CELLS, WORK, store=expected)
    options = (scheduler, "--no-nanny", "--nthreads", 1, "--no-dashboard")
    options += ("--local-directory", tmp_path)
    workers = [start("worker", *options, "--name", i) for i in range(2)]
    killed_at = []

    def kill_one(n_finished, n_cells):
        if n_finished >= 3 and not killed_at:
            workers[0].send_signal(signal.SIGKILL)
            killed_at.append(n_finished)

    store = tmp_path / "cluster"
    with cluster_executor(scheduler) as executor:
        executor._client.wait_for_workers(2, timeout=SECONDS)  # else one may do all
        results = sweep(CELLS, WORK, executor=executor, store=store, progress=kill_one)
    assert killed_at == [3]
    assert workers[0].wait(SECONDS) == -signal.SIGKILL
    assert workers[1].poll() is None
    calls = [path.name for path in (tmp_path / "calls").iterdir()]
    assert all(any(f" {worker.pid}-" in call for call in calls) for worker in workers)
    assert as_bytes(results) == as_bytes(serial)
    assert contents(store) == contents(expected)


def test_an_address_where_no_scheduler_answers_is_named():
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        with pytest.raises(OSError, match=r"got 'tcp://127.0.0.1:9'.*start one with"):
            with cluster_executor("tcp://127.0.0.1:9"):
                pass


def test_without_distributed_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "popdyn-attention\[cluster\]"'):
        with cluster_executor("tcp://127.0.0.1:9"):
            pass
