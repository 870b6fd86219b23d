"""Trends as text, JSON and CSV."""

import csv
import io
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.documents.histories import log_of

from pytest_opprof.history.lines import change_lines, sparkline, to_csv, to_json, trend_lines
from pytest_opprof.history.log import HistoryLog
from pytest_opprof.history.parquet_query import Change
from pytest_opprof.history.reader import HistoryReader
from pytest_opprof.history.record import RunHead
from pytest_opprof.history.trend import Trend, trend_of, wanted_metrics
from pytest_opprof.metrics import parse_path
from pytest_opprof.report.text import Line
from pytest_opprof.results.run import Commit
from pytest_opprof.results.samples import Samples

TEST = "t.py::test_0"


def trends_of(log: HistoryLog) -> list[Trend]:
    reader = HistoryReader(log)
    results = reader.results(TEST)
    return [trend_of(TEST, path, results) for path in wanted_metrics(None, results)]


def text_of(log: HistoryLog, *, last: int = -1, width: int = 120) -> list[str]:
    lines = trend_lines(trends_of(log), last=last, width=width)
    return [line.text if isinstance(line, Line) else line for line in lines]


def test_each_run_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_only_the_last_runs_are_shown(tmp_path: Path) -> None:
    log = log_of(tmp_path, list(range(1, 31)))
    lines = text_of(log, last=2)
    assert lines[-1] == "28 earlier runs not shown (--last -1 shows all)"
    assert [line.split()[4] for line in lines[-3:-1]] == ["29", "30"]
    assert "+1" in lines[-3], "a change is against the run before, shown or not"
    assert len(text_of(log, last=99)) > len(lines) + 25
    assert text_of(log, last=0)[-1].startswith("30 earlier runs")


class Counted(list[Samples | None]):
    """Samples that count how many of them are looked at one by one."""

    looks = 0

    def __getitem__(self, at: Any) -> Any:
        self.looks += 1
        return super().__getitem__(at)


def test_runs_without_the_metric_are_looked_at_once(tmp_path: Path) -> None:
    (trend, *_) = trends_of(log_of(tmp_path, [1] * 50))
    samples = Counted([None] * len(trend))
    list(trend_lines([replace(trend, samples=samples)], last=-1, width=120))
    assert samples.looks <= 3 * len(trend)


def test_equal_counts_of_other_steps_are_no_change(tmp_path: Path) -> None:
    (trend, *_) = trends_of(log_of(tmp_path, [2, 2, 5]))
    samples = [Samples.constant(value, steps=steps) for value, steps in ((2, 3), (2, 1), (5, 3))]
    rows = [
        line.text if isinstance(line, Line) else line
        for line in trend_lines([replace(trend, samples=samples)], last=-1, width=120)
    ]
    assert [row.split()[4:] for row in rows[-3:]] == [["2"], ["2"], ["5", "+3", "<-", "ops", "changed"]]


def test_lines_fit_the_terminal(tmp_path: Path) -> None:
    log = log_of(tmp_path, [1, 2] * 100, name="a name that is rather long " * 3)
    assert max(map(len, text_of(log, width=100))) <= 100


def test_json_and_csv_agree(tmp_path: Path) -> None:
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


def change(test: str, before: int, after: int, *because: str) -> Change:
    run = RunHead(
        run_id="r",
        created=datetime(2026, 1, 3, tzinfo=UTC),
        committed=None,
        commit=Commit(id="9297516" + "0" * 33, dirty=False, branch="main"),
        name="main",
    )
    samples = [Samples.constant(value, steps=3) for value in (before, after)]
    return Change(repo="encoder", node_id=test, run=run, before=samples[0], after=samples[1], because=because)


def test_changes_of_a_run_stand_together_and_nothing_is_cut() -> None:
    long = "tests/models/test_transformer.py::TestEncoder::test_forward_and_backward[8-float32-cuda]"
    reasons = ("torch 2.13.0 -> 2.14.1", "Python 3.11 -> 3.14", "CPU AMD EPYC 7763 -> AMD EPYC 9654")
    changes = [
        change(long, 98, 102, *reasons),
        change("t.py::test_\x1b", 2, 0, *reasons),
        change("t.py::test_0", 1, 2),
    ]
    path = parse_path("aten::copy_.count", where="METRIC")
    lines = [
        line.text if isinstance(line, Line) else line
        for line in change_lines(changes, path, runs=9, width=80)
    ]
    assert lines == [
        "aten::copy_.count in each step: 3 changes in 3 tests, 9 runs",
        "",
        "2026-01-03 00:00  9297516  main  encoder",
        "  changed with it: torch 2.13.0 -> 2.14.1, Python 3.11 -> 3.14, CPU AMD EPYC",
        "    7763 -> AMD EPYC 9654",
        f"  98 -> 102  {long}",
        "     2 -> 0  t.py::test_\\x1b",
        "",
        "2026-01-03 00:00  9297516  main  encoder",
        "  1 -> 2  t.py::test_0",
    ]
    assert len(list(change_lines([], path, runs=9, width=80))) == 1
