"""Nsight Systems' databases: kernels belong to the innermost range, on its thread."""

from pathlib import Path
from typing import Any

import pytest
from support.cuda.nvidia_databases import write_nsys

from pytest_opprof import load_nsys
from pytest_opprof.errors import DocumentError
from pytest_opprof.kinds import EventKind

THREAD = 0x0001_0002_3400_0011
TEXTS = [
    {"id": 1, "value": "inner"},
    {"id": 2, "value": "gemm"},
    {"id": 3, "value": "cudaLaunchKernel_v7000"},
]


def nested(**others: Any) -> dict[str, Any]:
    """A launch in a range in a range, and a copy launched on another thread."""
    return {
        "StringIds": TEXTS,
        "NVTX_EVENTS": [
            {"start": 1_000, "end": 5_000, "globalTid": THREAD, "eventType": 59, "text": "outer"},
            {"start": 2_000, "end": 3_000, "globalTid": THREAD, "eventType": 59, "textId": 1},
            {"start": 2_500, "end": None, "globalTid": THREAD, "eventType": 59, "text": "open"},
            {"start": 2_500, "end": None, "globalTid": THREAD, "eventType": 34, "text": "mark"},
        ],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            {"start": 2_100, "end": 2_200, "globalTid": THREAD, "correlationId": 9, "nameId": 3},
            {"start": 2_100, "end": 2_200, "globalTid": THREAD + 1, "correlationId": 10, "nameId": 99},
        ],
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            {
                "start": 9_000,
                "end": 9_400,
                "deviceId": 1,
                "streamId": 13,
                "correlationId": 9,
                "demangledName": 2,
            }
        ],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [
            {"start": 9_500, "end": 9_600, "deviceId": 0, "streamId": 7, "correlationId": 10, "copyKind": 2}
        ],
        **others,
    }


def test_kernel_belongs_to_the_innermost_range_of_its_thread(tmp_path: Path) -> None:
    listed = load_nsys(write_nsys(tmp_path / "a.sqlite", **nested()))
    events = {event.name: event for event in listed}
    assert sorted(events) == ["CUDA call", "Memcpy DtoH", "cudaLaunchKernel", "gemm", "inner", "outer"]
    assert [tuple(kernel) for kernel in events["inner"].kernels] == [("gemm", 1, 0.4)]
    assert (events["outer"].device_time_total, events["outer"].kernels) == (0.4, [])
    assert (events["gemm"].kind, events["gemm"].device_index) == (EventKind.KERNEL, 1)
    assert events["cudaLaunchKernel"].cpu_parent is events["inner"]
    rows = {row.key: row for row in listed.key_averages()}
    assert (rows["inner"].self_device_time_total, rows["Memcpy DtoH"].device_time_total) == (0.4, 0.1)
    assert listed.key_averages().table().endswith("Self CUDA time total: 0.500us\n")


@pytest.mark.parametrize("are_known", [True, False])
def test_each_process_numbers_its_own_calls(tmp_path: Path, are_known: bool) -> None:
    """A kernel of which process is unknown, in a database with several, has no launch."""
    tables: dict[str, list[dict[str, Any]]] = {"StringIds": [*TEXTS, {"id": 4, "value": "other"}]}
    for rank, name in ((0, 2), (1, 4)):
        process = 0x0001_0000_0000_0000 + (1000 + rank << 24)
        start, thread = 1_000 * rank, process + 1000 + rank
        tables.setdefault("NVTX_EVENTS", []).append(
            {"start": start, "end": start + 500, "globalTid": thread, "eventType": 59, "text": f"rank {rank}"}
        )
        tables.setdefault("CUPTI_ACTIVITY_KIND_RUNTIME", []).append(
            {
                "start": start + 100,
                "end": start + 200,
                "globalTid": thread,
                "correlationId": 1,
                "nameId": 3,
            }
        )
        tables.setdefault("CUPTI_ACTIVITY_KIND_KERNEL", []).append(
            {
                "start": start + 9_000,
                "end": start + 9_400,
                "globalPid": process if are_known else None,
                "deviceId": rank,
                "streamId": 7,
                "correlationId": 1,
                "demangledName": name,
            }
        )
    events = {event.name: event for event in load_nsys(write_nsys(tmp_path / "a.sqlite", **tables))}
    kernels = {name: [kernel.name for kernel in events[name].kernels] for name in ("rank 0", "rank 1")}
    assert kernels == (
        {"rank 0": ["gemm"], "rank 1": ["other"]} if are_known else {"rank 0": [], "rank 1": []}
    )


def test_graph_traced_as_a_whole_is_work_of_its_launch(tmp_path: Path) -> None:
    """By nsys's default, ``--cuda-graph-trace=graph``, a launch of a graph is one row, and its kernels have none."""
    place = {"deviceId": 1, "contextId": 1, "streamId": 13, "graphId": 1, "graphExecId": 3}
    graph = {"start": 9_000, "end": 9_700, "correlationId": 9, **place}
    tables = nested(CUPTI_ACTIVITY_KIND_KERNEL=[], CUPTI_ACTIVITY_KIND_GRAPH_TRACE=[graph])
    events = {event.name: event for event in load_nsys(write_nsys(tmp_path / "a.sqlite", **tables))}
    assert [tuple(kernel) for kernel in events["inner"].kernels] == [("CUDA graph", 1, 0.7)]
    assert events["CUDA graph"].kind == EventKind.KERNEL


def test_range_that_ends_on_another_thread_is_async(tmp_path: Path) -> None:
    moved = {"start": 0, "end": 9, "globalTid": 5, "endGlobalTid": 6, "eventType": 60, "text": "request"}
    (event,) = load_nsys(write_nsys(tmp_path / "a.sqlite", StringIds=TEXTS, NVTX_EVENTS=[moved]))
    assert event.is_async
    assert event.cpu_time_total_ns == 9


def test_export_without_devices_has_its_ranges(tmp_path: Path) -> None:
    tables = {name: rows for name, rows in nested().items() if not name.startswith("CUPTI")}
    events = load_nsys(write_nsys(tmp_path / "a.sqlite", **tables))
    assert [event.name for event in events] == ["outer", "inner"]
    assert events[0].use_device is None


def test_another_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="no table StringIds, which every export of nsys has"):
        load_nsys(write_nsys(tmp_path / "a.sqlite", other=[{"id": 1}]))


def test_work_whose_end_is_not_known_has_no_length(tmp_path: Path) -> None:
    (kernel,) = nested()["CUPTI_ACTIVITY_KIND_KERNEL"]
    ended = [{**kernel, "end": 0}]
    path = write_nsys(tmp_path / "a.sqlite", **nested(CUPTI_ACTIVITY_KIND_KERNEL=ended))
    assert [event.device_time_total for event in load_nsys(path) if event.name == "gemm"] == [0]


@pytest.mark.parametrize("column", ["correlationId", "streamId"])
def test_work_without_a_number_is_read(tmp_path: Path, column: str) -> None:
    (kernel,) = nested()["CUPTI_ACTIVITY_KIND_KERNEL"]
    path = write_nsys(
        tmp_path / "a.sqlite", **nested(CUPTI_ACTIVITY_KIND_KERNEL=[kernel, {**kernel, column: None}])
    )
    events: Any = load_nsys(path)
    assert [event.device_time_total for event in events if event.name == "gemm"] == [0.4, 0.4]
    (inner,) = (event for event in events if event.name == "inner")
    assert len(inner.kernels) == (1 if column == "correlationId" else 2)


def test_impossible_time_is_refused(tmp_path: Path) -> None:
    late = {"start": 0, "end": 2**62, "globalTid": 5, "eventType": 59, "text": "late"}
    path = write_nsys(tmp_path / "a.sqlite", StringIds=TEXTS, NVTX_EVENTS=[late])
    with pytest.raises(
        DocumentError, match=r"end is 4611686018427387904, which is not a time in nanoseconds"
    ):
        load_nsys(path)


def test_numbers_of_any_size_are_read(tmp_path: Path) -> None:
    launches = [
        {"start": 0, "end": 9, "globalTid": process << 24, "correlationId": number, "nameId": 3}
        for process in (0, 2**39 - 1, -(2**39))
        for number in (0, 2**63 - 1, -(2**63))
    ]
    path = write_nsys(tmp_path / "a.sqlite", StringIds=TEXTS, CUPTI_ACTIVITY_KIND_RUNTIME=launches)
    assert len(list(load_nsys(path))) == len(launches)


def test_step_number_with_thousands_of_digits_is_ignored(tmp_path: Path) -> None:
    name = f"ProfilerStep#{'9' * 5_000}"
    marked = {"start": 0, "end": 9, "globalTid": 5, "eventType": 59, "text": name}
    event: Any
    (event,) = load_nsys(write_nsys(tmp_path / "a.sqlite", StringIds=TEXTS, NVTX_EVENTS=[marked]))
    assert event.forest.recording.steps == ()
