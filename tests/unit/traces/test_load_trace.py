"""Reading a trace file: its events, its other contents, and other files."""

import gzip
import json
import os
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.programs.children import answer_of

from pytest_opprof import load_trace
from pytest_opprof.errors import DocumentError, StoreError
from pytest_opprof.kinds import EventKind
from pytest_opprof.results.trace_run import run_from_trace
from pytest_opprof.traces.kineto import TraceFile

DEEP = 100_000


def op(name: str, start_us: float, duration_us: float, **members: Any) -> dict[str, Any]:
    event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start_us, "dur": duration_us}
    return event | members


@pytest.fixture
def load(tmp_path: Path) -> Any:
    """Write a file and read it."""

    def loaded(content: Any, **limits: int) -> TraceFile:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        path = tmp_path / "trace.json"
        path.write_bytes(data)
        return load_trace(path, **limits)

    return loaded


def test_object_and_list_are_the_same(load: Any) -> None:
    events = [op("a", 1, 2)]
    assert len(load(events).events()) == len(load({"traceEvents": events}).events()) == 1


def test_gzip_is_recognized_by_its_bytes(load: Any) -> None:
    packed = gzip.compress(json.dumps([op("a", 1, 2)]).encode())
    assert [event.name for event in load(packed).events()] == ["a"]


def test_gzip_members_are_one_text(load: Any) -> None:
    text = json.dumps([op("a", 1, 2)]).encode()
    packed = gzip.compress(text[:20]) + gzip.compress(text[20:]) + b"\0" * 8
    assert len(load(packed).events()) == 1


def test_partial_overlap_makes_siblings(load: Any) -> None:
    recording = load([op("a", 0, 10), op("b", 5, 10), op("c", 6, 2)]).recording
    names = [recording.name(row) for row in range(3)]
    assert [names[parent] if parent >= 0 else None for parent in recording.parent] == [None, None, "b"]
    assert list(recording.self_ns) == [10_000, 8_000, 2_000]


def test_equal_times_nest_in_the_order_of_the_file(load: Any) -> None:
    recording = load([op("outer", 0, 10), op("inner", 0, 10)]).recording
    assert [recording.name(row) for row in range(2)] == ["outer", "inner"]
    assert list(recording.parent) == [-1, 0]


def test_events_in_a_step_belong_to_it(load: Any) -> None:
    step = op("ProfilerStep#3", 10, 10, cat="user_annotation")
    call = op("cudaLaunchKernel", 12, 1, cat="cuda_runtime", args={"correlation": 5})
    kernel = op("gemm", 40, 5, cat="kernel", pid=0, tid=7, args={"correlation": 5})
    recording = load([op("before", 0, 1), step, op("in", 11, 4), call, kernel]).recording
    steps = {recording.name(row): recording.step[row] for row in range(len(recording))}
    assert steps == {"before": -1, "ProfilerStep#3": 0, "in": 0, "cudaLaunchKernel": 0, "gemm": 0}
    assert [step.number for step in recording.steps] == [3]


def test_each_process_has_its_own_steps(load: Any) -> None:
    """A process without steps is in those of the others."""

    def process(pid: int, *events: dict[str, Any]) -> list[dict[str, Any]]:
        return [event | {"pid": pid} for event in events]

    step = {"cat": "user_annotation"}
    recording = load(
        [
            *process(1, op("ProfilerStep#0", 0, 100, **step), op("a", 5, 1), op("b", 20, 1), op("c", 50, 1)),
            *process(2, op("ProfilerStep#1", 10, 20, **step), op("d", 15, 1), op("e", 50, 1)),
            *process(3, op("f", 5, 1), op("g", 15, 1), op("h", 200, 1)),
        ]
    ).recording
    steps = {recording.name(row): recording.step[row] for row in range(len(recording))}
    assert [step.number for step in recording.steps] == [0, 1]
    assert {name: step for name, step in steps.items() if len(name) == 1} == (
        {"a": 0, "b": 0, "c": 0, "d": 1, "e": -1, "f": 0, "g": 1, "h": -1}
    )


@pytest.mark.parametrize(
    ("ids", "launcher"),
    [
        ({"External id": 3, "correlation": 7}, 0),
        ({"External id": 3}, 0),
        # Older versions of Kineto write the call's number, which an unrelated op may have.
        ({"External id": 3, "correlation": 3}, -1),
    ],
)
def test_kernel_without_its_call_belongs_to_the_op_of_its_external_id(
    load: Any, ids: dict[str, int], launcher: int
) -> None:
    relu = op("aten::relu", 40, 5, args={"External id": 3})
    recording = load([relu, op("gemm", 50, 40, cat="kernel", pid=0, tid=7, args=ids)]).recording
    assert [recording.name(row) for row in range(2)] == ["aten::relu", "gemm"]
    assert recording.launcher[1] == launcher


def test_device_time_goes_to_the_launching_op(load: Any) -> None:
    call = op("hipLaunchKernel", 2, 1, cat="cuda_runtime", args={"correlation": 5})
    kernel = op("gemm", 40, 5, cat="kernel", pid=0, tid=7, args={"correlation": 5})
    annotation = op("x", 39, 7, cat="gpu_user_annotation", pid=0, tid=7)
    recording = load([op("outer", 0, 10), op("inner", 1, 4), call, kernel, annotation]).recording
    times = {group.name: (group.device_total_ns, group.self_device_ns) for group in recording.groups()}
    assert times == {
        "outer": (5_000, 0),
        "inner": (5_000, 5_000),
        "hipLaunchKernel": (0, 0),
        "gemm": (5_000, 5_000),
        "x": (7_000, 7_000),
    }


def test_external_id_links_without_a_recorded_call(load: Any) -> None:
    kernel = op("gemm", 40, 5, cat="kernel", pid=0, tid=7, args={"correlation": 5, "External id": 8})
    recording = load([op("mm", 0, 10, args={"External id": 8}), kernel]).recording
    assert list(recording.launcher) == [-1, 0]


def test_an_unfinished_event_is_open_at_the_end(load: Any) -> None:
    recording = load([op("a", 0, 10, args={"finished": False}), op("b", 1, 2)]).recording
    assert list(recording.duration_ns) == [-1, 2_000]
    assert recording.trace_end_ns == 10_000


def asynchronous(phase: str, number: int, at_us: float) -> dict[str, Any]:
    place = {"pid": 1, "tid": 1, "ts": at_us}
    return {"ph": phase, "cat": "cpu_op", "id": number, "name": "wait", **place}


def test_an_async_event_begins_inside_and_ends_where_it_likes(load: Any) -> None:
    events = [op("outer", 0, 10), op("inner", 1, 2), asynchronous("b", 1, 2), asynchronous("e", 1, 50)]
    events += [asynchronous("b", 2, 5), asynchronous("e", 2, 6), asynchronous("b", 3, 20), op("next", 30, 1)]
    recording = load(events).recording
    found = {
        (recording.name(row), recording.duration_ns[row]): recording.parent[row]
        for row in range(len(recording))
    }
    assert found == {
        ("outer", 10_000): -1,
        ("inner", 2_000): 0,
        ("wait", 48_000): 1,
        ("wait", 1_000): 0,
        ("wait", -1): -1,
        ("next", 1_000): -1,
    }
    assert recording.self_ns[0] == 8_000


def test_more_open_async_events_than_are_followed_are_kept(load: Any, tmp_path: Path) -> None:
    events = [asynchronous("b", number, number) for number in range(100)]
    trace = load(events)
    assert (len(trace.recording), trace.other_events) == (64, 36)
    trace.export_chrome_trace(tmp_path / "again.json")
    written = json.loads((tmp_path / "again.json").read_bytes())["traceEvents"]
    assert sorted(written, key=lambda event: int(event["id"])) == events


def test_a_run_of_a_trace_has_the_losses_of_its_recording(load: Any, tmp_path: Path) -> None:
    lost = {"dropped": 3, "truncated": True, "device_partial": True, "names_overflowed": -1, "events": 9}
    trace = load({"opprof_losses": lost, "opprof_sampling": 0.5, "traceEvents": [op("a", 1, 2)]})
    trace.export_chrome_trace(tmp_path / "again.json")
    for each in (trace, load_trace(tmp_path / "again.json")):
        capture = run_from_trace(each).tests[0].capture
        assert (capture.dropped, capture.truncated, capture.device_partial) == (3, True, True)
        assert (capture.names_overflowed, capture.events, capture.sampled_ppm) == (0, 1, 500_000)


@pytest.mark.parametrize("lost", [7, {"dropped": True}, {"dropped": 1 << 60}, {"truncated": 1}])
def test_losses_that_no_trace_of_ours_says_are_ignored(load: Any, lost: object) -> None:
    assert load({"opprof_losses": lost, "traceEvents": []}).recording.stats.as_metadata() == {}


def test_our_own_trace_gives_the_events_it_was_written_from(tmp_path: Path) -> None:
    from support.programs.windows import Window  # records

    from pytest_opprof import record_function

    with Window() as window, record_function("outer", "some text"):
        for _ in range(3):
            with record_function('in "quotes" 日本\n'):
                pass
    path = tmp_path / "trace.json.gz"
    window.recording.write_chrome_trace(path)
    recording = load_trace(path).recording
    for column in ("start_ns", "duration_ns", "self_ns", "parent", "scope", "name_id"):
        assert list(getattr(recording, column)) == list(getattr(window.recording, column)), column
    assert recording.args_text(0) == "some text"
    assert [thread.os_tid for thread in recording.threads] == [
        thread.os_tid for thread in window.recording.threads
    ]


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
EVENTS = st.builds(
    lambda event, args, more: {**more, **event, **({} if args is None else {"args": args})},
    st.builds(
        op,
        st.text(max_size=20),
        st.integers(-(10**6), 10**6).map(lambda ns: ns / 1000),
        st.integers(0, 10**6).map(lambda ns: ns / 1000),
        cat=st.sampled_from(["cpu_op", "user_annotation", "kernel", "cuda_runtime", "no such"]),
        pid=st.integers(-1, 2) | st.text(max_size=3),
        tid=st.integers(-1, 2),
        ph=st.sampled_from("XXXXisfbeM"),
    ),
    st.none() | st.dictionaries(st.text() | st.sampled_from(["correlation", "External id"]), JSON_VALUES),
    st.dictionaries(st.sampled_from(["id", "bp", "s", "cname", "日"]), JSON_VALUES),
)


def _as_text(event: dict[str, Any]) -> str:
    times = {key: round(float(event[key]), 3) for key in ("ts", "dur") if key in event}
    args = {"args": event["args"]} if event.get("args") else {"args": None}
    return json.dumps(event | times | args, sort_keys=True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    events=st.lists(EVENTS, max_size=8),
    members=st.dictionaries(st.text().filter(lambda key: key != "traceEvents"), JSON_VALUES, max_size=3),
    ascii_only=st.booleans(),
)
def test_any_trace_is_written_again_whole(
    tmp_path: Path, events: list[dict[str, Any]], members: dict[str, Any], ascii_only: bool
) -> None:
    path, again = tmp_path / "trace.json", tmp_path / "again.json"
    document = {**members, "traceEvents": events}
    text = json.dumps(document, ensure_ascii=ascii_only)
    path.write_bytes(text.encode("utf-8", "replace"))
    theirs = json.loads(path.read_bytes())
    trace = load_trace(path)
    trace.export_chrome_trace(again)
    ours = json.loads(again.read_bytes())
    assert Counter(map(_as_text, ours["traceEvents"])) == Counter(map(_as_text, theirs["traceEvents"]))
    assert {**ours, "traceEvents": 0} == {**theirs, "traceEvents": 0}
    assert {**trace.metadata, "traceEvents": 0} == {**theirs, "traceEvents": 0}
    second = load_trace(again)
    for column in ("start_ns", "duration_ns", "self_ns", "parent", "launcher", "kind", "flags", "step"):
        assert list(getattr(second.recording, column)) == list(getattr(trace.recording, column)), column


def test_nan_is_a_string_afterwards(load: Any, tmp_path: Path) -> None:
    text = (
        b'[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":2,"args":{"x":[NaN,-Infinity]}}]'
    )
    trace = load(text)
    assert trace.recording.args(0) == {"x": ["NaN", "-Infinity"]}
    trace.export_chrome_trace(tmp_path / "again.json")
    assert '"x": ["NaN","-Infinity"]' in (tmp_path / "again.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "byte 0: the file is empty"),
        (b"no json", "byte 0: neither an object nor a list of events"),
        (b"\x89PNG\r\n", "byte 0: neither"),
        ("[]".encode("utf-16"), "byte 0: neither"),
        (b'{"schemaVersion": 1}', "it has no traceEvents"),
        (b'[{"ph": "X"', "byte 11: the text ends here"),
        (b'[{"name": "\xe9"}]', "byte 11: bytes that are not UTF-8"),
        (b"[" * DEEP, "byte 1: an event that is not an object"),
        (b'[{"a":' + b"[" * DEEP, f"byte {DEEP + 6}: the text ends here"),
    ],
    ids=["empty", "text", "binary", "utf-16", "no-events", "cut", "latin-1", "deep", "deep-and-cut"],
)
def test_non_trace_is_refused(load: Any, content: bytes, problem: str) -> None:
    with pytest.raises(DocumentError, match=problem):
        load(content)


def test_deep_arguments_survive(load: Any, tmp_path: Path) -> None:
    deep = b"[" * DEEP + b"]" * DEEP
    text = b'[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":2,"args":{"x":%s}}]' % deep
    trace = load(text)
    with pytest.raises(DocumentError, match="nested too deeply"):
        trace.recording.args(0)
    trace.export_chrome_trace(tmp_path / "again.json")
    assert deep in (tmp_path / "again.json").read_bytes()


def test_deep_metadata_survives(load: Any) -> None:
    trace = load(b'{"x": %s, "traceEvents": []}' % (b"[" * DEEP + b"]" * DEEP))
    with pytest.raises(DocumentError, match="nested too deeply"):
        _ = trace.metadata


def test_damaged_gzip_is_refused(load: Any) -> None:
    packed = gzip.compress(json.dumps([op("a", 1, 2)] * 100).encode())
    with pytest.raises(DocumentError, match="cut off"):
        load(packed[:-9])
    with pytest.raises(DocumentError, match="damaged"):
        load(packed[:20] + b"\xff" * 20 + packed[40:])


def test_exceeded_limits_are_reported(load: Any) -> None:
    with pytest.raises(DocumentError, match="more than 2 events"):
        load([op("a", 1, 2)] * 3, max_events=2)
    bomb = gzip.compress(b"[" + b" " * 50_000_000)
    with pytest.raises(DocumentError, match="more than 1000000 bytes"):
        load(bomb, max_bytes=1_000_000)


def test_one_long_value_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(b'{"a": "' + b"x" * (300 << 20) + b'"}', compresslevel=1))
    told = answer_of(f"""
        import json, resource
        from pytest_opprof import load_trace
        from pytest_opprof.errors import DocumentError
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            load_trace({str(path)!r})
        except DocumentError as error:
            problem = str(error)
        print(json.dumps([problem, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before]))
    """)
    problem, kib = told
    assert "the event or member at byte 1 has more than 64 MiB of JSON: remove it from the file" in problem
    assert kib < 192 << 10


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"none\.json cannot be read: No such file"):
        load_trace(tmp_path / "none.json")
    with pytest.raises(StoreError, match="Is a directory"):
        load_trace(tmp_path)
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(StoreError, match=r"pipe\.json cannot be read: this is not a regular file"):
        load_trace(tmp_path / "pipe.json")


def test_memory_events_have_their_numbers(load: Any) -> None:
    memory = {
        "ph": "i",
        "s": "t",
        "cat": "cpu_instant_event",
        "name": "[memory]",
        "pid": 1,
        "tid": 1,
        "ts": 5,
        "args": {"Addr": 64, "Bytes": -8, "Total Allocated": 16, "Device Type": 0, "Device Id": -1},
    }
    recording = load([op("a", 0, 10), memory]).recording
    assert EventKind(recording.kind[1]) is EventKind.MEMORY
    assert recording.parent[1] == 0
    (group,) = [group for group in recording.groups() if group.name == "a"]
    assert (group.cpu_memory, group.self_cpu_memory) == (-8, -8)


def test_a_packed_piece_boundary_loses_nothing(load: Any) -> None:
    # these few bytes unpack to more than one piece, the last one after all bytes were read
    text = b"[" + b" " * ((1 << 20) * 3 - 1) + json.dumps(op("a", 1, 2)).encode() + b"]"
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    assert len(load(packer.compress(text) + packer.flush()).events()) == 1


def test_numbers_survive_literally(load: Any, tmp_path: Path) -> None:
    numbers = (
        "0 -0 0.0 -0.0 1.50 -0.500 1e5 12345678901234567890 0.592593 -3.25 1.0000000000000000001 4203669.604"
    )
    members = ",".join(f'"n{place}":{number}' for place, number in enumerate(numbers.split()))
    text = f'[{{"ph":"M","args":{{}},{members}}},{{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,'
    trace = load(f'{text}"dur":2,"args":{{{members}}}}}]'.encode())
    trace.export_chrome_trace(tmp_path / "again.json")
    written = (tmp_path / "again.json").read_text(encoding="utf-8")
    for place, number in enumerate(numbers.split()):
        assert written.count(f'"n{place}": {number}') == 2, number
