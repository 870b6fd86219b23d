"""The bench of ``opprof run``: its rows for given times, and its report on missing peers."""

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = {"cProfile": 4.0, "pyinstrument": 6.0, "viztracer": 16.0, "--no-stack": 2.0, "pytest_opprof": 3.0}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with fake durations for each profiler; plain Python takes a second."""
    monkeypatch.syspath_prepend(ROOT)
    module = importlib.import_module("benchmarks.run_scripts")

    def took(command: Sequence[str], **_: object) -> float:
        return next((seconds for word, seconds in SECONDS.items() if word in command), 1.0)

    monkeypatch.setattr(module, "processor_time_s", took)
    return module


def without(monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    """Make some modules look uninstalled."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else name)


def test_each_script_is_compared_with_its_peers(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch)
    rows = bench.rows(quick=True)
    assert len(rows) == 4 * 4
    cost = next(row for row in rows if row.what == "opprof run, Python calls")
    assert (cost.ours, cost.peer) == ("3 x plain", "cProfile 4 x plain")
    assert cost.figure == pytest.approx(4 / 3)
    start = next(row for row in rows if row.what == "opprof run --trace, an empty script")
    assert (start.ours, start.peer) == ("3 s", "viztracer 16 s")


def test_missing_peers_are_reported_and_left_out(
    bench: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without(monkeypatch, "viztracer", "torch")
    rows = bench.rows(quick=True)
    assert len(rows) == 3 * 3
    assert not [row for row in rows if "viztracer" in row.peer or "torch" in row.what]
    assert capsys.readouterr().err.splitlines() == [
        "viztracer is not installed: its rows are left out",
        "torch is not installed: its rows are left out",
    ]
