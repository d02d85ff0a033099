"""Random command lines and damaged files: an exit code, at most one line, and never a traceback."""

import json
import random

import pytest

from popdyn import Corpus, Design, figures, pretrain, sample_corpus
from popdyn.cli import main

# A fixed budget, which takes 10 s; other seeds and longer runs: raise them here.
COMMAND_LINES, DAMAGED_FILES, BATCHES = 120, 60, 5
LONGEST_LINE = 1000  # characters of a message: the longest names a file, a head and a remedy

# fmt: off
SENSIBLE = ["0", "1", "1.5", "5", "-3", "0.2", "20", "1e-3", "0.7"]
NASTY = [
    "-0.0", "1e-300", "5e-324", "1e300", "1.7976931348623157e308", "1e12", "-1e12", "nan", "inf",
    "-inf", "-nan", "abc", "1e", "0x10", "1_0", "٣", "½", "1,5", "--", "-", "1e999", "1j", "None",
    "-1e-3", "+5", "1e-12", "700", "0.9999999999999999", "", " 2 ", "\0", "9" * 400,
]
COUNTS = ["1", "2", "3", "0", "-1", "1.5", "x", "٣", "²", "1e3", ""]
TIMES = ["0", "1", "10", "1e3", "nan", "inf", "-1", "1e-300", "1e301", "", "x"]
INPUTS = [
    "head.npz", "text.npz", "folder.npz", "missing.npz", "/dev/null", "", "a\0b.npz",
    "\udcff.npz", "é x.npz", "no/such.npz", "x" * 300 + ".npz",
]
OUTPUTS = [
    "out.npz", "o.NPZ", "out.pdf", "", "/dev/full", "folder.npz", "é ö.npz", "a\0b.npz",
    "\udcff.npz", "x" * 300 + ".npz", "no/out.npz", "out.svg/x.npz",
]
# fmt: on
COORDINATES = ["--ratio", "--label-score", "--excess", "--tube"]
METHODS = ["LSODA", "Radau", "BDF", "DOP853", "lsoda", ""]
ROUTES = ["closed-form", "graded", "gauss-legendre:20", "gauss-legendre:0", "gauss-legendre:²", ""]


class Lines:
    """Command lines of a seed: mostly well formed, of numbers that often are not."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def choice(self, words):
        return self.random.choice(words)

    def now_and_then(self, probability, *words):
        return list(words) if self.random.random() < probability else []

    def number(self):
        return self.choice(SENSIBLE if self.random.random() < 0.6 else NASTY)

    def head(self):
        words = []
        for name in self.random.sample(COORDINATES, self.choice([1, 1, 1, 1, 0, 2])):
            words += [name, self.number()]
        words += self.now_and_then(0.95, "--scale", self.number())
        return words + self.now_and_then(0.2, "--half-width", self.number())

    def options(self):
        return (
            self.now_and_then(0.3, "--method", self.choice(METHODS))
            + self.now_and_then(0.3, "--gradient", self.choice(ROUTES))
            + self.now_and_then(0.4, "--json")
        )

    def outputs(self):
        words = self.now_and_then(0.2, "--out", self.choice(OUTPUTS))
        return words + self.now_and_then(0.03, "--plot", self.choice(OUTPUTS))

    def risk(self):
        return ["risk", *self.head(), *self.options()]

    def flow(self):
        points = self.now_and_then(0.3, "--points", self.choice(COUNTS))
        time = ["--t-end", self.choice(TIMES)]
        return ["flow", *self.head(), *time, *points, *self.options(), *self.outputs()]

    def hit(self):
        level = ["--scale-level", self.number(), "--t-end", self.choice(TIMES)]
        return ["hit", *self.head(), *level, *self.options()]

    def pretrain(self):
        counts = ["--tasks", self.choice(COUNTS[:8]), "--examples", self.choice(COUNTS[:8])]
        head = self.head() if self.random.random() < 0.5 else []
        step = self.now_and_then(0.3, "--step-size", self.number())
        seed = ["--seed", self.choice(COUNTS), "--out", self.choice(OUTPUTS)]
        return ["pretrain", *counts, *seed, *head, *step]

    def transfer(self):
        thresholds = [self.number() for _ in range(self.choice([0, 1, 2]))]
        sizes = [self.choice(COUNTS) for _ in range(self.choice([0, 1, 2]))]
        drawn = ["--contexts", self.choice(COUNTS[:8]), "--seed", self.choice(COUNTS)]
        words = ["transfer", self.choice(INPUTS), "--thresholds", *thresholds, "--sizes", *sizes]
        return words + self.now_and_then(0.3, *drawn) + self.now_and_then(0.5, "--json")

    def map(self):
        grid = [self.choice(["1", "2", "3", "0", "x"]) for _ in range(2)]
        words = ["map", "--points", *grid, "--scale-level", self.choice(["2", "3", "0.1", "nan"])]
        words += self.now_and_then(0.3, "--ratios", self.number(), self.number())
        words += self.now_and_then(0.3, "--scales", self.number(), self.number())
        words += self.now_and_then(0.1, "--half-width", self.number())
        return words + self.outputs() + self.now_and_then(0.5, "--json")

    def replot(self):
        numbers = self.choice([*COUNTS, "1,2", "1,,2", "13", ","])
        return ["figures", "--replot", "--only", numbers, "--out", self.choice(INPUTS)]

    def line(self):
        kinds = [self.risk] * 4 + [self.flow] * 3 + [self.hit] * 3
        kinds += [self.pretrain, self.transfer, self.replot, self.map]
        words = self.choice(kinds)()
        if self.random.random() < 0.1:
            self.random.shuffle(words)
        if self.random.random() < 0.1:
            words.insert(self.random.randrange(len(words) + 1), self.number())
        return words


@pytest.fixture(scope="module")
def checkpoint():
    return pretrain(sample_corpus(Design(), 3, 3, rng=0))


def strict(text):
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def check(code, captured, words):
    """What every end of a command has in common."""
    talk = [line for line in captured.err.splitlines() if not line.startswith("wrote ")]
    errors = [line for line in talk if ": warning: " not in line]
    assert code in (0, 1, 2), words
    assert "Traceback" not in captured.err, words
    assert len(errors) == (code != 0), (words, captured.err)
    assert all(len(line) < LONGEST_LINE for line in talk), (words, captured.err)
    if code == 2:
        assert captured.out == "" or words[0] == "figures", words
    if code == 0 and "--json" in words:
        strict(captured.out)


@pytest.mark.parametrize("seed", range(BATCHES))
def test_a_random_command_line_ends_in_a_code_and_at_most_one_line(
    capsys, monkeypatch, tmp_path, checkpoint, seed
):
    monkeypatch.chdir(tmp_path)
    checkpoint.save("head.npz")
    (tmp_path / "text.npz").write_text("no archive")
    (tmp_path / "folder.npz").mkdir()
    lines = Lines(seed)
    codes = []
    for _ in range(COMMAND_LINES):
        words = lines.line()
        codes.append(main(words))
        check(codes[-1], capsys.readouterr(), words)
    assert codes.count(0) >= COMMAND_LINES / 60  # it is not all refused at the door


# --- files ----------------------------------------------------------------------------------------

SWAPS = [
    (b"<f8", b"|O8"), (b"<f8", b"<f4"), (b"<f8", b"<M8"), (b"(3,", b"(99"), (b"()", b"(-1,)"),
    (b"False", b"True!"), (b"False", b"True"), (b"shape", b"descr"), (b"|i1", b"|S1"),
    (b"{", b"[[["), (b"PK\1\2", b"PK\3\4"), (b"PK\5\6", b"PK\1\2"), (b"<U", b">U"),
    (b"1", b"1e999"), (b"1", b"null"), (b"parameters", b"parameter"), (b":", b": NaN, "),
]  # fmt: skip


def damaged(content, rng):
    """The content with a few bytes or words changed, cut out, put in or said twice."""
    content = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5])):
        i, j = sorted(rng.randrange(len(content) + 1) for _ in range(2))
        kind = rng.randrange(7)
        if kind == 0:
            content[i : i + 1] = rng.randbytes(1)
        elif kind == 1:
            del content[j:]
        elif kind == 2:
            content[i:i] = rng.randbytes(rng.choice([1, 4, 100]))
        elif kind == 3:
            del content[i:j]
        elif kind == 4:
            content[i : i + 4] = rng.choice([b"\xff" * 4, bytes(4), b"\xff\xff\xff\x7f"])
        elif kind == 5:
            content = content.replace(*rng.choice(SWAPS), rng.choice([1, 2, -1]))
        else:
            content[i:i] = content[:i]
    return bytes(content)


@pytest.mark.parametrize("seed", range(BATCHES))
def test_a_damaged_corpus_is_refused_in_one_line_or_a_corpus(tmp_path, seed):
    rng = random.Random(seed)
    path = tmp_path / "corpus.npz"
    sample_corpus(Design(), 3, 5, rng=0).save(path)
    whole = path.read_bytes()
    refused = 0
    for _ in range(DAMAGED_FILES):
        path.write_bytes(damaged(whole, rng))
        try:
            assert isinstance(Corpus.load(path), Corpus)
        except ValueError as refusal:
            refused += 1
            assert "\n" not in str(refusal) and len(str(refusal)) < LONGEST_LINE
    assert refused > DAMAGED_FILES / 2


@pytest.mark.parametrize("seed", range(BATCHES))
def test_a_damaged_checkpoint_ends_the_command_in_at_most_one_line(
    capsys, tmp_path, checkpoint, seed
):
    rng = random.Random(seed)
    path = tmp_path / "head.npz"
    checkpoint.save(path)
    whole = path.read_bytes()
    codes = []
    for _ in range(DAMAGED_FILES):
        path.write_bytes(damaged(whole, rng))
        words = ["transfer", str(path), "--thresholds", "0", "--sizes", "4", "--json"]
        codes.append(main(words))
        check(codes[-1], capsys.readouterr(), words)
    assert set(codes) <= {0, 2} and codes.count(2) > DAMAGED_FILES / 2


@pytest.mark.parametrize("kind", ["npz", "json"])
def test_a_damaged_figure_is_refused_in_one_line_or_drawn(capsys, monkeypatch, tmp_path, kind):
    config = figures.config_of(2, quick=True)
    figures.make(2, tmp_path, config)
    # Drawing takes half a second, and is of numbers that were found to be whole.
    monkeypatch.setattr(figures, "_write_pictures", lambda *_: None)
    rng = random.Random(kind)
    path = tmp_path / f"figure02.{kind}"
    files = {path: path.read_bytes() for path in tmp_path.glob("figure02.*")}
    words = ["figures", "--quick", "--only", "2", "--replot", "--json", "--out", str(tmp_path)]
    codes = []
    for _ in range(DAMAGED_FILES // 2):
        for whole, content in files.items():
            whole.write_bytes(content)
        path.write_bytes(damaged(files[path], rng))
        codes.append(main(words))
        check(codes[-1], capsys.readouterr(), words)
    assert set(codes) <= {0, 2} and codes.count(2) > DAMAGED_FILES // 2 / 2
