"""Events made by hand, with torch's arguments."""

from collections.abc import Callable
from typing import Any

import pytest

from pytest_opprof import DeviceType, EventList, FunctionEvent, FunctionEventAvg, Kernel

DEEP = 100_000


def event(name: str = "aten::add", start_us: float = 0, end_us: float = 10, **known: Any) -> FunctionEvent:
    arguments: dict[str, Any] = {"id": 1, "thread": 1, **known}
    return FunctionEvent(name=name, start_us=start_us, end_us=end_us, **arguments)


def nested(*children: FunctionEvent, **known: Any) -> FunctionEvent:
    outer = event("outer", **known)
    for child in children:
        outer.append_cpu_child(child)
        child.set_cpu_parent(outer)
    return outer


def chain(length: int, *, name: str = "op{}", **known: Any) -> list[FunctionEvent]:
    return [event(name.format(i), i, 2 * length - i, id=i, stack=[], **known) for i in range(length)]


def test_unknown_values_match_torchs() -> None:
    plain = event()
    assert (plain.count, plain.kernels, plain.cpu_children, plain.cpu_parent) == (1, [], [], None)
    assert (plain.key, plain.sequence_nr, plain.node_id, plain.device_type) == ("aten::add", -1, -1, 0)
    assert (plain.flops, plain.stack, plain.event_metadata, plain.step, plain.kind) == (None,) * 5
    assert plain.device_resource_id == plain.thread == 1
    assert not plain.is_unfinished


def test_children_do_not_count_as_self_time() -> None:
    outer = nested(event(start_us=1, end_us=4), event(start_us=5, end_us=6))
    assert (outer.cpu_time_total, outer.self_cpu_time_total) == (10, 6)
    assert (outer.start_ns, outer.end_ns, outer.cpu_time_total_ns) == (0, 10_000, 10_000)


@pytest.mark.parametrize(
    "alone", [{"is_async": True}, {"device_type": DeviceType.CUDA}], ids=["async", "device"]
)
def test_async_and_device_events_have_no_self_time(alone: dict[str, Any]) -> None:
    assert event(**alone).self_cpu_time_total == 0
    assert event(cpu_memory_usage=8, **alone).self_cpu_memory_usage == 0


def test_device_time_sums_kernels_and_children() -> None:
    inner = event(use_device="cuda")
    inner.append_kernel("gemm", 0, 5.0)
    outer = nested(inner, use_device="cuda")
    outer.append_kernel("copy", 1, 2.0)
    assert outer.kernels == [Kernel("copy", 1, 2.0)]
    assert (outer.device_time_total, outer.self_device_time_total) == (7.0, 2.0)
    assert (inner.device_time_total, inner.self_device_time_total) == (5.0, 5.0)


def test_legacy_event_has_its_own_kernel_only() -> None:
    inner = event(use_device="cuda", is_legacy=True)
    inner.append_kernel("aten::mm", 0, 5.0)
    outer = nested(inner, use_device="cuda", is_legacy=True)
    outer.append_kernel("aten::linear", 0, 6.0)
    assert (outer.device_time_total, outer.self_device_time_total) == (6.0, 1.0)


def test_no_device_profiled_is_no_device_time() -> None:
    lonely = event()
    lonely.append_kernel("gemm", 0, 5.0)
    assert (lonely.device_time_total, lonely.self_device_time_total) == (0, 0)


def test_device_event_has_its_own_time() -> None:
    kernel = event(device_type=DeviceType.CUDA, use_device="cuda")
    assert (kernel.device_time_total, kernel.self_device_time_total, kernel.cpu_time_total) == (10, 10, 0)


def test_device_without_times_is_refused() -> None:
    odd = event(device_type=DeviceType.Vulkan, use_device="cuda")
    with pytest.raises(AssertionError, match="to be CUDA"):
        _ = odd.device_time_total


def test_memory_of_children_is_not_self_memory() -> None:
    outer = nested(
        event(cpu_memory_usage=3, device_memory_usage=5), cpu_memory_usage=10, device_memory_usage=4
    )
    assert (outer.self_cpu_memory_usage, outer.self_device_memory_usage) == (7, -1)


def test_only_events_of_the_host_are_linked() -> None:
    kernel = event(device_type=DeviceType.CUDA)
    links: tuple[Callable[[], None], ...] = (
        lambda: event().append_cpu_child(kernel),
        lambda: kernel.append_cpu_child(event()),
        lambda: event().set_cpu_parent(kernel),
        lambda: kernel.set_cpu_parent(event()),
        lambda: kernel.append_kernel("gemm", 0, 1.0),
    )
    for link in links:
        with pytest.raises(AssertionError, match="to be CPU"):
            link()
    with pytest.raises(AssertionError, match="Expected child to be a FunctionEvent"):
        event().append_cpu_child("aten::add")  # type: ignore[arg-type]  # the mistake
    with pytest.raises(AssertionError, match="Expected parent to be a FunctionEvent"):
        event().set_cpu_parent("aten::add")  # type: ignore[arg-type]  # the mistake


def test_kinetos_arguments_become_metadata() -> None:
    known = event(extra_meta={"grid": "[4, 1, 1]", "stream": "7", "dtype": '"float"', "other": "1"})
    assert known.event_metadata is not None
    assert (known.event_metadata.grid, known.event_metadata.stream) == ([4, 1, 1], 7)
    assert (known.event_metadata.dtype, known.event_metadata.block) == ("float", None)
    assert event(extra_meta={"other": "1"}).event_metadata is None


def test_raw_metadata_is_deprecated() -> None:
    with pytest.warns(FutureWarning, match="metadata_json"):
        assert event(metadata_json="{}").metadata_json == "{}"


@pytest.mark.slow
def test_deep_nesting_does_not_recurse() -> None:
    events = EventList(chain(DEEP, use_device="cuda"), use_device="cuda")
    events[DEEP - 1].append_kernel("gemm", 0, 3.0)
    events._build_tree()
    assert len(events) == DEEP
    assert events[0].device_time_total == 3.0
    rows = events.key_averages(compat="torch")
    assert len(rows) == DEEP
    assert rows[0].self_cpu_time_total == 2


def test_deep_repeats_become_one() -> None:
    events = EventList(chain(DEEP, name="op"))
    events._build_tree()
    assert (len(events), events[0].self_cpu_time_total, events[0].cpu_children) == (1, 2 * DEEP, [])


def test_averages_start_empty() -> None:
    row = FunctionEventAvg()
    assert (row.key, row.count, row.flops, row.cpu_time) == (None, 0, 0, 0.0)
    row += event(flops=None)
    row += event(flops=3, end_us=4)
    assert (row.key, row.count, row.flops, row.cpu_time_total, row.cpu_time) == ("aten::add", 2, 3, 14, 7.0)
    with pytest.raises(AssertionError, match="Expected other to be a FunctionEvent"):
        FunctionEventAvg().add("aten::add")  # type: ignore[arg-type]  # the mistake
