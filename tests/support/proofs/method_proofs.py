"""Proofs that each argument of the profilers' methods, and of functions, has an effect."""

import gzip
import inspect
import json
import re
from pathlib import Path

import pytest
from support.proofs.argument_proofs import Make, names, proves, ranges, run, torch_step, trace, warns

from pytest_opprof import (
    ProfilerActivity,
    _ExperimentalConfig,
    record_function,
    schedule,
    tensorboard_trace_handler,
)

# ---- methods ----


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
    torch = pytest.importorskip("torch")
    ones = torch.ones(2)

    def work() -> None:
        torch.sum(ones)
        torch.sum(ones, [0])

    prof = run(make, work, experimental_config=_ExperimentalConfig(capture_overload_names=True))
    rows = [row for row in prof.key_averages(group_by_overload_name=True) if row.key == "aten::sum"]
    assert sorted((row.overload_name, row.count) for row in rows) == [("", 1), ("dim_IntList", 2)]
    assert [row.count for row in prof.key_averages() if row.key == "aten::sum"] == [3]


@proves("key_averages.compat")
def _compat(make: Make, _: Path) -> None:
    def work() -> None:
        with record_function("same"), record_function("same"):
            pass

    prof = run(make, work)
    assert [row.count for row in prof.key_averages() if row.key == "same"] == [2]
    # torch merges an only child with its parent's name into it
    assert [row.count for row in prof.key_averages(compat="torch") if row.key == "same"] == [1]


@proves("export_chrome_trace.path", "export_stacks.path", "export_speedscope.path")
def _path(make: Make, tmp_path: Path) -> None:
    prof = run(make, with_stack=True)
    for name in ("export_chrome_trace", "export_stacks", "export_speedscope"):
        export = getattr(prof, name, None)
        if export is None:  # the older profile writes no speedscope
            continue
        export(tmp_path / name)
        export(str(tmp_path / f"{name}.gz"))
        assert "ranges" in (tmp_path / name).read_text()
        assert b"ranges" in gzip.decompress((tmp_path / f"{name}.gz").read_bytes())


@proves("export_stacks.metric")
def _metric(make: Make, tmp_path: Path) -> None:
    prof = run(make, with_stack=True)
    written = []
    for metric in ("self_cpu_time_total", "self_cuda_time_total"):
        prof.export_stacks(tmp_path / "stacks", metric)
        written.append((tmp_path / "stacks").read_text())
    assert "ranges" in written[0]
    assert written[1] == ""  # nothing ran on a device
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(tmp_path / "stacks", "luck")


@proves("export_stacks.compat")
def _stacks_compat(make: Make, tmp_path: Path) -> None:
    """Torch charges a Python call's own time to its caller; ours has its own line."""

    def innermost() -> int:
        return sum(number for number in range(300))

    prof = run(make, innermost, with_stack=True)
    found = []
    for compat in (None, "torch"):
        prof.export_stacks(tmp_path / "stacks", compat=compat)
        lines = (tmp_path / "stacks").read_text().splitlines()
        found.append([line for line in lines if "<genexpr>" in line])
    assert found[0]
    assert found[1] == []


@proves("export_stacks.stacks")
def _stacks_kind(make: Make, tmp_path: Path) -> None:
    prof = run(make, with_stack="all")
    for kind, is_of_cpp in {"python": False, "cpp": True}.items():
        prof.export_stacks(tmp_path / kind, stacks=kind)
        # distributions strip most names of the interpreter's functions
        assert bool(re.search(r"\b_?Py[A-Z]\w+_\w+", (tmp_path / kind).read_text())) == is_of_cpp


@proves("expect_stacks.stacks")
def _expect_stacks(make: Make, _: Path) -> None:
    cycle = run(make, with_stack="cpp").cycles[-1]
    cycle.expect_stacks("cpp")
    for kind in ("python", "all"):
        with pytest.raises(AssertionError, match="requires with_stack="):
            cycle.expect_stacks(kind)


@proves("export_memory_timeline.path", "export_memory_timeline.device")
def _memory_timeline(make: Make, tmp_path: Path) -> None:
    prof = run(make, torch_step(), record_shapes=True, profile_memory=True, with_stack=True)
    texts = []
    for name, device in (("one.json", None), ("two.json", "cpu"), ("three.json", "cuda:0")):
        prof.export_memory_timeline(tmp_path / name, device=device)
        texts.append((tmp_path / name).read_text())
    assert texts[0] == texts[1]
    assert len(texts[2]) < len(texts[0])  # a device without memory records


@proves("autograd.profile.export_chrome_trace.metadata")
def _metadata(make: Make, tmp_path: Path) -> None:
    prof = run(make)
    prof.export_chrome_trace(tmp_path / "trace.json", metadata={"said": "[1]"})
    assert json.loads((tmp_path / "trace.json").read_text())["said"] == [1]


@proves("export_chrome_trace.use_python_export", "tensorboard_trace_handler.use_python_export")
def _use_python_export(make: Make, tmp_path: Path) -> None:
    """The argument only makes a warning, because there is one way to write a trace."""
    prof = run(make)
    with warns("use_python_export: accepted, but has no effect"):
        prof.export_chrome_trace(tmp_path / "True.json", use_python_export=True)
    prof.export_chrome_trace(tmp_path / "False.json", use_python_export=False)
    texts = [(tmp_path / f"{value}.json").read_text() for value in (False, True)]
    assert texts[0].replace("False.json", "") == texts[1].replace("True.json", "")
    with warns("use_python_export: accepted"):
        tensorboard_trace_handler(tmp_path, use_python_export=True)


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
    prof.add_metadata_json("two", "22")  # which overrides the preset
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
