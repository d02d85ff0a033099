"""How results show themselves in a notebook: one table for all of them."""

import html
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

__all__ = ["html_table"]

_ROWS = 12  # that are shown; a table is to be taken in at a glance
_CELL = "text-align: left"  # under a notebook's style numbers would keep to the right, names too
_CAPTION = f"{_CELL}; white-space: nowrap"  # a table of few columns would squeeze a sentence


def html_table(
    caption: str, rows: Iterable[Sequence[object]], header: Sequence[object] = ()
) -> str:
    """Table of a few rows as HTML: numbers to six digits, all text escaped.

    Rows beyond the twelfth are counted and not shown.
    """
    remaining = iter(rows)
    shown = list(islice(remaining, _ROWS))
    n_more = sum(1 for _ in remaining)
    lines = [f'<caption style="{_CAPTION}">{_text(caption)}</caption>']
    if header:
        lines.append(_row(header, "th"))
    lines += [_row(row, "td") for row in shown]
    if n_more:
        lines.append(f'<tr><td colspan="{len(shown[0])}">and {n_more} more</td></tr>')
    return "\n".join(["<table>", *lines, "</table>"])


def _row(cells: Sequence[object], tag: str) -> str:
    return (
        "<tr>"
        + "".join(f'<{tag} style="{_CELL}">{_text(cell)}</{tag}>' for cell in cells)
        + "</tr>"
    )


def _text(cell: object) -> str:
    if isinstance(cell, bool | np.bool_):
        return "yes" if cell else "no"
    if isinstance(cell, float | np.floating) or (isinstance(cell, np.ndarray) and not cell.ndim):
        return f"{float(cell):.6g}"
    return html.escape(str(cell))
