"""In tests of our capture, torch's own profiler raises: here and in child processes."""

import subprocess
import sys

import pytest

PROFILE_ONE_OP = """
import torch
with torch.profiler.profile():
    torch.ones(1)
"""


def test_torch_profiler_raises_here() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(AssertionError, match="_prepare_profiler was called"), torch.profiler.profile():
        pass
    with pytest.raises(AssertionError, match="_enable_profiler was called"):
        torch.autograd._enable_profiler(None, set())


@pytest.mark.slow
def test_torch_profiler_raises_in_child_processes() -> None:
    pytest.importorskip("torch")
    child = subprocess.run(
        [sys.executable, "-c", PROFILE_ONE_OP], capture_output=True, text=True, check=False, timeout=120
    )
    assert child.returncode == 1
    assert "AssertionError: torch's _prepare_profiler was called" in child.stderr


@pytest.mark.usefixtures("torch_profiler_allowed")
def test_torch_profiler_runs_where_a_test_asks() -> None:
    torch = pytest.importorskip("torch")
    with torch.profiler.profile() as profiled:
        torch.ones(1)
    assert [row.key for row in profiled.key_averages()].count("aten::ones") == 1
