"""Profiles on the real collector: ranges, torch ops, cycles, errors, traces."""

import gzip
import json
import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof import (
    ProfilerAction,
    ProfilerActivity,
    _ExperimentalConfig,
    _init_for_cuda_graphs,
    profile,
    record_function,
    schedule,
)
from pytest_opprof.capture.collector import Collector
from pytest_opprof.errors import CaptureBusyError, UsageError
from pytest_opprof.profiler.handlers import tensorboard_trace_handler

ACTIONS = {
    "N": ProfilerAction.NONE,
    "W": ProfilerAction.WARMUP,
    "R": ProfilerAction.RECORD,
    "S": ProfilerAction.RECORD_AND_SAVE,
}


def plan(letters: str) -> Callable[[int], ProfilerAction]:
    """A schedule of one letter for each step; the last goes on."""
    return lambda step: ACTIONS[letters[min(step, len(letters) - 1)]]


def work(number: int) -> None:
    with record_function("outer"), record_function(f"inner {number}"):
        pass


def run_steps(prof: profile, count: int) -> None:
    for number in range(count):
        work(number)
        prof.step()


def names(prof: profile) -> list[str]:
    return [str(event.trace_name) for event in prof.events()]


def loaded(path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    return document


def test_ranges_are_nested_as_they_ran() -> None:
    with profile() as prof:
        work(0)
        work(1)
    assert names(prof) == ["outer", "inner 0", "outer", "inner 1"]
    outer, inner = prof.events()[:2]
    assert inner.cpu_parent is outer
    assert outer.cpu_children == [inner]
    assert outer.is_user_annotation
    assert outer.self_cpu_time_total_ns == outer.cpu_time_total_ns - inner.cpu_time_total_ns
    assert {row.key: row.count for row in prof.key_averages()} == {"outer": 2, "inner 0": 1, "inner 1": 1}


def test_active_steps_are_recorded_and_no_others() -> None:
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=1)) as prof:
        run_steps(prof, 6)
    assert names(prof) == ["ProfilerStep#2", "outer", "inner 2", "ProfilerStep#3", "outer", "inner 3"]
    assert [step.number for step in prof.cycles[0].recording.steps] == [2, 3]
    assert {event.step for event in prof.events()} == {2, 3}
    assert {row.key: row.count for row in prof.key_averages()} == {
        "ProfilerStep*": 2,
        "outer": 2,
        "inner 2": 1,
        "inner 3": 1,
    }


def test_every_cycle_is_delivered_and_kept() -> None:
    delivered: list[tuple[int, list[str]]] = []
    with profile(
        schedule=schedule(wait=0, warmup=1, active=1, repeat=2),
        on_trace_ready=lambda prof: delivered.append((prof.step_num, names(prof))),
    ) as prof:
        run_steps(prof, 5)
    assert delivered == [
        (2, ["ProfilerStep#1", "outer", "inner 1"]),
        (4, ["ProfilerStep#3", "outer", "inner 3"]),
    ]
    assert [len(cycle.events()) for cycle in prof.cycles] == [3, 3]
    assert prof.cycles[0].trace_id != prof.cycles[1].trace_id
    assert [row.count for row in prof.cycles[0].key_averages()] == [1, 1, 1]


@pytest.mark.parametrize(
    ("letters", "recorded"),
    [
        pytest.param("RWRS", [["inner 0"], ["inner 2", "inner 3"]], id="record-warmup"),
        pytest.param("RNRS", [["inner 0"], ["inner 2", "inner 3"]], id="record-none"),
    ],
)
def test_transitions_torch_gets_wrong_lose_nothing(letters: str, recorded: list[list[str]]) -> None:
    prof = profile(schedule=plan(letters + "N"))
    with pytest.warns(UserWarning, match="Incorrect schedule: RECORD followed by"), prof:
        run_steps(prof, len(letters))
    inner = [[event.name for event in cycle.events() if "inner" in event.name] for cycle in prof.cycles]
    assert inner == recorded


def test_accumulated_events_are_of_all_cycles() -> None:
    with profile(schedule=plan("SSSN"), acc_events=True) as prof:
        run_steps(prof, 3)
    assert [name for name in names(prof) if name.startswith("inner")] == ["inner 0", "inner 1", "inner 2"]
    assert {row.key: row.count for row in prof.key_averages()}["outer"] == 3


def test_old_cycles_go_when_few_are_kept() -> None:
    with profile(schedule=plan("SSSN"), keep_cycles=1) as prof:
        run_steps(prof, 3)
    assert len(prof.cycles) == 1
    assert "inner 2" in names(prof)


def test_keeping_no_cycle_is_refused() -> None:
    with pytest.raises(UsageError, match="keep_cycles is 0"):
        profile(keep_cycles=0)


def test_without_a_schedule_steps_are_only_counted() -> None:
    with profile() as prof:
        run_steps(prof, 3)
    assert prof.step_num == 3
    assert not [name for name in names(prof) if name.startswith("ProfilerStep")]


def test_profile_can_be_used_again() -> None:
    prof = profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=1))
    for _ in range(2):
        with prof:
            run_steps(prof, 3)
        assert names(prof) == ["ProfilerStep#1", "outer", "inner 1"]
    assert len(prof.cycles) == 2


def test_stop_twice_keeps_the_events() -> None:
    prof = profile()
    prof.start()
    work(0)
    prof.stop()
    prof.stop()
    assert names(prof) == ["outer", "inner 0"]


def test_exception_goes_on_and_the_handler_runs() -> None:
    delivered: list[int] = []
    prof = profile(on_trace_ready=lambda prof: delivered.append(len(prof.events())))

    def fail() -> None:
        with prof:
            work(0)
            raise KeyError("the user's own")

    with pytest.raises(KeyError, match="the user's own"):
        fail()
    assert delivered == [2]
    assert names(prof) == ["outer", "inner 0"]


def test_nested_profile_is_refused_and_the_outer_keeps_its_events() -> None:
    with profile() as outer:
        work(0)
        with pytest.raises(CaptureBusyError, match="already"), profile():
            work(1)
        work(2)
    assert names(outer) == ["outer", "inner 0", "outer", "inner 2"]


def test_refused_profile_can_start_later() -> None:
    inner = profile()
    with profile(), pytest.raises(CaptureBusyError):
        inner.start()
    with inner:
        work(0)
    assert names(inner) == ["outer", "inner 0"]


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda prof: prof.events(), id="events"),
        pytest.param(lambda prof: prof.key_averages(), id="key_averages"),
        pytest.param(lambda prof: prof.export_chrome_trace("x.json"), id="export_chrome_trace"),
    ],
)
def test_results_before_there_are_any_say_why(call: Callable[[profile], object], request: Any) -> None:
    prof = profile(schedule=schedule(wait=5, warmup=1, active=1))
    name = request.node.callspec.id
    with pytest.raises(UsageError, match=rf"{name}\(\) has nothing to show: this profiler was never started"):
        call(prof)
    with prof:
        prof.step()
        with pytest.raises(UsageError, match="no cycle has ended by step 1"):
            call(prof)
    with pytest.raises(UsageError, match="stopped at step 1, before its schedule came to record"):
        call(prof)


def test_profile_that_ended_warming_up_is_empty() -> None:
    with profile(schedule=plan("W")) as prof:
        work(0)
    assert len(prof.events()) == 0
    assert prof.key_averages().table() == ""
    assert prof.cycles == ()


def test_garbage_from_the_schedule_is_refused() -> None:
    with pytest.raises(ValueError, match="answered None for step 0"):
        profile(schedule=lambda _step: None)


def test_range_open_at_the_end_reaches_it() -> None:
    prof = profile()
    prof.start()
    late = record_function("late")
    late.__enter__()
    prof.stop()
    late.__exit__(None, None, None)
    (event,) = prof.events()
    assert event.is_unfinished
    assert event.time_range.end >= event.time_range.start


def test_all_threads_are_seen() -> None:
    with profile() as prof:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert Counter(event.name for event in prof.events())["outer"] == 3
    starts = [event.start_ns for event in prof.events()]
    assert starts == sorted(starts)
    for event in prof.events():
        if event.cpu_parent is not None:
            assert event.cpu_parent.thread == event.thread


# Another library's threads, such as OpenBLAS's, which Python 3.15 counts before the library ends them.
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_forked_child_leaves_the_profile_to_its_parent() -> None:
    with profile() as prof:
        work(0)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                prof.step()
                prof.stop()
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        work(1)
    assert os.waitstatus_to_exitcode(status) == 0
    assert names(prof) == ["outer", "inner 0", "outer", "inner 1"]


def test_trace_can_be_exported_again_and_again(tmp_path: Path) -> None:
    with profile(record_shapes=True) as prof:
        work(0)
    prof.export_chrome_trace(tmp_path / "a.json")
    prof.add_metadata("note", 'said "after"\n')
    prof.add_metadata_json("limits", "[1, 2]")
    prof.preset_metadata_json("preset", "{}")
    prof.export_chrome_trace(str(tmp_path / "b.json.gz"))
    first, second = loaded(tmp_path / "a.json"), loaded(tmp_path / "b.json.gz")
    assert [event["name"] for event in first["traceEvents"] if event.get("cat") == "user_annotation"] == [
        "outer",
        "inner 0",
    ]
    assert "note" not in first
    assert (second["note"], second["limits"], second["preset"]) == ('said "after"\n', [1, 2], {})
    assert second["record_shapes"] == 1
    assert first["trace_id"] == second["trace_id"] == prof.get_trace_id()


def test_trace_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with profile() as prof:
        work(0)
    with pytest.raises(OSError, match="missing"):
        prof.export_chrome_trace(tmp_path / "missing" / "a.json")


def test_each_cycle_exports_its_own_trace(tmp_path: Path) -> None:
    with profile(schedule=plan("SSN"), on_trace_ready=tensorboard_trace_handler(tmp_path, "rank0")) as prof:
        run_steps(prof, 2)
    written = sorted(tmp_path.iterdir())
    inner = [
        [event["name"] for event in loaded(path)["traceEvents"] if event["name"].startswith("inner")]
        for path in written
    ]
    assert inner == [["inner 0"], ["inner 1"]]
    prof.cycles[0].export_chrome_trace(tmp_path / "again.json")
    assert loaded(tmp_path / "again.json")["trace_id"] == loaded(written[0])["trace_id"]


def test_trace_ids_are_the_users_to_choose() -> None:
    with profile(schedule=plan("SSN"), custom_trace_id_callback=lambda: "first") as prof:
        assert prof.get_trace_id() == "first"
        prof.set_custom_trace_id_callback(lambda: "second")
        run_steps(prof, 2)
    assert [cycle.trace_id for cycle in prof.cycles] == ["first", "second"]


def test_observer_is_told_of_windows() -> None:
    told: list[str] = []

    class Observer:
        def start(self) -> None:
            told.append("start")

        def stop(self) -> None:
            told.append("stop")

        def cleanup(self) -> None:
            told.append("cleanup")

    with profile(schedule=plan("SNN"), execution_trace_observer=Observer()) as prof:
        run_steps(prof, 2)
    assert told == ["start", "stop", "cleanup"]


def test_observer_that_fails_leaves_no_window_open() -> None:
    class Broken:
        def start(self) -> None:
            raise KeyError("observer")

        def stop(self) -> None: ...

        def cleanup(self) -> None: ...

    with pytest.raises(KeyError, match="observer"):
        profile(execution_trace_observer=Broken()).start()
    assert not Collector.instance().recording


def test_what_is_not_captured_yet_is_named_once() -> None:
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with (
        pytest.warns(UserWarning, match="nothing of it will be|means nothing here") as caught,
        profile(
            activities=activities, experimental_config=_ExperimentalConfig(adjust_timestamps=True)
        ) as prof,
    ):
        work(0)
    assert [warning.filename for warning in caught] == [__file__] * 2
    assert [str(warning.message).split(":")[0] for warning in caught] == [
        "CUDA activity is not available here",
        "experimental_config",
    ]
    assert names(prof) == ["outer", "inner 0"]


def test_ops_that_cannot_be_recorded_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setitem(Collector.instance()._torch._found, False, "no C++ compiler was found")
    prof = profile(schedule=plan("SSN"))
    with pytest.warns(UserWarning, match="ops are not recorded: no C") as caught, prof:
        run_steps(prof, 2)
    assert len(caught) == 1
    assert len(prof.cycles) == 2


def test_distributed_jobs_are_named_in_the_trace(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    distributed = pytest.importorskip("torch.distributed")
    if not distributed.is_available():
        pytest.skip("this torch has no distributed package")
    distributed.init_process_group("gloo", rank=0, world_size=1, store=torch.distributed.HashStore())
    try:
        with profile() as prof:
            work(0)
        prof.export_chrome_trace(tmp_path / "a.json")
    finally:
        distributed.destroy_process_group()
    assert loaded(tmp_path / "a.json")["distributedInfo"] == {"backend": "gloo", "rank": 0, "world_size": 1}
    # HTA finds the rank by this very spelling.
    assert '"rank": 0' in (tmp_path / "a.json").read_text(encoding="utf-8")


def test_torch_ops_are_summed_up_by_name_and_shape() -> None:
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(4, 3)
    for _ in range(3):
        layer(torch.ones(2, 4)).sum().backward()
    with profile(record_shapes=True) as prof:
        for rows in (2, 2, 5):
            layer(torch.ones(rows, 4)).sum().backward()
    counts = {row.key: row.count for row in prof.key_averages()}
    assert counts["aten::linear"] == counts["aten::addmm"] == 3
    linear = next(event for event in prof.events() if event.name == "aten::linear")
    assert [child.name for child in linear.cpu_children] == ["aten::t", "aten::addmm"]
    assert linear.input_shapes == [[2, 4], [3, 4], [3]]
    by_shape = prof.key_averages(group_by_input_shape=True)
    assert [(row.input_shapes, row.count) for row in by_shape if row.key == "aten::addmm"] == [
        ([[3], [2, 4], [4, 3], [], []], 2),
        ([[3], [5, 4], [4, 3], [], []], 1),
    ]
    backward = [event for event in prof.events() if event.name == "AddmmBackward0"]
    assert len(backward) == 3
    assert all(event.sequence_nr >= 0 for event in backward)
    assert "Input Shapes" in by_shape.table(sort_by="self_cpu_time_total", row_limit=5)


def test_window_for_cuda_graphs_is_opened_when_asked_for() -> None:
    _init_for_cuda_graphs(window=True)
    with profile():
        _init_for_cuda_graphs()
        with pytest.raises(CaptureBusyError):
            _init_for_cuda_graphs(window=True)


def test_an_empty_last_cycle_is_warned_of() -> None:
    prof = profile(schedule=schedule(wait=0, warmup=1, active=1))
    prof.start()
    prof.step()
    prof.step()
    with pytest.warns(UserWarning, match="its last cycle is empty: give the schedule repeat=1"):
        prof.stop()
    assert len(prof.cycles) == 1
