"""The same unchanged code under pytest-benchmark's gate: one run is saved, the next compared with it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.gates import project
from benchmarks.gates.trials import Trial

FIELDS: Final = ("mean", "min")
# One option: of several the last alone would count.
_GATES: Final = ["--benchmark-compare-fail", *(f"{field}:10%" for field in FIELDS)]
_REGRESSED: Final = re.compile(r"^\t(.+) - Field '(\w+)' has failed", re.MULTILINE)


def benchmark_trial(_: int) -> Trial:
    """What `--benchmark-compare-fail=mean:10%` and `min:10%` flag of code that did not change.

    Raises:
        RuntimeError: The plugin pytest-benchmark did not run.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project.write(folder, slower={})
        return {"flagged": flagged(folder)}


def flagged(folder: Path, *, change: Callable[[], object] | None = None) -> dict[str, list[str]]:
    """The benchmarks of a folder that each field's gate flags.

    Args:
        folder: With `bench_ops.py`.
        change: What happens between the run that is saved and the one that is compared with it.

    Raises:
        RuntimeError: The plugin pytest-benchmark did not run.
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
    # A gate that fails raises in the terminal summary, behind the tests' own result.
    if done.returncode and not (fails and "PerformanceRegression" in done.stdout):
        raise RuntimeError(f"{' '.join(done.args)} ended with {done.returncode}: {done.stdout[-2000:]}")
    return done.stdout
