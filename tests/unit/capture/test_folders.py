"""Folders for session files, spilled chunks and compiled observers."""

import grp
import os
import pwd
from pathlib import Path

import pytest

from pytest_opprof.capture.folders import (
    is_private_file,
    make_private,
    observer_folders,
    session_folders,
    spill_folder,
    start_folder,
    start_in,
)


def test_named_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPPROF_DIR", str(tmp_path))
    assert next(session_folders()) == tmp_path
    assert spill_folder() == tmp_path


def test_an_inner_session_gives_the_start_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = start_folder()
    monkeypatch.chdir(tmp_path)
    before = start_in()
    assert (before, start_folder()) == (outer, tmp_path)
    start_in(before)
    assert start_folder() == outer


def test_runtime_folder_comes_after_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPPROF_DIR", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    *first, runtime, last = session_folders()
    assert runtime == Path("/run/user/7")
    assert last == spill_folder()
    assert first in ([], [Path("/dev/shm")])  # noqa: S108  # the folder is named, not used


def test_chunks_are_never_spilled_to_a_missing_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPPROF_DIR", str(tmp_path / "missing"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert spill_folder() == tmp_path


def test_observers_are_looked_for_from_named_to_temporary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPPROF_CACHE_DIR", "/named")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setattr("tempfile.tempdir", "/temporary")
    monkeypatch.chdir(tmp_path)
    assert list(observer_folders()) == [
        Path("/named"),
        Path("/cache/opprof"),
        Path("/home/somebody/.cache/opprof"),
        tmp_path / ".pytest_cache/d/opprof",
        Path(f"/temporary/opprof-{os.getuid()}"),
    ]


@pytest.mark.parametrize("home", ["/", "relative"])
def test_invalid_home_is_skipped(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.setenv("HOME", home)
    assert not any(folder.parts[-2:] == (".cache", "opprof") for folder in observer_folders())


def test_folder_is_made_private(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    make_private(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    make_private(folder)


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777], ids=oct)
def test_folder_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(PermissionError, match="others may write"):
        make_private(folder)
    assert folder.stat().st_mode & 0o777 == mode


def test_folder_replaceable_by_anybody_is_refused(tmp_path: Path) -> None:
    parent = tmp_path / "shared"
    folder = parent / "own" / "cache"
    parent.mkdir()
    parent.chmod(0o777)
    with pytest.raises(PermissionError, match="others may write"):
        make_private(folder)
    parent.chmod(0o1777)
    make_private(folder)


def test_group_replaceable_folder_is_refused_unless_private(tmp_path: Path) -> None:
    folder = tmp_path / "shared" / "own" / "cache"
    make_private(folder)
    (tmp_path / "shared").chmod(0o775)
    user = pwd.getpwuid(os.getuid()).pw_name
    group = grp.getgrgid((tmp_path / "shared").stat().st_gid)
    if group.gr_name == user and set(group.gr_mem) <= {user} and group.gr_gid == os.getgid():
        make_private(folder)
    else:
        with pytest.raises(PermissionError, match="others may write"):
            make_private(folder)


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives folders to other groups")
def test_folder_that_another_group_may_swap_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "shared" / "own" / "cache"
    make_private(folder)
    os.chown(tmp_path / "shared", 0, 12_345)
    (tmp_path / "shared").chmod(0o775)
    with pytest.raises(PermissionError, match=f"others may write {tmp_path / 'shared'}"):
        make_private(folder)


def test_checked_folder_is_used_after_a_link_changes(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "theirs").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "ours")
    private = make_private(link / "cache")
    link.unlink()
    link.symlink_to(tmp_path / "theirs")
    assert private == tmp_path / "ours" / "cache"


def test_links_in_a_circle_are_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match=r"[Ss]ymlink|symbolic links"):
        make_private(tmp_path / "a" / "cache")


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666], ids=oct)
def test_file_that_others_may_write_is_not_private(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "file"
    file.touch(mode=0o600)
    assert is_private_file(file)
    file.chmod(mode)
    assert not is_private_file(file)


def test_non_regular_file_is_not_private(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch(mode=0o600)
    (tmp_path / "link").symlink_to(file)
    assert not is_private_file(tmp_path / "link")
    assert not is_private_file(tmp_path)
    with pytest.raises(FileNotFoundError):
        is_private_file(tmp_path / "nothing")


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_file_of_another_user_is_not_private(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch(mode=0o600)
    os.chown(file, 12345, 12345)
    assert not is_private_file(file)


def test_non_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(FileExistsError):
        make_private(tmp_path / "file")
    with pytest.raises(NotADirectoryError):
        make_private(tmp_path / "file" / "inside")
    with pytest.raises(PermissionError, match="is not a folder"):
        make_private(tmp_path / "link")
