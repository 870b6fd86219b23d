"""The older profiler, torch.autograd.profiler.profile, and related functions."""

import gc
import json
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

import pytest_opprof
from pytest_opprof import (
    ProfilerActivity,
    _ExperimentalConfig,
    _KinetoProfile,
    autograd,
    profile,
    record_function,
)
from pytest_opprof.errors import CaptureBusyError, UsageError
from pytest_opprof.profiler.experimental import ExperimentalConfig, read_config


def work() -> None:
    with record_function("outer"), record_function("inner"):
        pass


def test_events_are_there_after_the_block(tmp_path: Path) -> None:
    with autograd.profile() as prof:
        assert prof is not None
        work()
        assert repr(prof) == str(prof) == "<unfinished pytest_opprof.autograd.profile>"
        with pytest.raises(AssertionError, match="Expected profiling results"):
            prof.table()
        with pytest.raises(AssertionError, match="Expected profiling results"):
            prof.export_chrome_trace(tmp_path / "early.json")
    assert [event.name for event in prof.function_events] == ["outer", "inner"]
    assert {row.key: row.count for row in prof.key_averages()} == {"outer": 1, "inner": 1}
    assert prof.total_average().count == 2
    assert prof.self_cpu_time_total > 0
    assert str(prof) == prof.table()
    assert "Self CPU time total" in prof.table(row_limit=1, header="a header")
    for _ in range(2):  # torch's profile can be exported only once
        prof.export_chrome_trace(tmp_path / "trace.json", {"said": '"by the user"'})
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert (trace["said"], trace["trace_id"]) == ("by the user", prof.trace_id)


def test_arguments_are_attributes_that_may_be_set() -> None:
    prof = autograd.profile(with_flops=True)
    assert (prof.record_shapes, prof.with_flops) == (True, True)
    assert {prof.with_stack, prof.with_modules, prof.profile_memory, prof.acc_events} == {False}
    assert prof.experimental_config == ExperimentalConfig()
    prof.with_stack = True
    with prof:
        work()
    assert any("work" in name for event in prof.function_events for name in event.stack or ())


def test_torchs_names_are_all_there() -> None:
    program = "import pytest_opprof; print(pytest_opprof.itt.mark.__name__, pytest_opprof.autograd.profile.__name__)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told == "mark profile\n"
    torch = pytest.importorskip("torch")
    assert set(torch.autograd.profiler.__all__) <= set(autograd.__all__)


def test_stats_report_the_recording() -> None:
    with autograd.profile() as prof:
        work()
    assert prof is not None
    stats = prof._stats
    assert stats.number_of_events == 2
    assert 0 < stats.profiling_window_duration_sec < 60
    assert prof.profiling_start_time_ns < prof.profiling_end_time_ns
    assert (stats.dropped_events, stats.truncated) == (0, False)
    assert stats.profiler_enable_call_duration_us >= 0
    prof.key_averages()
    assert stats.parse_kineto_call_duration_us >= 0


def test_profile_is_not_reentrant() -> None:
    prof = autograd.profile()
    with prof, pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"):
        prof.__enter__()
    with pytest.raises(RuntimeError, match="Profiler context manager is not reentrant"):
        prof.__enter__()


def test_refused_second_profile_leaves_the_first() -> None:
    with autograd.profile() as prof:
        assert prof is not None
        with pytest.raises(CaptureBusyError):
            autograd.profile().__enter__()
        work()
    assert len(prof.function_events) == 2


def test_disabled_profile_has_empty_results() -> None:
    prof = autograd.profile(enabled=False)
    with prof as entered:
        work()
    assert entered is None
    prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
    assert list(prof.key_averages()) == []
    assert prof.table() == ""
    assert prof.self_cpu_time_total == 0


def test_failure_in_the_block_keeps_the_results() -> None:
    prof = autograd.profile()

    def fail() -> None:
        with prof:
            work()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert len(prof.function_events) == 2


# ---- the flag ----


def flags() -> tuple[bool, bool]:
    """The flag under both of its names, looked up each time."""
    return autograd._is_profiler_enabled, pytest_opprof._is_profiler_enabled


def test_flag_says_whether_a_profiler_is_on() -> None:
    assert flags() == (False, False)
    with autograd.profile():
        assert flags() == (True, True)
    assert flags() == (False, False)
    autograd._set_is_profiler_enabled(True)
    assert flags() == (True, True)
    autograd._run_on_profiler_stop()
    assert flags() == (False, False)


def test_hooks_are_called_around_a_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    monkeypatch.setattr(autograd, "_run_on_profiler_start", lambda: heard.append("start"))
    monkeypatch.setattr(autograd, "_run_on_profiler_stop", lambda: heard.append("stop"))
    with autograd.profile():
        assert heard == ["start"]
    assert heard == ["start", "stop"]


def test_a_hook_that_fails_loses_no_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise KeyError("hook")

    monkeypatch.setattr(autograd, "_run_on_profiler_stop", fail)
    prof = autograd.profile()
    with pytest.raises(KeyError, match="hook"), prof:
        work()
    assert len(prof.function_events) == 2
    autograd._set_is_profiler_enabled(False)
    monkeypatch.undo()
    with profile():
        pass


# ---- _KinetoProfile ----


def test_kineto_profile_is_started_and_stopped_by_hand() -> None:
    prof = _KinetoProfile()
    with pytest.raises(UsageError, match="never started"):
        prof.events()
    prof.prepare_trace()
    name = prof.get_trace_id()
    prof.start_trace()
    work()
    with pytest.raises(UsageError, match=r"yet: recording goes on; call it after stop\(\)"):
        prof.events()
    prof.stop_trace()
    assert len(prof.events()) == 2
    assert prof.get_trace_id() == name
    prof.start()
    prof.stop()
    prof.stop()
    assert (len(prof.events()), len(prof.cycles)) == (0, 2)


def test_collection_started_on_another_thread_sees_this_one() -> None:
    prof = _KinetoProfile()
    starter = threading.Thread(target=prof.start)
    starter.start()
    starter.join()
    work()
    stopper = threading.Thread(target=prof.stop)
    stopper.start()
    stopper.join()
    assert [event.name for event in prof.events()] == ["outer", "inner"]


def test_collection_is_switched_off_and_on() -> None:
    cpu = [ProfilerActivity.CPU]
    prof = _KinetoProfile()
    prof.toggle_collection_dynamic(False, cpu)  # nothing to switch yet
    with prof:
        with record_function("before"):
            prof.toggle_collection_dynamic(False, cpu)
        with record_function("unseen"):
            prof.toggle_collection_dynamic(True, cpu)
        with record_function("after"):
            pass
        with pytest.warns(UserWarning, match="CUDA activity is not available here"):
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CUDA])
        with record_function("CUDA is not ours to switch"):
            pass
    prof.toggle_collection_dynamic(False, cpu)
    names = [event.name for event in prof.events()]
    assert names == ["before", "after", "CUDA is not ours to switch"]
    assert all(event.cpu_time_total > 0 for event in prof.events())


# ---- _ExperimentalConfig ----


def test_trace_only_refuses_events(tmp_path: Path) -> None:
    with _KinetoProfile(experimental_config=_ExperimentalConfig(trace_only=True)) as prof:
        work()
    for call in (prof.events, prof.key_averages):
        with pytest.raises(RuntimeError, match=r"is not available when trace_only=True"):
            call()
    prof.export_chrome_trace(tmp_path / "trace.json")
    with pytest.warns(UserWarning, match="trace_only=True is incompatible with with_stack=True"):
        prof = _KinetoProfile(experimental_config=_ExperimentalConfig(trace_only=True), with_stack=True)
    assert not prof.experimental_config.trace_only


def test_garbage_collections_are_ranges_on_request() -> None:
    for asked in (True, False):
        config = _ExperimentalConfig(record_python_gc_info=asked)
        with _KinetoProfile(experimental_config=config) as prof, record_function("collect"):
            gc.collect()
        names = [event.name for event in prof.events()]
        assert names == (["collect", "Python GC"] if asked else ["collect"])
    assert not [one for one in gc.callbacks if "CycleRecorder" in repr(one)]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("profiler_metrics", ["sm__cycles"]),
        ("profiler_measure_per_kernel", True),
        ("enable_cuda_sync_events", True),
        ("adjust_profiler_step", True),
        ("disable_external_correlation", True),
        ("expose_kineto_event_metadata", True),
        ("custom_profiler_config", "text"),
        ("adjust_timestamps", True),
    ],
)
def test_settings_of_kineto_are_named_in_a_warning(setting: str, value: object) -> None:
    given: dict[str, Any] = {setting: value}
    config = _ExperimentalConfig(**given)
    with pytest.warns(UserWarning, match=f"experimental_config: {setting}: accepted, but has no effect"):
        _KinetoProfile(experimental_config=config)


class OldConfig:
    """What torch 2.6 to 2.9 gave to pickle: ``performance_events`` last, and fewer fields."""

    def __getstate__(self) -> tuple[object, ...]:
        switches = (False, True, True, False, False, True, True, True)
        return ([b"sm__cycles"], *switches, "text", ["cycles"])


def test_configs_of_older_torches_are_read() -> None:
    read = read_config(OldConfig())
    expected = ExperimentalConfig(
        profiler_metrics=("sm__cycles",),
        verbose=True,
        performance_events=("cycles",),
        enable_cuda_sync_events=True,
        profile_all_threads=True,
        capture_overload_names=True,
        record_python_gc_info=True,
        custom_profiler_config="text",
    )
    assert read == expected
    assert read_config(None) == ExperimentalConfig()


@pytest.mark.parametrize("config", [{"trace_only": True}, "trace_only", 3, False, {}], ids=repr)
def test_anything_else_is_no_config(config: object) -> None:
    with pytest.raises(TypeError, match=r"experimental_config is .*; give an _ExperimentalConfig"):
        _KinetoProfile(experimental_config=config)


@pytest.mark.parametrize("setting", ["verbose", "profile_all_threads"])
def test_settings_that_always_hold_are_accepted(setting: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given: dict[str, Any] = {setting: True}
        _KinetoProfile(experimental_config=_ExperimentalConfig(**given))


# ---- devices ----


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("abacus", "The abacus is not a valid device option"),
        ("xpu", "XPU is not available, disabling XPU profiling"),
        ("hpu", "HPU is not available, disabling HPU profiling"),
    ],
)
def test_unavailable_devices_are_named(device: str, message: str) -> None:
    with pytest.warns(UserWarning, match=message):
        prof = autograd.profile(use_device=device)
    assert prof.use_device is None


def test_use_cuda_is_deprecated() -> None:
    with (
        pytest.warns(FutureWarning, match="`use_cuda` will be deprecated soon"),
        pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"),
    ):
        autograd.profile(use_cuda=True)


def test_at_least_one_activity_is_required() -> None:
    with pytest.raises(AssertionError, match="Device-only events supported only with Kineto"):
        autograd.profile(use_cpu=False)
    with pytest.raises(AssertionError, match="No activities specified for the profiler"):
        autograd.profile(use_cpu=False, use_kineto=True)
