"""Locks of killed git processes, and locks of living ones."""

import os
from pathlib import Path

import pytest

from pytest_opprof.baselines.git_ref import remove_stale_lock

REF = "refs/opprof/main"


def locked(folder: Path, ref: str = REF, *, is_old: bool = True) -> Path:
    lock = folder / f"{ref}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    if is_old:
        os.utime(lock, (0, 0))
    return lock


def said(lock: Path) -> bytes:
    """The message of git 2.39."""
    return f"fatal: cannot lock ref '{REF}': Unable to create '{lock}': File exists.\n\nAnother ...".encode()


def test_old_lock_is_removed(tmp_path: Path) -> None:
    lock = locked(tmp_path)
    assert remove_stale_lock(said(lock), ref=REF)
    assert list(lock.parent.iterdir()) == []


def test_fresh_lock_is_left_alone(tmp_path: Path) -> None:
    lock = locked(tmp_path, is_old=False)
    assert not remove_stale_lock(said(lock), ref=REF)
    assert lock.exists()


@pytest.mark.parametrize("name", ["refs/heads/main", "refs/opprof/other", "index"])
def test_a_lock_of_anything_else_is_left_alone(tmp_path: Path, name: str) -> None:
    lock = locked(tmp_path, name)
    assert not remove_stale_lock(said(lock), ref=REF)
    assert lock.exists()


def test_a_lock_that_is_gone_already_is_not_removed(tmp_path: Path) -> None:
    assert not remove_stale_lock(said(tmp_path / f"{REF}.lock"), ref=REF)


def test_a_lock_that_another_made_meanwhile_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = locked(tmp_path)
    rename = Path.rename

    def late(path: Path, target: Path) -> Path:
        os.utime(path)  # the other process's lock in its place
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", late)
    assert not remove_stale_lock(said(lock), ref=REF)
    assert [path.name for path in lock.parent.iterdir()] == ["main.lock"]


def test_other_git_errors_name_no_lock() -> None:
    assert not remove_stale_lock(b"fatal: reference is not a tree", ref=REF)


@pytest.mark.parametrize(("now_s", "is_gone"), [(1600.0, False), (1601.0, True)])
def test_a_lock_is_old_after_ten_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now_s: float, is_gone: bool
) -> None:
    lock = locked(tmp_path)
    os.utime(lock, (1000, 1000))
    monkeypatch.setattr("time.time", lambda: now_s)
    assert remove_stale_lock(said(lock), ref=REF) is is_gone
