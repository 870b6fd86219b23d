"""Projects to run whole pytest sessions in."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest
from e2e.project import Project

MakeProject = Callable[[str], Project]


@pytest.fixture(scope="session")
def make_project(tmp_path_factory: pytest.TempPathFactory) -> MakeProject:
    """A project by name, for sessions that several tests share."""

    def make(name: str) -> Project:
        return Project(tmp_path_factory.mktemp(name) / "project")

    return make


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """This test's own project."""
    return Project(tmp_path / "project")


@pytest.fixture(scope="session")
def torch_installed() -> None:
    """Skips where torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
