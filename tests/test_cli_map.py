"""`popdyn map`: what it prints, writes and refuses."""

import json

import numpy as np
import pytest

from popdyn import ClosedFormRisk, Head, hitting_time
from popdyn.cli import main

GRID = ("--ratios", "-1", "2", "--scales", "1", "2", "--points", "2", "2")
ROUNDING = 1e-12


def test_the_record_has_the_times_of_the_starts(capsys):
    assert main(["map", *GRID, "--scale-level", "3", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["ratios"] == [-1.0, 2.0] and record["scales"] == pytest.approx([1.0, 2.0])
    assert record["level"] == 3.0 and len(record["separatrix"]) == 2
    exact = [
        hitting_time(ClosedFormRisk(), Head.from_ratio(2.0, mu), scale=3.0).time for mu in (1, 2)
    ]
    for row, time in zip(record["times"], exact, strict=True):
        assert row == [None, pytest.approx(time, rel=ROUNDING, abs=0)]


def test_table_file_and_picture_are_of_the_same_grid(capsys, tmp_path):
    out, plot = tmp_path / "map.npz", tmp_path / "map.pdf"
    assert main(["map", *GRID, "--out", str(out), "--plot", str(plot)]) == 0
    captured = capsys.readouterr()
    names, *rows = [line.split() for line in captured.out.splitlines()]
    assert names == ["ratio", "scale", "time"]
    with np.load(out) as arrays:
        np.testing.assert_array_equal([float(row[2]) for row in rows], arrays["times"].ravel())
        assert float(arrays["half_width"]) == 1.0
    assert plot.read_bytes().startswith(b"%PDF")
    assert captured.err.count("wrote") == 2


def test_the_default_window_goes_with_the_half_width(capsys):
    assert main(["map", "--half-width", "2", "--points", "2", "2", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["ratios"] == [-2.0, 6.0] and record["level"] == 1.5
    assert record["scales"] == pytest.approx([0.0005, 1.0])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--half-width", "0"), "--half-width wants a positive number, got 0.0"),
        (("--ratios", "2", "1"), "ratios must be two increasing numbers"),
        (("--scales", "0", "1"), "scales must be positive"),
        (("--points", "1", "1"), "n_ratios and n_scales must be at least 2"),
        (("--plot", "map.gif"), "--plot wants a file name ending in"),
        (("--scale-level", "nan"), "scale level must be"),
    ],
)
def test_what_makes_no_map_is_refused_in_one_line(capsys, words, message):
    assert main(["map", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert message in captured.err
