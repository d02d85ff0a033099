"""Write what the stored figures find into the README: `python docs/findings.py`.

The records are those of `popdyn figures --out docs/figures`; the table stands between two marks.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

README = Path(__file__).parent.parent / "README.md"
RECORDS = Path(__file__).parent / "figures"
BEGIN, END = "<!-- findings: begin -->", "<!-- findings: end -->"
COLUMNS = ("claim", "predicted", "measured")
DIGITS = 6


def records(folder: Path) -> list[Mapping[str, Any]]:
    """Records of the figures in a folder, in the order of their numbers."""
    return [json.loads(path.read_bytes()) for path in sorted(folder.glob("figure*.json"))]


def table(figures: Iterable[Mapping[str, Any]]) -> str:
    """One line of Markdown a finding."""
    lines = ["| figure | claim | predicted | measured |", "|---|---|---|---|"]
    for figure in figures:
        for finding in figure["findings"]:
            entries = [figure["figure"], *(finding[name] for name in COLUMNS)]
            lines.append("| " + " | ".join(map(_shown, entries)) + " |")
    return "\n".join(lines)


def with_table(text: str, content: str) -> str:
    """A text with other content between the marks."""
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the text must have the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


def _shown(entry: float | str | None) -> str:
    if entry is None:
        return "undefined"
    text = entry if isinstance(entry, str) else f"{entry:.{DIGITS}g}"
    return text.replace("|", r"\|")


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(), table(records(RECORDS))))
