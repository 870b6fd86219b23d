"""Our emit_itt against torch's: a tool receives the same strings, as often, in the same order."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest
from support.programs.children import run_python

CC = shutil.which("cc") or shutil.which("gcc")
pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.skipif(CC is None, reason="no C compiler to build the listening tool"),
]

STEPS = """
    import gc, sys
    import torch
    from pytest_opprof import emit_itt, profile

    torch.manual_seed(0)
    model = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(16, 2, dim_feedforward=32, batch_first=True),
        2,
        enable_nested_tensor=False,
    )
    batch = torch.randn(2, 4, 16)

    def step():
        with torch.profiler.record_function("step"):
            model(batch).sum().backward()

    for _ in range(4):
        step()
    gc.disable()
"""
BY_TORCH = "torch.autograd.profiler.emit_itt()"
BY_US = "emit_itt(compat='torch')"
BY_US_WITH_SHAPES = "emit_itt(record_shapes=True)"


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collector that logs what it receives."""
    if run_python("import torch; raise SystemExit(not torch.profiler.itt.is_available())").returncode:
        pytest.skip("this torch was built without ITT")
    library = tmp_path_factory.mktemp("tool") / "tool.so"
    source = Path(__file__).parents[1] / "integration" / "listening_tool.c"
    subprocess.run([str(CC), "-shared", "-fPIC", "-w", str(source), "-o", str(library)], check=True)
    return library


def heard(tool: Path, log: Path, emitter: str, *, after: str = "") -> list[tuple[str, str]]:
    """Each logged call except domain creation: its kind and its text."""
    done = run_python(
        f"{STEPS}\n    with {emitter}:\n        step()\n{after}",
        environment={"INTEL_LIBITTNOTIFY64": str(tool), "LISTENING_TOOL_LOG": str(log)},
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in log.read_text().splitlines()]
    return [(what, text) for _, what, text in lines if what != "domain"]


@pytest.mark.slow
def test_strings_match_torchs(tool: Path, tmp_path: Path) -> None:
    theirs = heard(tool, tmp_path / "theirs", BY_TORCH)
    ours = heard(tool, tmp_path / "ours", BY_US)
    assert len(theirs) > 1000
    assert ours == theirs


@pytest.mark.slow
def test_launch_ranges_need_a_profile_around(tool: Path, tmp_path: Path) -> None:
    def launched(around: str) -> int:
        after = f"""
    with {around}, emit_itt():
        torch.ones(2)
        with torch._C._profiler._RecordFunctionFast("launch"):
            torch.ones(2)
"""
        return heard(tool, tmp_path / "heard", BY_US, after=after).count(("begin", "launch"))

    assert (launched("open('/dev/null')"), launched("profile()")) == (0, 1)


@pytest.mark.slow
def test_shapes_follow_torchs_names(tool: Path, tmp_path: Path) -> None:
    theirs = heard(tool, tmp_path / "theirs", BY_TORCH)
    ours = heard(tool, tmp_path / "ours", BY_US_WITH_SHAPES)
    assert [(what, text.partition(", sizes = ")[0]) for what, text in ours] == theirs
    assert any(", sizes = [[2, 4, 16]" in text for _, text in ours)


@pytest.mark.slow
def test_begins_and_ends_are_as_many_as_ops(tool: Path, tmp_path: Path) -> None:
    """Counted by our own recording of the following step, which the tool does not receive."""
    count = tmp_path / "count"
    after = f"""
    with profile() as prof:
        step()
    ops = [event for event in prof.events() if event.name != "[memory]"]
    open({str(count)!r}, "w").write(str(len(ops)))
"""
    calls = heard(tool, tmp_path / "ours", BY_US, after=after)
    ops = int(count.read_text())
    assert ops > 500
    assert [sum(what == kind for what, _ in calls) for kind in ("begin", "end")] == [ops, ops]
