"""Torch ops in our recordings: on all threads, forward and backward, and with faults."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.programs.children import answer_of, run_python
from support.programs.windows import (
    RANGES,
    Window,
    asynchronous,
    callers,
    events_of,
    names,
    ops_window,
    unfinished,
)

from pytest_opprof import record_function
from pytest_opprof.capture.collector import Collector
from pytest_opprof.kinds import EventKind

pytestmark = pytest.mark.usefixtures("torch_collector")


# ---- recorded ops ----


def test_ops_nest_in_ranges(torch: Any) -> None:
    ones = torch.ones(2)
    with ops_window() as window, record_function("forward"):
        ones + ones
        with torch.profiler.record_function("torch's range"):
            ones * ones
    recording = window.recording
    assert recording.sources == ("ranges", "ops")
    assert list(zip(names(recording), callers(recording), strict=True)) == [
        ("forward", None),
        ("aten::add", "forward"),
        ("torch's range", "forward"),
        ("aten::mul", "torch's range"),
    ]
    assert list(recording.kind) == [EventKind.RANGE, EventKind.TORCH, EventKind.TORCH, EventKind.TORCH]
    assert list(recording.scope) == [7, 0, 7, 0]


def test_ranges_only_means_no_ops(torch: Any) -> None:
    with Window(sources=RANGES) as window, record_function("range"):
        torch.ones(2)
    assert names(window.recording) == ["range"]
    assert window.recording.sources == ("ranges",)


def test_ops_outside_of_windows_are_not_seen(torch: Any) -> None:
    with ops_window():
        pass
    torch.ones(2)
    with ops_window() as window:
        pass
    assert names(window.recording) == []


def test_ops_of_all_threads_are_seen(torch: Any) -> None:
    ones = torch.ones(2)
    with ops_window() as window, ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(torch.add, ones, ones) for _ in range(40)]:
            future.result()
    assert Counter(names(window.recording)) == {"aten::add": 40}
    assert window.recording.stats.unmatched_ends == 0


def test_op_that_raises_is_recorded_whole(torch: Any) -> None:
    with ops_window() as window:
        with pytest.raises(RuntimeError, match="must match"):
            torch.ones(2) + torch.ones(3)
        torch.zeros(2)
    recording = window.recording
    assert "aten::add" in names(recording)
    assert not any(unfinished(recording))
    assert recording.parent[events_of(recording, "aten::zeros")[0]] == -1


@pytest.mark.parametrize("name", ['a"b\\c', "日本", "line\nend", "x" * 10_000, ""], ids=ascii)
def test_torch_ranges_have_any_name(torch: Any, name: str) -> None:
    with ops_window() as window:
        with torch.profiler.record_function(name):
            pass
        with torch._C._profiler._RecordFunctionFast(name):
            pass
    first, second = names(window.recording)
    assert first == second
    assert first == name or (len(first) == 8192 and first.startswith(f"{name[:8175]}~"))
    assert list(window.recording.scope) == [7, 0]


def test_names_at_reused_addresses_are_distinguished(torch: Any) -> None:
    """Torch makes the text of such a range in memory that it has just freed."""
    with ops_window() as window:
        for number in range(5000):
            with torch.profiler.record_function(f"range {number}"):
                pass
    assert names(window.recording) == [f"range {number}" for number in range(5000)]


def test_deep_nesting_keeps_its_order(torch: Any) -> None:
    depth = 700  # contexts come in blocks of 256
    with ops_window() as window:
        ranges = [torch.profiler.record_function("deep") for _ in range(depth)]
        for scope in ranges:
            scope.__enter__()
        torch.ones(2)
        for scope in reversed(ranges):
            scope.__exit__(None, None, None)
    recording = window.recording
    assert list(recording.parent)[:depth] == list(range(-1, depth - 1))
    assert callers(recording)[depth] == "deep"
    assert not any(unfinished(recording))
    assert not any(asynchronous(recording))


def test_range_of_an_earlier_window_ends_nothing(torch: Any) -> None:
    range_before = torch.profiler.record_function("before")
    ones = torch.ones(2)
    with ops_window():
        range_before.__enter__()
    with ops_window() as window, torch.profiler.record_function("step"):
        range_before.__exit__(None, None, None)
        ones + ones
    recording = window.recording
    assert list(zip(names(recording), callers(recording), strict=True)) == [
        ("step", None),
        ("aten::add", "step"),
    ]


def test_range_that_ends_with_a_future_is_asynchronous(torch: Any) -> None:
    future: Any = torch.futures.Future()
    with ops_window() as window:
        with torch.autograd.profiler.record_function("waits") as scope:
            scope._call_end_callbacks_on_future(future)
        with record_function("meanwhile"):
            future.set_result(torch.ones(2))
    recording = window.recording
    (waits,) = events_of(recording, "waits")
    assert asynchronous(recording)[waits]
    assert not unfinished(recording)[waits]
    assert recording.parent[events_of(recording, "meanwhile")[0]] == -1


# ---- autograd ----


def test_backward_carries_the_numbers_of_forward(torch: Any) -> None:
    weights = torch.ones(2, requires_grad=True)
    with ops_window() as window:
        (weights * 3).sum().backward()
    recording = window.recording
    (forward,) = events_of(recording, "aten::mul")[:1]
    (backward,) = events_of(recording, "MulBackward0")
    (wrapper,) = events_of(recording, "autograd::engine::evaluate_function: MulBackward0")
    assert recording.sequence_nr[forward] == recording.sequence_nr[backward] >= 0
    assert recording.sequence_nr[wrapper] == recording.sequence_nr[backward]
    assert recording.forward_thread[forward] == 0
    assert recording.forward_thread[backward] == recording.forward_thread[wrapper] > 0
    assert recording.parent[backward] == wrapper
    assert recording.scope[backward] == 1


def test_backward_belongs_to_the_step_of_its_forward(torch: Any) -> None:
    """Even on a thread that existed before, and while another step is open."""
    weights = torch.ones(2, requires_grad=True)
    collector = Collector.instance()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(torch.ones, 1).result()
        collector.start()
        collector.step_begin(0)
        loss = (weights * 3).sum()
        collector.step_end()
        collector.step_begin(1)
        pool.submit(loss.backward).result()
        pool.submit(torch.zeros, 1).result()
        collector.step_end()
        recording = collector.stop()
    rows = {row.name: row for row in recording.groups() if not row.background}
    assert rows["MulBackward0"].steps["count"] == (1, 0)
    assert rows["autograd::engine::evaluate_function: MulBackward0"].steps["count"] == (1, 0)
    background = {row.name for row in recording.groups() if row.background}
    assert {"aten::zeros"} <= background
    assert not any("Backward" in name for name in background)


def test_backward_on_another_thread_names_the_forward_thread(torch: Any) -> None:
    weights = torch.ones(2, requires_grad=True)
    with ops_window() as window:
        loss = (weights * 3).sum()
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()
    recording = window.recording
    (forward,), (backward,) = events_of(recording, "aten::mul")[:1], events_of(recording, "MulBackward0")
    assert recording.thread[forward] != recording.thread[backward]
    assert recording.forward_thread[backward] > 0


# ---- faults ----


def test_windows_open_and_close_beside_running_ops(torch: Any) -> None:
    stop = threading.Event()
    ones = torch.ones(2, requires_grad=True)

    def work() -> None:
        while not stop.is_set():
            with record_function("work"):
                (ones * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for number in range(12):
            with ops_window(record_shapes=number % 2 == 0) as window:
                (ones + ones).sum()
            recording = window.recording
            assert "aten::add" in names(recording)
            assert all(own >= 0 for own in recording.self_ns)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


PRELUDE = """
    import json, os, sys, threading
    from pytest_opprof import record_function
    from pytest_opprof.capture.collector import Collector

    collector = Collector.instance()
    collector.open()

    def names(recording):
        return [recording.name(event) for event in range(len(recording))]
"""


@pytest.mark.slow
def test_threads_without_room_go_on(torch: Any) -> None:
    """Their first op finds the budget spent; none may touch a chunk that it does not have."""
    said = answer_of(
        PRELUDE
        + """
    import torch
    ones = torch.ones(2)
    collector.start()
    for _ in range(100_000):
        with record_function("range"):
            pass
    def work():
        for _ in range(3):
            ones + ones
    for _ in range(200):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    stats = collector.stop().stats
    print(json.dumps([stats.truncated, stats.events + stats.dropped]))
    """,
        environment={"OPPROF_MAX_BYTES": "1 MiB"},
    )
    assert said == [True, 100_600]


@pytest.mark.slow
def test_collector_never_imports_torch() -> None:
    said = answer_of(
        PRELUDE
        + """
    collector.start()
    first = collector.stop()
    imported = "torch" in sys.modules
    collector.start()
    import torch
    torch.ones(2)
    second = collector.stop()
    collector.start()
    torch.ones(2)
    third = collector.stop()
    seen = [("ops" in window.sources, "aten::ones" in names(window)) for window in (first, second, third)]
    print(json.dumps([imported, *seen]))
    """
    )
    # Torch imported while a window is open is recorded from the next window on.
    assert said == [False, [False, False], [False, False], [True, True]]


@pytest.mark.slow
def test_forked_child_has_torch_to_itself(torch: Any, tmp_path: Path) -> None:
    said = answer_of(
        PRELUDE
        + """
    import torch
    ones = torch.ones(2)
    collector.start()
    ones + ones
    mine, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        ones * ones
        flag = torch.autograd.profiler._is_profiler_enabled
        collector.start()
        ones - ones
        os.write(theirs, json.dumps([flag, names(collector.stop())]).encode())
        os._exit(0)
    told = json.loads(os.read(mine, 10_000))
    assert os.waitpid(child, 0)[1] == 0
    ones / ones
    print(json.dumps([told, names(collector.stop())]))
    """,
        environment={"OPPROF_DIR": str(tmp_path)},  # where the child leaves its session file
    )
    assert said == [[False, ["aten::sub"]], ["aten::add", "aten::div"]]


@pytest.mark.slow
def test_data_loader_workers_run_in_a_window(torch: Any) -> None:
    program = (
        PRELUDE
        + """
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(torch.arange(8.0)), batch_size=2, num_workers=1)
    collector.start()
    with record_function("load"):
        total = sum(float(batch.sum()) for (batch,) in loader)
    recording = collector.stop()
    print(json.dumps([total, names(recording)[0], "aten::sum" in names(recording)]))
    """
    )
    done = run_python(program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == '[28.0, "load", true]'


def test_observer_reuses_memory_of_ended_threads(torch: Any) -> None:
    ones = torch.ones(2)

    def one_window() -> None:
        with ops_window(record_shapes=True) as window:
            for _ in range(300):
                thread = threading.Thread(target=torch.add, args=(ones, ones))
                thread.start()
                thread.join()
        assert Counter(names(window.recording)) == {"aten::add": 300}

    one_window()
    before = resident_bytes()
    for _ in range(4):
        one_window()
    # A table of contexts is about 20 KiB per thread: 1,200 threads that kept theirs would hold 24 MiB.
    assert resident_bytes() - before < 6 << 20


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  # a file of the kernel's
        return int(file.read().split()[1]) * 4096
