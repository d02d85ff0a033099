"""Benchmarks hold every way to the right answer, time what answered, and say what is absent."""

from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks import corpus, population
from benchmarks.__main__ import main
from benchmarks.contest import Case, Goal, Row, Section, Way, compete, growth, mean_ratio
from benchmarks.picture import draw
from benchmarks.record import (
    BEGIN,
    END,
    Record,
    duration,
    goal_table,
    headline,
    machine,
    report,
    section_table,
    with_table,
)
from benchmarks.timing import ROUNDS, interleaved

ROOT = Path(__file__).parent.parent
SECONDS = 1e-4  # a way and case: what is timed here is not looked at
SILENT = [].append


def root_of(given, shift=0.0):
    """Two pieces of work in one call."""
    return lambda: np.array([[given**0.5 + shift]] * 2)


def unable(given):
    raise RuntimeError("no root today\nand more lines")


def section(*ways):
    """Square roots at three places."""
    cases = [Case(f"x = {x:g}", x, x**0.5, x) for x in (1.0, 4.0, 16.0)]
    return Section("Z", "roots", "x", lambda quick: cases, ways, distance)


def distance(answer, exact):
    return float(np.max(np.abs(answer - exact)))


OURS = Way("popdyn", root_of, 1e-12)
WAYS = (
    OURS,
    Way("off", partial(root_of, shift=0.25), 1e-12),
    Way("loose", partial(root_of, shift=0.25), 0.5),
    Way("elsewhere", root_of, 1e-12, needs=("no_such_library", "numpy")),
    Way("unable", unable, 1e-12),
    Way("part", root_of, 1e-12, pieces=lambda given: 1e-3, extrapolated=True),
    Way("undefined", partial(root_of, shift=np.nan), 1e-12),
)


@pytest.fixture(scope="module")
def record():
    contest = section(*WAYS)
    rows = compete(contest, True, SECONDS, SILENT)
    goals = (Goal("Z", "roots over ours", 2.0, 3.0), Goal("Z", "error", 1e-12, 0.0, False))
    return Record(False, machine(), {contest.name: contest.axis}, tuple(rows), goals)


@pytest.mark.parametrize(
    ("way", "verdict", "error"),
    [
        ("popdyn", "right", 0.0),
        ("off", "wrong", 0.25),
        ("loose", "right", 0.25),
        ("elsewhere", "absent", None),
        ("unable", "failed", None),
        ("undefined", "wrong", None),
    ],
)
def test_a_way_is_judged_by_its_error_and_what_it_states(record, way, verdict, error):
    rows = [row for row in record.rows if row.way == way]
    assert [(row.verdict, row.error) for row in rows] == [(verdict, error)] * 3


def test_only_ways_that_answered_have_times(record):
    timed = {row.way for row in record.rows if row.seconds is not None}
    assert timed == {"popdyn", "off", "loose", "part", "undefined"}
    assert all(0 < row.least <= row.seconds for row in record.rows if row.way in timed)


def test_the_time_of_a_part_is_extrapolated_to_the_whole(record):
    part, ours = (
        next(row for row in record.rows if row.way == way and row.x == 1.0)
        for way in ("part", "popdyn")
    )
    assert (part.extrapolated, ours.extrapolated) == (True, False)
    assert part.least > 100 * ours.least  # a call does a thousandth of one piece, not two pieces


def test_the_table_says_who_is_absent_wrong_or_failed(record):
    lines = section_table(record, "Z: roots").splitlines()
    cells = {line.split(" | ")[0][2:]: line.split(" | ")[1] for line in lines[2:]}
    assert lines[0].startswith("| way | x = 1 | x = 4 | x = 16 | worst error | power of x")
    assert cells["elsewhere"] == "absent: no_such_library not installed"
    assert cells["unable"] == "failed: RuntimeError: no root today"
    assert cells["off"] == "wrong by 2e-01"
    assert cells["undefined"] == "wrong"
    assert " x (" in cells["loose"]
    assert cells["part"].endswith(", extrapolated)")


def row(way, x, seconds, verdict="right"):
    return Row("Z: roots", f"x = {x:g}", x, way, verdict, seconds=seconds)


def test_growth_is_the_power_of_the_cost():
    rows = [row("a", x, 3.0 * x**-1.5) for x in (1.0, 10.0, 1000.0)]
    assert growth(rows, "a") == pytest.approx(-1.5, rel=1e-12, abs=0)
    assert growth(rows[:2], "a") is None
    assert growth([*rows[:2], row("a", 1e3, 1.0, "wrong")], "a") is None


def test_a_mean_ratio_takes_the_cases_that_both_answered():
    rows = [row("ours", 1.0, 1.0), row("a", 1.0, 4.0), row("ours", 2.0, 2.0), row("a", 2.0, 18.0)]
    rows += [row("ours", 3.0, 1.0), row("a", 3.0, 1.0, "wrong")]
    assert mean_ratio(rows, "a", "ours") == pytest.approx(6.0, rel=1e-12, abs=0)
    assert mean_ratio(rows, "nobody", "ours") is None


@pytest.mark.parametrize(
    ("goal", "end"),
    [
        (Goal("Z", "a ratio", 20.0, 30.0), "| at least 20 | 30 | met |"),
        (Goal("Z", "a ratio", 20.0, 8.0), "| at least 20 | 8 | not met, by a factor of 2.5 |"),
        (Goal("Z", "a time", 0.5, 1.0, False, "s"),
         "| at most 500 ms | 1 s | not met, by a factor of 2 |"),
        (Goal("Z", "an error", 1e-12, 0.0, False), "| at most 1e-12 | 0 | met |"),
        (Goal("Z", "a ratio", 20.0, None), "| at least 20 | none | not measured |"),
    ],
)  # fmt: skip
def test_a_goal_is_met_or_says_by_how_much_not(goal, end):
    assert goal_table([goal]).splitlines()[-1].endswith(end)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(8.5e-8, "85 ns"), (1.2345e-4, "123 us"), (90.0, "1.5 min"), (4e5, "4.63 days")],
)
def test_a_duration_has_three_digits_and_its_unit(seconds, text):
    assert duration(seconds) == text


def test_works_take_turns():
    calls = []
    works = [partial(calls.append, name) for name in "ab"]
    times = interleaved(works, seconds=60.0)
    assert [len(of_one) for of_one in times] == [ROUNDS, ROUNDS]
    switches = sum(one != other for one, other in pairwise(calls))
    assert switches == 2 * (ROUNDS + 1) - 1


def test_a_work_that_exceeds_its_time_is_called_once_more():
    calls = []
    (times,) = interleaved([lambda: calls.append(sum(range(100_000)))], seconds=0.0)
    assert len(times) == 1
    assert len(calls) >= 2


def test_a_record_is_stored_and_read_again(record, tmp_path):
    record.save(tmp_path / "results.json")
    again = Record.load(tmp_path / "results.json")
    assert again == record
    assert report(again) == report(record)


def test_the_headline_names_the_machine_and_absent_libraries(record, monkeypatch):
    monkeypatch.setattr("benchmarks.record.DISTRIBUTIONS", ("numpy", "no-such-library"))
    text = headline(replace(record, machine=machine()))
    assert f"numpy {np.__version__}, no-such-library absent." in text
    assert " cores (load " in text
    assert text.startswith("Measured on ")
    assert headline(replace(record, quick=True)).startswith("A quick run")


def test_the_picture_has_what_was_timed(record):
    cost, error, empty = draw(record).axes
    assert (cost.get_title(loc="left"), error.get_title(loc="left")) == ("Z: roots", "Z: roots")
    assert not empty.axison
    widths = {line.get_linewidth() for line in cost.lines if len(line.get_xdata())}
    assert max(widths) > min(widths)
    ours = [row.seconds for row in record.rows if row.way == "popdyn"]
    assert list(cost.lines[0].get_ydata()) == ours
    assert len(error.lines) == sum(row.error is not None for row in record.rows)


def test_the_headline_goes_between_the_marks():
    assert with_table(f"a\n{BEGIN}\nold\n{END}\nb", "new") == f"a\n{BEGIN}\nnew\n{END}\nb"
    with pytest.raises(ValueError, match="must have the marks"):
        with_table("no marks", "new")


def test_the_stored_report_and_the_readme_are_those_of_the_stored_record():
    stored = Record.load(ROOT / "benchmarks" / "results.json")
    assert (ROOT / "benchmarks" / "report.md").read_text() == report(stored)
    readme = (ROOT / "README.md").read_text()
    assert BEGIN not in readme or with_table(readme, headline(stored)) == readme


# --- the sections themselves, with the peers that are always there --------------------------------


def test_two_sections_run_from_the_command_line(tmp_path, capsys):
    assert main(["--quick", "--only", "C,E", "--out", str(tmp_path)]) == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"results.json", "report.md", "benchmarks.png"}
    printed = capsys.readouterr().out
    assert printed.strip() == (tmp_path / "report.md").read_text().strip()
    found = Record.load(tmp_path / "results.json")
    assert {goal.section for goal in found.goals} == {"C", "E"}
    assert all(row.verdict == "right" for row in found.rows if row.way.startswith("popdyn"))
    assert all(row.verdict in ("right", "wrong", "absent") for row in found.rows)


def test_ways_to_the_population_risk_agree_on_the_tube(monkeypatch):
    monkeypatch.setattr(population, "CHECKED", 1)  # the oracle takes 0.3 s a head
    wrong = {f"Gauss-Legendre of order {population.GAUSS_ORDER}, NumPy", "scipy quad, plain"}
    right = {
        population.OURS,
        population.GRADED,
        "graded rule of 80 nodes, NumPy",
        "scipy quad, break points",
    }
    ways = tuple(way for way in population.TUBE.ways if way.name in wrong | right)
    contest = replace(population.TUBE, ways=ways, cases=lambda quick: population._tube(quick)[1:])
    rows = compete(contest, True, SECONDS, SILENT)
    assert {row.way for row in rows if row.verdict == "wrong"} == wrong
    assert {row.way for row in rows if row.verdict == "right"} == right


def test_a_covariance_as_a_difference_of_averages_is_wrong_where_it_cancels():
    contest = replace(corpus.BY_SCALE, ways=(corpus.BY_SCALE.ways[0], corpus.BY_SCALE.ways[2]))
    rows = compete(contest, True, SECONDS, SILENT)
    verdicts = {(row.way, row.x): row.verdict for row in rows}
    assert verdicts[corpus.OURS, 1000.0] == "right"
    assert verdicts[corpus.NUMPY, 1000.0] == "wrong"


@pytest.mark.parametrize(
    "words", [["--only", "A,X"], ["--write", "--quick"], ["--write", "--only", "A"]]
)
def test_what_cannot_be_done_is_refused_before_the_run(words, capsys):
    with pytest.raises(SystemExit):
        main(words)
    assert "must name sections" in (err := capsys.readouterr().err) or "full runs only" in err
