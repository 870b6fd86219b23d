"""A comparison in a notebook, as a browser reads it."""

from dataclasses import replace

import html5lib
import pytest
from hypothesis import given
from support.documents import hostile
from support.documents.compared import cloning, compared, mixed, named, regressions
from support.documents.strategies import simple_run
from support.html.rendered import comments, elements, parsed, text_of

from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.report.notebook import NotebookComparison
from pytest_opprof.report.summary import Summary
from pytest_opprof.report.terminal import comparison_lines

ELEMENTS = {"div", "p", "strong", "br", "table", "thead", "tbody", "tr", "th", "td"}
ATTRIBUTES = {"style", "scope", "colspan"}


def shown(comparison: Comparison) -> str:
    return NotebookComparison(comparison)._repr_html_()


def table_rows(comparison: Comparison) -> list[list[str]]:
    page = parsed(shown(comparison))
    return [[text_of(cell) for cell in row] for row in page.iter("tr")]


def test_a_regression_is_a_table_under_its_verdict() -> None:
    comparison = cloning()
    html5lib.HTMLParser(strict=True).parseFragment(shown(comparison))
    assert table_rows(comparison)[:3] == [
        ["op", "metric", "base", "head", "change", "cause"],
        [f"tests/test_model.py::test_step: REGRESSED: {comparison.tests[0].reason}"],
        ["aten::clone", "count", "0", "2", "+2", "new, called by the test"],
    ]
    said = text_of(parsed(shown(comparison)))
    summary = Summary.of(comparison)
    for sentence in (summary.headline, summary.totals, "main@1a2b3c4 → 5d6e7f8+dirty"):
        assert sentence in said


def test_without_changes_there_is_no_table() -> None:
    run = simple_run(named("test_same", {"aten::mul": 1}))
    page = parsed(shown(compared(run, run)))
    assert not list(page.iter("table"))
    assert "PASS: 1 test" in text_of(page)


def test_every_notable_test_has_rows() -> None:
    comparison = mixed()
    told = [row[0] for row in table_rows(comparison) if len(row) == 1]
    quiet = {None, Verdict.PASS, Verdict.NEW}
    assert [one.partition(": ")[0] for one in told] == [
        test.node_id for test in comparison.tests if test.verdict not in quiet
    ]


def test_rows_that_are_left_out_are_counted() -> None:
    rows = table_rows(regressions(80))
    assert len(rows) == 52
    assert rows[-1] == ["... and 190 more rows: opprof compare"]


def test_repr_is_the_terminal_text() -> None:
    lines = comparison_lines(cloning(), width=100, verbosity=1)
    assert repr(NotebookComparison(cloning())) == "\n".join(line.text for line in lines)


@pytest.mark.slow
@given(comparison=hostile.comparisons())
def test_names_are_text_and_not_markup(comparison: Comparison) -> None:
    html = shown(comparison)
    html5lib.HTMLParser(strict=True).parseFragment(html)
    page = parsed(html)
    assert {one.tag for one in elements(page)} <= ELEMENTS
    assert {name for one in elements(page) for name in one.attrib} <= ATTRIBUTES
    assert not [value for one in elements(page) for value in one.attrib.values() if hostile.NEEDLE in value]
    assert comments(page) == []
    assert all(char.isprintable() for char in text_of(page))


def test_a_long_name_is_cut() -> None:
    comparison = cloning()
    (test,) = comparison.tests
    long = replace(test, node_id="x" * 1_000_000, reason="y" * 1_000_000)
    assert len(shown(replace(comparison, tests=(long,), notes=("z" * 1_000_000,)))) < 10_000
