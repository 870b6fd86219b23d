"""nvprof's databases: kernels belong to the innermost range, on its thread."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.cuda.nvidia_databases import NvprofRows, write_nvprof

from pytest_opprof import EnforceUnique, load_nvprof, parse_nvprof_trace
from pytest_opprof.errors import DocumentError, StoreError

TEXTS = [(1, "outer"), (2, "inner"), (3, "_ZN2at6native4gemmEv")]


def nested(thread: int | None = None, **others: Any) -> NvprofRows:
    """A launch in a range in a range."""
    rows: dict[str, Any] = {
        "texts": TEXTS,
        "markers": [(1, 1, 1_000, thread), (2, 2, 2_000, thread), (2, 0, 3_000, None), (1, 0, 5_000, None)],
        "calls": [(2_100, 2_200, 5, 9, 211)],
        "kernels": [(10_000, 10_400, 3, 9)],
    }
    return NvprofRows(**(rows | others))


def test_kernel_belongs_to_the_innermost_range(tmp_path: Path) -> None:
    events = {event.name: event for event in load_nvprof(write_nvprof(tmp_path / "a.db", nested()))}
    assert [tuple(kernel) for kernel in events["inner"].kernels] == [("at::native::gemm()", 0, 0.4)]
    assert events["outer"].kernels == []
    assert (events["outer"].device_time_total, events["outer"].self_device_time_total) == (0.4, 0)
    assert events["inner"].cpu_parent is events["outer"]
    assert (events["outer"].time_range.start, events["outer"].cpu_time_total) == (0, 4.0)
    assert events["at::native::gemm()"].device_resource_id == 7


def test_ranges_are_ordered_by_start(tmp_path: Path) -> None:
    ranges = parse_nvprof_trace(write_nvprof(tmp_path / "a.db", nested()))
    assert [event.name for event in ranges] == ["outer", "inner"]
    assert len(ranges[1].kernels) == 1


def test_recorded_threads_are_separate(tmp_path: Path) -> None:
    elsewhere = {
        event.name: event for event in load_nvprof(write_nvprof(tmp_path / "a.db", nested(thread=6)))
    }
    assert elsewhere["inner"].kernels == []
    here = {event.name: event for event in load_nvprof(write_nvprof(tmp_path / "b.db", nested(thread=5)))}
    assert len(here["inner"].kernels) == 1


def test_other_calls_may_launch(tmp_path: Path) -> None:
    rows = nested(calls=[(2_100, 2_200, 5, 9, 430)], copies=[(11_000, 11_500, 1, 9)])
    path = write_nvprof(tmp_path / "a.db", rows)
    events = {event.name: event for event in load_nvprof(path)}
    assert [kernel.name for kernel in events["inner"].kernels] == ["at::native::gemm()", "Memcpy HtoD"]


def test_marker_without_an_end_is_left_out(tmp_path: Path) -> None:
    rows = nested(markers=[(1, 1, 1_000, None), (7, 2, 1_500, None), (1, 0, 5_000, None)])
    assert [event.name for event in parse_nvprof_trace(write_nvprof(tmp_path / "a.db", rows))] == ["outer"]


def test_other_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a file"):
        load_nvprof(tmp_path / "absent.db")
    plain = tmp_path / "plain.db"
    plain.write_text("no database, but long enough to have a header of one" * 9)
    with pytest.raises(DocumentError, match="cannot be read as a profiler"):
        load_nvprof(plain)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE t (a)")
    with pytest.raises(DocumentError, match="neither markers nor kernels"):
        load_nvprof(other)


def test_text_in_place_of_a_number_is_refused(tmp_path: Path) -> None:
    rows = nested(kernels=[("soon", 10_400, 3, 9)])
    with pytest.raises(DocumentError, match="start is 'soon' instead of a whole number"):
        load_nvprof(write_nvprof(tmp_path / "a.db", rows))


def test_a_key_is_seen_once() -> None:
    unique = EnforceUnique()
    unique.see(1, "a")
    unique.see(1, "b")
    with pytest.raises(RuntimeError, match="duplicate key: "):
        unique.see(1, "a")
