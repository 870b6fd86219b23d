"""Traces of tests, as files of their own."""

import gzip
import json
from pathlib import Path

import pytest
from support.programs.windows import Window

from pytest_opprof import record_function
from pytest_opprof.capture.recording import Recording
from pytest_opprof.errors import StoreError, UsageError
from pytest_opprof.plugin.options import read_options
from pytest_opprof.plugin.traces import SessionTraces, write_traces
from pytest_opprof.plugin.workers import Exchange


@pytest.fixture(scope="module")
def recording() -> Recording:
    with Window() as window, record_function("work"):
        pass
    return window.recording


def test_each_test_has_a_file_of_its_own(tmp_path: Path, recording: Recording) -> None:
    node_ids = ["a.py::test_it[1/2]", "a.py::test_it[1:2]", "b.py::test_it[1/2]"]
    paths = [path for node_id in node_ids for path in write_traces(tmp_path / "traces", node_id, [recording])]
    assert len(set(paths)) == 3
    assert all(path.name.startswith("test_it_1_2_-") and path.name.endswith(".json.gz") for path in paths)
    trace = json.loads(gzip.decompress(paths[0].read_bytes()))
    assert "work" in {event.get("name") for event in trace["traceEvents"]}


def test_each_cycle_has_a_file_of_its_own(tmp_path: Path, recording: Recording) -> None:
    first, second = write_traces(tmp_path, "a.py::test_it", [recording, recording])
    assert first.name.endswith(".cycle0.json.gz")
    assert second.name.endswith(".cycle1.json.gz")


def test_long_name_still_makes_a_file(tmp_path: Path, recording: Recording) -> None:
    (path,) = write_traces(tmp_path, f"a.py::test_it[{'日本' * 500}{'x' * 500}]", [recording])
    assert path.exists()


def test_uncreatable_folder_is_reported(tmp_path: Path, recording: Recording) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"the trace .*file/test_it-.* cannot be written"):
        write_traces(tmp_path / "file", "a.py::test_it", [recording])


@pytest.mark.parametrize(("budget", "why"), [("much", "is not a size"), ("-1", "is below 0")])
def test_invalid_budget_is_refused(lone: pytest.Pytester, budget: str, why: str) -> None:
    options = read_options(lone.parseconfig(f"--opprof-trace-budget={budget}"))
    with pytest.raises(UsageError, match=f"--opprof-trace-budget: '{budget}' {why}"):
        SessionTraces(root=lone.path, options=options, exchange=Exchange(folder=lone.path))
