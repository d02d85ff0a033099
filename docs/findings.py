"""Write what the stored figures find into the README and findings.md: `python docs/findings.py`.

The records are those of `popdyn figures --out docs/figures`. findings.md has them all, the README
a line or two a figure between two marks.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

README = Path(__file__).parent.parent / "README.md"
ALL = Path(__file__).parent / "findings.md"
RECORDS = Path(__file__).parent / "figures"
# How the claims begin that the README shows, figure by figure.
HEADLINES = (
    "share of the corpus, A",
    "share of the fresh context, B",
    "mu^4 / t at t = 1e+12",
    "mu sup|F - alpha| at t = 1e+12",
    "mu^4 gains a step, over the step size 100",
    "power of the number of tasks in the spread at scale 8",
    "power of the stopping scale in the floor at threshold 0.5",
    "tube coordinate c at t = 5.6234e+09, tilted",
    "risk at t = 5.6234e+09, corrupted",
    "power of mu in the order for 1e-12",
    "delay of the escape to radius 1",
    "clean floor",
    "floor with localized flips",
    "floor with homogeneous flips",
    "power of N in the interior RMS, clean",
    "RMS at the boundary on 4096 examples, clean",
    "power of n in the scale mu* of the minimum, n = 128",
    "bias of the pair",
    "error of the pair at the lower end",
    "mu^5 / t of the pair",
    "power of t in the risk of the pair",
)
BEGIN, END = "<!-- findings: begin -->", "<!-- findings: end -->"
COLUMNS = ("claim", "predicted", "measured")
DIGITS = 6


def records(folder: Path) -> list[Mapping[str, Any]]:
    """Records of the figures in a folder, in the order of their numbers."""
    return [json.loads(path.read_bytes()) for path in sorted(folder.glob("figure*.json"))]


def table(figures: Iterable[Mapping[str, Any]], claims: tuple[str, ...] = ("",)) -> str:
    """One line of Markdown a finding whose claim begins like one of these."""
    lines = ["| figure | claim | predicted | measured |", "|---|---|---|---|"]
    for figure in figures:
        for finding in figure["findings"]:
            if not finding["claim"].startswith(claims):
                continue
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
    stored = records(RECORDS)
    README.write_text(with_table(README.read_text(), table(stored, HEADLINES)))
    ALL.write_text(f"# What the figures find\n\n{table(stored)}\n")
