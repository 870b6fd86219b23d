"""One side of a comparison: ``python -m gpu.recorded ours|torch WORKLOAD`` prints each window's record."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from gpu.comparison import Seen, as_json, from_json, seen_in
from gpu.workloads import WORKLOADS, Step

TESTS: Final = Path(__file__).parents[1]
WARM_STEPS: Final = 10
STEPS: Final = 5
WINDOWS: Final = 3
ALLOW: Final = {"OPPROF_TESTS_ALLOW_TORCH_PROFILER": "oracle"}  # ours is compared with it


def child(module: str, *arguments: str) -> Any:
    """The JSON that ``python -m gpu.MODULE`` prints last.

    Raises:
        RuntimeError: It failed; the message holds its output.
    """
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", f"gpu.{module}", *arguments],
        env={**os.environ, **ALLOW, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"gpu.{module} {' '.join(arguments)} failed:\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def both(workload: str) -> tuple[list[Seen], list[Seen]]:
    """Our record, and torch.profiler's."""
    ours, theirs = (from_json(child("recorded", side, workload)) for side in ("ours", "torch"))
    return ours, theirs


def profiler_of(side: str) -> Callable[[], Any]:
    """Make windows of that side, of ops and of CUDA."""
    module: Any = importlib.import_module({"ours": "pytest_opprof", "torch": "torch.profiler"}[side])
    kinds = module.ProfilerActivity
    return lambda: module.profile(activities=[kinds.CPU, kinds.CUDA])


def windows(make: Callable[[], Any], step: Step, synchronize: Callable[[], object]) -> list[Seen]:
    """Run the step in several windows; step and devices are warmed up before the first."""
    for _ in range(WARM_STEPS):
        step()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(WINDOWS):
            synchronize()  # the next window must not contain work of this one
            with make() as profiler:
                for _ in range(STEPS):
                    step()
                synchronize()
            trace = Path(folder) / f"{number}.json"
            profiler.export_chrome_trace(str(trace))
            found.append(seen_in(trace))
    return found


def main(side: str, workload: str) -> None:
    import torch

    step = WORKLOADS[workload].make()
    found = windows(profiler_of(side), step, torch.cuda.synchronize)
    print(json.dumps(as_json(found)))


if __name__ == "__main__":
    main(*sys.argv[1:])
