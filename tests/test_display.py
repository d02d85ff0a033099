"""How results show themselves where somebody looks at them: one line of text, one small table."""

from html.parser import HTMLParser

import numpy as np
import pytest

from popdyn import (
    ClosedFormRisk,
    Corpus,
    Head,
    certificate,
    context_moments,
    context_moments_sampled,
    gradient_flow,
    hitting_time,
    pretrain,
    transfer,
)
from popdyn.display import html_table

RISK = ClosedFormRisk()
HEAD = Head.from_ratio(1.5, 5.0)
CORPUS = Corpus.from_arrays([[-0.5, 0.5, 0.9]] * 15, [[1, -1, -1]] * 15, np.zeros(15))
LINE = 200  # characters that a repr may take; four numbers of an array have up to 80


class Table(HTMLParser):
    """Cells of a table row by row, and its caption."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.caption, self.open = [], "", []
        self.feed(text)
        assert not self.open, "every element is closed"

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open[-1] == "caption":
            self.caption += text
        elif self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += text


def table_of(result):
    return Table(result._repr_html_())


RESULTS = {
    "head": lambda: HEAD,
    "heads": lambda: Head.from_ratio(np.linspace(1, 2, 30), 5.0),
    "trajectory": lambda: gradient_flow(RISK, HEAD, 10.0),
    "hit": lambda: hitting_time(RISK, HEAD, scale=6.0),
    "never": lambda: hitting_time(RISK, HEAD, scale=9.0, t_end=1.0),
    "corpus": lambda: CORPUS,
    "checkpoint": lambda: pretrain(CORPUS),
    "certificate": lambda: certificate(CORPUS, scales=[8.0, 9.0]),
    "transfer": lambda: transfer(HEAD, [0.0, 0.5], [4, 8]),
    "moments": lambda: context_moments(HEAD, [0.0, 0.5], 4),
    "one moment": lambda: context_moments(HEAD, 0.0, 4),
    "sampled moments": lambda: context_moments_sampled(HEAD, 0.0, 4, 10, rng=0),
}


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
def test_a_result_is_named_in_one_short_line_and_shown_as_one_small_table(make):
    result = make()
    assert "\n" not in repr(result) and len(repr(result)) < LINE
    table = table_of(result)
    assert table.caption
    widths = {len(row) for row in table.rows if not row[0].startswith("and ")}
    assert len(widths) == 1 and len(table.rows) <= 14


def test_a_head_shows_all_its_coordinates():
    header, cells = table_of(HEAD).rows
    assert dict(zip(header, cells, strict=True)) == {
        "label_score": "7.5",
        "scale": "5",
        "excess": "2.5",
        "ratio": "1.5",
        "tube": "0.890562",
    }


def test_a_trajectory_shows_where_it_starts_and_where_it_stops():
    flow = RESULTS["trajectory"]()
    header, start, stop = table_of(flow).rows
    assert start[:2] == ["start", "0"] and stop[:2] == ["stop", "10"]
    assert stop[header.index("scale")] == f"{float(flow.stop_head.scale):.6g}"


def test_what_is_not_shown_is_counted():
    rows = table_of(CORPUS).rows
    assert rows[1] == ["0", "0", "1", "2"]  # task, threshold, examples of either label
    assert rows[-1] == ["and 3 more"]


def test_a_hit_that_never_comes_says_why():
    table = table_of(RESULTS["never"]())
    assert "was not entered: the time ran out" in table.caption
    assert table.rows[1][0] == "inf"


def test_text_is_escaped_and_truth_is_a_word():
    text = html_table("<a>", [("a < b", True), ("c & d", np.False_)])
    assert "a &lt; b" in text and "<a>" not in text
    assert Table(text).rows == [["a < b", "yes"], ["c & d", "no"]]


def test_no_rows_are_an_empty_table():
    assert Table(html_table("nothing", [])).rows == []
