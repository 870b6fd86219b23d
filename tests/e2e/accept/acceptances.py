"""``opprof accept`` in a project: its tests, the command, and the list of accepted values."""

import json
import subprocess

from e2e.project import Project

TEST = """\
    import pytest
    from pytest_opprof import record_function

    def work(times):
        for _ in range(times):
            with record_function("work"):
                pass

    @pytest.mark.profile
    def test_it(): work(2)

    @pytest.mark.profile
    @pytest.mark.parametrize("name", ["a b"])
    def test_other(name): work(2)
"""
REASON = "so be it"
SHOWN = "test_it.py::test_it: ACCEPTED: 1 more range in each step than main*, accepted up to 3 (so be it)"


def accept(project: Project, *words: str) -> subprocess.CompletedProcess[str]:
    return project.python("-m", "pytest_opprof.cli.main", "accept", *words)


def accepted(project: Project) -> list[dict[str, object]]:
    document = json.loads((project.folder / ".opprof" / "accepted.json").read_text())
    entries: list[dict[str, object]] = document["accepted"]
    return entries


def merged(project: Project, branch: str, *, save: bool = True) -> None:
    """Merge into main and save there as CI does; nobody commits the files that the save changes."""
    project.git("checkout", "-q", "main")
    project.git("merge", "-q", "--no-ff", "-m", "A merge", branch)
    if save:
        project.pytest("--opprof-save=main")
        project.git("checkout", "-q", ".")
