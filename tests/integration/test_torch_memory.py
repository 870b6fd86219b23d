"""Tensor memory in our recordings: every block, on all threads, credited to the op that allocated it."""

import gc
import threading
from typing import Any

import pytest
from support.programs.windows import RANGES_AND_OPS, Window

from pytest_opprof import ProfilerActivity, profile, record_function
from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.recording import Recording
from pytest_opprof.capture.window import MemoryChange
from pytest_opprof.kinds import FLAG_CREDITED, EventKind

pytestmark = pytest.mark.usefixtures("torch_collector")

FLOAT = 4


def memory_window(*, record_shapes: bool = False, begins_step: bool = False) -> Window:
    return Window(
        sources=RANGES_AND_OPS, record_shapes=record_shapes, profile_memory=True, begins_step=begins_step
    )


def changes(recording: Recording) -> list[MemoryChange]:
    found = (recording.memory(event) for event in range(len(recording)))
    return [change for change in found if change is not None]


def own_bytes(recording: Recording) -> dict[str, int]:
    """The bytes that events allocated themselves, by name."""
    own: dict[str, int] = {}
    for event, nbytes in enumerate(recording.self_cpu_memory):
        if nbytes:
            own[recording.name(event)] = own.get(recording.name(event), 0) + nbytes
    return own


def test_each_block_is_recorded_with_its_address(torch: Any) -> None:
    with memory_window() as window:
        block = torch.empty(256)
        address = block.data_ptr()
        del block
    recording = window.recording
    assert recording.sources == ("ranges", "ops", "memory", "retained")
    taken, given = changes(recording)
    assert (taken.address, taken.nbytes) == (address, 256 * FLOAT)
    assert (given.address, given.nbytes) == (address, -256 * FLOAT)
    assert taken.total_allocated - given.total_allocated == 256 * FLOAT
    assert (taken.device_type, taken.device_index) == (0, -1)
    memory = [event for event, kind in enumerate(recording.kind) if kind == EventKind.MEMORY]
    assert [recording.name(event) for event in memory] == ["[memory]"] * 2
    assert [recording.duration_ns[event] for event in memory] == [0, 0]
    assert [bool(recording.flags[event] & FLAG_CREDITED) for event in memory] == [True, False]


def test_the_innermost_op_is_credited(torch: Any) -> None:
    ones = torch.ones(64, 64)
    with memory_window() as window, record_function("forward"):
        kept = (ones @ ones).mul_(ones)
    recording = window.recording
    assert own_bytes(recording) == {"aten::mm": kept.nbytes}
    forward = [recording.name(event) for event in range(len(recording))].index("forward")
    assert recording.cpu_memory[forward] == kept.nbytes
    assert recording.self_cpu_memory[forward] == 0


def test_a_free_is_credited_where_it_happens(torch: Any) -> None:
    ones = torch.ones(256)
    with memory_window() as window:
        block = [ones + ones]
        with record_function("clean up"):
            block.clear()
    assert own_bytes(window.recording) == {"aten::add": 256 * FLOAT, "clean up": -256 * FLOAT}


def test_every_free_matches_an_allocation(torch: Any) -> None:
    """O5: over a window that keeps nothing, the bytes of each address sum to zero."""
    linear = torch.nn.Linear(32, 32)
    batch = torch.ones(8, 32)
    linear(batch).sum().backward()
    with memory_window() as window:
        for _ in range(3):
            linear(batch).relu().sum().backward()
        gc.collect()
    by_address: dict[int, int] = {}
    for change in changes(window.recording):
        by_address[change.address] = by_address.get(change.address, 0) + change.nbytes
        assert by_address[change.address] >= 0
    assert by_address
    assert set(by_address.values()) == {0}
    assert sum(window.recording.self_cpu_memory) == 0


def test_threads_keep_their_own_memory(torch: Any) -> None:
    ones = torch.ones(128)
    kept: list[Any] = []

    def work() -> None:
        with record_function("there"):
            kept.append(ones * ones)

    with memory_window() as window, record_function("here"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        kept.append(ones.new_empty(16))
    recording = window.recording
    assert own_bytes(recording) == {"aten::mul": 128 * FLOAT, "aten::empty": 16 * FLOAT}
    sums = {recording.name(event): recording.cpu_memory[event] for event in range(len(recording))}
    assert sums["there"] == 128 * FLOAT
    assert sums["here"] == 16 * FLOAT


def test_memory_is_not_recorded_by_default(torch: Any) -> None:
    """Our state stays on the thread between windows, but must not continue to report."""
    with memory_window():
        torch.empty(8)
    with Window(sources=RANGES_AND_OPS) as window:
        torch.empty(8)
    assert changes(window.recording) == []
    assert "memory" not in window.recording.sources
    assert list(window.recording.cpu_memory) == [0] * len(window.recording)


def test_failed_allocation_is_not_credited(torch: Any) -> None:
    with memory_window() as window, pytest.raises(RuntimeError, match=r"alloc|memory"):
        torch.empty(1 << 60)
    # Torch's CPU allocator reports none of its failures; what matters is that nothing is credited.
    assert sum(window.recording.self_cpu_memory) == 0


def test_steps_have_their_memory(torch: Any) -> None:
    ones = torch.ones(256)
    collector = Collector.instance()
    collector.start(profile_memory=True)
    for step in range(2):
        collector.step_begin(step)
        for _ in range(step + 1):
            first = ones + ones
            second = first + first
            del first, second
        collector.step_end()
    recording = collector.stop()
    steps, whole = recording.memory_use()
    size = 256 * FLOAT
    assert [(step.allocated, step.freed, step.peak, step.allocations) for step in steps] == [
        (2 * size, 2 * size, 2 * size, 2),
        (4 * size, 4 * size, 2 * size, 4),
    ]
    assert (whole.allocated, whole.peak, whole.allocations) == (6 * size, 2 * size, 6)
    assert recording.memory_use(on_device=True)[1].allocations == 0


def test_profile_shows_memory_in_events_and_table(torch: Any) -> None:
    ones = torch.ones(256)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        block = ones + ones
        del block
    add, free = prof.events()
    assert (add.name, add.cpu_memory_usage, add.self_cpu_memory_usage) == ("aten::add", 1024, 1024)
    assert (free.name, free.cpu_memory_usage, free.cpu_parent) == ("[memory]", -1024, None)
    assert add.cpu_children == []
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["aten::add"].self_cpu_memory_usage == 1024
    assert rows["[memory]"].cpu_memory_usage == -1024
    assert prof.key_averages().total_average().self_cpu_memory_usage == 0
    table = prof.key_averages().table()
    assert "CPU Mem  Self CPU Mem" in table
    assert "1.00 KB" in table
    assert "CPU Mem" in prof.events().table()
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        ones + ones
    assert "CPU Mem" not in prof.key_averages().table()


def test_memory_leaves_shapes_unchanged(torch: Any) -> None:
    """With memory, each tensor is followed by its id, which is neither a shape nor a value."""
    ones = torch.ones(2, 3)
    plain = Window(sources=RANGES_AND_OPS, record_shapes=True)
    for window in (plain, both := memory_window(record_shapes=True)):
        with window:
            torch.cat([ones, ones]) @ torch.ones(3, 1)
            ones.addmm(torch.ones(2, 2), ones, beta=2)

    def said(recording: Recording) -> list[object]:
        return [
            (recording.name(event), recording.inputs(event))
            for event in range(len(recording))
            if recording.kind[event] != EventKind.MEMORY
        ]

    assert said(both.recording) == said(plain.recording)
    shapes = [
        {(row.name, row.count) for row in window.recording.groups(by_inputs=True) if row.name != "[memory]"}
        for window in (plain, both)
    ]
    assert shapes[0] == shapes[1]
