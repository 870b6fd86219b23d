"""Repositories to bisect: each commit runs a range so many times."""

import subprocess

from e2e.project import Project

MODULE = """\
from pytest_opprof import record_function

def step():
    for _ in range({count}):
        with record_function("work"):
            pass
"""
TEST = """\
    import model
    import pytest

    @pytest.mark.profile(warmup=0, active=2)
    def test_step():
        model.step()
"""


def commit(project: Project, subject: str, text: str) -> str:
    project.write("model.py", text)
    project.git("add", "-A")
    project.git("commit", "-q", "--allow-empty", "-m", subject)
    return project.git("rev-parse", "HEAD")


def built(project: Project, *texts: str) -> list[str]:
    """A repository whose commits have these texts of the module; a number stands for that many ranges."""
    project.git("init", "-q", "-b", "main")
    project.write("test_model.py", TEST)
    return [
        commit(project, f"change {at}", MODULE.format(count=text) if text.isdigit() else text)
        for at, text in enumerate(texts)
    ]


def bisect(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    return project.python(
        "-m", "pytest_opprof.cli.main", "bisect", "test_model.py::test_step", "work.count", *arguments
    )
