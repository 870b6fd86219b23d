"""Results of the benchmarks: the file that the docs are generated from."""

import importlib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of that name; benches are outside the package."""
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.results")


def run_of(results: Any, figures: dict[str, float], *, date: str = "2026-01-02") -> dict[str, Any]:
    row = importlib.import_module("benchmarks.table").Row
    rows = [row(what=what, ours="1 ns", peer="torch 2 ns", figure=figure) for what, figure in figures.items()]
    return {**results.document({"capture": rows}), "date": date}


def test_a_run_says_where_it_was_made(results: Any) -> None:
    run = run_of(results, {"add": 2.0})
    assert run["commit"]
    assert run["machine"]["cpu_count"].isdigit()
    assert run["versions"]["numpy"]
    assert run["benches"] == {
        "capture": [{"cells": ["add", "1 ns", "torch 2 ns", "2 x", "", ""], "figure": 2.0}]
    }


def test_the_newest_before_a_day_is_found(results: Any, tmp_path: Path) -> None:
    tmp_path /= "results"
    assert results.newest(tmp_path) is None
    for date in ("2026-03-01", "2025-12-31", "2026-01-02"):
        results.keep(run_of(results, {"add": 2.0}, date=date), tmp_path)
    assert results.newest(tmp_path)["date"] == "2026-03-01"
    assert results.newest(tmp_path, before="2026-03-01")["date"] == "2026-01-02"
    assert results.newest(tmp_path, before="2025-12-31") is None


def test_figures_moved_by_a_fifth_are_reported(results: Any) -> None:
    before = run_of(results, {"a file of 1,000 events": 2.0, "10 events": 1.0, "20 events": 1.0, "gone": 1.0})
    now = run_of(results, {"a file of 1,037 events": 2.5, "10 events": 1.19, "20 events": 0.7, "new": 9.0})
    assert list(results.moved(before, now)) == [
        "a file of 1,037 events, beside torch 2 ns: 2.5 x, 2 before",
        "20 events, beside torch 2 ns: 0.7 x, 1 before",
    ]
