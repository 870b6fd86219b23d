"""pytest-opprof's own overhead, in ranges and in blocks of memory: performance.yml compares it with main's.

How often Python allocates is nearly the same on each machine, as counts of ops are. The tolerance covers
occasional allocations, such as a dictionary's resize.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_opprof import record_function
from pytest_opprof.cli.main import main

GATES = {"cpu_memory.allocations": "2%", "cpu_memory.allocated": "2%"}
ROUNDS = 200
CALLS = "OPPROF_PERFORMANCE_CALLS"
MARKED = f"""\
import os, pytest
from pytest_opprof import record_function

@pytest.mark.profile
@pytest.mark.parametrize("number", range(5))
def test_it(number):
    for _ in range(int(os.environ["{CALLS}"])):
        for op in range(20):
            with record_function(f"stage {{op}}"):
                pass
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The run files of two sessions with five tests; the second calls each range once more."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "test_marked.py").write_text(MARKED, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p opprof\n", encoding="utf-8")
    return measured(folder, calls=1), measured(folder, calls=2)


def measured(folder: Path, *, calls: int) -> str:
    document = folder / f"{calls}.json"
    # only ours, without the outer session's
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    own = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", CALLS: str(calls)}
    command = [sys.executable, "-m", "pytest", "-q", f"--opprof-json={document}"]
    subprocess.run(command, cwd=folder, env=kept | own, check=True, stdout=subprocess.DEVNULL)
    return str(document)


@pytest.mark.profile(warmup=1, active=2, profile_memory=True, gates=GATES)
def test_ranges_are_recorded() -> None:
    for _ in range(ROUNDS):
        with record_function("range"):
            pass


@pytest.mark.profile(warmup=1, active=2, profile_memory=True, gates=GATES)
def test_a_run_is_held_to_its_schema(runs: tuple[str, str]) -> None:
    with record_function("validate"):
        assert main(["validate", *runs]) == 0


@pytest.mark.profile(warmup=1, active=2, profile_memory=True, gates=GATES)
def test_two_runs_are_compared(runs: tuple[str, str]) -> None:
    with record_function("compare"):
        assert main(["compare", *runs]) == 1
