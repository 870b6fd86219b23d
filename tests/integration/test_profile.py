"""Profiles on the real collector: ranges, torch ops, threads, errors."""

import os
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from support.programs.profiled_steps import ToldObserver, names, plan, run_steps, work

from pytest_opprof import (
    ProfilerActivity,
    _ExperimentalConfig,
    _init_for_cuda_graphs,
    _KinetoProfile,
    profile,
    record_function,
    schedule,
)
from pytest_opprof.capture.collector import Collector
from pytest_opprof.errors import CaptureBusyError, UsageError


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
def test_missing_results_say_why(call: Callable[[profile], object], request: Any) -> None:
    prof = profile(schedule=schedule(wait=5, warmup=1, active=1))
    name = request.node.callspec.id
    with pytest.raises(UsageError, match=rf"{name}\(\) has nothing to show: this profiler was never started"):
        call(prof)
    with prof:
        prof.step()
        with pytest.raises(UsageError, match="no cycle has ended by step 1"):
            call(prof)
    with pytest.raises(UsageError, match="stopped at step 1, before its schedule recorded anything"):
        call(prof)


def test_open_range_lasts_to_the_end() -> None:
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
def test_replaced_getpid_leaves_no_profile_open(monkeypatch: pytest.MonkeyPatch) -> None:
    with profile():
        monkeypatch.setattr("os.getpid", lambda: 1)
    with profile():
        pass


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


def test_observer_is_told_of_windows() -> None:
    observer = ToldObserver()
    with profile(schedule=plan("SNN"), execution_trace_observer=observer) as prof:
        run_steps(prof, 2)
    assert observer.told == ["start", "stop", "cleanup"]


@pytest.mark.parametrize("make", [profile, _KinetoProfile])
def test_observer_that_fails_leaves_no_window_open(make: Callable[..., Any]) -> None:
    class Broken:
        def start(self) -> None:
            raise KeyError("observer")

        def stop(self) -> None: ...

        def cleanup(self) -> None: ...

    with pytest.raises(KeyError, match="observer"):
        make(execution_trace_observer=Broken()).start()
    assert not Collector.instance().recording


def test_unsupported_activities_are_named_once() -> None:
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with (
        pytest.warns(UserWarning, match="results will not include it|has no effect") as caught,
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


def test_unrecordable_ops_are_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setitem(Collector.instance()._torch._found, False, "no C++ compiler was found")
    prof = profile(schedule=plan("SSN"))
    with pytest.warns(UserWarning, match="ops are not recorded: no C") as caught, prof:
        run_steps(prof, 2)
    assert len(caught) == 1
    assert len(prof.cycles) == 2


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
