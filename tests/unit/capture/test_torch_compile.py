"""Whether the compiler worked, or found its results in a cache."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_opprof.capture.torch_compile import COLD, WARM, Compiled, compiled

COMPILES = """
import torch
from pytest_opprof.capture.torch_compile import compiled

before = compiled()
product = torch.compile(lambda x: x * 2 + 1)
product(torch.ones(4))
after = compiled()
print(after.state_since(before))
product(torch.ones(4))
print(repr(compiled().state_since(after)))
"""


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        (Compiled(), Compiled(), ""),
        (Compiled(made=1, taken=2), Compiled(made=1, taken=2), ""),
        (Compiled(taken=1), Compiled(taken=2), WARM),
        (Compiled(made=1), Compiled(made=2, taken=3), COLD),
    ],
)
def test_newly_compiled_code_makes_the_cache_cold(before: Compiled, after: Compiled, state: str) -> None:
    assert after.state_since(before) == state


def test_without_a_compiler_nothing_was_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch._dynamo.utils", raising=False)
    assert compiled() == Compiled()


@pytest.mark.slow
def test_second_process_finds_the_first_ones_cache(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    states = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", COMPILES],
            env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        for _ in range(2)
    ]
    assert states == [[COLD, "''"], [WARM, "''"]]


WATCHES = """
import torch
from pytest_opprof.capture.torch_compile import CompileWatch

def scaled(x, by):
    torch._dynamo.graph_break()
    return x * by

product = torch.compile(scaled, backend="eager")
watch = CompileWatch()
for size, by in [(3, 2), (3, 2), (4, 2), (3, 5)]:
    watch.begin()
    product(torch.ones(size), by)
    print(watch.end())
"""


@pytest.mark.slow
def test_watch_counts_compilations_with_reasons(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(WATCHES)
    told = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    first, again, larger, other = told
    assert "graphs=1, recompiles=Counter()" in first
    assert "Counter({'scaled, script.py: Call to `torch._dynamo.graph_break()`': 1})" in first
    assert again == "Compilations(graphs=0, recompiles=Counter(), graph_breaks=Counter())"
    assert "scaled, script.py: tensor 'x' size mismatch at index 0. expected 3, actual 4" in larger
    assert "'scaled, script.py: by == 2': 1" in other
