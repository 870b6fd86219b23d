"""The location of a store's history."""

import subprocess
from pathlib import Path

import pytest

from pytest_opprof.baselines.git import Git
from pytest_opprof.history.store import history_of


@pytest.mark.parametrize(
    ("uri", "folder"),
    [
        ("dir:.opprof", ".opprof/history"),
        ("kept/here", "kept/here/history"),
        ("file://kept/here", "kept/here/history"),
        ("git:", ".opprof/history"),
        ("s3://bucket/folder", ".opprof/history"),
    ],
)
def test_history_lies_beside_a_folder(tmp_path: Path, uri: str, folder: str) -> None:
    assert history_of(uri, root=tmp_path).folder == tmp_path / folder


@pytest.mark.parametrize("uri", ["git:", "counts:ci", "s3://bucket/folder"])
def test_a_command_in_a_subfolder_finds_the_projects_history(tmp_path: Path, uri: str) -> None:
    assert history_of(uri, root=tmp_path / "sub", project=tmp_path).folder == tmp_path / ".opprof" / "history"


def test_a_folder_outside_has_a_history_for_each_project(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = (
        history_of("dir:../shared", root=tmp_path / name).folder.relative_to(tmp_path / name)
        for name in ("one", "two")
    )
    assert one.parent == two.parent == Path("../shared/history")
    assert one.name.startswith("one-")
    assert two.name.startswith("two-")
    given = history_of("shared", root=tmp_path, project=tmp_path / "one").folder
    assert given == tmp_path / "shared" / "history" / one.name


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("https://host.example/owner/name.git", "host.example/owner/name"),
        ("https://me:secret@host.example/owner/name/", "host.example/owner/name"),
        ("git@host.example:owner/name.git", "host.example/owner/name"),
        ("ssh://git@host.example/owner/name", "host.example/owner/name"),
        ("file:///srv/name/.git", "/srv/name"),
        ("../name", "../name"),
    ],
)
def test_a_repository_is_known_by_where_it_is_fetched_from(tmp_path: Path, address: str, place: str) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    assert Git(tmp_path).place == str(tmp_path.resolve())
    subprocess.run(["git", "-C", tmp_path, "remote", "add", "origin", address], check=True)
    assert Git(tmp_path).place == place


def test_history_needs_a_repository(tmp_path: Path) -> None:
    assert Git(tmp_path).place == ""
