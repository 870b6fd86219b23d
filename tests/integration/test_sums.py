"""Past the number of kept events only sums remain, and they equal those of all events."""

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.op_groups import OpGroup
from pytest_opprof.capture.recording import Recording
from pytest_opprof.errors import CollectorError

if TYPE_CHECKING:
    import torch
else:
    torch = pytest.importorskip("torch")

STEPS = 3


@pytest.fixture
def model() -> torch.nn.Module:
    encoder = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return torch.nn.TransformerEncoder(encoder, 2, enable_nested_tensor=False)


def both(model: torch.nn.Module) -> tuple[Recording, Recording]:
    """One window twice: all events, and only the sums."""
    collector = Collector.instance()
    collector.open(sources=frozenset({"ranges", "ops"}))
    collector.start()
    for number in range(STEPS):
        collector.step_begin(number)
        model(torch.ones(2, 5, 16)).sum().backward()
        collector.step_end()
    whole = collector.peek()
    return whole, collector.stop(most_events=100)


def without_events(group: OpGroup) -> OpGroup:
    return replace(group, first_event=0, args_event=0)


def test_sums_match_all_events(model: torch.nn.Module) -> None:
    whole, summed = both(model)
    assert (whole.is_summed, summed.is_summed) == (False, True)
    assert len(whole) == summed.stats.events > 100
    assert len(summed) == 0
    assert [group.name for group in summed.groups()] == [group.name for group in whole.groups()]
    assert [group.steps["count"] for group in summed.groups()] == [
        group.steps["count"] for group in whole.groups()
    ]
    assert [group.steps["views"] for group in summed.groups()] == [
        group.steps["views"] for group in whole.groups()
    ]
    calls = [(node.parent, node.name, node.count) for node in summed.call_tree()]
    assert sorted(calls) == sorted((node.parent, node.name, node.count) for node in whole.call_tree())
    assert len(summed.steps) == STEPS


def test_only_sums_by_name_are_available(model: torch.nn.Module) -> None:
    _, summed = both(model)
    with pytest.raises(CollectorError, match="summed up by name and discarded"):
        summed.groups(by_inputs=True)
    assert summed.device_use() is None
    assert [use.allocations for use in summed.memory_use()[0]] == [0] * STEPS


def test_summing_keeps_fewer_events() -> None:
    collector = Collector.instance()
    collector.open(sources=frozenset({"ranges", "ops"}))
    collector.start()
    torch.ones(1)
    recording = collector.stop(most_events=100)
    assert not recording.is_summed
    assert len(recording) == recording.stats.events > 0


MEMORY = """\
import re
from pathlib import Path
from pytest_opprof import range_pop, range_push
from pytest_opprof.capture.collector import Collector

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10

collector = Collector.instance()
collector.start()
for _ in range({events}):
    range_push("work")
    range_pop()
before = peak()
recording = collector.stop(most_events=100_000)
assert recording.is_summed and recording.stats.spilled_bytes > 16 * {events}
print(peak() - before)
"""


@pytest.mark.slow
def test_memory_of_sums_does_not_grow_with_events() -> None:
    few, many = (
        int(subprocess.check_output([sys.executable, "-c", MEMORY.format(events=events)]))
        for events in (2_000_000, 8_000_000)
    )
    assert many < few + (16 << 20)
