"""Memory of ops as we record it, against torch.profiler's record of a second run of the same program.

A thread's slot for memory reports of torch's allocators holds one profiler, so one run cannot serve both.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from support.kineto.torch_releases import credits_memory_exactly

from pytest_opprof import ProfilerActivity, profile
from pytest_opprof.kinds import EventKind

pytestmark = pytest.mark.usefixtures("torch", "no_garbage")


def encoder_step(torch: Any) -> Callable[[], None]:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(32, 2, 64, batch_first=True, dropout=0.0)
    encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    tokens = torch.randn(2, 8, 32)
    return lambda: encoder(tokens).sum().backward()


def convolution_step(torch: Any) -> Callable[[], None]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2))
    image = torch.randn(1, 3, 16, 16)
    return lambda: model(image).sum().backward()


def optimizer_step(torch: Any) -> Callable[[], None]:
    model = torch.nn.Linear(16, 16)
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.ones(4, 16)

    def step() -> None:
        model(batch).sum().backward()
        optimizer.step()
        # Last, so that a window frees its own blocks alone: torch tells the release of an older one where an
        # earlier window had seen a block at that address, with that block's size.
        optimizer.zero_grad()

    return step


WORKLOADS = [encoder_step, convolution_step, optimizer_step]


def two_windows(torch: Any, run: Callable[[], None]) -> tuple[profile, Any]:
    """Our recording of a run, and torch.profiler's of the run before."""
    for _ in range(3):
        run()
    theirs = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True)
    with theirs:
        run()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as ours:
        run()
    return ours, theirs


def of_the_window(blocks: Iterable[tuple[int, int]]) -> list[int]:
    """The bytes allocated, and those of them that were freed: torch's allocator also frees earlier blocks."""
    in_use: set[int] = set()
    found = []
    for address, nbytes in blocks:
        if nbytes > 0:
            in_use.add(address)
        if address in in_use:
            found.append(nbytes)
        if nbytes < 0:
            in_use.discard(address)
    return found


@pytest.mark.parametrize("make", WORKLOADS)
def test_blocks_match_torchs(torch: Any, make: Callable[[Any], Callable[[], None]]) -> None:
    ours, theirs = two_windows(torch, make(torch))
    recording = ours.cycles[0].recording
    seen = [change.nbytes for change in map(recording.memory, range(len(recording))) if change is not None]
    seen = [nbytes for nbytes in seen if nbytes]
    # Kineto's Python events have no addresses, but its tree has.
    nodes = list(theirs.profiler.kineto_results.experimental_event_tree())
    told = []
    while nodes:
        node = nodes.pop()
        nodes += node.children
        if node.name == "[memory]":
            told.append((node.start_time_ns, node.extra_fields.ptr, node.extra_fields.alloc_size))
    assert seen == of_the_window((address, nbytes) for _, address, nbytes in sorted(told))
    assert len(seen) > 10


def _skip_where_it_rounds(torch: Any) -> None:
    if not credits_memory_exactly(torch):
        pytest.skip("this torch looks for the op of a block by times that it rounds to 0.25 us")


@pytest.mark.parametrize("make", WORKLOADS)
def test_ops_are_credited_as_torch_credits_them(
    torch: Any, make: Callable[[Any], Callable[[], None]]
) -> None:
    """Torch matches by time only; on one thread that is equal except between two ops."""
    _skip_where_it_rounds(torch)
    ours, theirs = two_windows(torch, make(torch))
    told = {row.key: row for row in theirs.key_averages()}
    rows = {row.key: row for row in ours.key_averages()}
    # Where torch counts fewer events it has let an op swallow a child of its own name, with its memory.
    same = [key for key, row in rows.items() if key in told and told[key].count == row.count]
    assert len(same) > len(rows) * 0.7
    assert {key: rows[key].cpu_memory_usage for key in same} == {
        key: told[key].cpu_memory_usage for key in same
    }


@pytest.mark.parametrize("make", WORKLOADS)
def test_compat_rows_match_torchs(torch: Any, make: Callable[[Any], Callable[[], None]]) -> None:
    _skip_where_it_rounds(torch)
    ours, theirs = two_windows(torch, make(torch))

    def said(rows: Iterable[Any]) -> dict[str, tuple[int, int, int]]:
        # memory outside ops differs between windows: torch's allocator knows earlier blocks
        return {
            row.key: (row.count, row.cpu_memory_usage, row.self_cpu_memory_usage)
            for row in rows
            if row.key != "[memory]"
        }

    assert said(ours.key_averages(compat="torch")) == said(theirs.key_averages())


def test_instants_are_not_ops(torch: Any) -> None:
    run = encoder_step(torch)
    run()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as ours:
        run()
    recording = ours.cycles[0].recording
    memory = sum(kind == EventKind.MEMORY for kind in recording.kind)
    with profile(activities=[ProfilerActivity.CPU]) as plain:
        run()
    assert len(recording) - memory == len(plain.cycles[0].recording)
