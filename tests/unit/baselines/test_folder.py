"""Where a project keeps its files, and which of them git ignores."""

import subprocess
from pathlib import Path

import pytest

from pytest_opprof.baselines.archive import open_store
from pytest_opprof.baselines.folder import project_folder, project_writing, state_file
from pytest_opprof.errors import StoreError


def test_nearest_parent_project_has_the_folder(tmp_path: Path) -> None:
    below = tmp_path / "package" / "tests"
    below.mkdir(parents=True)
    assert project_folder(below) == below / ".opprof"
    (tmp_path / ".opprof").mkdir()
    assert project_folder(below) == tmp_path / ".opprof"
    (tmp_path / "package" / ".opprof").write_text("a file is not a folder of ours")
    assert project_folder(below) == tmp_path / ".opprof"


def test_git_ignores_checkout_specific_files(tmp_path: Path) -> None:
    folder = tmp_path / ".opprof"
    with project_writing(folder):
        state_file(folder, "last.json").write_text("{}")
    assert (state_file(folder, ".gitignore")).read_text() == "*\n"
    assert [path.parent.name for path in folder.rglob("last.json")] == [".state"]
    (folder / "accepted.json").write_text("{}")
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    listed = subprocess.run(["git", "ls-files"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert listed.stdout.splitlines() == [".opprof/accepted.json"]


def test_state_files_are_not_a_baseline(tmp_path: Path) -> None:
    with project_writing(tmp_path):
        state_file(tmp_path, "last.json").write_text("{}")
    assert open_store("dir:.", root=tmp_path).names() == ()


def test_file_in_the_folders_place_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / ".opprof").write_text("")
    with (
        pytest.raises(StoreError, match="cannot be written: a part of its path is a file"),
        project_writing(tmp_path / ".opprof"),
    ):
        pass
