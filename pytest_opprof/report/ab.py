"""An A/B's result on a terminal: what became slower, by which op, and the machine's noise."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_opprof.compare.timing.comparison import TestTimes, TimeComparison
from pytest_opprof.report.overview import short_names
from pytest_opprof.report.rows import Row, time_row
from pytest_opprof.report.section import change_lines
from pytest_opprof.report.summary import QUIET, control_in_words, time_totals
from pytest_opprof.report.terminal import VERDICT_STYLES, table_of_tests, worst_style
from pytest_opprof.report.text import Line, Style, escaped, wrapped

_HEADERS = ("test", "base", "head", "change", "verdict", "cause")
_MOST_FOLDED = 20
_INDENT = "    "


def ab_lines(comparison: TimeComparison, *, width: int, verbosity: int = 0) -> list[Line]:
    """An A/B as a table with failures first, then the reasons, the exact gates, the control.

    Below verbosity 0 it is only the last line; above 0 every test, with the reasons of passed ones.
    """
    last = Line(time_totals(comparison), worst_style(comparison))
    if verbosity < 0:
        return [last]
    shown, folded = _shown(comparison.tests, verbosity=verbosity)
    lines = [Line(escaped(note), Style.DIM) for note in comparison.notes]
    lines += _table(shown, width=width)
    if folded:
        lines.append(Line(f"... and {folded} more without a change (-v shows all)", Style.DIM))
    for test in shown:
        if test.verdict not in QUIET or (verbosity > 0 and test.reason):
            lines += _told(test, comparison, width=width)
    style = Style.WARN if comparison.control.flagged else Style.PLAIN
    control = f"control (base against base): {control_in_words(comparison)}"
    return [*lines, *(Line(line, style) for line in wrapped(control, width=width, cuts=True)), last]


def ab_test_lines(tests: Sequence[TestTimes], comparison: TimeComparison, *, width: int) -> list[Line]:
    """Some tests of an A/B: their rows, then why each has its verdict."""
    told = (_told(test, comparison, width=width) for test in tests if test.reason)
    return [*_table(tests, width=width), *(line for lines in told for line in lines)]


def _shown(tests: Sequence[TestTimes], *, verbosity: int) -> tuple[list[TestTimes], int]:
    """The tests in the table, and how many unchanged ones are left out."""
    if verbosity > 0:
        return list(tests), 0
    changed = [test for test in tests if test.verdict not in QUIET]
    unchanged = [test for test in tests if test.verdict in QUIET]
    return [*changed, *unchanged[:_MOST_FOLDED]], max(len(unchanged) - _MOST_FOLDED, 0)


def _table(tests: Sequence[TestTimes], *, width: int) -> list[Line]:
    if not tests:
        return []
    names = short_names([test.node_id for test in tests])
    cells = [
        [names[row.test], row.base, row.head, row.change, _label(row), row.why]
        for row in map(time_row, tests)
    ]
    return table_of_tests(tests, _HEADERS, cells, width=width, right=("base", "head", "change"))


def _label(test: TestTimes | Row) -> str:
    return test.verdict.label if test.verdict else "not run"


def _told(test: TestTimes, comparison: TimeComparison, *, width: int) -> list[Line]:
    """A test's reason, and the exact gates' results for the same processes, op by op."""
    told = f"{test.node_id}: {_label(test)}: {test.reason}"
    lines = [Line(line, VERDICT_STYLES[test.verdict]) for line in wrapped(told, width=width, cuts=True)]
    exact = comparison.exact.test(test.node_id)
    changes = [] if exact is None else change_lines(exact, width=width - len(_INDENT))
    return [*lines, *(Line(f"{_INDENT}{change}") for change in changes)]
