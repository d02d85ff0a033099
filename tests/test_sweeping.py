"""Sweeps: one result whoever computes it, and nothing lost but what was under way."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from popdyn import CorpusRisk, Design, Head, cell_seed, sample_corpus, sweep

SEED = 5
CELLS = [(m, n, replicate) for m in (4, 8) for n in (4, 8) for replicate in range(3)]
HEADS = Head.from_ratio([1.5, 1.05, 2.5], [5.0, 8.0, 40.0])
SECONDS = 60  # for a whole process; measured 4 to 8 on a loaded machine
START_METHODS = [
    pytest.param(
        method,
        # A fork of a process with threads warns since Python 3.12; that it works is the claim.
        marks=pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),
    )
    for method in multiprocessing.get_all_start_methods()
]
HAS_FORK = "fork" in multiprocessing.get_all_start_methods()


def corpus_gradient(seed, cell):
    """The work of most sweeps here. The environment says where to note a call, and how slow."""
    if "SWEEP_CALLS" in os.environ:
        Path(os.environ["SWEEP_CALLS"], f"{cell} {os.getpid()}-{uuid.uuid4().hex}").touch()
        time.sleep(float(os.environ.get("SWEEP_SECONDS", "0")))
    corpus = sample_corpus(Design(), cell[0], cell[1], cell_seed(seed, *cell))
    value, gradient = CorpusRisk(corpus).value_and_gradient(HEADS)
    return {"value": value, "gradient": gradient, "n_positive": np.sum(corpus.labels > 0)}


WORK = partial(corpus_gradient, SEED)


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def as_bytes(results):
    return [
        {name: (array.dtype.str, array.shape, array.tobytes()) for name, array in result.items()}
        for result in results
    ]


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """What the sweep gives here, and the files that it leaves."""
    store = tmp_path_factory.mktemp("serial")
    results = sweep(CELLS, WORK, store=store)
    return as_bytes(results), contents(store)


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """The cells computed from here on, with repetitions."""
    folder = tmp_path / "calls"
    folder.mkdir()
    monkeypatch.setenv("SWEEP_CALLS", str(folder))
    return lambda: sorted(path.name.rpartition(" ")[0] for path in folder.iterdir())


# --- one result -----------------------------------------------------------------------------------


def test_results_come_in_the_order_of_the_cells(serial):
    assert serial[0] == as_bytes([{k: np.asarray(v) for k, v in WORK(c).items()} for c in CELLS])


def test_all_cells_have_numbers_of_their_own(serial):
    assert len({result["gradient"] for result in serial[0]}) == len(CELLS)
    assert len(serial[1]) == len(CELLS)


@pytest.mark.parametrize("n_workers", [1, 2, 4])
@pytest.mark.parametrize("method", START_METHODS)
def test_processes_give_the_bytes_of_the_serial_sweep(method, n_workers, serial, tmp_path):
    with ProcessPoolExecutor(n_workers, multiprocessing.get_context(method)) as executor:
        results = sweep(CELLS, WORK, executor=executor, store=tmp_path)
    assert as_bytes(results) == serial[0]
    assert contents(tmp_path) == serial[1]


def test_threads_give_the_bytes_of_the_serial_sweep(serial, tmp_path):
    with ThreadPoolExecutor(3) as executor:
        results = sweep(CELLS, WORK, executor=executor, store=tmp_path)
    assert as_bytes(results) == serial[0]
    assert contents(tmp_path) == serial[1]


def test_another_order_and_another_grid_leave_the_cells_as_they_are(serial):
    some = CELLS[::-2]
    expected = [serial[0][CELLS.index(cell)] for cell in some]
    assert as_bytes(sweep(some, WORK)) == expected


def mixed(cell):
    return {
        "columns_first": np.asfortranarray(np.arange(6.0).reshape(2, 3) * cell),
        "swapped": np.arange(3, dtype=">i4"),
        "special": [np.nan, -0.0, np.inf],
        "message": "scale not reached",
        "reached": False,
        "n_steps": 7,
        "single": np.float32(0.1),
        "complex": 1j,
        "empty": np.empty((0, 2)),
        "format": 1,
        "file": 2,
    }


def test_a_result_read_back_is_the_result_that_was_computed(tmp_path):
    fresh, read = sweep([1.5], mixed, store=tmp_path), sweep([1.5], mixed, store=tmp_path)
    assert as_bytes(fresh) == as_bytes(read) == as_bytes(sweep([1.5], mixed))
    for name, array in read[0].items():
        for one in (array, fresh[0][name]):
            assert one.flags.c_contiguous and one.flags.writeable
    assert fresh[0]["message"] == "scale not reached"


# --- the store ------------------------------------------------------------------------------------


def test_finished_cells_are_read_and_not_computed(serial, tmp_path, calls):
    store = tmp_path / "a" / "store"
    sweep(CELLS[:5], WORK, store=store)
    results = sweep(CELLS, WORK, store=store)
    assert as_bytes(results) == serial[0]
    assert contents(store) == serial[1]
    assert calls() == sorted(map(str, CELLS))


def by_keyword(cell, seed):
    return corpus_gradient(seed, cell)


@pytest.mark.parametrize(
    ("work", "key"),
    [
        (partial(corpus_gradient, SEED + 1), None),
        (partial(by_keyword, seed=SEED), None),
        (WORK, 2),
        (WORK, {"interior": 0.5, "design": Design(half_width=2.0)}),
    ],
    ids=["parameter", "function", "key", "config"],
)
def test_the_numbers_of_another_work_are_not_reused(work, key, tmp_path, calls):
    sweep(CELLS[:1], WORK, store=tmp_path)
    sweep(CELLS[:1], work, key=key, store=tmp_path)
    assert calls() == [str(CELLS[0])] * 2
    assert len(list(tmp_path.glob("*.npz"))) == 2


def exchange(store, damaged):
    other = next(path for path in store.iterdir() if path != damaged)
    damaged.write_bytes(other.read_bytes())


def flip(store, damaged):
    content = bytearray(damaged.read_bytes())
    with np.load(damaged) as archive:
        content[content.index(archive["result.gradient"].tobytes())] ^= 16
    damaged.write_bytes(content)


def hide(store, damaged):
    """One bit of the table of contents, which no checksum covers."""
    content = bytearray(damaged.read_bytes())
    content[content.rindex(b"result.gradient")] ^= 1
    damaged.write_bytes(content)


DAMAGES = {
    "truncated": lambda _, path: path.write_bytes(path.read_bytes()[:-50]),
    "empty": lambda _, path: path.write_bytes(b""),
    "a bit flipped": flip,
    "an array hidden": hide,
    "of another cell": exchange,
    "something else": lambda _, path: path.write_text("not an archive"),
    "another archive": lambda _, path: np.savez(path, gradient=np.zeros(2)),
    "a pickle": lambda _, path: np.savez(path, format=np.array([None])),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cell_is_noticed_and_done_again(damage, serial, tmp_path):
    store = tmp_path
    sweep(CELLS, WORK, store=store)
    DAMAGES[damage](store, store / min(contents(store)))
    with pytest.warns(RuntimeWarning, match=r"is not a whole 'popdyn cell 1' file"):
        results = sweep(CELLS, WORK, store=store)
    assert as_bytes(results) == serial[0]
    assert contents(store) == serial[1]


@pytest.mark.filterwarnings("ignore:.*is not a whole 'popdyn cell 1' file:RuntimeWarning")
def test_no_flipped_bit_of_a_cell_file_reaches_a_result(serial, tmp_path):
    sweep(CELLS[:1], WORK, store=tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for place in range(0, len(whole), 13):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        assert as_bytes(sweep(CELLS[:1], WORK, store=tmp_path)) == serial[0][:1], place


SCRIPT = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
from popdyn import sweep
from test_sweeping import CELLS, WORK

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context) as executor:
        sweep(CELLS, WORK, executor=executor, store=sys.argv[1])
"""


def start(folder, script, *arguments, **environment):
    """A script in a process and a session of its own."""
    path = folder / "script.py"
    path.write_text(textwrap.dedent(script))
    python_path = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parent.parent)])
    return subprocess.Popen(
        [sys.executable, path, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": python_path} | environment,
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(true, process):
    due = time.monotonic() + SECONDS
    while not true():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < due
        time.sleep(0.01)


@pytest.mark.skipif(os.name != "posix", reason="kills a group of processes")
@pytest.mark.parametrize("end", ["SIGKILL", "SIGINT"])
def test_a_sweep_that_was_ended_goes_on_where_it_was(end, serial, tmp_path, calls):
    store = tmp_path / "store"
    store.mkdir()
    process = start(tmp_path, SCRIPT, store, SWEEP_SECONDS="0.2")
    wait_until(lambda: len(list(store.glob("[!.]*.npz"))) >= 3, process)
    if end == "SIGKILL":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    process.communicate(timeout=SECONDS)  # returns when the workers, too, have closed their stderr
    assert process.returncode != 0
    kept = [cell for cell in CELLS if serial_name(serial, cell) in contents(store)]
    assert 3 <= len(kept) < len(CELLS)
    before = calls()

    if end == "SIGKILL":
        process = start(tmp_path, SCRIPT, store)
        errors = process.communicate(timeout=SECONDS)[1]
        assert process.returncode == 0, errors
    else:
        sweep(CELLS, WORK, store=store)
    whole = {name: content for name, content in contents(store).items() if name[0] != "."}
    assert whole == serial[1]
    assert sorted(before + [str(cell) for cell in CELLS if cell not in kept]) == calls()


def serial_name(serial, cell):
    """Name of the file of a cell: the one with its numbers."""
    gradient = serial[0][CELLS.index(cell)]["gradient"][2]
    return next(name for name, content in serial[1].items() if gradient in content)


# --- what goes wrong ------------------------------------------------------------------------------


class Unpicklable(Exception):
    """Comes out of a pickle only with the argument that its maker forgot to keep."""

    def __init__(self, cell, reason):
        super().__init__(f"cell {cell} {reason}")


def failing(cell):
    if cell % 3 == 1 and "SWEEP_REPAIRED" not in os.environ:
        raise Unpicklable(cell, "does not work")
    return {"square": cell**2}


@pytest.mark.parametrize("processes", [False, True], ids=["serial", "processes"])
def test_a_failing_cell_is_named_after_the_others_are_kept(processes, tmp_path, monkeypatch):
    states = []
    executor = ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) if processes else None
    message = r"2 of 5 cells failed.* cell 1, 1: .*Unpicklable: cell 1 does not work"
    with pytest.raises(RuntimeError, match=message) as e:
        sweep(
            range(5),
            failing,
            executor=executor,
            store=tmp_path,
            progress=lambda *state: states.append(state),
        )
    assert "\n" not in str(e.value)
    assert "in failing" in e.value.__notes__[0]
    assert states == [(done, 5) for done in range(6)]
    if executor:
        executor.shutdown()

    monkeypatch.setenv("SWEEP_REPAIRED", "1")
    states.clear()
    results = sweep(range(5), failing, store=tmp_path, progress=lambda *state: states.append(state))
    assert [int(result["square"]) for result in results] == [0, 1, 4, 9, 16]
    assert states == [(3, 5), (4, 5), (5, 5)]


def interrupted(cell):
    if cell == 2 and "SWEEP_REPAIRED" not in os.environ:
        raise KeyboardInterrupt
    return {"square": cell**2}


@pytest.mark.parametrize("threads", [False, True])
def test_an_interrupt_ends_the_sweep_and_keeps_what_is_finished(threads, tmp_path, monkeypatch):
    executor = ThreadPoolExecutor(1) if threads else None
    with pytest.raises(KeyboardInterrupt):
        sweep(range(5), interrupted, executor=executor, store=tmp_path)
    assert len(contents(tmp_path)) >= 2


def dying(cell):
    if cell == 2 and "SWEEP_REPAIRED" not in os.environ:
        os._exit(1)
    return {"square": cell**2}


def test_a_lost_worker_is_one_clear_error_and_the_sweep_goes_on_later(tmp_path, monkeypatch):
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        with pytest.raises(RuntimeError, match=r"the workers were lost with . of 5 cells .* store"):
            sweep(range(5), dying, executor=executor, store=tmp_path)
    monkeypatch.setenv("SWEEP_REPAIRED", "1")
    results = sweep(range(5), dying, store=tmp_path)
    assert [int(result["square"]) for result in results] == [0, 1, 4, 9, 16]


@pytest.mark.skipif(not HAS_FORK, reason="forks")
def test_a_fork_after_linear_algebra_completes(tmp_path):
    script = """
    import multiprocessing, sys
    from concurrent.futures import ProcessPoolExecutor
    import numpy as np, scipy.linalg
    from popdyn import sweep

    def factors(cell):
        matrix = np.random.default_rng(cell).normal(size=(200, 200))
        return {"lu": scipy.linalg.lu_factor(matrix)[0], "product": matrix @ matrix}

    if __name__ == "__main__":
        here = sweep(range(6), factors)
        with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as executor:
            there = sweep(range(6), factors, executor=executor)
        for one, other in zip(here, there):
            np.testing.assert_allclose(one["lu"], other["lu"], rtol=1e-9, atol=1e-9)
    """
    process = start(tmp_path, script)
    errors = process.communicate(timeout=SECONDS)[1]
    assert process.returncode == 0, errors


def test_a_script_without_a_main_guard_ends_with_the_remedy(tmp_path):
    script = """
    import multiprocessing, sys
    from concurrent.futures import ProcessPoolExecutor
    from popdyn import sweep
    from test_sweeping import failing

    executor = ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))
    print(sweep([0, 2, 3], failing, executor=executor))
    """
    process = start(tmp_path, script)
    errors = process.communicate(timeout=SECONDS)[1]
    assert process.returncode == 1
    last = errors.splitlines()[-1]
    assert last.startswith("RuntimeError: the workers were lost with 3 of 3 cells to do")
    assert 'without `if __name__ == "__main__":` started them' in last


# --- what is refused ------------------------------------------------------------------------------


class Plain:
    def method(self, cell):
        return {"square": cell**2}


def local():
    def work(cell):
        return {"square": cell**2}

    return work


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda cell: {"square": cell**2}, "must be a function that other processes find"),
        (local(), "must be a function that other processes find"),
        (Plain().method, "must be a function that other processes find"),
        (partial(corpus_gradient, lambda: 3), "must be a function that other processes find"),
        (partial(corpus_gradient, object()), "must be made of numbers.* got object"),
        (3, "must be callable, got int"),
    ],
    ids=["lambda", "local", "method", "parameter", "object", "number"],
)
@pytest.mark.parametrize("processes", [False, True], ids=["serial", "processes"])
def test_a_work_without_a_name_is_refused_at_once(work, message, processes):
    executor = ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) if processes else None
    with pytest.raises(TypeError, match=f"^work {message}"):
        sweep(CELLS, work, executor=executor)
    assert not multiprocessing.active_children()


@dataclass(frozen=True)
class Cell:
    n_tasks: int
    head: Head
    design: Design


def test_cells_that_are_the_same_are_refused():
    cells = [Cell(n, Head.from_ratio(1.5, 5.0), Design()) for n in (1, 2, 2)]
    with pytest.raises(ValueError, match=r"cells must differ, got Cell\(.* as cells 1 and 2"):
        sweep(cells, mixed)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (0.0, -0.0),
        (0.1, np.nextafter(0.1, 1.0)),
        ("1", 1),
        (None, "None"),
        ((1, (2,)), ((1, 2),)),
        (np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-15])),
        (np.zeros((1, 2)), np.zeros((2, 1))),
        (Design(), Design(half_width=2.0)),
        (Head.from_ratio(1.5, 5.0), Head.from_scores(7.5, 5.0)),
    ],
    ids=str,
)
def test_cells_that_differ_a_little_are_not_the_same(one, other):
    assert len(sweep([one, other], nothing)) == 2


def nothing(cell):
    return {}


@pytest.mark.parametrize("cell", [object(), {1: 2}, {1, 2}, 1j, np.array([None]), Plain])
def test_a_cell_that_is_not_plain_is_refused(cell):
    with pytest.raises(TypeError, match=r"^cell 1 must be"):
        sweep([0, cell], nothing)


def returned(results, cell):
    return {"list": [1], "object": {"a": [None]}, "text": {"not a name": 1}, "mask": {2: 1}}[cell]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("list", "must return a mapping of names to arrays, got list"),
        ("object", "must return arrays of numbers or strings, got 'a' of object"),
        ("text", "must name its arrays by identifiers, got 'not a name'"),
        ("mask", "must name its arrays by identifiers, got 2"),
    ],
)
def test_a_result_that_cannot_be_stored_is_a_failure_of_its_cell(cell, message):
    with pytest.raises(RuntimeError, match=f"cell 0, '{cell}': TypeError: work {message}"):
        sweep([cell], partial(returned, 0))


def test_a_sweep_of_no_cells_has_no_results():
    assert sweep([], nothing) == []
