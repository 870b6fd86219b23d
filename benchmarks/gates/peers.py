"""Runs the same unchanged code under pytest-benchmark's gate: saves one run and compares the next with it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.gates import project
from benchmarks.gates.trials import Trial

FIELDS: Final = ("mean", "min")
# A single option, because the last of several would override the others.
_GATES: Final = ["--benchmark-compare-fail", *(f"{field}:10%" for field in FIELDS)]
_REGRESSED: Final = re.compile(r"^\t(.+) - Field '(\w+)' has failed", re.MULTILINE)


def benchmark_trial(_: int) -> Trial:
    """The benchmarks of unchanged code that `--benchmark-compare-fail=mean:10%` and `min:10%` flag.

    Raises:
        RuntimeError: Pytest-benchmark did not run.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project.write(folder, slower={})
        return {"flagged": flagged(folder)}


def flagged(folder: Path, *, change: Callable[[], object] | None = None) -> dict[str, list[str]]:
    """The benchmarks of a folder that each field's gate flags.

    Args:
        folder: The folder with `bench_ops.py`.
        change: Called between the saved run and the compared one.

    Raises:
        RuntimeError: Pytest-benchmark did not run.
    """
    _session(folder, "--benchmark-save=base", fails=False)
    if change is not None:
        change()
    said = _session(folder, "--benchmark-compare", *_GATES, fails=True)
    found: dict[str, list[str]] = {field: [] for field in FIELDS}
    for test, field in _REGRESSED.findall(said):
        found[field].append(test)
    return found


def _session(folder: Path, *options: str, fails: bool) -> str:
    done = project.session(folder, "pytest_benchmark.plugin", "bench_ops.py", *options)
    # A failing gate raises in the terminal summary, after the tests' own results.
    if done.returncode and not (fails and "PerformanceRegression" in done.stdout):
        raise RuntimeError(f"{' '.join(done.args)} ended with {done.returncode}: {done.stdout[-2000:]}")
    return done.stdout
