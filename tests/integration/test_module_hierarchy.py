"""The torch modules in which an op ran: in its args of a trace, as Kineto has them for TorchScript."""

import json
import weakref
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof import _ExperimentalConfig, profile

HIERARCHY = "Module Hierarchy"


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def net(torch: Any) -> Any:
    inner = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(2, 1))
    return torch.nn.Sequential(torch.nn.Linear(2, 2), inner)


def op_args(prof: Any, path: Path) -> list[tuple[str, dict[str, Any]]]:
    """The ops of a trace by start, each with its args."""
    prof.export_chrome_trace(str(path))
    rows = [row for row in json.loads(path.read_text())["traceEvents"] if row.get("cat") == "cpu_op"]
    rows.sort(key=lambda row: (row["ts"], -row["dur"]))
    return [(row["name"], row["args"]) for row in rows]


def of_each_op(prof: Any, path: Path) -> dict[str, set[str | None]]:
    found: dict[str, set[str | None]] = {}
    for name, args in op_args(prof, path):
        found.setdefault(name, set()).add(args.get(HIERARCHY))
    return found


def test_modules_around_an_op_are_named(torch: Any, tmp_path: Path) -> None:
    model, batch = net(torch), torch.ones(1, 2)
    with profile(with_modules=True) as prof:
        model(batch)
        torch.ones(2)
    found = of_each_op(prof, tmp_path / "trace.json")
    first = "Sequential_0.Linear_0."
    assert found["aten::linear"] == {first, "Sequential_0.Sequential_1.Linear_1."}
    assert found["aten::relu"] == found["aten::clamp_min"] == {"Sequential_0.Sequential_1.ReLU_0."}
    assert found["aten::ones"] == {None}


def test_calls_between_modules_change_nothing(torch: Any, tmp_path: Path) -> None:
    model, batch = net(torch), torch.ones(1, 2)
    found = []
    for with_modules, with_stack in ((True, False), (True, True), (False, True)):
        with profile(with_modules=with_modules, with_stack=with_stack) as prof:
            model(batch)
        found.append(of_each_op(prof, tmp_path / "trace.json"))
    assert found[0] == found[1] == found[2]


def test_modules_are_not_recorded_by_default(torch: Any, tmp_path: Path) -> None:
    with profile() as prof:
        net(torch)(torch.ones(1, 2))
    found = of_each_op(prof, tmp_path / "trace.json")
    assert found["aten::relu"] == {None}
    assert set().union(*found.values()) == {None}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning")  # from Python 3.14 on
def test_modules_are_not_inputs(torch: Any, tmp_path: Path) -> None:
    """They are stored where keywords are, between an overload and the inputs."""
    batch = torch.ones(1, 2)
    model = torch.jit.trace(net(torch), batch)
    config = _ExperimentalConfig(capture_overload_names=True)
    with profile(with_modules=True, record_shapes=True, experimental_config=config) as prof:
        model(batch)
    relu = next(event for event in prof.events() if event.name == "aten::relu")
    assert relu.kwinputs == {}
    assert relu.input_shapes == [[1, 2]]
    args = dict(op_args(prof, tmp_path / "trace.json"))["aten::relu"]
    assert args[HIERARCHY].startswith("TOP(Sequential)::forward.")
    assert args["Input Dims"] == [[1, 2]]


@pytest.mark.parametrize("with_stack", [False, True])
def test_called_module_is_freed_with_its_last_reference(torch: Any, *, with_stack: bool) -> None:
    """A later module at the same address is another one."""
    batch, living = torch.ones(1, 2), 0
    with profile(with_modules=True, with_stack=with_stack) as prof:
        for _ in range(3):
            model = torch.nn.Linear(2, 2)
            model(batch)
            model(batch)
            reference = weakref.ref(model)
            del model
            living += reference() is not None
    assert living == 0
    called = [event.name for event in prof.events() if event.name.startswith("nn.Module: ")]
    assert called == [f"nn.Module: Linear_{number}" for number in (0, 0, 1, 1, 2, 2)]
