"""A comparison in a notebook: a verdict, and a table of each test's changes."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.report.summary import QUIET, Summary, TestSummary
from pytest_opprof.report.terminal import comparison_lines
from pytest_opprof.report.text import cut_end, cut_middle, escaped

_HEADERS = ("op", "metric", "base", "head", "change", "cause")
_MOST_ROWS = 50
_MOST_NAME = 120
_MOST_TEXT = 500
_WIDTH = 100
_LEFT = ' style="text-align:left"'


@dataclass(frozen=True, slots=True)
class NotebookComparison:
    """A comparison of two runs that a notebook displays: a table in a browser, text in a terminal."""

    comparison: Comparison

    def __repr__(self) -> str:
        lines = comparison_lines(self.comparison, width=_WIDTH, verbosity=1)
        return "\n".join(line.text for line in lines)

    def _repr_html_(self) -> str:
        """The table, in which names are text and not markup."""
        summary = Summary.of(self.comparison)
        base, head = summary.exact.base, summary.exact.head
        runs = " → ".join(run.title for run in (base, head) if run)
        said = [
            f"<strong>{_text(summary.headline)}</strong>",
            *map(_text, (summary.totals, runs, *summary.notes)),
        ]
        return f"<div><p>{'<br>'.join(said)}</p>{_table(summary)}</div>"


def _table(summary: Summary) -> str:
    """The rows of each test that changed, under the test's name and verdict."""
    rows = [row for test in summary.tests if test.verdict not in QUIET for row in _rows(test)]
    if not rows:
        return ""
    more = len(rows) - _MOST_ROWS
    shown = [*rows[:_MOST_ROWS], *([_wide(f"... and {more} more rows: opprof compare")] if more > 0 else [])]
    titles = "".join(f'<th scope="col"{_LEFT}>{title}</th>' for title in _HEADERS)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(shown)}</tbody></table>"


def _rows(test: TestSummary) -> Iterator[str]:
    label = test.verdict.label if test.verdict else "advisory"
    yield _wide(f"{cut_middle(test.node_id, width=_MOST_NAME)}: {label}: {test.reason}")
    for row in test.rows:
        if row.what:  # the rest is the reason again
            cells = (row.what, row.metric, row.base, row.head, row.change, row.why)
            yield f"<tr>{''.join(f'<td{_LEFT}>{_text(cell)}</td>' for cell in cells)}</tr>"


def _wide(text: str) -> str:
    return f'<tr><th colspan="{len(_HEADERS)}"{_LEFT}>{_text(text)}</th></tr>'


def _text(text: str) -> str:
    """Text that is not markup and hides nothing; very long names are cut."""
    return html.escape(cut_end(escaped(text[: _MOST_TEXT + 1]), width=_MOST_TEXT))
