"""Proofs that each argument of functions that read and write files has an effect, and of some small calls."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.cuda.nvidia_databases import write_nsys
from support.programs.windows import Window
from support.proofs.argument_proofs import Make, names, proves, ranges, run, warns

from pytest_opprof import (
    EventKey,
    ExecutionTraceObserver,
    KinetoStepTracker,
    _is_profiler_enabled,
    _set_is_profiler_enabled,
    autograd,
    load_nsys,
    load_trace,
    profile,
    range_pop,
    range_push,
    register_flop_formula,
)
from pytest_opprof.errors import DocumentError
from pytest_opprof.traces.kineto import TraceFile


class LastCycle(profile):
    """A profile whose answers are those of its last cycle."""

    def key_averages(self, *arguments: Any, **options: Any) -> Any:
        return self.cycles[-1].key_averages(*arguments, **options)

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("export_"):
            return getattr(self.cycles[-1], name)
        return super().__getattribute__(name)


class Reread(profile):
    """A profile whose answers are those of its trace, read back."""

    folder: Path

    def _reread(self) -> TraceFile:
        profile.export_chrome_trace(self, self.folder / "reread.json")
        return load_trace(self.folder / "reread.json")

    def key_averages(self, *arguments: Any, **options: Any) -> Any:
        return self._reread().key_averages(*arguments, **options)


@proves("TraceFile.key_averages.group_by_overload_name")
def _overloads_of_a_trace(make: Make, _: Path) -> None:
    prof = run(make)
    with warns("group_by_overload_name: a trace names its ops with their overloads"):
        prof.key_averages(group_by_overload_name=True)


@proves("TraceFile.export_chrome_trace.path")
def _path_of_a_trace(_make: Make, tmp_path: Path) -> None:
    run(profile).export_chrome_trace(tmp_path / "first.json")
    trace = load_trace(tmp_path / "first.json")
    trace.export_chrome_trace(tmp_path / "again.json")
    trace.export_chrome_trace(str(tmp_path / "packed.json.gz"))
    found = [
        [event.name for event in load_trace(tmp_path / name).events()]
        for name in ("again.json", "packed.json.gz")
    ]
    assert found == [["outer", "inner"]] * 2


@proves("load_trace.path", "load_trace.max_events", "load_trace.max_bytes")
def _load_trace(_make: Make, tmp_path: Path) -> None:
    run(profile).export_chrome_trace(tmp_path / "two.json")
    run(profile, lambda: None).export_chrome_trace(tmp_path / "none.json")
    assert [len(load_trace(str(tmp_path / f"{name}.json")).events()) for name in ("two", "none")] == [2, 0]
    size = (tmp_path / "two.json").stat().st_size
    assert len(load_trace(tmp_path / "two.json", max_events=2, max_bytes=size).events()) == 2
    with pytest.raises(DocumentError, match="more than 1 events"):
        load_trace(tmp_path / "two.json", max_events=1)
    with pytest.raises(DocumentError, match=f"more than {size - 1} bytes"):
        load_trace(tmp_path / "two.json", max_bytes=size - 1)


@proves("load_nsys.path")
def _load_nsys(_make: Make, tmp_path: Path) -> None:
    row = {"start": 1_000, "end": 5_000, "globalTid": 1, "eventType": 59, "text": "range"}
    for count in range(3):
        write_nsys(
            tmp_path / f"{count}.sqlite", StringIds=[{"id": 1, "value": "a"}], NVTX_EVENTS=[row] * count
        )
    for path in (tmp_path, str(tmp_path)):
        assert [len(load_nsys(Path(path) / f"{count}.sqlite")) for count in range(3)] == [0, 1, 2]
    assert len(load_nsys(str(tmp_path / "1.sqlite"))) == 1


# ---- execution traces ----


@proves("ExecutionTraceObserver.register_callback.output_file_path")
def _output_file_path(_make: Make, tmp_path: Path) -> None:
    for path in (tmp_path / "one.json", str(tmp_path / "two.json")):
        run(profile, execution_trace_observer=ExecutionTraceObserver().register_callback(path))
        assert "inner" in [node["name"] for node in json.loads(Path(path).read_text())["nodes"]]


@proves("ExecutionTraceObserver.take.recording")
def _taken_recording(_make: Make, tmp_path: Path) -> None:
    with Window() as window:
        ranges()
    observer = ExecutionTraceObserver().register_callback(tmp_path / "trace.json")
    observer.join_window()
    observer.take(window.recording)
    observer.unregister_callback()
    found = [node["name"] for node in json.loads((tmp_path / "trace.json").read_text())["nodes"]]
    assert found[-2:] == ["outer", "inner"]


@proves(
    "ExecutionTraceObserver.set_extra_resource_collection.val",
    "ExecutionTraceObserver.get_resources_dir.can_create",
)
def _resources(_make: Make, tmp_path: Path) -> None:
    observer = ExecutionTraceObserver().register_callback(tmp_path / "trace.json")
    observer.set_extra_resource_collection(False)
    assert observer.get_resources_dir(can_create=True) is None
    observer.set_extra_resource_collection(True)
    folder = tmp_path / "trace_resources"
    assert observer.get_resources_dir() == str(folder)
    folder.rmdir()
    assert observer.get_resources_dir() is None
    assert observer.get_resources_dir(can_create=True) == str(folder)


@proves(
    "ExecutionTraceObserver.get_resources_dir_for_et_path.trace_path",
    "ExecutionTraceObserver.get_resources_dir_for_et_path.create_dir",
)
def _resources_of_a_path(_make: Make, tmp_path: Path) -> None:
    folder_of = ExecutionTraceObserver.get_resources_dir_for_et_path
    assert folder_of(tmp_path / "one.json") is None
    assert folder_of(tmp_path / "one.json", create_dir=True) == str(tmp_path / "one_resources")
    assert folder_of(str(tmp_path / "two.json"), create_dir=True) == str(tmp_path / "two_resources")
    assert folder_of(tmp_path / "one.json") == str(tmp_path / "one_resources")


# ---- small calls ----


@proves("range_push.name")
def _range_push(make: Make, _: Path) -> None:
    def work() -> None:
        for name in ("one", "another"):
            range_push(name)
            range_pop()

    assert names(run(make, work)) == ["one", "another"]


@proves("register_flop_formula.names")
def _flop_formula(make: Make, _: Path) -> None:
    torch = pytest.importorskip("torch")
    ones = torch.ones(4)

    def work() -> None:
        torch.erfc(ones)
        torch.lgamma(ones)
        torch.digamma(ones)

    def flops() -> dict[str, int]:
        rows = run(make, work, with_flops=True).key_averages()
        return {row.key: row.flops for row in rows if row.flops}

    assert flops() == {}
    register_flop_formula("aten::erfc", "aten::lgamma")(lambda *_shapes, **_known: 7)
    assert flops() == {"aten::erfc": 7, "aten::lgamma": 7}


@proves(
    *(
        f"KinetoStepTracker.{method}.requester"
        for method in ("init_step_count", "increment_step", "erase_step_count")
    )
)
def _requester(_make: Make, _: Path) -> None:
    tracker = KinetoStepTracker
    tracker.init_step_count("known")
    before = tracker.current_step()
    assert tracker.increment_step("known") == before + 1
    assert tracker.increment_step("another") == before + 2  # it starts at the process's count
    assert tracker.increment_step("known") == before + 2
    assert [tracker.erase_step_count(name) for name in ("known", "nobody", "known")] == [True, False, False]
    assert tracker.erase_step_count("another")


@proves("_set_is_profiler_enabled.enable")
def _enabled(_make: Make, _: Path) -> None:
    before = _is_profiler_enabled
    try:
        for enable in (True, False):
            _set_is_profiler_enabled(enable)
            assert autograd._is_profiler_enabled is enable
    finally:
        _set_is_profiler_enabled(before)


@proves("EventKey.event")
def _event_key(make: Make, _: Path) -> None:
    outer, inner = run(make).events()
    assert EventKey(outer) != EventKey(inner)
    assert EventKey(outer) == EventKey(outer)
    assert EventKey(inner).event is inner
