"""The unchanged examples pass against their own baseline: run after run, in parallel, in random order."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MODES = {
    "in-order": ("-p", "no:randomly"),
    "random-order": ("-p", "randomly"),
    "two-workers": ("-p", "no:randomly", "-n", "2"),
}


def run_examples(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:asyncio", *options],
        cwd=folder,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def examples(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the examples with a baseline `main`."""
    folder = tmp_path_factory.mktemp("suite") / "examples"
    shutil.copytree(
        repository / "examples", folder, ignore=shutil.ignore_patterns("demo.py", "__pycache__", ".*")
    )
    saved = run_examples(folder, "--opprof-save=main")
    assert saved.returncode == 0, saved.stdout + saved.stderr
    return folder


@pytest.mark.parametrize("options", MODES.values(), ids=MODES)
def test_unchanged_examples_pass(examples: Path, options: tuple[str, ...], *, large_counts: bool) -> None:
    for _ in range(50 if large_counts else 1):
        run = run_examples(examples, "--opprof-baseline=main", *options)
        assert run.returncode == 0, run.stdout + run.stderr
        assert "5 passed · nothing dropped" in run.stdout
