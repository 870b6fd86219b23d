"""A report's page with a history and traces beside it."""

from pathlib import Path

import pytest
from support.documents.compared import compared
from support.documents.histories import log_of, run_on_day

from pytest_opprof.errors import StoreError
from pytest_opprof.history.index import HistoryIndex
from pytest_opprof.history.page import page_trends, page_with
from pytest_opprof.report.html.page import html_report
from pytest_opprof.units import Unit

TEST = "t.py::test_0"


def test_a_page_has_each_runs_ops_and_time(tmp_path: Path) -> None:
    with HistoryIndex(log_of(tmp_path, [2, 2, 5])) as index:
        found = page_trends(index, [TEST, "t.py::test_unknown"])
    assert list(found) == [TEST]
    ops, time = found[TEST]
    assert (ops.label, ops.unit, time.label, time.unit) == ("ops", Unit.COUNT, "self CPU", Unit.NS)
    assert [point.value for point in ops.points] == [2, 2, 5]
    assert [point.is_change for point in ops.points] == [False, False, True]
    assert ops.points[2].title == "2026-01-03 0000000"


def test_a_page_has_the_latest_runs_of_a_long_history(tmp_path: Path) -> None:
    with HistoryIndex(log_of(tmp_path, range(1, 250))) as index:
        ops, _ = page_trends(index, [TEST])[TEST]
    assert [point.value for point in ops.points] == list(range(50, 250))


def test_a_page_with_nothing_beside_it_is_the_plain_one(tmp_path: Path) -> None:
    made = compared(run_on_day(1), run_on_day(2))
    plain = html_report(made)
    assert page_with(made, history=None, traces=None) == plain
    assert page_with(made, history=log_of(tmp_path, [2, 3]), traces=None) != plain
    assert page_with(made, history=None, traces=tmp_path) == plain


def test_a_folder_of_traces_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        StoreError, match=r"nothing: its traces cannot be listed \(No such file or directory\)"
    ):
        page_with(compared(None, run_on_day(1)), history=None, traces=tmp_path / "nothing")
