"""The README says what the stored figures find, as they find it."""

import runpy
from pathlib import Path

import pytest

from popdyn import figures
from popdyn.experiments import initialization

ROOT = Path(__file__).parent.parent
FINDINGS = runpy.run_path(str(ROOT / "docs" / "findings.py"))
table, with_table, records = (FINDINGS[name] for name in ("table", "with_table", "records"))


def record(number, *findings):
    names = ("claim", "predicted", "measured")
    return {"figure": number, "findings": [dict(zip(names, of, strict=True)) for of in findings]}


def test_the_readme_has_the_findings_of_the_stored_figures():
    readme = (ROOT / "README.md").read_text()
    stored = records(ROOT / "docs" / "figures")
    assert with_table(readme, table(stored, FINDINGS["HEADLINES"])) == readme
    assert table(stored) in FINDINGS["ALL"].read_text()


def test_the_readme_has_a_line_for_every_figure():
    lines = table(records(ROOT / "docs" / "figures"), FINDINGS["HEADLINES"]).splitlines()[2:]
    assert {int(line.split("|")[1]) for line in lines} == set(figures.CLAIMS)
    assert len(lines) >= len(FINDINGS["HEADLINES"])


def test_a_table_has_a_line_for_every_finding():
    stored = [record(2, ("a", 1.0, 0.99984321)), record(7, ("b", "text", "|F|"), ("c", 2, None))]
    assert table(stored).splitlines()[2:] == [
        "| 2 | a | 1 | 0.999843 |",
        r"| 7 | b | text | \|F\| |",
        "| 7 | c | 2 | undefined |",
    ]


def test_a_table_is_put_between_the_marks():
    begin, end = FINDINGS["BEGIN"], FINDINGS["END"]
    assert with_table(f"x\n{begin}\nold\n{end}\ny", "new") == f"x\n{begin}\nnew\n{end}\ny"


def test_a_text_without_marks_is_refused():
    with pytest.raises(ValueError, match="must have the marks"):
        with_table("no marks", "new")


def test_records_are_read_as_the_figures_write_them(tmp_path):
    figures.make(7, tmp_path, initialization.Config(radii=(1e-3, 1e-2), shown=(0.0, 1.0)))
    first = table(records(tmp_path)).splitlines()[2]
    assert first == (
        r"| 7 | \|grad L\|/r at 45 degrees, farthest for r <= 0.01 | 0.113312 | 0.113311 |"
    )
