"""Perfetto's own engine on our traces: it drops no slice and reads every time to the nanosecond."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from support.html.perfetto import Perfetto, perfetto
from support.programs import call_programs
from support.programs.windows import RANGES, RANGES_AND_OPS, Window

from pytest_opprof import load_trace, record_function
from pytest_opprof.capture.recording import Recording
from pytest_opprof.kinds import FLAG_CROSSING
from pytest_opprof.traces.difference import difference
from pytest_opprof.traces.merged import write_merged

pytestmark = pytest.mark.slow

FAULTS = """
    select name, value from stats
    where value > 0 and (severity in ('error', 'data_loss') or name like '%drop%' or name like '%overlap%')
"""
SLICES = "select ts, dur, name from slice where category in ('user_annotation', 'cpu_op', 'python_function')"


def check_opened(page: Perfetto, recording: Recording, trace_start: int) -> None:
    assert page.query(FAULTS, "name", "value") == []
    expected = [
        [
            trace_start + start,
            duration if duration >= 0 else recording.trace_end_ns - start,
            recording.name(event),
        ]
        for event, (start, duration) in enumerate(zip(recording.start_ns, recording.duration_ns, strict=True))
    ]
    assert sorted(page.query(SLICES, "ts", "dur", "name")) == sorted(expected)


def opened(recording: Recording, folder: Path) -> Any:
    path = folder / "trace.json"
    recording.write_chrome_trace(path)
    return perfetto(path)


def from_base(recording: Recording) -> int:
    """Times in a trace count from the beginning of a week (native/src/export/trace.c)."""
    return recording.trace_start_ns % (7 * 24 * 3600 * 10**9)


def test_dropped_slices_would_be_seen(tmp_path: Path) -> None:
    """The check of the tests below can fail."""
    path = tmp_path / "overlap.json"
    place = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1}
    events = [{**place, "name": "a", "ts": 0, "dur": 10}, {**place, "name": "b", "ts": 5, "dur": 10}]
    path.write_text(json.dumps({"traceEvents": events}))
    with perfetto(path) as page:
        assert page.query(FAULTS, "name", "value") == [["slice_drop_overlapping_complete_event", 1]]
        assert len(page.query(SLICES, "ts", "dur", "name")) == 1


def test_perfetto_drops_no_range(tmp_path: Path) -> None:
    """Ranges of zero length, side by side, deeply nested, open, overlapping, on several threads."""

    def nest(depth: int) -> None:
        with record_function(f"level {depth}"):
            if depth:
                nest(depth - 1)

    left_open = record_function("open")
    with Window(sources=RANGES) as window:
        left_open.__enter__()
        threads = [threading.Thread(target=nest, args=(200,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(20_000):
            with record_function("outer"), record_function("inner"):
                pass
        first, second = record_function("first"), record_function("second")
        first.__enter__()
        second.__enter__()
        first.__exit__()
        second.__exit__()
        for thread in threads:
            thread.join()
    left_open.__exit__()
    with opened(window.recording, tmp_path) as page:
        check_opened(page, window.recording, from_base(window.recording))


def test_perfetto_drops_no_call(tmp_path: Path) -> None:
    """Calls in ranges, ranges in calls, and ranges that outlive the calls that began them."""
    with Window(sources=RANGES | {"python"}) as window:
        for run in (call_programs.work_in_managed, call_programs.work_after_managed, call_programs.drain):
            for _ in range(100):
                run()
        thread = threading.Thread(target=call_programs.recurse, args=(100,))
        thread.start()
        thread.join()
    assert any(flags & FLAG_CROSSING for flags in window.recording.flags)
    with opened(window.recording, tmp_path) as page:
        check_opened(page, window.recording, from_base(window.recording))


def test_perfetto_draws_every_arrow(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    with Window(sources=RANGES_AND_OPS, record_shapes=True) as window:
        for _ in range(5):
            model(torch.randn(2, 16, 64)).sum().backward()
    recording = window.recording
    with opened(recording, tmp_path) as page:
        check_opened(page, recording, from_base(recording))
        ends = page.query(
            """
            select source.name as forward, target.name as backward from flow
            join slice source on source.id = flow.slice_out join slice target on target.id = flow.slice_in
            """,
            "forward",
            "backward",
        )
    arrows = (tmp_path / "trace.json").read_text().count('"cat":"fwdbwd"')
    assert len(ends) == arrows // 2 > 100
    assert {forward.split("::")[0] for forward, _ in ends} == {"aten"}
    assert all("Backward" in backward for _, backward in ends)


def test_perfetto_shows_both_sides_of_a_merged_trace(tmp_path: Path) -> None:
    """Ranges on two threads, some of them asynchronous, and steps that take longer on one side."""
    traces = []
    for side, most in (("base", 3), ("head", 5)):
        with Window(sources=RANGES) as window:
            for number in range(3):
                with record_function(f"ProfilerStep#{number}"):
                    for _ in range(most * 50):
                        with record_function("outer"), record_function("inner"):
                            pass
                    first, second = record_function("first"), record_function("second")
                    first.__enter__()
                    second.__enter__()
                    first.__exit__()
                    second.__exit__()
                    thread = threading.Thread(target=lambda: record_function("alone").__enter__().__exit__())
                    thread.start()
                    thread.join()
        window.recording.write_chrome_trace(tmp_path / f"{side}.json")
        traces.append(load_trace(tmp_path / f"{side}.json"))
    base, head = traces
    found = difference(base.recording, head.recording)
    assert write_merged(base, head, tmp_path / "both.json", found=found) == 2
    with perfetto(tmp_path / "both.json") as page:
        assert page.query(FAULTS, "name", "value") == []
        counts = page.query(
            """
            select process.name as side, slice.name as name, count() as calls from slice
            join thread_track on thread_track.id = slice.track_id
            join thread using (utid) join process using (upid)
            where category glob 'user_annotation*' and slice.name glob '[Po][ru]*' group by 1, 2
            """,
            "side",
            "name",
            "calls",
        )
        listed = page.query("select name from slice where category = 'opprof.difference'", "name")
        told = page.query(
            "select extract_arg(arg_set_id, 'args.opprof.change of calls') as told from slice "
            "where category = 'user_annotation,opprof.more' group by 1",
            "told",
        )
        starts = page.query(
            "select name, count(distinct ts) as times from slice where name glob 'Prof*' group by 1",
            "name",
            "times",
        )
    steps = [[side, f"ProfilerStep#{number}", 1] for side in ("base", "head") for number in range(3)]
    calls = [["base", "outer [+100]", 450], ["head", "outer [+100]", 750]]
    assert sorted(counts, key=str) == sorted([*steps, *calls], key=str)
    assert {name for (name,) in listed} >= {"outer: 150 -> 250 calls", "inner: 150 -> 250 calls"}
    assert told == [["+100"]]
    assert starts == [[f"ProfilerStep#{number}", 1] for number in range(3)]
