"""Execution traces: on their own and with a profile, with torch's names and files."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from support.programs.children import answer_of

from pytest_opprof import ExecutionTraceObserver, _KinetoProfile, profile, record_function, schedule
from pytest_opprof.errors import CaptureBusyError


def nodes_of(path: Path) -> list[Any]:
    """All nodes except the process and the threads."""
    nodes: list[Any] = json.loads(path.read_bytes())["nodes"]
    return [node for node in nodes if not node["name"].startswith("[pytorch|profiler|")]


def names_of(path: Path) -> list[str]:
    return [node["name"] for node in nodes_of(path)]


def attribute(node: Any, name: str) -> Any:
    (found,) = (attr["value"] for attr in node["attrs"] if attr["name"] == name)
    return found


def test_ranges_are_nodes(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    observer = ExecutionTraceObserver().register_callback(path)
    observer.start()
    assert observer.is_running()
    with record_function("outer", "a text"), record_function('in"ner'):
        pass
    observer.stop()
    observer.unregister_callback()
    assert not observer.is_registered
    assert observer.get_output_file_path() == str(path)
    outer, inner = nodes_of(path)
    assert (outer["name"], inner["name"]) == ("outer", 'in"ner')
    assert inner["ctrl_deps"] == outer["id"]
    assert outer["inputs"] == {"values": ["a text"], "shapes": [[]], "types": ["String"], "strides": [[]]}
    assert attribute(outer, "scope") == 7
    (thread,) = (node for node in json.loads(path.read_bytes())["nodes"] if node["id"] == outer["ctrl_deps"])
    assert thread["name"] == "[pytorch|profiler|execution_trace|thread]"


def test_profile_records_for_its_observer(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    observer = ExecutionTraceObserver().register_callback(tmp_path / "execution.json")
    with profile(execution_trace_observer=observer) as prof:
        torch.ones(2, 3).mul(2)
    prof.export_chrome_trace(tmp_path / "chrome.json")
    events = json.loads((tmp_path / "chrome.json").read_bytes())["traceEvents"]
    chrome = {event["args"]["Record function id"]: event for event in events if event.get("cat") == "cpu_op"}
    nodes = nodes_of(tmp_path / "execution.json")
    assert len(nodes) == len(chrome) > 3
    for node in nodes:
        assert chrome[attribute(node, "rf_id")]["name"] == node["name"]
    (mul,) = (
        node
        for node in nodes
        if node["name"] == "aten::mul" and node["inputs"]["types"][1] != "Tensor(float)"
    )
    assert mul["outputs"]["shapes"] == [[2, 3]]
    assert attribute(mul, "op_schema").startswith("aten::mul.")


def test_windows_of_a_schedule_are_one_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    observer = ExecutionTraceObserver().register_callback(path)
    with pytest.warns(UserWarning, match="warmup"):
        plan = schedule(wait=1, warmup=0, active=1, repeat=2)
    with profile(schedule=plan, execution_trace_observer=observer) as prof:
        for step in range(4):
            with record_function(f"work {step}"):
                pass
            prof.step()
    names = [name for name in names_of(path) if name.startswith("work")]
    assert names == ["work 1", "work 3"]
    numbers = [node["id"] for node in json.loads(path.read_bytes())["nodes"]]
    assert len(set(numbers)) == len(numbers)


def test_without_a_file_nothing_is_recorded(tmp_path: Path) -> None:
    observer = ExecutionTraceObserver()
    observer.start()
    assert not observer.is_running()
    observer.stop()
    observer.cleanup()
    assert observer.get_output_file_path() is None
    with profile(execution_trace_observer=observer) as prof, record_function("work"):
        pass
    assert len(prof.events()) == 1


def test_file_is_compressed_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    observer = ExecutionTraceObserver().register_callback(path)
    with profile(execution_trace_observer=observer), record_function("work"):
        pass
    assert [node["name"] for node in json.loads(gzip.decompress(path.read_bytes()))["nodes"]][-1] == "work"


def test_own_window_does_not_disturb_a_profile(tmp_path: Path) -> None:
    observer = ExecutionTraceObserver().register_callback(tmp_path / "trace.json")
    with profile() as prof:
        with pytest.raises(CaptureBusyError):
            observer.start()
        with record_function("work"):
            pass
    assert len(prof.events()) == 1
    observer.cleanup()
    assert names_of(tmp_path / "trace.json") == []


def test_unregistered_within_a_profile_has_what_ran_so_far(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    observer = ExecutionTraceObserver().register_callback(path)
    with profile(execution_trace_observer=observer) as prof:
        with record_function("before"):
            pass
        observer.unregister_callback()
        assert names_of(path) == ["before"]
        with record_function("after"):
            pass
    assert names_of(path) == ["before"]
    assert len(prof.events()) == 2
    observer.register_callback(tmp_path / "next.json").unregister_callback()
    assert names_of(tmp_path / "next.json") == []


def test_relative_path_is_of_the_folder_at_registration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    observer = ExecutionTraceObserver().register_callback("trace.json")
    monkeypatch.chdir("elsewhere")
    observer.unregister_callback()
    assert (tmp_path / "trace.json").exists()
    assert observer.get_output_file_path() == "trace.json"


@pytest.mark.parametrize(
    "start",
    ["observer.start()", "profile(execution_trace_observer=observer).start()"],
    ids=["alone", "profile"],
)
def test_forgotten_observer_writes_at_the_end_of_the_program(start: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    assert answer_of(
        f"""
        from pytest_opprof import ExecutionTraceObserver, profile, record_function

        observer = ExecutionTraceObserver().register_callback({str(path)!r})
        {start}
        with record_function("work"):
            print("true")
        """
    )
    assert names_of(path) == ["work"]


@pytest.mark.parametrize(
    "recorded",
    [
        pytest.param("observer.start(); work()", id="alone"),
        pytest.param("with profile(execution_trace_observer=observer): work()", id="profile"),
    ],
)
def test_forked_child_leaves_its_parents_file(recorded: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    program = f"""
        import os
        from pytest_opprof import ExecutionTraceObserver, profile, record_function

        def child(work):
            pid = os.fork()
            if pid == 0:
                try:
                    work()
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitpid(pid, 0)[1] == 0

        observer = ExecutionTraceObserver().register_callback({str(path)!r})

        def own():
            observer.cleanup()
            assert not observer.is_running() and not observer.is_registered
            observer.register_callback({str(path)!r} + ".child")
            with profile(execution_trace_observer=observer), record_function("own"):
                pass

        def work():
            with record_function("work"):
                pass
            child(own)

        {recorded}
        observer.cleanup()
        child(observer.cleanup)
        print("true")
    """
    assert answer_of(program)
    assert names_of(path) == ["work"]
    assert names_of(Path(f"{path}.child")) == ["own"]


def test_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    observer = ExecutionTraceObserver().register_callback(tmp_path / "missing" / "trace.json")
    with pytest.raises(FileNotFoundError, match="missing"):
        observer.cleanup()


def test_environment_asks_for_an_observer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ExecutionTraceObserver.build_execution_trace_obs_from_env() is None
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS", "1")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    observer = ExecutionTraceObserver.build_execution_trace_obs_from_env()
    assert observer is not None
    path = observer.get_output_file_path()
    assert path is not None
    assert path.startswith(str(tmp_path))
    resources = observer.get_resources_dir()
    assert resources == path.removesuffix(".json") + "_resources"
    assert Path(resources).is_dir()
    assert ExecutionTraceObserver.get_resources_dir_for_et_path(tmp_path / "other.json") is None
    observer.set_extra_resource_collection(val=False)
    assert observer.get_resources_dir() is None
    observer.cleanup()
    assert names_of(Path(path)) == []


def test_environment_gives_each_profile_an_observer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with profile(), record_function("work"):
        pass
    (path,) = tmp_path.glob("*.et.json")
    assert names_of(path) == ["work"]
    with profile(execution_trace_observer=ExecutionTraceObserver().register_callback(tmp_path / "own.json")):
        pass
    for other in (profile(sampling=0.5), _KinetoProfile()):
        with other:
            pass
    assert list(tmp_path.glob("*.et.json")) == [path]


def test_missing_place_for_the_file_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.warns(UserWarning, match="no execution trace is recorded: .*missing"):
        assert ExecutionTraceObserver.build_execution_trace_obs_from_env() is None


def test_values_outside_json_become_text(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "trace.json"
    observer = ExecutionTraceObserver().register_callback(path)
    with profile(execution_trace_observer=observer):
        torch.full((2,), float("nan"))
    (full,) = (node for node in nodes_of(path) if node["name"] == "aten::full")
    assert full["inputs"]["values"][:2] == [[2], "nan"]
    assert full["inputs"]["types"][:2] == ["GenericList[Int]", "Double"]
