"""Trends as a reader, JSON and CSV have them."""

import csv
import io
import json
import sys
from pathlib import Path

import pytest
from support.documents.histories import log_of

from pytest_opprof.history.lines import sparkline, to_csv, to_json, trend_lines
from pytest_opprof.history.log import HistoryLog
from pytest_opprof.history.reader import HistoryReader
from pytest_opprof.history.trend import Trend, trend_of, wanted_metrics
from pytest_opprof.report.text import Line

TEST = "t.py::test_0"


def trends_of(log: HistoryLog) -> list[Trend]:
    reader = HistoryReader(log)
    results = reader.results(TEST)
    return [trend_of(TEST, path, results) for path in wanted_metrics(None, results)]


def text_of(log: HistoryLog, *, last: int = -1, width: int = 120) -> list[str]:
    lines = trend_lines(trends_of(log), last=last, width=width)
    return [line.text if isinstance(line, Line) else line for line in lines]


def test_a_line_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ruptures", None)
    lines = text_of(log_of(tmp_path, [2, 2, 5]))
    assert lines == [
        "t.py::test_0",
        "  ops.count in each step: 3 runs, 1 change",
        "    ▁▁█",
        "  total.self_cpu_time_total in each step: 3 runs, 0 changes",
        "    ▁▁█",
        "    change points of times need ruptures: pip install 'pytest-opprof[stats]'",
        "",
        "date              commit   name  ops  change  self CPU   change",
        "2026-01-01 00:00  0000000  main    2            3.0 µs",
        "2026-01-02 00:00  0000000  main    2            3.0 µs",
        "2026-01-03 00:00  0000000  main    5      +3    6.0 µs  +3.0 µs  <- ops changed",
    ]


def test_last_runs_alone(tmp_path: Path) -> None:
    log = log_of(tmp_path, list(range(1, 31)))
    lines = text_of(log, last=2)
    assert lines[-1] == "28 earlier runs not shown (--last -1 shows all)"
    assert [line.split()[4] for line in lines[-3:-1]] == ["29", "30"]
    assert "+1" in lines[-3], "a change is against the run before, shown or not"
    assert len(text_of(log, last=99)) > len(lines) + 25
    assert text_of(log, last=0)[-1].startswith("30 earlier runs")


def test_lines_fit_the_terminal(tmp_path: Path) -> None:
    log = log_of(tmp_path, [1, 2] * 100, name="a name that is rather long " * 3)
    assert max(map(len, text_of(log, width=100))) <= 100


def test_json_and_csv_say_the_same(tmp_path: Path) -> None:
    trends = trends_of(log_of(tmp_path, [2, 5]))
    documents = json.loads(json.dumps(to_json(trends)))
    rows = list(csv.DictReader(io.StringIO(to_csv(trends))))
    assert [document["metric"] for document in documents] == ["ops.count", "total.self_cpu_time_total"]
    assert [point["value"] for point in documents[0]["points"]] == [2.0, 5.0]
    assert [point["is_change"] for point in documents[0]["points"]] == [False, True]
    assert len(rows) == 4
    assert rows[1]["test"] == TEST
    assert rows[1]["run_id"] == documents[0]["points"][1]["run_id"] == "run00001"
    assert (rows[1]["value"], rows[1]["commit"]) == ("5.0", f"{1:040x}")


def test_sparkline_is_scaled_and_fits() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], width=80) == "▁▂▃▄▅▆▇█"
    assert sparkline([3, 3, 3], width=80) == "▁▁▁"
    assert sparkline([1, None, 2], width=80) == "▁ █"
    assert sparkline([], width=80) == ""
    assert sparkline([*[0] * 500, *[1] * 500], width=10) == "▁" * 5 + "█" * 5
