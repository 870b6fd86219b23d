"""Kineto's events as columns, by our rules, without torch's mistakes."""

from typing import Any

import pytest
from support.kineto.kineto_forests import CUDA, ForestMaker, KinetoEvent, KinetoResult

from pytest_opprof import EventList, KinetoRecording
from pytest_opprof.errors import UsageError
from pytest_opprof.kinds import EventKind


def event(name: str, start_ns: int, end_ns: int, **known: Any) -> KinetoEvent:
    return KinetoEvent(name=name, start_ns=start_ns, end_ns=end_ns, **known)


def kernel(name: str, start_ns: int, end_ns: int, **known: Any) -> KinetoEvent:
    defaults = {"device_type": CUDA, "device_resource_id": 7, "activity_type": "kernel"}
    return event(name, start_ns, end_ns, **(defaults | known))


def recording(*events: KinetoEvent, **options: Any) -> KinetoRecording:
    return KinetoRecording(KinetoResult(events), **options)


def shown(*events: KinetoEvent, **options: Any) -> dict[str, Any]:
    return {event.name: event for event in EventList([recording(*events, **options)])}


def test_events_are_nested_by_time_and_thread() -> None:
    events = shown(
        event("outer", 0, 100),
        event("inner", 10, 50),
        event("elsewhere", 20, 30, start_thread_id=2, end_thread_id=2),
        event("overlapping", 40, 120),
    )
    assert events["inner"].cpu_parent is not None
    assert events["inner"].cpu_parent.name == "outer"
    assert events["elsewhere"].cpu_parent is events["overlapping"].cpu_parent is None
    assert events["outer"].self_cpu_time_total_ns == 60


def test_kernels_belong_to_their_op_and_its_callers() -> None:
    events = shown(
        event("linear", 0, 100, correlation_id=1),
        event("addmm", 10, 90, correlation_id=2),
        event(
            "cudaLaunchKernel",
            20,
            30,
            start_thread_id=999,
            end_thread_id=999,
            linked_correlation_id=2,
            activity_type="cuda_runtime",
        ),
        kernel("gemm", 200, 300, linked_correlation_id=2),
        kernel("Memcpy HtoD", 300, 305, linked_correlation_id=1, activity_type="gpu_memcpy", device_index=1),
    )
    assert [tuple(kernel) for kernel in events["addmm"].kernels] == [("gemm", 0, 0.1)]
    assert (events["linear"].device_time_total_ns, events["linear"].self_device_time_total_ns) == (105, 5)
    assert events["cudaLaunchKernel"].cpu_parent is events["addmm"]
    gemm = events["gemm"]
    assert (gemm.device_type, gemm.device_index, gemm.device_resource_id) == (CUDA, 0, 7)
    assert (gemm.cpu_time_total_ns, gemm.device_time_total_ns, gemm.kind) == (0, 100, EventKind.KERNEL)
    assert gemm.linked_correlation_id == 2
    assert gemm.use_device == "cuda"


def test_device_annotation_is_not_summed() -> None:
    rows = EventList(
        [
            recording(
                event("region", 0, 100, correlation_id=1, scope=7, is_user_annotation=True),
                kernel("gemm", 200, 300, linked_correlation_id=1),
                kernel("region", 200, 300, is_user_annotation=True, activity_type="gpu_user_annotation"),
            )
        ]
    ).key_averages()
    assert [(row.key, int(row.device_type), row.self_device_time_total_ns) for row in rows] == [
        ("region", 0, 100),
        ("gemm", CUDA, 100),
        ("region", CUDA, 100),
    ]
    ours, torchs = rows.table(), rows.table(compat="torch")
    assert ours.endswith("Self CUDA time total: 0.100us\n")
    assert (ours.count("100.00%"), ours.count(" -- "), torchs.count(" -- ")) == (
        torchs.count("100.00%") - 1,
        1,
        0,
    )


def test_memory_belongs_to_the_innermost_op_of_its_thread() -> None:
    taken: dict[str, Any] = {"nbytes": 64}
    listed = EventList(
        [
            recording(
                event("outer", 0, 100),
                event("inner", 10, 50),
                event("other thread", 0, 100, start_thread_id=2, end_thread_id=2),
                event("[memory]", 10, 10, **taken),
                event("[memory]", 50, 50, nbytes=-16),
                event("[memory]", 20, 20, nbytes=5, device_type=CUDA),
                event("[memory]", 500, 500, nbytes=7),
                event("[OutOfMemory]", 600, 600, nbytes=9, device_type=CUDA),
            )
        ],
        profile_memory=True,
    )
    events = {event.name: event for event in listed}
    assert (events["inner"].cpu_memory_usage, events["inner"].device_memory_usage) == (64, 5)
    assert (events["outer"].cpu_memory_usage, events["outer"].self_cpu_memory_usage) == (48, -16)
    assert events["other thread"].cpu_memory_usage == 0
    assert len(listed) == 5
    assert (events["[memory]"].cpu_memory_usage, events["[memory]"].trace_name) == (7, None)
    assert events["[OutOfMemory]"].self_device_memory_usage == 9
    torchs = {event.name: event for event in listed.as_torch()}
    assert torchs["other thread"].cpu_memory_usage == 48
    rows = {row.key: row for row in listed.key_averages()}
    assert (rows["[memory]"].count, rows["[memory]"].cpu_memory_usage) == (1, 7)
    assert (rows["outer"].cpu_memory_usage, rows["outer"].self_device_memory_usage) == (48, 0)


def test_threads_and_streams_are_numbered_in_the_order_of_their_first_event() -> None:
    made = recording(
        event("here", 0, 100, start_thread_id=4, end_thread_id=4),
        kernel("gemm", 10, 20, device_index=1),
        event("there", 0, 100, start_thread_id=-2, end_thread_id=-2),
    )
    assert [lane.index for lane in made.threads] == [0, 1, 2]
    assert [(lane.device_type, lane.device_index, lane.resource) for lane in made.threads] == [
        (0, -1, 0),
        (CUDA, 1, 7),
        (0, -1, 0),
    ]
    assert [made.name(row) for row in range(len(made))] == ["here", "gemm", "there"]


def test_range_open_at_the_end_is_unfinished_and_not_async() -> None:
    events = shown(event("open", 0, 100, end_thread_id=0), event("inner", 10, 20))
    assert events["open"].is_unfinished
    assert not events["open"].is_async
    assert (events["open"].cpu_time_total, events["open"].time_range.end) == (0, 0.1)
    assert events["inner"].cpu_parent is events["open"]
    torchs = EventList([recording(event("open", 0, 100, end_thread_id=0), event("inner", 10, 20))]).as_torch()
    assert torchs[0].is_async


def test_range_that_ends_elsewhere_is_async() -> None:
    events = shown(event("request", 0, 100, end_thread_id=2), event("inner", 10, 20))
    assert events["request"].is_async
    assert events["inner"].cpu_parent is None
    assert (events["request"].cpu_time_total_ns, events["request"].self_cpu_time_total_ns) == (100, 0)


def test_steps_are_known_by_their_ranges() -> None:
    made = recording(
        event("ProfilerStep#3", 0, 100, is_user_annotation=True, scope=7),
        event("aten::add", 10, 20),
        event("aten::mul", 150, 160),
        event("ProfilerStep#4", 200, 300, is_user_annotation=True, scope=7),
        event("aten::add", 210, 220),
    )
    assert [step.number for step in made.steps] == [3, 4]
    assert [event.step for event in EventList([made])] == [3, 3, None, 4, 4]
    (add,) = [group for group in made.groups() if group.name == "aten::add"]
    assert (add.steps["count"], add.steps["total_ns"], add.count) == ((1, 1), (10, 10), 2)


def test_event_keeps_kinetos_fields() -> None:
    told = shown(
        event(
            "aten::add",
            0,
            10,
            correlation_id=17,
            overload_name="Tensor",
            stack=["model.py(3): f", "torch/autograd/__init__.py(1): backward"],
            flops=12,
            extra_meta={"Rank": "3"},
            shapes=[[2], []],
            structured_input_shapes=[[2], [[3]]],
            dtypes=["float", "TensorList"],
            kwinputs={"alpha": 1},
            sequence_nr=4,
            fwd_thread_id=3,
            python_id=9,
            external_id=6,
        )
    )["aten::add"]
    assert (told.id, told.overload_name, told.flops, told.sequence_nr, told.fwd_thread) == (
        17,
        "Tensor",
        12,
        4,
        3,
    )
    assert told.stack == ["model.py(3): f"]
    assert told.event_metadata.rank == 3
    assert (told.input_shapes, told.structured_input_shapes) == ([[2], []], [[2], [[3]]])
    assert (told.input_dtypes, told.kwinputs) == (["float", "TensorList"], {"alpha": 1})
    assert (told.python_id, told.external_id, told.activity_type) == (9, 6, "cpu_op")


def test_minimal_older_events_are_accepted() -> None:
    class Least:
        def name(self) -> str:
            return "aten::add"

        def start_ns(self) -> int:
            return 5

        def end_ns(self) -> int:
            return 8

        start_thread_id = end_thread_id = lambda _: 1

    class Result:
        def events(self) -> list[Least]:
            return [Least()]

        def trace_start_ns(self) -> int:
            return 5

    (row,) = EventList([KinetoRecording(Result())]).key_averages()
    assert (row.key, row.count, row.cpu_time_total_ns) == ("aten::add", 1, 3)


def test_something_else_is_refused() -> None:
    class Result:
        def events(self) -> list[Any]:
            return ["aten::add"]

        def trace_start_ns(self) -> int:
            return 0

    with pytest.raises(UsageError, match="is not a Kineto event"):
        KinetoRecording(Result())


def test_a_negative_cause_is_refused() -> None:
    made = recording(event("aten::add", 0, 1, linked_correlation_id=-1))
    with pytest.raises(UsageError, match="says that event -1 caused it"):
        EventList([made]).as_torch()


@pytest.mark.parametrize(("given", "device"), [(None, "cuda"), ("", None), ("xpu", "xpu")])
def test_device_defaults_to_that_of_the_events(given: str | None, device: str | None) -> None:
    assert recording(kernel("gemm", 0, 1), use_device=given).use_device == device
    assert recording(event("aten::add", 0, 1)).use_device is None


@pytest.mark.parametrize("seed", range(40))
def test_sums_agree_however_they_are_grouped(seed: int) -> None:
    maker = ForestMaker(seed)
    made = KinetoRecording(maker.result())
    listed = EventList([made])
    whole = listed.total_average()
    assert whole.count == len(listed)
    one_by_one = listed.key_averages(group_by_overload_name=True, group_by_stack_n=2).total_average()
    for what in (
        "count",
        "cpu_time_total_ns",
        "self_cpu_time_total_ns",
        "device_time_total_ns",
        "cpu_memory_usage",
    ):
        assert getattr(one_by_one, what) == getattr(whole, what)
    assert whole.self_device_time_total_ns == sum(event.self_device_time_total_ns for event in listed)


def test_deep_levels_do_not_recurse(large_counts: bool) -> None:
    depth = 100_000 if large_counts else 5_000
    chain = [event(f"op{i}", i, 2 * depth - i, correlation_id=i + 1) for i in range(depth)]
    launched = kernel("gemm", 0, 7, linked_correlation_id=depth)
    listed = EventList([recording(*chain, launched)])
    outermost = listed[0]
    assert (outermost.device_time_total_ns, outermost.self_cpu_time_total_ns) == (7, 2)
    for compat in (None, "torch"):
        first = listed.key_averages(compat=compat)[0]
        assert (first.key, first.device_time_total_ns) == ("op0", 7)
