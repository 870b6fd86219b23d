"""Proofs that each argument of the profiler's public callables has an effect.

A proof takes a profiler's class and a folder, and fails if the argument makes no difference.
"""

import gc
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.programs.profiled_steps import ToldObserver

from pytest_opprof import (
    ProfilerAction,
    ProfilerActivity,
    _ExperimentalConfig,
    _KinetoProfile,
    autograd,
    profile,
    record_function,
    schedule,
)

PROFILERS: dict[str, Callable[..., Any]] = {
    "profile": profile,
    "_KinetoProfile": _KinetoProfile,
    "autograd.profile": autograd.profile,
}
Make = Callable[..., Any]
Proof = Callable[[Make, Path], None]
PROOFS: dict[str, Proof] = {}  # key: "argument" if all profilers have it, else "callable.argument"


def proves(*keys: str) -> Callable[[Proof], Proof]:
    """Register a function as the proof of arguments."""

    def register(proof: Proof) -> Proof:
        PROOFS.update(dict.fromkeys(keys, proof))
        return proof

    return register


# ---- helpers of proofs ----


def run(make: Make, work: Callable[[], object] | None = None, **options: Any) -> Any:
    """A finished profile of some work."""
    prof = make(**options)
    with prof:
        (work or ranges)()
        if isinstance(prof, profile):
            prof.step()
    return prof


def ranges() -> None:
    with record_function("outer"), record_function("inner"):
        pass


def events(prof: Any) -> list[Any]:
    return list(prof.function_events if isinstance(prof, autograd.profile) else prof.events())


def names(prof: Any) -> list[str]:
    return [event.name for event in events(prof)]


def trace(prof: Any, folder: Path) -> dict[str, Any]:
    prof.export_chrome_trace(folder / "trace.json")
    read: dict[str, Any] = json.loads((folder / "trace.json").read_text())
    return read


def torch_step() -> Callable[[], object]:
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(3, 2)
    batch = torch.ones(4, 3)
    layer(batch)
    return lambda: layer(batch)


def one(prof: Any, name: str) -> Any:
    return next(event for event in events(prof) if event.name == name)


def warns(message: str) -> Any:
    return pytest.warns(UserWarning, match=message)


# ---- the profilers' own ----


@proves("activities")
def _activities(make: Make, _: Path) -> None:
    step = torch_step()
    with warns("CUDA activity is not available here"):
        without = run(make, step, activities=[ProfilerActivity.CUDA])
    assert "aten::linear" in names(run(make, step, activities=[ProfilerActivity.CPU]))
    assert "aten::linear" not in names(without)


@proves("record_shapes")
def _record_shapes(make: Make, _: Path) -> None:
    step = torch_step()
    assert one(run(make, step, record_shapes=True), "aten::linear").input_shapes == [[4, 3], [2, 3], [2]]
    assert one(run(make, step), "aten::linear").input_shapes == []


@proves("profile_memory")
def _profile_memory(make: Make, _: Path) -> None:
    step = torch_step()
    with_memory, without = run(make, step, profile_memory=True), run(make, step)
    assert any(row.cpu_memory_usage for row in with_memory.key_averages())
    assert not any(row.cpu_memory_usage for row in without.key_averages())
    assert "CPU Mem" in with_memory.key_averages().table()
    assert "CPU Mem" not in without.key_averages().table()


@proves("with_flops")
def _with_flops(make: Make, _: Path) -> None:
    step = torch_step()
    assert sum(row.flops for row in run(make, step, with_flops=True).key_averages()) >= 2 * 4 * 3 * 2
    assert not sum(row.flops or 0 for row in run(make, step).key_averages())


@proves("with_stack")
def _with_stack(make: Make, _: Path) -> None:
    assert any("ranges" in entry for entry in one(run(make, with_stack=True), "outer").stack)
    assert not one(run(make), "outer").stack
    cpp, both = one(run(make, with_stack="cpp"), "outer"), one(run(make, with_stack="all"), "outer")
    assert cpp.cpp_stack
    assert not cpp.stack
    assert both.cpp_stack
    assert both.stack


@proves("with_modules")
def _with_modules(make: Make, _: Path) -> None:
    step = torch_step()
    assert any(name.startswith("nn.Module: Linear") for name in names(run(make, step, with_modules=True)))
    assert not any(name.startswith("nn.Module") for name in names(run(make, step)))


@proves("experimental_config")
def _experimental_config(make: Make, _: Path) -> None:
    config = _ExperimentalConfig(record_python_gc_info=True)
    assert "Python GC" in names(run(make, gc.collect, experimental_config=config))
    assert "Python GC" not in names(run(make, gc.collect))


@proves("execution_trace_observer")
def _execution_trace_observer(make: Make, _: Path) -> None:
    observer = ToldObserver()
    run(make, execution_trace_observer=observer)
    assert observer.told == ["start", "stop", "cleanup"]


def twice(make: Make, **options: Any) -> list[str]:
    prof = make(**options)
    for _ in range(2):
        prof.start()
        ranges()
        prof.stop()
    return names(prof)


@proves("acc_events")
def _acc_events(make: Make, _: Path) -> None:
    if isinstance(make, type) and issubclass(make, autograd.profile):
        with warns("acc_events has no effect"):
            make(acc_events=True)
        return
    assert twice(make, acc_events=True) == ["outer", "inner"] * 2
    assert twice(make) == ["outer", "inner"]


@proves("keep_cycles")
def _keep_cycles(make: Make, _: Path) -> None:
    assert twice(make, keep_cycles=1, acc_events=True) == ["outer", "inner"]
    assert twice(make, keep_cycles=2, acc_events=True) == ["outer", "inner"] * 2


@proves("custom_trace_id_callback", "set_custom_trace_id_callback.callback")
def _custom_trace_id_callback(make: Make, tmp_path: Path) -> None:
    assert trace(run(make, custom_trace_id_callback=lambda: "mine"), tmp_path)["trace_id"] == "mine"
    assert re.fullmatch("[0-9A-F]{32}", trace(run(make), tmp_path)["trace_id"])
    if make is not autograd.profile:
        prof = make()
        prof.set_custom_trace_id_callback(lambda: "later")
        with prof:
            assert prof.get_trace_id() == "later"


@proves("post_processing_timeout_s")
def _post_processing_timeout_s(make: Make, _: Path) -> None:
    assert names(run(make, post_processing_timeout_s=1.0)) == ["outer", "inner"]
    with pytest.raises(ValueError, match="post_processing_timeout_s must be non-negative"):
        make(post_processing_timeout_s=-1.0)


@proves("profile.schedule")
def _schedule(make: Make, _: Path) -> None:
    assert names(run(make)) == ["outer", "inner"]
    recorded = names(run(make, schedule=lambda _step: ProfilerAction.RECORD))
    assert recorded[:3] == ["ProfilerStep*", "outer", "inner"]
    prof = make(schedule=schedule(wait=0, warmup=1, active=1, repeat=1))
    with prof:
        for number in range(3):
            with record_function(f"step {number}"):
                pass
            prof.step()
    assert names(prof) == ["ProfilerStep*", "step 1"]


@proves("profile.on_trace_ready")
def _on_trace_ready(make: Make, _: Path) -> None:
    ready: list[Any] = []
    prof = run(make, on_trace_ready=ready.append)
    run(make)
    assert ready == [prof]


@proves("profile.use_cuda")
def _use_cuda(make: Make, _: Path) -> None:
    with (
        pytest.warns(FutureWarning, match="`use_cuda` is deprecated"),
        warns("CUDA activity is not available"),
    ):
        assert ProfilerActivity.CUDA in make(use_cuda=True).activities
    assert ProfilerActivity.CUDA not in make().activities


@proves("autograd.profile.use_cpu")
def _use_cpu(make: Make, _: Path) -> None:
    with pytest.raises(AssertionError, match="Device-only events supported only with Kineto"):
        make(use_cpu=False)
    assert "aten::linear" in names(run(make, torch_step(), use_cpu=True))


@proves("autograd.profile.activity_filters")
def _activity_filters(make: Make, _: Path) -> None:
    with warns(r"activity types \(CPU_OP\) cannot be chosen one by one"):
        make(activity_filters={ProfilerActivity.CPU: {"CPU_OP"}})
