"""What shows that each argument of the profiler's public callables does something.

A proof takes a profiler's class and a folder, and fails where the argument makes no difference.
"""

import gc
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof import (
    ProfilerAction,
    ProfilerActivity,
    _ExperimentalConfig,
    _KinetoProfile,
    autograd,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)

PROFILERS: dict[str, Callable[..., Any]] = {
    "profile": profile,
    "_KinetoProfile": _KinetoProfile,
    "autograd.profile": autograd.profile,
}
Make = Callable[..., Any]
Proof = Callable[[Make, Path], None]
PROOFS: dict[str, Proof] = {}  # by "argument" for what all profilers have, else by "callable.argument"


def proves(*keys: str) -> Callable[[Proof], Proof]:
    """Registers a function as the proof of arguments."""

    def register(proof: Proof) -> Proof:
        PROOFS.update(dict.fromkeys(keys, proof))
        return proof

    return register


# ---- what proofs do ----


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
    assert "[memory]" in run(make, step, profile_memory=True).key_averages().table() or any(
        row.cpu_memory_usage for row in run(make, step, profile_memory=True).key_averages()
    )
    assert not any(row.cpu_memory_usage for row in run(make, step).key_averages())


@proves("with_flops")
def _with_flops(make: Make, _: Path) -> None:
    step = torch_step()
    assert sum(row.flops for row in run(make, step, with_flops=True).key_averages()) >= 2 * 4 * 3 * 2
    assert not sum(row.flops or 0 for row in run(make, step).key_averages())


@proves("with_stack")
def _with_stack(make: Make, _: Path) -> None:
    assert any("ranges" in entry for entry in one(run(make, with_stack=True), "outer").stack)
    assert not one(run(make), "outer").stack


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
    heard: list[str] = []

    class Observer:
        def start(self) -> None:
            heard.append("start")

        def stop(self) -> None:
            heard.append("stop")

        def cleanup(self) -> None:
            heard.append("cleanup")

    run(make, execution_trace_observer=Observer())
    assert heard == ["start", "stop", "cleanup"]


def twice(make: Make, **options: Any) -> list[str]:
    prof = make(**options)
    for _ in range(2):
        prof.start()
        ranges()
        prof.stop()
    return names(prof)


@proves("acc_events")
def _acc_events(make: Make, _: Path) -> None:
    if make is autograd.profile:  # which is entered once
        assert make(acc_events=True)._profile.acc_events
        assert not make()._profile.acc_events
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
    assert "ProfilerStep*" in names(
        run(make, schedule=schedule(wait=0, warmup=1, active=1, repeat=1), work=ranges)
    ) or (
        names(run(make, schedule=lambda _step: ProfilerAction.RECORD)) == ["ProfilerStep*", "outer", "inner"]
    )
    assert names(run(make)) == ["outer", "inner"]


@proves("profile.on_trace_ready")
def _on_trace_ready(make: Make, _: Path) -> None:
    ready: list[Any] = []
    prof = run(make, on_trace_ready=ready.append)
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
    with warns(r"activity types \(CPU_OP\) are not chosen one by one here"):
        make(activity_filters={ProfilerActivity.CPU: {"CPU_OP"}})


# ---- their methods ----


@proves("key_averages.group_by_input_shape")
def _group_by_input_shape(make: Make, _: Path) -> None:
    torch = pytest.importorskip("torch")

    def work() -> None:
        for size in (2, 3):
            torch.add(torch.ones(size), 1)

    prof = run(make, work, record_shapes=True)
    rows = [row.count for row in prof.key_averages(group_by_input_shape=True) if row.key == "aten::add"]
    assert rows == [1, 1]
    assert [row.count for row in prof.key_averages() if row.key == "aten::add"] == [2]


@proves("key_averages.group_by_stack_n")
def _group_by_stack_n(make: Make, _: Path) -> None:
    def here() -> object:
        with record_function("same") as scope:
            return scope

    def there() -> object:
        with record_function("same") as scope:
            return scope

    prof = run(make, lambda: [call() for call in (here, there)], with_stack=True)
    assert [row.count for row in prof.key_averages(group_by_stack_n=3) if row.key == "same"] == [1, 1]
    assert [row.count for row in prof.key_averages() if row.key == "same"] == [2]


@proves("key_averages.group_by_overload_name")
def _group_by_overload_name(make: Make, _: Path) -> None:
    prof = run(make)
    assert [row.overload_name for row in prof.key_averages(group_by_overload_name=True)] == ["", ""]


@proves("key_averages.compat")
def _compat(make: Make, _: Path) -> None:
    def work() -> None:
        with record_function("same"), record_function("same"):
            pass

    prof = run(make, work)
    assert [row.count for row in prof.key_averages() if row.key == "same"] == [2]
    # Torch takes an only child of its parent's name for the same event.
    assert [row.count for row in prof.key_averages(compat="torch") if row.key == "same"] == [1]


@proves("export_chrome_trace.path", "export_stacks.path")
def _path(make: Make, tmp_path: Path) -> None:
    prof = run(make, with_stack=True)
    for export in (prof.export_chrome_trace, prof.export_stacks):
        export(tmp_path / "one")
        export(str(tmp_path / "two"))
        assert (tmp_path / "one").stat().st_size == (tmp_path / "two").stat().st_size


@proves("export_stacks.metric", "export_stacks.compat")
def _metric(make: Make, tmp_path: Path) -> None:
    prof = run(make, with_stack=True)
    prof.export_stacks(tmp_path / "stacks", "self_cpu_time_total")
    assert (tmp_path / "stacks").read_text()
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(tmp_path / "stacks", "luck")


@proves("autograd.profile.export_chrome_trace.metadata")
def _metadata(make: Make, tmp_path: Path) -> None:
    prof = run(make)
    prof.export_chrome_trace(tmp_path / "trace.json", metadata={"said": "[1]"})
    assert json.loads((tmp_path / "trace.json").read_text())["said"] == [1]


@proves("export_chrome_trace.use_python_export", "tensorboard_trace_handler.use_python_export")
def _use_python_export(make: Make, tmp_path: Path) -> None:
    """There is one way to write a trace, so either value writes the same."""
    prof = run(make)
    for value in (False, True):
        prof.export_chrome_trace(tmp_path / f"{value}.json", use_python_export=value)
    texts = [(tmp_path / f"{value}.json").read_text() for value in (False, True)]
    assert texts[0].replace("False.json", "") == texts[1].replace("True.json", "")


@proves("add_metadata.key", "add_metadata.value", "add_metadata_json.key", "add_metadata_json.value")
def _add_metadata(make: Make, tmp_path: Path) -> None:
    prof = run(make)
    prof.add_metadata("text", 'a "quote"')
    prof.add_metadata_json("json", '{"a": [1]}')
    read = trace(prof, tmp_path)
    assert (read["text"], read["json"]) == ('a "quote"', {"a": [1]})


@proves("preset_metadata_json.key", "preset_metadata_json.value")
def _preset_metadata_json(make: Make, tmp_path: Path) -> None:
    prof = run(make)
    prof.preset_metadata_json("one", "1")
    prof.preset_metadata_json("two", "2")
    prof.add_metadata_json("two", "22")  # which goes before what was preset
    read = trace(prof, tmp_path)
    assert (read["one"], read["two"]) == (1, 22)


@proves("toggle_collection_dynamic.enabled", "toggle_collection_dynamic.activities")
def _toggle(make: Make, _: Path) -> None:
    with make() as prof:
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        ranges()
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        with record_function("seen"):
            pass
    assert names(prof) == ["seen"]


@proves(
    *(
        f"table.{argument}"
        for argument in (
            "sort_by",
            "row_limit",
            "max_src_column_width",
            "max_name_column_width",
            "max_shapes_column_width",
            "header",
            "top_level_events_only",
        )
    )
)
def _table(make: Make, _: Path) -> None:
    torch = pytest.importorskip("torch")

    def work() -> None:
        with record_function("a name that is long enough to be cut " * 2):
            torch.ones(1, 1, 1, 1, 1, 1, 1, 1).add(1)

    prof = run(make, work, record_shapes=True, with_stack=True)
    plain = prof.table()
    for argument, value in {
        "sort_by": "self_cpu_time_total",
        "row_limit": 1,
        "max_src_column_width": 10,
        "max_name_column_width": 20,
        "max_shapes_column_width": 10,
        "header": "a header",
        "top_level_events_only": True,
    }.items():
        assert prof.table(**{argument: value}) != plain, argument


# ---- functions ----


def actions(**numbers: int) -> list[str]:
    plan = schedule(**{"wait": 1, "warmup": 1, "active": 1, **numbers})
    return [plan(step).name for step in range(12)]


@proves(*(f"schedule.{name}" for name in inspect.signature(schedule).parameters))
def _schedule_numbers(_make: Make, _: Path) -> None:
    assert actions(skip_first=2, skip_first_wait=1) != actions(skip_first=2)
    for number in ("wait", "warmup", "active", "repeat", "skip_first"):
        assert actions(**{number: 2}) != actions(), number


@proves("tensorboard_trace_handler.dir_name", "tensorboard_trace_handler.worker_name")
def _handler(make: Make, tmp_path: Path) -> None:
    run(make, on_trace_ready=tensorboard_trace_handler(tmp_path / "made", "worker"))
    run(make, on_trace_ready=tensorboard_trace_handler(str(tmp_path / "made")))
    (named, unnamed) = sorted((tmp_path / "made").iterdir(), key=lambda path: path.name[:7] != "worker.")
    assert re.fullmatch(r"worker\.\d+\.pt\.trace\.json", named.name)
    assert re.fullmatch(r".+_\d+\.\d+\.pt\.trace\.json", unnamed.name)


@proves("tensorboard_trace_handler.use_gzip")
def _use_gzip(make: Make, tmp_path: Path) -> None:
    run(make, on_trace_ready=tensorboard_trace_handler(tmp_path, use_gzip=True))
    (path,) = tmp_path.iterdir()
    assert path.name.endswith(".pt.trace.json.gz")
    assert path.read_bytes()[:2] == b"\x1f\x8b"


@proves("record_function.name", "record_function.args")
def _record_function(make: Make, tmp_path: Path) -> None:
    def work() -> None:
        with record_function("with", "batch 7"), record_function("without"):
            pass

    read = trace(run(make, work), tmp_path)
    rows = {row["name"]: row["args"] for row in read["traceEvents"] if row["name"] in {"with", "without"}}
    assert rows["with"]["args"] == "batch 7"
    assert "args" not in rows["without"]
