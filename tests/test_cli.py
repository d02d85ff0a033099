"""The command `popdyn`, mostly in this process, where it matters as a process of its own."""

import io
import json
import math
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import popdyn
from popdyn.cli import main

REFERENCE = Path(__file__).parent / "reference"
START = ("--ratio", "1.5", "--scale", "5")
RISK_ACCURACY = 1e-14  # of the closed form, as its own tests hold it
FLOW_ACCURACY = 1e-9  # measured 1e-11; what gradient_flow promises at its defaults
RULE_ACCURACY = 1e-11  # of the rules at the start used here, as their own tests hold it
HEAD_KEYS = {"label_score", "excess", "ratio", "tube", "scale", "half_width"}


def run(*argv: str) -> int:
    return main([str(word) for word in argv])


def json_of(capsys, *argv: str) -> dict:
    """What a command prints under --json; fails on anything but one line of strict JSON."""

    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    assert run(*argv, "--json") == 0
    (line,) = capsys.readouterr().out.splitlines()
    return json.loads(line, parse_constant=refuse)


def complaint(capsys, code: int, *argv: str) -> str:
    """The one line on stderr of a command that ends with an exit code and prints no data."""
    assert run(*argv) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    return line


def process(*argv: str, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "popdyn", *argv]
    return subprocess.run(command, capture_output=True, text=True, **options)


def reference(name: str) -> list[dict]:
    return json.loads((REFERENCE / name).read_text())


# risk


@pytest.mark.parametrize("case", reference("population.json")[::9], ids=lambda case: case["excess"])
def test_risk_prints_the_reference_values(capsys, case):
    excess, scale, width = (repr(case[name]) for name in ("excess", "scale", "half_width"))
    record = json_of(capsys, "risk", "--excess", excess, "--scale", scale, "--half-width", width)
    assert record["risk"] == pytest.approx(float(case["risk"]), rel=RISK_ACCURACY, abs=0)
    unit = np.array([1.0, case["half_width"]])
    wanted = np.array(case["gradient"], dtype=float) / unit
    error = np.abs(np.array(record["gradient"]) / unit - wanted).max() / np.abs(wanted).max()
    assert error < 2 * RISK_ACCURACY


def test_risk_prints_every_coordinate_of_the_head(capsys):
    record = json_of(capsys, "risk", *START)
    assert record.keys() == {"risk", "gradient", "hessian"} | HEAD_KEYS
    assert (record["label_score"], record["excess"]) == (7.5, 2.5)
    assert record["tube"] == pytest.approx(2.5 - math.log(5), rel=1e-15, abs=0)
    assert (np.shape(record["gradient"]), np.shape(record["hessian"])) == ((2,), (2, 2))


@pytest.mark.parametrize(
    "coordinate",
    [("--label-score", "7.5"), ("--excess", "2.5"), ("--tube", repr(2.5 - math.log(5)))],
    ids=lambda words: words[0],
)
def test_a_head_is_the_same_in_any_coordinate(capsys, coordinate):
    expected = json_of(capsys, "risk", *START)["risk"]
    record = json_of(capsys, "risk", *coordinate, "--scale", "5")
    assert record["risk"] == pytest.approx(expected, rel=RISK_ACCURACY, abs=0)


@pytest.mark.parametrize("number", ["-1e-3", "-1E-3", "-.001", "-0.001"])
def test_a_negative_number_may_follow_after_a_space(capsys, number):
    record = json_of(capsys, "risk", "--excess", number, "--scale", "5")
    assert record["excess"] == -0.001


def test_what_is_undefined_is_null(capsys):
    record = json_of(capsys, "risk", "--label-score", "-7.5", "--scale", "-5")
    assert record["ratio"] is record["tube"] is None
    assert record["risk"] == json_of(capsys, "risk", *START)["risk"]


@pytest.mark.parametrize("route", ["graded", "gauss-legendre:400"])
def test_every_route_of_the_gradient_gives_the_same_risk(capsys, route):
    record = json_of(capsys, "risk", *START, "--gradient", route)
    closed = json_of(capsys, "risk", *START)
    for name in ("risk", "gradient", "hessian"):
        np.testing.assert_allclose(record[name], closed[name], rtol=RULE_ACCURACY, err_msg=name)


def test_a_rule_that_does_not_resolve_the_layer_warns_in_one_line(capsys):
    assert run("risk", *START, "--gradient", "gauss-legendre:20") == 0
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("popdyn risk: warning:")
    assert "order" in line


def test_without_json_the_same_digits_are_printed(capsys):
    record = json_of(capsys, "risk", *START)
    assert run("risk", *START) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    printed = {name: [float(word) for word in words] for name, *words in lines}
    assert printed == {name: np.ravel(entry).tolist() for name, entry in record.items()}


# flow


def test_flow_ends_where_the_reference_ends(capsys):
    case = reference("flow.json")[0]
    record = json_of(capsys, "flow", *START, "--t-end", "1e12", "--points", "2")
    assert record["scale"][-1] == pytest.approx(case["end"]["scale"], rel=FLOW_ACCURACY, abs=0)
    assert record["tube"][-1] == pytest.approx(case["end"]["tube_coordinate"], abs=FLOW_ACCURACY)


def test_flow_names_its_keys_like_the_fields_of_a_trajectory(capsys):
    record = json_of(capsys, "flow", *START, "--t-end", "10")
    trajectory = popdyn.gradient_flow(
        popdyn.ClosedFormRisk(), popdyn.Head.from_ratio(1.5, 5.0), 10.0, t_eval=record["t"]
    )
    assert {"t", "label_score", "scale", "ratio", "tube", "risk"} < record.keys()
    for name, entry in record.items():
        np.testing.assert_array_equal(entry, getattr(trajectory, name), err_msg=name)


@pytest.mark.parametrize(("t_end", "first"), [("1e6", 1.0), ("10", 0.01)])
def test_points_are_time_zero_and_evenly_spaced_in_log_time(capsys, t_end, first):
    times = json_of(capsys, "flow", *START, "--t-end", t_end, "--points", "13")["t"]
    assert (len(times), times[0], times[1], times[-1]) == (13, 0.0, first, float(t_end))
    steps = np.diff(np.log(times[1:]))
    assert np.ptp(steps) < 1e-13


@pytest.mark.parametrize(("points", "times"), [("1", [10.0]), ("2", [0.0, 10.0])])
def test_few_points_are_the_ends(capsys, points, times):
    assert json_of(capsys, "flow", *START, "--t-end", "10", "--points", points)["t"] == times


def test_a_flow_to_time_zero_is_its_start(capsys):
    record = json_of(capsys, "flow", *START, "--t-end", "0")
    assert (record["t"], record["scale"], record["label_score"]) == ([0.0], [5.0], [7.5])


def test_the_table_has_the_digits_of_the_json(capsys):
    record = json_of(capsys, "flow", *START, "--t-end", "10")
    assert run("flow", *START, "--t-end", "10") == 0
    names, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    for name, column in zip(names, zip(*rows, strict=True), strict=True):
        assert [float(word) for word in column] == record[name], name


@pytest.mark.parametrize("option", [("--method", "Radau"), ("--gradient", "gauss-legendre:1000")])
def test_a_flow_may_take_another_route(capsys, option):
    other = json_of(capsys, "flow", *START, "--t-end", "1e3", *option)
    usual = json_of(capsys, "flow", *START, "--t-end", "1e3")
    np.testing.assert_allclose(other["scale"], usual["scale"], rtol=FLOW_ACCURACY)
    assert other["scale"] != usual["scale"]


def test_the_arrays_of_a_file_are_those_of_the_json(capsys, tmp_path):
    path = tmp_path / "flow.npz"
    record = json_of(capsys, "flow", *START, "--t-end", "10", "--out", str(path))
    with np.load(path, allow_pickle=False) as arrays:
        assert {name: arrays[name].tolist() for name in arrays} == record


def test_a_file_is_written_with_the_usual_permissions_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "flow.npz"
    assert run("flow", *START, "--t-end", "10", "--out", path) == 0
    (tmp_path / "usual").touch()
    assert path.stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert sorted(file.name for file in tmp_path.iterdir()) == ["flow.npz", "usual"]


def test_a_file_that_cannot_be_finished_leaves_the_old_one_as_it_was(capsys, monkeypatch, tmp_path):
    path = tmp_path / "flow.npz"
    path.write_text("old")

    def fail(stream, **_):
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", fail)
    assert "No space left" in complaint(capsys, 1, "flow", *START, "--t-end", "10", "--out", path)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("flow.npz", "old")]


def test_a_picture_is_written_for_its_suffix(capsys, tmp_path):
    path = tmp_path / "flow.PNG"
    assert run("flow", *START, "--t-end", "10", "--plot", path) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().err == f"wrote {path}\n"


def test_a_flow_that_fails_says_so_and_exits_1(capsys, monkeypatch):
    monkeypatch.setattr(popdyn.ClosedFormRisk, "gradient", lambda *_: np.array([np.nan, 0.0]))
    options = ("--t-end", "10", "--method", "LSODA")
    assert "gradient of the risk" in complaint(capsys, 1, "flow", *START, *options)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("argv", [(), ("--json",)], ids=["table", "json"])
def test_a_long_run_says_on_a_terminal_how_far_it_has_come(capsys, monkeypatch, argv):
    monkeypatch.setattr("popdyn.cli.progress.QUIET_SECONDS", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert run("flow", *START, "--t-end", "10", *argv) == 0
    shown = (
        r"(\rt (up to|= \S+ of) 1\.000e\+01, \d+ s *)*\rt = 1\.000e\+01 of 1\.000e\+01, \d+ s *\n"
    )
    assert re.fullmatch(shown, sys.stderr.getvalue())
    assert "of" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        (("risk", *START), "risk, gradient and Hessian"),
        (("hit", *START, "--scale-level", "10"), "flow to scale 10"),
        (("map", "--points", "3", "3"), "flows from 9 starts"),
    ],
)
def test_what_may_take_long_says_on_a_terminal_what_it_does(monkeypatch, argv, what):
    monkeypatch.setattr("popdyn.cli.progress.QUIET_SECONDS", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert run(*argv) == 0
    assert re.fullmatch(rf"(\r{what}, \d+ s *)+\n", sys.stderr.getvalue())


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("risk", "--ratoi", "1.5", "--scale", "5"), "option --ratoi; did you mean --ratio?"),
        (("risk", "--rat=1.5", "--scale", "5"), "option --rat; did you mean --ratio?"),
        (("risk", *START, "--plot", "x.png"), "popdyn risk: error: unrecognized option --plot"),
        (("flow", *START, "--tend", "9"), "option --tend; did you mean --t-end?"),
    ],
)
def test_a_misspelled_option_is_named(capsys, argv, message):
    assert message in complaint(capsys, 2, *argv)


def test_a_short_run_says_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert run("flow", *START, "--t-end", "10") == 0
    assert sys.stderr.getvalue() == ""


# hit


@pytest.mark.parametrize("case", reference("flow.json"), ids=lambda case: case["ratio"])
def test_hit_prints_the_reference_times(capsys, case):
    target = case["hitting"][-1]
    start = [
        f"--{name}={case[key]}"
        for name, key in (("ratio", "ratio"), ("scale", "scale"), ("half-width", "half_width"))
    ]
    record = json_of(capsys, "hit", *start, "--scale-level", str(target["scale"]))
    assert record.keys() == {"reached", "time", "scale", "tube", "label_score", "message"}
    assert record["reached"] is True
    assert record["time"] == pytest.approx(target["time"], rel=FLOW_ACCURACY, abs=0)
    assert record["tube"] == pytest.approx(target["tube_coordinate"], abs=FLOW_ACCURACY)


def test_never_is_an_answer_and_null(capsys):
    record = json_of(capsys, "hit", *START, "--scale-level", "1000", "--t-end", "10")
    assert (record["reached"], record["time"]) == (False, None)
    assert "time ran out" in record["message"]


def test_without_json_hit_prints_a_line_for_each_entry(capsys):
    assert run("hit", *START, "--scale-level", "10") == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert names == ["reached", "time", "scale", "tube", "label_score", "message"]


# usage

FLOW = ("flow", *START, "--t-end", "10")
MISUSE = {
    "no command": ((), "COMMAND"),
    "an unknown command": (("flows",), "flows"),
    "an unknown option": ((*FLOW, "--colour", "red"), "--colour"),
    "an abbreviation": ((*FLOW, "--poi", "3"), "--poi"),
    "no coordinate": (("risk", "--scale", "5"), "--ratio --label-score --excess --tube"),
    "two coordinates": (("risk", *START, "--tube", "1"), "not allowed with"),
    "no scale": (("risk", "--ratio", "1.5"), "--scale"),
    "no number": (("risk", "--ratio", "big", "--scale", "5"), "wanted a number, got 'big'"),
    "nan": (("risk", "--ratio", "nan", "--scale", "5"), "ratio must be finite"),
    "minus inf": (("risk", "--excess", "-inf", "--scale", "5"), "excess must be finite"),
    "a ratio at a negative scale": (("risk", "--ratio", "1", "--scale", "-5"), "Head.from_scores"),
    "a half width of zero": (("risk", *START, "--half-width", "0"), "half_width"),
    "an unknown route": (("risk", *START, "--gradient", "exact"), "gauss-legendre:ORDER"),
    "a rule without order": (("risk", *START, "--gradient", "gauss-legendre"), "ORDER"),
    "a rule of order 0": (("risk", *START, "--gradient", "gauss-legendre:0"), "ORDER"),
    "a negative time": (("flow", *START, "--t-end", "-1"), "--t-end"),
    "time nan": (("flow", *START, "--t-end", "nan"), "--t-end"),
    "no end": (("flow", *START, "--t-end", "inf"), "--t-end"),
    "no points": ((*FLOW, "--points", "0"), "--points"),
    "half a point": ((*FLOW, "--points", "2.5"), "--points"),
    "an unknown method": ((*FLOW, "--method", "Euler"), "Euler"),
    "a missing folder": ((*FLOW, "--out", "missing/flow.npz"), "missing"),
    "a folder as a file": ((*FLOW, "--out", "folder.npz"), "folder"),
    "another kind of file": ((*FLOW, "--out", "flow.csv"), ".npz"),
    "an unknown picture": ((*FLOW, "--plot", "flow.bmp"), ".pdf, .png or .svg"),
    "a picture without a kind": ((*FLOW, "--plot", "flow"), ".pdf, .png or .svg"),
    "a file name that is empty": ((*FLOW, "--out", ""), "--out"),
    "an unreachable kind of level": (("hit", *START, "--scale-level", "nan"), "scale"),
    "a hit before time 0": (("hit", *START, "--scale-level", "9", "--t-end", "-1"), "t_end"),
}


@pytest.mark.parametrize(("argv", "fragment"), MISUSE.values(), ids=MISUSE)
def test_misuse_is_refused_in_one_line_before_anything_is_computed(
    capsys, monkeypatch, tmp_path, argv, fragment
):
    (tmp_path / "folder.npz").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("popdyn.dynamics.integration.Integration.steps", None)
    line = complaint(capsys, 2, *argv)
    assert line.startswith("popdyn")
    assert "error:" in line
    assert fragment in line


def test_version_names_distribution_version_and_place(capsys):
    assert run("--version") == 0
    name, version, place = capsys.readouterr().out.split()
    assert (name, version) == ("popdyn-attention", popdyn.__version__)
    assert place == f"({Path(popdyn.__file__).parent})"


@pytest.mark.parametrize("command", ["risk", "flow", "hit"])
def test_every_command_explains_itself(capsys, command):
    assert run(command, "--help") == 0
    assert "--half-width" in capsys.readouterr().out


# as a process


def test_the_module_is_the_command():
    done = process("risk", *START, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["half_width"] == 1.0


def test_an_error_shows_no_traceback():
    done = process("risk", "--ratio", "nan", "--scale", "5")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="pipes are asked about as POSIX has them")
def test_a_reader_that_goes_away_is_no_error():
    command = [sys.executable, "-m", "popdyn", *FLOW, "--points", "20000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as flow:
        flow.stdout.readline()
        flow.stdout.close()
        assert flow.stderr.read() == b""
    assert flow.returncode == 0


def test_an_interrupt_ends_the_command_in_one_line(capsys, monkeypatch):
    def interrupted(*_, **__):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("popdyn.dynamics.flow.gradient_flow", interrupted)
    assert complaint(capsys, 130, *FLOW) == "popdyn flow: interrupted"


def test_a_full_disk_under_stdout_is_one_line():
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    command = [sys.executable, "-m", "popdyn", "risk", *START]
    with full.open("w") as stdout:
        done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("popdyn risk: error: [Errno 28]")
    assert done.stderr.count("\n") == 1
