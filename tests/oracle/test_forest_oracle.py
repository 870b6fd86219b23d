"""Our compat answers against torch's, byte for byte, over random Kineto results that never ran.

Torch's parser takes any objects with the methods of Kineto's events: with generated ones it computes kernels,
memory, stacks and FLOPs on a machine that has no device.
"""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.kineto.kineto_forests import ForestMaker, KinetoResult, hard_cases
from support.kineto.torch_releases import sums_as_ours

from pytest_opprof import EventList, KinetoRecording
from pytest_opprof.events.event_facts import EventFacts, EventMetadata

torch = pytest.importorskip("torch")
if not sums_as_ours(torch):
    pytest.skip("this torch's profiler sums up by other rules than torch 2.13's", allow_module_level=True)

HARD_CASES = (
    "partial overlap",
    "async",
    "equal starts",
    "legacy",
    "device",
    "out of memory",
    "memory across threads",
)
LEAST_SHARE = 0.05
ATTRIBUTES = [name for name in EventFacts.__slots__ if name not in ("cpu_children", "cpu_parent")]


# Torch 2.12 reads fewer of its fields, and one of them differently.
TELLS_METADATA = torch.autograd.profiler_util.EventMetadata._fields == EventMetadata._fields


class Tables(NamedTuple):
    """The options of sums and tables for one forest."""

    grouping: dict[str, Any]
    layout: dict[str, Any]


def tables(seed: int) -> Tables:
    choose = random.Random(seed).choice  # noqa: S311  # no secret
    return Tables(
        grouping={
            "group_by_stack_n": choose([0, 0, 1, 3]),
            "group_by_overload_name": choose([False, True]),
            "group_by_input_shapes": choose([False, True]),
        },
        layout={
            "sort_by": choose(
                [
                    None,
                    "cpu_time_total",
                    "self_cpu_time_total",
                    "cpu_time",
                    "count",
                    "cuda_time_total",
                    "self_device_time_total",
                    "xpu_memory_usage",
                    "self_cpu_memory_usage",
                    "cpu_memory_usage",
                ]
            ),
            "row_limit": choose([-1, 0, 1, 100]),
            "max_src_column_width": choose([75, 20, 2, None]),
            "max_name_column_width": choose([55, 12, 4, None]),
            "max_shapes_column_width": choose([80, 5, None]),
            "header": choose([None, "a header"]),
            "top_level_events_only": choose([False, False, True]),
            "time_unit": choose([None, None, "s", "ms", "us"]),
        },
    )


def torchs(result: KinetoResult, use_device: str | None, **options: bool) -> Any:
    """A finished torch profile over a result."""
    finished = torch.autograd.profiler.profile(use_kineto=True, **options)
    finished.use_device = use_device
    finished.kineto_results = result
    finished._needs_processing = True
    return finished.function_events


def facts(event: Any) -> dict[str, Any]:
    """All fields of an event, in a comparable form."""
    plain = {name: getattr(event, name) for name in ATTRIBUTES}
    plain["time_range"] = (event.time_range.start, event.time_range.end)
    plain["event_metadata"] = event.event_metadata and TELLS_METADATA and tuple(event.event_metadata)
    plain["kernels"] = [tuple(kernel) for kernel in event.kernels]
    return plain | {
        "parent": event.cpu_parent and event.cpu_parent.id,
        "children": [child.id for child in event.cpu_children],
        "cpu": (event.cpu_time_total, event.self_cpu_time_total),
        "device": (event.device_time_total, event.self_device_time_total),
        "memory": (event.self_cpu_memory_usage, event.self_device_memory_usage),
        "repr": repr(event),
    }


def shares(row: Any) -> tuple[object, ...]:
    """The attributes that a table stored in a row; torch's averages lack them before that."""
    names = ("self_cpu_percent", "total_cpu_percent", "total_device_percent")
    return tuple(getattr(row, name, -1) for name in names)


def table_or_failure(events: Any, **options: Any) -> str | None:
    """A table; None where torch fails over it, since it cannot print a share of a sum of 0."""
    try:
        return str(events.table(**options))
    except AssertionError as error:
        if "Expected time_us == 0" not in str(error):
            raise
        return None


def compare(seed: int) -> Counter[str]:
    maker = ForestMaker(seed, device_type=torch.autograd.DeviceType)
    result = maker.result()
    # torch cannot print the FLOPs of a memory record
    has_records = any(event.name().startswith("[") for event in result.events())
    options = {"profile_memory": seed % 2 == 0, "with_flops": seed % 3 == 0 and not has_records}
    theirs = torchs(result, maker.use_device, **options)
    recording = KinetoRecording(result, use_device=maker.use_device or "")
    listed = EventList([recording], use_device=maker.use_device, **options)
    ours = listed.as_torch()
    assert [facts(event) for event in ours] == [facts(event) for event in theirs], f"events of forest {seed}"
    grouping, layout = tables(seed)
    rows = listed.key_averages(**grouping, compat="torch")
    their_rows = theirs.key_averages(**grouping)
    assert [repr(row) for row in rows] == [repr(row) for row in their_rows], f"averages of forest {seed}"
    assert repr(ours.total_average()) == repr(theirs.total_average()), f"total of forest {seed}"
    assert ours.self_cpu_time_total == theirs.self_cpu_time_total, f"self time of forest {seed}"
    printed = Counter(hard_cases(result))
    for made, original in ((rows, their_rows), (listed, theirs)):
        table = table_or_failure(original, **layout)
        mine = made.table(**layout, compat="torch")
        if table is None:
            printed["not printed by torch"] += 1
        else:
            assert mine == table, f"table of forest {seed}"
            if made is rows:
                assert [shares(row) for row in rows] == [shares(row) for row in their_rows]
    # the default answer must exist for every forest, even if torch fails
    assert listed.key_averages(**grouping).table(**layout) or not len(recording)
    return printed


@pytest.mark.slow
def test_compat_answers_match_torchs(large_counts: bool, capsys: pytest.CaptureFixture[str]) -> None:
    count = 10_000 if large_counts else 120
    found: Counter[str] = Counter()
    for seed in range(count):
        found += compare(seed)
    with capsys.disabled():
        print(f"\n{count} forests equal to torch's; share with each hard case:")
        for case in (*HARD_CASES, "not printed by torch"):
            print(f"  {case:22} {found[case] / count:6.1%}")
    assert all(found[case] >= LEAST_SHARE * count for case in HARD_CASES)


def test_a_list_is_written_as_torch_writes_it(tmp_path: Path) -> None:
    for seed in range(30):
        maker = ForestMaker(seed, device_type=torch.autograd.DeviceType)
        result = maker.result()
        theirs = torchs(result, maker.use_device)
        if all(event.trace_name is None for event in theirs):
            continue  # torch fails for a list without any event in a trace
        theirs.export_chrome_trace(tmp_path / "theirs.json")
        recording = KinetoRecording(result, use_device=maker.use_device or "")
        ours = EventList([recording], use_device=maker.use_device).as_torch()
        ours.export_chrome_trace(tmp_path / "ours.json")
        written = [json.loads((tmp_path / name).read_bytes()) for name in ("ours.json", "theirs.json")]
        assert written[0] == written[1], f"forest {seed}"
        assert ours.supported_export_stacks_metrics() == theirs.supported_export_stacks_metrics()
        for metric in theirs.supported_export_stacks_metrics():
            theirs.export_stacks(str(tmp_path / "theirs.txt"), metric)
            ours.export_stacks(tmp_path / "ours.txt", metric, compat="torch")
            assert (tmp_path / "ours.txt").read_bytes() == (tmp_path / "theirs.txt").read_bytes()


class ColumnsAlone(KinetoRecording):
    """A recording without its source objects, as our own collector's recordings are."""

    @property
    def kineto_result(self) -> None:
        return None


@pytest.mark.parametrize("is_compat", [True, False], ids=["compat", "ours"])
def test_columns_alone_match_torchs_sums(large_counts: bool, is_compat: bool) -> None:
    for seed in range(2_000 if large_counts else 60):
        maker = ForestMaker(seed, device_type=torch.autograd.DeviceType, is_sound=True)
        result = maker.result()
        if not is_compat:
            if maker.use_device in ("mtia", "hpu"):
                continue  # torch does not link kernels of these devices to ops
            # Memory at exactly an op's end belongs to the next op here; torch gives it to both.
            kept = [event for event in result.events() if not event.name().startswith("[")]
            result = KinetoResult(kept, trace_start_ns=result.trace_start_ns())
        options: dict[str, Any] = {"profile_memory": is_compat}
        theirs = torchs(result, maker.use_device, **options).key_averages()
        listed = EventList([ColumnsAlone(result, use_device=maker.use_device or "")], **options)
        rows = listed.key_averages(compat="torch" if is_compat else None)
        original = table_or_failure(theirs)
        if original is not None:
            # the order of lanes that start at the same nanosecond is undefined
            ours = sorted(rows.table(compat="torch").splitlines())
            assert ours == sorted(original.splitlines()), f"forest {seed}"


def test_real_recordings_are_summed_as_torch_does() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    inputs = torch.ones(4, 8)
    model(inputs).sum().backward()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        record_shapes=True,
        profile_memory=True,
        with_flops=True,
    ) as recorded:
        for _ in range(3):
            model(inputs).sum().backward()
    result = recorded.profiler.kineto_results
    ours = EventList([KinetoRecording(result)], profile_memory=True, with_flops=True)
    theirs = recorded.events()
    # Kineto's binding makes new objects at each call, so shapes and the like are compared as text.
    assert [str(facts(event)) for event in ours.as_torch()] == [str(facts(event)) for event in theirs]
    for grouping in ({}, {"group_by_input_shapes": True}):
        mine = ours.key_averages(**grouping, compat="torch").table(sort_by="cpu_time_total", compat="torch")
        assert mine == theirs.key_averages(**grouping).table(sort_by="cpu_time_total")
    flops = {row.key: row.flops for row in ours.key_averages()}
    assert flops["aten::addmm"] == flops["aten::linear"] == 3 * (2 * 4 * 8 * 8 + 2 * 4 * 8 * 1)
