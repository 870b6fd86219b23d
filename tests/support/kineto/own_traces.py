"""Traces of our own programs, written by torch.profiler; ``python -m support.kineto.own_traces FOLDER``.

Those in tests/data/traces were made this way, with the torch release in each file's name.
"""

from __future__ import annotations

import contextlib
import gzip
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile, record_function, schedule


def _net() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))


def _training() -> profile:
    """Two steps of a training, with shapes, memory and the arrows from forward to backward."""
    net, batch = _net(), torch.ones(5, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=2, repeat=1),
        record_shapes=True,
        profile_memory=True,
        with_flops=True,
    ) as prof:
        for _ in range(3):
            optimizer.zero_grad()
            net(batch).square().mean().backward()
            optimizer.step()
            prof.step()
    return prof


def _calls() -> profile:
    """A forward pass with its Python calls and modules."""
    net, batch = _net(), torch.ones(5, 8)
    net(batch)
    with profile(activities=[ProfilerActivity.CPU], with_stack=True, with_modules=True) as prof:
        net(batch)
    return prof


def _threads() -> profile:
    """Two threads that work at the same time, and one that waits for them."""
    both = threading.Barrier(2)

    def work(number: int) -> None:
        with record_function(f"worker {number}"):
            for _ in range(3):
                both.wait()
                torch.ones(64, 64) @ torch.ones(64, 64)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    everywhere = _ExperimentalConfig(profile_all_threads=True)
    with (
        profile(activities=[ProfilerActivity.CPU], experimental_config=everywhere) as prof,
        record_function("main"),
    ):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return prof


PROGRAMS: dict[str, Callable[[], profile]] = {"training": _training, "calls": _calls, "threads": _threads}


def main(folder: Path) -> None:
    """Write the trace of each program into a folder."""
    folder = folder.resolve()
    release = torch.__version__.partition("+")[0]
    # a trace contains its own path
    with tempfile.TemporaryDirectory() as empty, contextlib.chdir(empty):
        for name, program in PROGRAMS.items():
            program().export_chrome_trace("trace.json")
            packed = gzip.compress(Path("trace.json").read_bytes(), mtime=0)
            (folder / f"{name}-torch{release}.json.gz").write_bytes(packed)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
