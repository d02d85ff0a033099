"""Files that are hostile, and disks that are full: one line, no code run, nothing lost."""

import io
import json
import os
import pickle
import re
import signal
import tracemalloc
import zipfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import popdyn
from popdyn import Checkpoint, Corpus, Design, pretrain, sample_corpus
from popdyn.cli import main

PACKAGE = Path(popdyn.__file__).parent
FORM = "popdyn corpus 1"
HOSTILE_BYTES = 50_000_000  # what a hostile file wants to be unpacked to, or have room made for
READING_BYTES = 2_000_000  # what reading any of them may take: measured at most 1,020,000


def npy(array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def header(descr: str, shape: str, *, version: bytes = b"\x01\x00", length_bytes: int = 2) -> bytes:
    """An array file that declares a type and a shape, whatever follows."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + version + len(text).to_bytes(length_bytes, "little") + text


def archive(features: bytes, *, compression=zipfile.ZIP_STORED, form: str = FORM) -> bytes:
    """A file of a corpus whose features are any bytes."""
    stream = io.BytesIO()
    members = {
        "format": npy(np.array(form)),
        "features": features,
        "labels": npy(np.array([[1]], dtype=np.int8)),
        "thresholds": npy(np.array([0.0])),
        "half_width": npy(np.array(1.0)),
    }
    with zipfile.ZipFile(stream, "w", compression) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return stream.getvalue()


class Code:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def overlapping() -> bytes:
    """An archive whose directory names one megabyte fifty times more."""
    one = archive(npy(np.zeros((1, HOSTILE_BYTES // 400))))
    start, stop = one.index(b"PK\x01\x02"), one.index(b"PK\x05\x06")
    directory, end = one[start:stop], bytearray(one[stop:])
    first = directory.index(b"PK\x01\x02", 4)
    entry = directory[first : directory.index(b"PK\x01\x02", first + 4)]
    directory += b"".join(entry.replace(b"features", b"feat%04d" % i) for i in range(50))
    end[8:12] = (5 + 50).to_bytes(2, "little") * 2
    end[12:16] = len(directory).to_bytes(4, "little")
    return one[:start] + directory + bytes(end)


def longer_than_it_is() -> bytes:
    """An archive whose directory says that a member is fifty megabytes long."""
    good = bytearray(archive(header("'<f8'", f"(1, {HOSTILE_BYTES // 8})")))
    entry = good.index(b"PK\x01\x02", good.index(b"PK\x01\x02") + 4)
    for field in (20, 24):  # compressed and uncompressed
        good[entry + field : entry + field + 4] = HOSTILE_BYTES.to_bytes(4, "little")
    return bytes(good)


def encrypted() -> bytes:
    good = bytearray(archive(npy(np.zeros((1, 1)))))
    for mark, field in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for found in re.finditer(re.escape(mark), bytes(good)):
            good[found.start() + field] |= 1
    return bytes(good)


def misnamed() -> bytes:
    """An archive that calls a member something of five kilobytes where the member begins."""
    good = bytearray(archive(npy(np.zeros((1, 1000)))))
    name = good.index(b"features.npy")
    good[name - 4 : name - 2] = (5000).to_bytes(2, "little")
    return bytes(good)


MANY = f"(1, {HOSTILE_BYTES // 8})"
HOSTILE = {
    "a bomb": lambda: archive(npy(np.zeros((1, HOSTILE_BYTES // 8))), compression=8),
    "a huge shape": lambda: archive(header("'<f8'", MANY)),
    "an absurd shape": lambda: archive(header("'<f8'", f"({10**18}, {10**18})")),
    "a shape beyond integers": lambda: archive(header("'<f8'", f"({10**30},)")),
    "a negative shape": lambda: archive(header("'<f8'", "(-1, 1)") + bytes(8)),
    "an absurd empty shape": lambda: archive(header("'<f8'", f"(0, {10**18})")),
    "a hundred dimensions": lambda: archive(header("'<f8'", f"({'1, ' * 100})") + bytes(8)),
    "a huge text": lambda: archive(header(f"'<U{HOSTILE_BYTES}'", "()")),
    "an absurd text": lambda: archive(header(f"'<U{10**9 - 1}'", "(1,)")),
    "a type of its own": lambda: archive(header("[('a', '<f8')]", "(1,)") + bytes(8)),
    "an unknown type": lambda: archive(header("'<f7'", "(1, 1)") + bytes(7)),
    "another version": lambda: archive(
        header("'<f8'", MANY, version=b"\x03\x00", length_bytes=4) + bytes(8)
    ),
    "a deep header": lambda: archive(header("'<f8'", "(" * 30_000 + ")" * 30_000)),
    "a header of Python 2": lambda: archive(header("'<f8'", "(1L, 1L)") + bytes(8)),
    "a shape too short": lambda: archive(header("'<f8'", "(1, 1)") + bytes(16)),
    "dates": lambda: archive(npy(np.zeros((1, 1), dtype="datetime64[s]"))),
    "overlapping members": overlapping,
    "a member longer than the file": longer_than_it_is,
    "an encrypted archive": encrypted,
    "a long name": misnamed,
    "another format": lambda: archive(npy(np.zeros((1, 1))), form="x" * 100_000),
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused_in_one_line_and_in_little_memory(tmp_path, make):
    path = tmp_path / "corpus.npz"
    path.write_bytes(make())
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=f"is not a whole '{FORM}' file") as refusal:
            Corpus.load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "\n" not in str(refusal.value) and len(str(refusal.value)) < 400
    assert peak < READING_BYTES


def test_an_archive_like_these_with_right_arrays_is_a_corpus(tmp_path):
    (tmp_path / "corpus.npz").write_bytes(archive(npy(np.array([[0.5]]))))
    assert Corpus.load(tmp_path / "corpus.npz").features.tolist() == [[0.5]]


@pytest.mark.parametrize("kind", ["a pickle", "objects"])
def test_no_code_of_a_file_is_run(tmp_path, kind):
    path, trace = tmp_path / "corpus.npz", tmp_path / "trace"
    code = pickle.dumps(Code(trace))
    objects = archive(npy(np.array([[Code(trace)]], dtype=object)))
    path.write_bytes(code if kind == "a pickle" else objects)
    pickle.loads(code).close()
    assert trace.exists()  # so it would be there if the code had been run
    trace.unlink()
    for load in (Corpus.load, Checkpoint.load):
        with pytest.raises(ValueError, match="is not a whole"):
            load(path)
    assert not trace.exists()


def test_a_hostile_checkpoint_ends_the_command_in_one_line(capsys, tmp_path):
    path = tmp_path / "head.npz"
    path.write_bytes(archive(header("'<f8'", MANY), form="popdyn checkpoint 1"))
    assert main(["transfer", str(path), "--thresholds", "0", "--sizes", "4"]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert "is not a whole" in captured.err


def test_nothing_but_the_archive_reads_arrays_or_pickles():
    readers = re.compile(r"np\.(load|fromfile|memmap)\b|\bpickle\.loads?\b|\beval\(|\bexec\(")
    sources = {path.name: path.read_text() for path in PACKAGE.rglob("*.py")}
    assert [name for name, source in sources.items() if readers.search(source)] == []


# --- full disks -----------------------------------------------------------------------------------


@contextmanager
def full_disk():
    """No file may grow beyond two thousand bytes, which needs no rights of root.

    Over before the test is: the file that the report of the tests goes to has to grow.
    """
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


OLD = b"the older file"
START = ("--ratio", "1.5", "--scale", "5")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("flow", *START, "--t-end", "10", "--out"), "run.npz"),
        (("flow", *START, "--t-end", "10", "--points", "3", "--plot"), "run.pdf"),
        (("flow", *START, "--t-end", "10", "--points", "3", "--plot"), "run.svg"),
        (("pretrain", "--tasks", "2", "--examples", "2", "--seed", "0", "--out"), "head.npz"),
    ],
    ids=["arrays", "pdf", "svg", "checkpoint"],
)
def test_a_full_disk_is_one_line_and_leaves_the_older_file(capsys, tmp_path, words, name):
    (tmp_path / name).write_bytes(OLD)
    with full_disk():
        assert main([*words, str(tmp_path / name)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "File too large" in error
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(name, OLD)]


def test_a_full_disk_leaves_the_older_corpus_and_checkpoint(tmp_path):
    small, large = sample_corpus(Design(), 1, 1, rng=0), sample_corpus(Design(), 40, 40, rng=0)
    checkpoint = pretrain(small)
    small.save(tmp_path / "corpus.npz")
    checkpoint.save(tmp_path / "head.npz")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for save, name in ((large.save, "corpus.npz"), (checkpoint.save, "head.npz")):
        with full_disk(), pytest.raises(OSError, match="File too large"):
            save(tmp_path / name)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_full_disk_keeps_the_figure_that_was_there_whole_or_without_a_record(capsys, tmp_path):
    words = ["figures", "--quick", "--only", "9", "--workers", "1", "--json", "--out"]
    assert main([*words, str(tmp_path)]) == 0
    capsys.readouterr()
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    with full_disk():
        assert main([*words, str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "File too large" in error
    after = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert set(before) - set(after) <= {tmp_path / "figure09.json"}  # the record goes first
    assert all(before[path] == content for path, content in after.items())


@pytest.mark.parametrize("name", ["out.npz/x.npz", "missing/x.npz", "x.npz/"])
def test_a_place_that_is_none_is_refused_before_anything_is_computed(
    capsys, monkeypatch, tmp_path, name
):
    monkeypatch.setattr("popdyn.dynamics.integration.Integration.steps", None)
    (tmp_path / "out.npz").write_bytes(OLD)
    words = ["flow", *START, "--t-end", "10", "--out", os.path.join(tmp_path, name)]
    assert main(words) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert json.dumps([path.name for path in tmp_path.iterdir()]) == '["out.npz"]'
