"""The commands about finite data: `popdyn pretrain` and `popdyn transfer`."""

import io
import json
import re
import sys

import numpy as np
import pytest

from popdyn import (
    Checkpoint,
    Design,
    Head,
    cell_seed,
    pretrain,
    sample_corpus,
    transfer,
)
from popdyn.cli import main

THRESHOLDS = ("--thresholds", "0", "0.5", "-0.5")
SIZES = ("--sizes", "32", "512", "65536")


def run(*argv) -> int:
    return main([str(word) for word in argv])


def json_of(capsys, *argv) -> dict:
    """What a command prints under --json; fails on anything but one line of strict JSON."""

    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    assert run(*argv, "--json") == 0
    (line,) = capsys.readouterr().out.splitlines()
    return json.loads(line, parse_constant=refuse)


def complaint(capsys, code: int, *argv) -> str:
    """The one line on stderr of a command that ends with an exit code and prints no data."""
    assert run(*argv) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line


def pretraining(tmp_path, size=64, *more) -> tuple:
    path = tmp_path / "checkpoint.npz"
    return ("pretrain", "--tasks", size, "--examples", size, "--seed", 0, *more, "--out", path)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """File of the checkpoint that 256 tasks with 256 examples lead to."""
    folder = tmp_path_factory.mktemp("pretrained")
    assert run(*pretraining(folder, 256)) == 0
    return folder / "checkpoint.npz"


# pretrain


def test_pretrain_writes_the_checkpoint_of_the_drawn_corpus(checkpoint):
    corpus = sample_corpus(Design(), 256, 256, cell_seed(0, 256, 256, 0))
    assert Checkpoint.load(checkpoint) == pretrain(corpus, seed=0)


def test_pretrain_prints_where_it_led_and_why_it_stopped(capsys, tmp_path):
    record = json_of(capsys, *pretraining(tmp_path))
    written = Checkpoint.load(tmp_path / "checkpoint.npz")
    assert record["scale"] == written.head.scale
    assert (record["n_tasks"], record["n_examples"], record["seed"]) == (64, 64, 0)
    for name in ("step_size", "n_steps", "step_budget", "stopping_scale", "reached", "message"):
        assert record[name] == getattr(written, name), name


def test_without_json_pretrain_prints_the_same_entries(capsys, tmp_path):
    record = json_of(capsys, *pretraining(tmp_path))
    assert run(*pretraining(tmp_path)) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert {name: entry for name, entry in lines} == {k: str(v) for k, v in record.items()}


@pytest.mark.parametrize(
    "start",
    [
        ("--ratio", "1.5", "--scale", "9"),
        ("--label-score", "13.5", "--scale", "9"),
        ("--excess", "4.5", "--scale", "9"),
    ],
    ids=lambda words: words[0],
)
def test_a_start_may_be_given_in_any_coordinate(tmp_path, start):
    assert run(*pretraining(tmp_path, 64, *start, "--step-size", "50")) == 0
    written = Checkpoint.load(tmp_path / "checkpoint.npz")
    assert (written.start, written.step_size) == (Head.from_ratio(1.5, 9.0), 50.0)


def test_a_half_width_is_that_of_corpus_and_head(capsys, tmp_path):
    record = json_of(capsys, *pretraining(tmp_path, 64, "--half-width", "2"))
    assert record["half_width"] == Checkpoint.load(tmp_path / "checkpoint.npz").half_width == 2.0


def test_a_corpus_that_falls_short_is_an_answer(capsys, tmp_path):
    record = json_of(capsys, *pretraining(tmp_path), "--seed", 50)  # 3 tasks without positives
    assert record["reached"] is False
    assert record["scale"] < record["stopping_scale"]
    assert "short of" in record["message"]
    assert Checkpoint.load(tmp_path / "checkpoint.npz").reached is False


def test_a_long_training_says_on_a_terminal_how_far_it_has_come(monkeypatch, tmp_path):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("popdyn.cli.progress.QUIET_SECONDS", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert run(*pretraining(tmp_path, 128)) == 0
    shown = r"(\rscale (up to|= \S+ of) 1\.359e\+01, \d+ s *)+\nwrote \S+\n"
    assert re.fullmatch(shown, sys.stderr.getvalue())


def test_pretrain_draws_what_the_checkpoint_draws(tmp_path, capsys):
    plot = tmp_path / "training.png"
    assert run(*pretraining(tmp_path, 64), "--plot", plot) == 0
    assert plot.read_bytes() == Checkpoint.load(tmp_path / "checkpoint.npz").plot()._repr_png_()
    assert capsys.readouterr().err.splitlines()[1] == f"wrote {plot}"


# transfer


def test_sizes_are_whole_numbers_in_the_table(capsys, checkpoint):
    assert run("transfer", checkpoint, "--thresholds", "0", "--sizes", "32", "512") == 0
    assert [row.split()[1] for row in capsys.readouterr().out.splitlines()[1:]] == ["32", "512"]


def test_the_usage_of_transfer_may_be_typed_in_its_order(capsys):
    assert run("transfer", "--help") == 0
    assert capsys.readouterr().out.startswith("usage: popdyn transfer FILE.npz --thresholds")


def test_transfer_prints_the_exact_curve(capsys, checkpoint):
    record = json_of(capsys, "transfer", checkpoint, *THRESHOLDS, *SIZES)
    curve = transfer(Checkpoint.load(checkpoint), [0.0, 0.5, -0.5], [32, 512, 65536])
    for name in ("thresholds", "context_sizes", "bias", "root_mean_square", "floor"):
        np.testing.assert_array_equal(record[name], getattr(curve, name), err_msg=name)
    assert (record["n_tasks"], record["n_examples"], record["reached"]) == (256, 256, True)


def test_the_curve_has_the_floor_and_the_term_of_the_context(capsys, checkpoint):
    record = json_of(capsys, "transfer", checkpoint, *THRESHOLDS, *SIZES)
    errors = np.array(record["root_mean_square"])
    np.testing.assert_allclose(record["scale"] * errors[:, -1], 1.0, rtol=0.01)
    np.testing.assert_allclose(record["scale"] * np.array(record["floor"]), 1.0, rtol=1e-3)
    # the law of an interior threshold, to 7 % from 32 examples on; measured 6 %
    predicted = np.hypot(1 / record["scale"], 8**0.5 / np.array(record["context_sizes"]))
    np.testing.assert_allclose(errors, np.tile(predicted, (3, 1)), rtol=0.07)
    assert (np.diff(errors, axis=1) < 0).all()


def test_the_sampled_check_is_printed_beside_it(capsys, checkpoint):
    argv = ("transfer", checkpoint, *THRESHOLDS, "--sizes", 8, "--contexts", 500, "--seed", 3)
    record = json_of(capsys, *argv)
    off = np.abs(np.array(record["sampled_bias"]) - record["bias"])
    assert (off < 4 * np.array(record["sampled_bias_standard_error"])).all()
    assert run(*argv) == 0
    names = capsys.readouterr().out.splitlines()[0].split()
    assert names[-2:] == ["sampled_rms", "its_standard_error"]


def test_the_table_has_the_digits_of_the_json(capsys, checkpoint):
    record = json_of(capsys, "transfer", checkpoint, *THRESHOLDS, *SIZES)
    assert run("transfer", checkpoint, *THRESHOLDS, *SIZES) == 0
    names, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert names == ["threshold", "context_size", "bias", "root_mean_square"]
    table = np.array(rows, dtype=float).T
    np.testing.assert_array_equal(table[0], np.repeat(record["thresholds"], 3))
    np.testing.assert_array_equal(table[1], np.tile(record["context_sizes"], 3))
    np.testing.assert_array_equal(table[2], np.ravel(record["bias"]))
    np.testing.assert_array_equal(table[3], np.ravel(record["root_mean_square"]))


def test_the_arrays_of_a_file_are_those_of_the_json(capsys, checkpoint, tmp_path):
    path = tmp_path / "curve.npz"
    record = json_of(capsys, "transfer", checkpoint, *THRESHOLDS, *SIZES, "--out", path)
    with np.load(path, allow_pickle=False) as arrays:
        assert {name: arrays[name].tolist() for name in arrays} == record


def test_a_picture_is_written_for_its_suffix(capsys, checkpoint, tmp_path):
    path = tmp_path / "curve.png"
    assert run("transfer", checkpoint, *THRESHOLDS, *SIZES, "--plot", path) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().err == f"wrote {path}\n"


# usage

PRETRAIN = ("pretrain", "--tasks", "8", "--examples", "8", "--seed", "0", "--out", "new.npz")
TRANSFER = ("transfer", "checkpoint.npz", "--thresholds", "0", "--sizes", "8")
MISUSE = {
    "no tasks": ((*PRETRAIN, "--tasks", "0"), "--tasks"),
    "no seed": (("pretrain", "--tasks", "8", "--examples", "8", "--out", "new.npz"), "--seed"),
    "a negative seed": ((*PRETRAIN, "--seed", "-1"), "whole number from 0 on, got '-1'"),
    "no file": (("pretrain", "--tasks", "8", "--examples", "8", "--seed", "0"), "--out"),
    "a missing folder": ((*PRETRAIN, "--out", "missing/new.npz"), "missing"),
    "another kind of file": ((*PRETRAIN, "--out", "new.txt"), ".npz"),
    "half a start": ((*PRETRAIN, "--scale", "8"), "and --scale, got --scale alone"),
    "the other half": ((*PRETRAIN, "--tube", "-1"), "and --scale, got --tube alone"),
    "a start that is no head": ((*PRETRAIN, "--ratio", "nan", "--scale", "8"), "ratio must be"),
    "a negative start": ((*PRETRAIN, "--excess", "1", "--scale", "-8"), "positive scale"),
    "a step of zero": ((*PRETRAIN, "--step-size", "0"), "step_size must be"),
    "a half width of zero": ((*PRETRAIN, "--half-width", "0"), "half_width must be"),
    "no checkpoint": ((*TRANSFER[:1], "none.npz", *TRANSFER[2:]), "cannot read 'none.npz'"),
    "a foreign file": ((*TRANSFER[:1], "foreign.npz", *TRANSFER[2:]), "popdyn checkpoint"),
    "a folder": ((*TRANSFER[:1], "folder.npz", *TRANSFER[2:]), "cannot read 'folder.npz'"),
    "no thresholds": ((*TRANSFER[:2], "--sizes", "8"), "--thresholds"),
    "a threshold outside": ((*TRANSFER, "--thresholds", "-1.5"), "got -1.5"),
    "a threshold nan": ((*TRANSFER, "--thresholds", "nan"), "thresholds must be finite"),
    "a size of zero": ((*TRANSFER, "--sizes", "0"), "--sizes"),
    "half an example": ((*TRANSFER, "--sizes", "8.5"), "--sizes"),
    "contexts without a seed": ((*TRANSFER, "--contexts", "9"), "--contexts and --seed"),
    "one context": ((*TRANSFER, "--contexts", "1", "--seed", "0"), "at least 2"),
    "an unknown picture": ((*TRANSFER, "--plot", "curve.bmp"), ".pdf, .png or .svg"),
    "a curve in another file": ((*TRANSFER, "--out", "curve.csv"), ".npz"),
}


@pytest.mark.parametrize(("argv", "fragment"), MISUSE.values(), ids=MISUSE)
def test_misuse_is_refused_in_one_line_before_anything_is_computed(
    capsys, monkeypatch, tmp_path, checkpoint, argv, fragment
):
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "checkpoint.npz").write_bytes(checkpoint.read_bytes())
    np.savez(tmp_path / "foreign.npz", format=np.array("another 3"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("popdyn.pretraining.gradient_descent", None)
    monkeypatch.setattr("popdyn.moments.unit_moments", None)
    monkeypatch.setattr("popdyn.sampled_moments._errors", None)
    line = complaint(capsys, 2, *argv)
    assert line.startswith("popdyn")
    assert "error:" in line
    assert fragment in line
    assert not (tmp_path / "new.npz").exists()


@pytest.mark.parametrize("command", ["pretrain", "transfer"])
def test_every_command_explains_itself(capsys, command):
    assert run(command, "--help") == 0
    assert "--seed" in capsys.readouterr().out
