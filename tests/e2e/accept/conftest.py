"""A project with an intended rise."""

import pytest
from e2e.accept.acceptances import TEST
from e2e.project import Project


@pytest.fixture
def repository(project: Project) -> Project:
    """A git project with a baseline of main, and a topic branch on which a test does more."""
    project.git("init", "-q", "-b", "main")
    project.write("test_it.py", TEST)
    project.commit()
    project.pytest("--opprof-save=main")
    project.git("checkout", "-q", "-b", "topic")
    project.replace("test_it.py", "def test_it(): work(2)", "def test_it(): work(3)")
    return project
