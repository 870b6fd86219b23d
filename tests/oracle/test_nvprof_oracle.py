"""Our reading of nvprof's databases against torch's, range by range."""

import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from support.cuda.nvidia_databases import random_nvprof, write_nvprof
from support.kineto.torch_releases import skip_unless_overloads

from pytest_opprof import parse_nvprof_trace

torch = pytest.importorskip("torch")


def parsed_by_torch(path: Path) -> Any:
    """Torch leaves its database open, and Python 3.13 warns about it at garbage collection."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        connect = sqlite3.connect
        patch.setattr(sqlite3, "connect", lambda path: stack.enter_context(closing(connect(path))))
        return torch.autograd.profiler.parse_nvprof_trace(path)


@pytest.mark.filterwarnings("ignore:.torch.autograd.profiler.parse_nvprof_trace:FutureWarning")  # since 2.15
def test_ranges_match_torchs(tmp_path: Path, large_counts: bool) -> None:
    skip_unless_overloads(torch)
    kernels = 0
    for seed in range(500 if large_counts else 40):
        path = write_nvprof(tmp_path / f"{seed}.db", random_nvprof(seed))
        theirs = parsed_by_torch(path)
        ours = parse_nvprof_trace(path)
        assert sorted(event.name for event in ours) == sorted(event.name for event in theirs)
        # Each kernel once, and only if launched in a range: torch repeats each per range.
        launched = sum(len(event.kernels) for event in ours)
        assert launched <= sum(len(event.kernels) for event in theirs)
        kernels += launched
    assert kernels > 20
