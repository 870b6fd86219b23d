"""The store that a command uses by default: the one that pytest would use in the same folder."""

from pathlib import Path

import pytest

from pytest_opprof.cli.project import Project, place_of
from pytest_opprof.errors import UsageError


@pytest.fixture
def inner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a project, in which commands start."""
    folder = tmp_path / "tests" / "inner"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.ini", "[pytest]\nopprof_store = git:\n"),
        ("tox.ini", "[tox]\n[pytest]\nopprof_store=git:\n"),
        ("setup.cfg", "[tool:pytest]\nopprof_store: git:\n"),
        ("pyproject.toml", '[tool.pytest.ini_options]\nopprof_store = "git:"\n'),
        ("pyproject.toml", '[tool.pytest]\nopprof_store = "git:"\n'),
    ],
)
@pytest.mark.usefixtures("inner")
def test_parent_configuration_names_the_store(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "tests" / "setup.cfg").write_text("[flake8]\n")
    assert place_of(None) == ("git:", tmp_path)


def test_nearest_configuration_counts_without_a_store(tmp_path: Path, inner: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nopprof_store = git:\n")
    (inner.parent / "pytest.ini").write_text("")
    assert place_of(None) == ("dir:.opprof", inner.parent)


def test_the_command_line_counts_from_its_folder_on(tmp_path: Path, inner: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nopprof_store = git:\n")
    assert place_of("dir:mine") == ("dir:mine", inner)


def test_folder_has_its_own_store_without_configuration(inner: Path) -> None:
    assert place_of(None) == ("dir:.opprof", inner)


@pytest.mark.parametrize("names", [("pyproject.toml",), ("setup.py",), ("pyproject.toml", "tests/setup.py")])
def test_a_project_without_a_section_has_pytests_root(
    tmp_path: Path, inner: Path, names: tuple[str, ...]
) -> None:
    for name in names:
        (tmp_path / name).write_text("")
    assert place_of(None) == ("dir:.opprof", tmp_path)
    (inner / ".opprof").mkdir()
    assert Project.here().folder == tmp_path / ".opprof"


@pytest.mark.parametrize("has_configuration", [False, True])
def test_our_folder_is_beside_the_configuration(
    tmp_path: Path, inner: Path, *, has_configuration: bool
) -> None:
    """Pytest's plugin reads and writes it there, and the folder of a project around it does not count."""
    (tmp_path / ".opprof").mkdir()
    if has_configuration:
        (inner.parent / "pytest.ini").write_text("")
    assert Project.here().folder == (inner.parent if has_configuration else tmp_path) / ".opprof"


@pytest.mark.usefixtures("inner")
def test_invalid_store_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\nopprof_store = 1\n")
    with pytest.raises(UsageError, match=r"pyproject\.toml: opprof_store is 1: write it as a string"):
        place_of(None)
