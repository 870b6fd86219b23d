"""Our sums and our table against torch's, byte for byte, over forests that never ran.

Torch's parser takes any objects with its events' methods: with generated ones it computes kernels, memory,
stacks and FLOPs on a machine that has no device.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.kineto.forests import USER_SCOPE, HandMadeRecording, Span, forests
from support.kineto.kineto_forests import KinetoEvent, KinetoResult
from support.kineto.torch_releases import skip_unless_overloads

from pytest_opprof.events.columns import TableOptions
from pytest_opprof.events.event_list import EventList
from pytest_opprof.events.table import build_table

torch = pytest.importorskip("torch")

NAMES = (
    "aten::add",
    "aten::mul",
    "aten::mul",
    "aten::is_leaf",
    "autograd::engine::evaluate_function: " + "VeryLongBackward" * 3,
    "profiler::_record_function_exit",
    "ProfilerStep#4",
    "ProfilerStep#5",
    "日本",
)
PLAIN_NAMES = tuple(f"aten::op{number}" for number in range(40))
DEVICE_NAMES = ("gemm_kernel", "Memcpy HtoD (Pageable -> Device)")
STACKS: tuple[list[str], ...] = (
    [],
    ["model.py(41): forward"],
    ["a/" * 60 + "deep.py(3): f", "model.py(7): step", "train.py(1): <module>"],
)


def kineto_event(span: Span, number: int) -> KinetoEvent:
    """A span as a Kineto event."""
    shapes = span.shapes or []
    return KinetoEvent(
        name=span.name,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        correlation_id=number,
        device_type=torch.autograd.DeviceType.CPU,
        start_thread_id=span.thread + 1,
        end_thread_id=span.thread + 1,
        scope=span.scope,
        is_async=span.is_async,
        is_user_annotation=span.scope == USER_SCOPE,
        shapes=[[] if shape and isinstance(shape[0], list) else shape for shape in shapes],
        structured_input_shapes=shapes,
    )


def torch_profile(events: Sequence[KinetoEvent], **options: bool) -> Any:
    """A finished profile of torch's over these events."""
    finished = torch.autograd.profiler.profile(use_kineto=True, **options)
    finished.kineto_results = KinetoResult(events)
    finished._needs_processing = True
    return finished


def in_order(spans: Sequence[Span]) -> list[KinetoEvent]:
    ordered = sorted(spans, key=lambda span: (span.start_ns, -span.end_ns))
    return [kineto_event(span, number) for number, span in enumerate(ordered, 1)]


def any_op_within_its_own_name(recording: Any) -> bool:
    """Torch may swallow such an op; with forty names there is seldom one."""
    parents = enumerate(recording.parent)
    return any(parent >= 0 and recording.name(parent) == recording.name(i) for i, parent in parents)


SORT_KEYS = (None, "cpu_time_total", "self_cpu_time_total", "cpu_time", "count")


@given(
    spans=forests(NAMES),
    by_shapes=st.booleans(),
    sort_by=st.sampled_from(SORT_KEYS),
    row_limit=st.sampled_from([-1, 0, 2, 100]),
)
def test_compat_sums_match_torchs(
    spans: list[Span],
    by_shapes: bool,  # drawn
    sort_by: str | None,
    row_limit: int,
) -> None:
    theirs = torch_profile(in_order(spans)).key_averages(group_by_input_shape=by_shapes)
    ours = EventList([HandMadeRecording(spans)]).key_averages(group_by_input_shapes=by_shapes, compat="torch")
    assert ours.table(sort_by, row_limit, compat="torch") == theirs.table(
        sort_by=sort_by, row_limit=row_limit
    )


@given(spans=forests(PLAIN_NAMES, odd=False), sort_by=st.sampled_from(SORT_KEYS))
def test_our_own_sums_are_torchs_where_its_rules_change_nothing(
    spans: list[Span], sort_by: str | None
) -> None:
    recording = HandMadeRecording(spans)
    assume(not any_op_within_its_own_name(recording))
    theirs = torch_profile(in_order(spans)).key_averages()
    assert EventList([recording]).key_averages().table(sort_by) == theirs.table(sort_by=sort_by)


@given(spans=forests(PLAIN_NAMES, odd=False), top_level=st.booleans(), row_limit=st.sampled_from([-1, 3]))
def test_table_of_single_events_matches_torchs(
    spans: list[Span], top_level: bool, row_limit: int
) -> None:  # drawn
    recording = HandMadeRecording(spans)
    assume(not any_op_within_its_own_name(recording))
    theirs = torch_profile(in_order(spans)).function_events.table(
        row_limit=row_limit, top_level_events_only=top_level
    )
    assert EventList([recording]).table(row_limit=row_limit, top_level_events_only=top_level) == theirs


@st.composite
def device_runs(draw: st.DrawFn) -> list[KinetoEvent]:
    """A forest with kernels, copies, annotations on the device, allocations, stacks and FLOPs."""
    events: list[KinetoEvent] = []
    for event in in_order(draw(forests(NAMES))):
        event.answers |= {
            "stack": draw(st.sampled_from(STACKS)),
            "flops": draw(st.sampled_from([0, 0, 12, 4_000, 7_000_000_000])),
            "overload_name": draw(st.sampled_from(["", "", "Tensor"])),
            "fwd_thread_id": 1,
        }
        events.append(event)
        events += [draw(device_events(event)) for _ in range(draw(st.sampled_from([0, 0, 1, 2])))]
    return events


@st.composite
def device_events(draw: st.DrawFn, launch: KinetoEvent) -> KinetoEvent:
    """Work on a device that an op launched, or an allocation during it."""
    start = launch.start_ns() + 125 * draw(st.integers(0, 1_000))
    kind = draw(st.sampled_from(["kernel", "kernel", "annotation", "memory"]))
    cuda = torch.autograd.DeviceType.CUDA
    if kind == "memory":
        device = draw(st.sampled_from([cuda, torch.autograd.DeviceType.CPU]))
        size = draw(st.integers(-(2**31), 2**31))
        return KinetoEvent(name="[memory]", start_ns=start, end_ns=start, nbytes=size, device_type=device)
    annotation = kind == "annotation"
    return KinetoEvent(
        name=launch.name() if annotation else draw(st.sampled_from(DEVICE_NAMES)),
        start_ns=start,
        end_ns=start + 125 * draw(st.integers(1, 30_000)),
        correlation_id=launch.correlation_id(),
        linked_correlation_id=0 if annotation else launch.correlation_id(),
        device_type=cuda,
        device_resource_id=7,
        is_user_annotation=annotation,
    )


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of a table."""
    return {
        "sort_by": draw(
            st.sampled_from(
                [*SORT_KEYS, "cuda_time_total", "self_device_time_total", "cpu_memory_usage", "flops"]
            )
        ),
        "row_limit": draw(st.sampled_from([-1, 1, 100])),
        "max_src_column_width": draw(st.sampled_from([75, 20, 2, None])),
        "max_name_column_width": draw(st.sampled_from([55, 12, 4, None])),
        "max_shapes_column_width": draw(st.sampled_from([80, 5, None])),
        "header": draw(st.sampled_from([None, "a header"])),
        "top_level_events_only": draw(st.booleans()),
        "time_unit": draw(st.sampled_from([None, "s", "ms", "us"])),
    }


@given(
    run=device_runs(),
    layout=layouts(),
    device=st.sampled_from([None, "cuda"]),
    recorded=st.fixed_dictionaries({"profile_memory": st.booleans(), "with_flops": st.booleans()}),
    grouping=st.fixed_dictionaries(
        {
            "group_by_input_shape": st.booleans(),
            "group_by_stack_n": st.sampled_from([0, 1, 3]),
            "group_by_overload_name": st.booleans(),
        }
    ),
)
def test_table_of_averages_matches_torchs(
    run: list[KinetoEvent],
    layout: dict[str, Any],
    device: str | None,
    recorded: dict[str, Any],
    grouping: dict[str, Any],
) -> None:
    skip_unless_overloads(torch)
    finished = torch_profile(run, **recorded)
    finished.use_device = device
    averages = finished.key_averages(**grouping)
    # torch cannot print annotations of a device without kernels
    annotations = [row.is_user_annotation for row in averages if row.self_device_time_total > 0]
    assume(not annotations or not all(annotations))
    theirs = averages.table(**layout)
    options = TableOptions(**layout, **recorded, compat="torch")
    assert build_table(averages, options) == theirs
