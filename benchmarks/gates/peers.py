"""The same unchanged code under pytest-benchmark's gate: one run is saved, the next compared with it."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.gates import project
from benchmarks.gates.trials import Trial

FIELDS: Final = ("mean", "min")
_GATES: Final = [f"--benchmark-compare-fail={field}:10%" for field in FIELDS]
_REGRESSED: Final = re.compile(r"^\t(.+) - Field '(\w+)' has failed", re.MULTILINE)


def benchmark_trial(_: int) -> Trial:
    """What `--benchmark-compare-fail=mean:10%` and `min:10%` flag of code that did not change.

    Raises:
        RuntimeError: pytest-benchmark did not run.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project.write(folder, slower={})
        _session(folder, "--benchmark-save=base", fails=False)
        said = _session(folder, "--benchmark-compare", *_GATES, fails=True)
    flagged: dict[str, list[str]] = {field: [] for field in FIELDS}
    for test, field in _REGRESSED.findall(said):
        flagged[field].append(test)
    return {"flagged": flagged}


def _session(folder: Path, *options: str, fails: bool) -> str:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "pytest_benchmark.plugin",
        "bench_ops.py",
        *options,
    ]
    done = project.run(folder, command)
    # A gate that fails raises in the terminal summary, behind the tests' own result.
    if done.returncode and not (fails and "PerformanceRegression" in done.stdout):
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stdout[-2000:]}")
    return done.stdout
