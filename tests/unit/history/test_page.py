"""The trends of tests on a report's page."""

from pathlib import Path

from support.documents.histories import log_of

from pytest_opprof.history.lines import page_trends
from pytest_opprof.history.reader import HistoryReader
from pytest_opprof.units import Unit

TEST = "t.py::test_0"


def test_a_page_has_each_runs_ops_and_time(tmp_path: Path) -> None:
    reader = HistoryReader(log_of(tmp_path, [2, 2, 5]))
    found = page_trends(reader, [TEST, "t.py::test_unknown"])
    assert list(found) == [TEST]
    ops, time = found[TEST]
    assert (ops["label"], ops["unit"], time["label"], time["unit"]) == (
        "ops",
        Unit.COUNT,
        "self CPU",
        Unit.NS,
    )
    assert [point["value"] for point in ops["points"]] == [2, 2, 5]
    assert [point["is_change"] for point in ops["points"]] == [False, False, True]
    assert ops["points"][2]["title"] == "2026-01-03 0000000"


def test_a_page_has_the_latest_runs_of_a_long_history(tmp_path: Path) -> None:
    reader = HistoryReader(log_of(tmp_path, range(1, 250)))
    ops, _ = page_trends(reader, [TEST])[TEST]
    assert [point["value"] for point in ops["points"]] == list(range(50, 250))
