"""The demo catches the regressions that it promises, and its exit code says so."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
MUTATIONS = ["clone", "item", "copy", "layer", "stage"]


def load_demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", EXAMPLES / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["demo"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_demo(mutation: str, *pytest_options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, EXAMPLES / "demo.py", "--mutation", mutation],
        env=os.environ | {"PYTEST_ADDOPTS": " ".join(pytest_options)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_every_promised_mutation_is_there() -> None:
    assert [mutation.name for mutation in load_demo().MUTATIONS] == MUTATIONS


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_edits_one_place(name: str) -> None:
    (mutation,) = (each for each in load_demo().MUTATIONS if each.name == name)
    source = (EXAMPLES / mutation.file).read_text(encoding="utf-8")
    assert mutation.edited(source) != source
    with pytest.raises(ValueError, match="has 0 places"):
        mutation.edited("")


def test_without_torch_the_numpy_pipeline_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    demo = load_demo()
    assert [mutation.name for mutation in demo.parse([])] == ["stage"]
    assert demo.parse(["--mutation", "clone"]) is None


@pytest.mark.slow
def test_a_caught_regression_ends_with_0() -> None:
    shown = run_demo("stage", "--ignore=test_transformer.py")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert (
        "Caught: test_loudest_frequency failed, and pipeline: window is named (1 a step, now 2)"
        in shown.stdout
    )
    assert "warnings summary" not in shown.stdout


@pytest.mark.slow
def test_a_missed_regression_ends_with_1() -> None:
    shown = run_demo("stage", "--ignore=test_transformer.py", "--opprof=off")
    assert shown.returncode == 1, shown.stdout + shown.stderr
    assert "NOT CAUGHT" in shown.stdout


@pytest.mark.slow
def test_all_mutations_are_caught() -> None:
    pytest.importorskip("torch")
    shown = run_demo("all")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert f"Caught, and the op named: {', '.join(MUTATIONS)}" in shown.stdout
