"""The collector of this process: windows, their cost, and that nothing is left behind."""

import gc
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.programs.children import answer_of, run_python
from support.programs.windows import RANGES, Window, names, unfinished

from pytest_opprof import record_function
from pytest_opprof.capture.collector import Collector
from pytest_opprof.errors import CaptureBusyError, CollectorError, UsageError


@pytest.fixture
def collector() -> Iterator[Collector]:
    """An open collector for ranges only. A window that a failed test left open is closed."""
    collector = Collector.instance()
    collector.open(sources=RANGES)
    yield collector
    if collector.recording:
        collector.stop()


def record(*spans: str) -> None:
    for name in spans:
        with record_function(name):
            pass


# ---- opening, starting, stopping ----


def test_opening_again_changes_nothing(collector: Collector) -> None:
    before = collector.session_path
    collector.open(sources=RANGES)
    assert collector.session_path == before
    assert not collector.recording


def test_there_is_one_collector() -> None:
    assert Collector.instance() is Collector.instance()


def test_unknown_source_is_a_usage_error(collector: Collector) -> None:
    with pytest.raises(
        UsageError,
        match="unknown source 'opz': there are callers, cpp, cuda, cuda-if-used, itt, memory-malloc, memory-python, modules, nvtx",
    ):
        collector.open(sources=frozenset({"ranges", "opz"}))


def test_second_window_is_refused_and_the_first_goes_on(collector: Collector) -> None:
    collector.start()
    record("before")
    with pytest.raises(CaptureBusyError, match="a profile is being recorded in this process already"):
        collector.start()
    with ThreadPoolExecutor(1) as pool, pytest.raises(CaptureBusyError):
        pool.submit(collector.start).result()
    record("after")
    assert collector.recording
    recording = collector.stop()
    assert names(recording) == ["before", "after"]
    assert recording.sources == ("ranges",)


def test_one_of_many_concurrent_starts_succeeds(collector: Collector) -> None:
    together = threading.Barrier(8)

    def start() -> bool:
        together.wait()
        try:
            collector.start()
        except CaptureBusyError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        started = [future.result() for future in [pool.submit(start) for _ in range(8)]]
    assert started.count(True) == 1
    record("inside")
    assert names(collector.stop()) == ["inside"]


@pytest.mark.parametrize("call", ["stop", "peek", "step_end"])
def test_stop_without_a_window_does_nothing(collector: Collector, call: str) -> None:
    with pytest.raises(CollectorError, match="no window is open"):
        getattr(collector, call)()


def test_step_needs_a_window(collector: Collector) -> None:
    with pytest.raises(CollectorError, match="step 3: no window is open"):
        collector.step_begin(3)


def test_window_may_be_stopped_on_another_thread(collector: Collector) -> None:
    collector.start()
    record("inside")
    with ThreadPoolExecutor(1) as pool:
        recording = pool.submit(collector.stop).result()
    assert names(recording) == ["inside"]


def test_garbage_is_collected_before_the_window(collector: Collector) -> None:
    class Garbage:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            record("finalizer")

    Garbage()
    gc.disable()
    try:
        collector.start()
        gc.collect()
        assert names(collector.stop()) == []
    finally:
        gc.enable()


def test_peek_leaves_the_recording_running(collector: Collector) -> None:
    collector.start()
    record("first")
    with record_function("open"):
        peeked = collector.peek()
        record("second")
    recording = collector.stop()
    assert names(peeked) == ["first", "open"]
    assert unfinished(peeked) == [False, True]
    assert names(recording) == ["first", "open", "second"]
    assert not any(unfinished(recording))


# ---- steps ----


def test_event_belongs_to_the_step_in_which_it_began(collector: Collector) -> None:
    collector.start()
    record("before")
    collector.step_begin(7)
    record("in 7")
    spanning = record_function("spanning")
    spanning.__enter__()
    collector.step_end()
    record("between")
    collector.step_begin(8)
    spanning.__exit__()
    record("in 8")
    collector.step_begin(9)  # ends the step before
    record("in 9")
    recording = collector.stop()
    assert [step.number for step in recording.steps] == [7, 8, 9]
    assert dict(zip(names(recording), recording.step, strict=True)) == {
        "before": -1,
        "in 7": 0,
        "spanning": 0,
        "between": -1,
        "in 8": 1,
        "in 9": 2,
    }
    edges = [edge for step in recording.steps for edge in (step.start_ns, step.end_ns)]
    assert edges == sorted(edges)
    assert (
        recording.trace_start_ns <= edges[0] < edges[-1] <= recording.trace_start_ns + recording.trace_end_ns
    )


def test_samples_are_per_step(collector: Collector) -> None:
    collector.start()
    for step, count in enumerate([3, 1, 2]):
        collector.step_begin(step)
        record(*["again"] * count)
        collector.step_end()
        record("again")
    (row,) = collector.stop().groups()
    assert row.count == 9
    assert row.steps["count"] == (3, 1, 2)
    assert sum(row.steps["total_ns"]) < row.total_ns


def test_threads_from_before_a_step_are_background(collector: Collector) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(record, "warm").result()
        collector.start()
        pool.submit(record, "work").result()
        collector.step_begin(0)
        record("work")
        pool.submit(record, "work").result()
        pool.submit(record, "pool only").result()
        collector.step_end()
        recording = collector.stop()
    rows = {(row.name, row.background): (row.count, row.steps["count"]) for row in recording.groups()}
    assert rows == {
        ("work", False): (2, (1,)),  # one of them before the step
        ("work", True): (1, (0,)),
        ("pool only", True): (1, (0,)),
    }


def test_threads_started_in_a_step_belong_to_it(collector: Collector) -> None:
    collector.start()
    collector.step_begin(0)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(record, "first step").result()
        collector.step_end()
        collector.step_begin(1)
        pool.submit(record, "second step").result()
        collector.step_end()
    recording = collector.stop()
    rows = {row.name: (row.background, row.steps["count"]) for row in recording.groups()}
    # In the second step the thread already exists.
    assert rows == {"first step": (False, (1, 0)), "second step": (True, (0, 0))}


def test_stepping_thread_is_part_of_the_step(collector: Collector) -> None:
    def step() -> None:
        collector.step_begin(0)
        record("on the pool")
        collector.step_end()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(record, "warm").result()
        collector.start()
        pool.submit(step).result()
        recording = collector.stop()
    assert [(row.name, row.steps["count"]) for row in recording.groups()] == [("on the pool", (1,))]


# ---- limits, files, leaks ----

EXHAUST = """
    import json, tempfile
    from pytest_opprof import load_trace, record_function
    from pytest_opprof.capture.collector import Collector

    collector = Collector.instance()
    collector.open(sources=frozenset({"ranges"}))
    collector.start()
    for number in range(200_000):
        with record_function("range"):
            pass
    dropped = collector.dropped
    recording = collector.stop()
    collector.start()
    with record_function("next window"):
        pass
    later = collector.stop()
    with tempfile.NamedTemporaryFile() as file:
        recording.write_chrome_trace(file.name)
        written = load_trace(file.name).recording.stats
    print(json.dumps({
        "told": [written.dropped, written.truncated],
        "kept": len(recording), "dropped": [dropped, recording.stats.dropped],
        "truncated": [recording.stats.truncated, later.stats.truncated], "later": len(later),
    }))
"""


def test_past_the_byte_budget_events_are_counted() -> None:
    said = answer_of(EXHAUST, environment={"OPPROF_MAX_BYTES": "1 MiB"})
    assert 0 < said["kept"] < 40_000
    assert said["dropped"] == [200_000 - said["kept"]] * 2
    assert said["truncated"] == [True, False]
    assert said["told"] == [said["dropped"][0], True]  # by a trace of it
    assert said["later"] == 1


def test_within_the_byte_budget_nothing_is_dropped() -> None:
    said = answer_of(EXHAUST, environment={"OPPROF_MAX_BYTES": None})
    assert (said["kept"], said["dropped"], said["truncated"]) == (200_000, [0, 0], [False, False])
    assert said["told"] == [0, False]


def test_invalid_byte_budget_is_a_usage_error() -> None:
    done = run_python(EXHAUST, environment={"OPPROF_MAX_BYTES": "many"})
    assert done.returncode == 1
    assert "UsageError: OPPROF_MAX_BYTES: " in done.stderr.splitlines()[-1]


SESSION = """
    import json, os
    from pathlib import Path
    from pytest_opprof import record_function
    from pytest_opprof.capture.collector import Collector

    collector = Collector.instance()
    before = collector.session_path
    collector.open(sources=frozenset({"ranges"}))
    collector.start()
    for number in range(EVENTS):
        with record_function("range"):
            pass
    path = collector.session_path
    files = sorted(os.listdir(path.parent)) if path else []
    stats = collector.stop().stats
    print(json.dumps({
        "before": before, "path": str(path) if path else None, "mode": path.stat().st_mode if path else 0,
        "files": [name for name in files if name.startswith(path.name)], "events": stats.events,
        "dropped": stats.dropped, "spilled": stats.spilled_bytes, "recovery": stats.crash_recovery,
    }))
"""


def test_session_file_is_private_and_leaves_with_its_process(tmp_path: Path) -> None:
    said = answer_of(SESSION.replace("EVENTS", "10"), environment={"OPPROF_DIR": str(tmp_path)})
    path = Path(said["path"])
    assert said["before"] is None
    assert path.parent == tmp_path
    assert stat.S_IMODE(said["mode"]) == 0o600
    assert said["recovery"] is True
    assert said["files"] == [path.name, f"{path.name}.names"]
    assert list(tmp_path.iterdir()) == []


def test_spilled_chunks_are_read_back_and_leave_no_file(tmp_path: Path) -> None:
    said = answer_of(SESSION.replace("EVENTS", "1_500_000"), environment={"OPPROF_DIR": str(tmp_path)})
    assert (said["events"], said["dropped"]) == (1_500_000, 0)
    assert said["spilled"] > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_unusable_folder_is_passed_over(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "folder"
    if kind == "file":
        folder.touch()
    said = answer_of(SESSION.replace("EVENTS", "1_500_000"), environment={"OPPROF_DIR": str(folder)})
    assert (said["events"], said["dropped"]) == (1_500_000, 0)
    assert said["path"] is None or Path(said["path"]).parent != folder


OPEN_AT_EXIT = """
    import sys, threading
    from pytest_opprof import record_function
    from pytest_opprof.capture.collector import Collector

    def record_forever():
        while True:
            with record_function("daemon"):
                pass

    collector = Collector.instance()
    collector.open(sources=frozenset({"ranges"}))
    collector.start()
    for _ in range(3):
        threading.Thread(target=record_forever, daemon=True).start()
    with record_function("main"):
        sys.exit(7)
"""


def test_process_may_end_while_a_window_is_open(tmp_path: Path) -> None:
    for _ in range(5):
        done = run_python(OPEN_AT_EXIT, environment={"OPPROF_DIR": str(tmp_path)})
        assert (done.returncode, done.stdout, done.stderr) == (7, "", "")
        assert list(tmp_path.iterdir()) == []


def holdings() -> tuple[int, int]:
    """Open files and memory mappings."""
    return len(list(Path("/proc/self/fd").iterdir())), len(Path("/proc/self/maps").read_text().splitlines())


def test_windows_leak_nothing(collector: Collector, large_counts: bool) -> None:
    def work() -> None:
        record("on a thread")

    def one_window() -> None:
        with Window() as window:
            thread = threading.Thread(target=work)
            thread.start()
            record(*["range"] * 100)
            thread.join()
        assert len(window.recording.groups()) == 2

    for _ in range(10):
        one_window()
    gc.collect()
    files, mappings = holdings()
    for _ in range(200 if large_counts else 40):  # each collects garbage; torch's heap is large
        one_window()
    gc.collect()
    files_now, mappings_now = holdings()
    assert files_now == files
    assert mappings_now - mappings < 20  # the C library's own arenas come and go
