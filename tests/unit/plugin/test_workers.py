"""What workers put into the exchange, and what the controller finds there."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_opprof.errors import StoreError
from pytest_opprof.plugin.workers import Exchange
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.run import Run, TestResult


def run_with(*names: str) -> Run:
    return Run(
        run_id="1",
        created=datetime(2026, 1, 2, tzinfo=UTC),
        opprof_version="0.1.0",
        tests=tuple(TestResult(node_id=f"test_a.py::{name}") for name in names),
    )


def test_results_come_back_in_the_order_in_which_tests_ended(tmp_path: Path) -> None:
    one, two = (Exchange(folder=tmp_path, worker=worker) for worker in ("gw1", "gw0"))
    for worker, name in ((one, "a"), (two, "b"), (one, "c")):
        worker.put_result(run_with(name))
    found = [(run, test.node_id) for run, test in Exchange(folder=tmp_path).results()]
    assert found == [(run_with(name), f"test_a.py::{name}") for name in "abc"]


def test_each_workers_collection_stands_for_all(tmp_path: Path) -> None:
    assert Exchange(folder=tmp_path).collected() == Collected()
    collected = Collected(
        node_ids=frozenset({"test_a.py::a", "test_a.py::b"}),
        whole_paths=frozenset({"."}),
        unread_paths=frozenset({"test_b.py"}),
    )
    for worker in ("gw0", "gw1"):
        Exchange(folder=tmp_path, worker=worker).put_collected(collected)
    assert Exchange(folder=tmp_path).collected() == collected
    assert list(Exchange(folder=tmp_path).results()) == []


def test_the_baseline_comes_back(tmp_path: Path) -> None:
    assert Exchange(folder=tmp_path, worker="gw0").baseline() is None
    Exchange(folder=tmp_path).put_baseline(run_with("a", "b"))
    assert Exchange(folder=tmp_path, worker="gw0").baseline() == run_with("a", "b")


def test_unstorable_result_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be written"):
        Exchange(folder=tmp_path / "file").put_result(run_with("a"))
