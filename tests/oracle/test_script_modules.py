"""The modules of TorchScript around each op, against those in Kineto's traces of the same program."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof import profile

# torch's own, about TorchScript and its reports
pytestmark = pytest.mark.filterwarnings("ignore:.*(torch.jit|with_modules):FutureWarning")


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def script(torch: Any, model: Any, _batch: Any) -> Any:
    return torch.jit.script(model)


def trace(torch: Any, model: Any, batch: Any) -> Any:
    return torch.jit.trace(model, batch)


def hierarchies(prof: Any, path: Path) -> list[tuple[str, str | None]]:
    """Each op's modules, by start."""
    prof.export_chrome_trace(str(path))
    rows = [row for row in json.loads(path.read_text())["traceEvents"] if row.get("cat") == "cpu_op"]
    rows.sort(key=lambda row: (row["ts"], -row["dur"]))
    return [(row["name"], row["args"].get("Module Hierarchy")) for row in rows]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("record_shapes", [False, True], ids=["plain", "shapes"])
@pytest.mark.parametrize("compiled", [script, trace])
def test_torchscript_modules_match_kinetos(
    torch: Any, tmp_path: Path, compiled: Callable[[Any, Any, Any], Any], *, record_shapes: bool
) -> None:
    batch = torch.ones(1, 2)
    inner = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(2, 1))
    model = compiled(torch, torch.nn.Sequential(torch.nn.Linear(2, 2), inner), batch)
    for _ in range(3):  # it is compiled first
        model(batch)
    found = []
    for profiler in (profile, torch.profiler.profile):
        with profiler(with_modules=True, record_shapes=record_shapes) as prof:
            model(batch)
        found.append(hierarchies(prof, tmp_path / "trace.json"))
    assert found[0] == found[1]
    of_relu = dict(found[0])["aten::relu"]
    assert of_relu is not None
    assert "ReLU" in of_relu
