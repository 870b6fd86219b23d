"""The repository that an A/B is run in."""

import re

import pytest
from e2e.ab.experiments import TESTS, WORK
from e2e.conftest import MakeProject
from e2e.project import Project


@pytest.fixture
def project(make_project: MakeProject, request: pytest.FixtureRequest) -> Project:
    """A repository with two commits of a program and its tests."""
    project = make_project(re.sub(r"\W", "-", request.node.name)[:40])
    project.git("init", "-q", "-b", "main")
    project.write("work.py", WORK)
    project.write("tests/test_it.py", TESTS)
    project.write("tests/conftest.py", "")
    project.replace("pytest.ini", "addopts = -p opprof", "addopts = -p opprof\npythonpath = .")
    project.commit()
    return project
