"""Folders that an observer is kept in, and folders that are skipped."""

import importlib.util
import os
import shutil
import stat
from pathlib import Path

import pytest
from support.programs.children import run_python
from support.programs.observer_builds import LoggingCompiler, copying_compiler, is_kept, observed, only_cache

from pytest_opprof.errors import CaptureUnavailableError

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777], ids=oct)
def test_folder_that_others_may_write_is_passed_over(
    cache: Path, built: Path, logging_compiler: LoggingCompiler, mode: int
) -> None:
    torch = pytest.importorskip("torch")
    shutil.copytree(built, cache, dirs_exist_ok=True)
    logging_compiler.path.write_text(copying_compiler(built, log=logging_compiler.path.with_name("calls")))
    cache.chmod(mode)
    assert not is_kept(torch)
    observer = observed(torch)
    home = Path.home() / ".cache" / "opprof"
    assert observer.path.parent == home
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert not stat.S_IMODE(observer.path.stat().st_mode) & 0o022


def test_folder_behind_a_link_is_passed_over(
    cache: Path, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    link = tmp_path / "link"
    link.symlink_to(built)
    monkeypatch.setenv("OPPROF_CACHE_DIR", str(link))
    assert not is_kept(torch)


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_folder_of_another_user_is_skipped(cache: Path, built: Path) -> None:
    torch = pytest.importorskip("torch")
    shutil.copytree(built, cache, dirs_exist_ok=True)
    os.chown(cache, 12345, 12345)
    assert not is_kept(torch)


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_folder_in_another_users_folder_is_reported(cache: Path, built: Path) -> None:
    torch = pytest.importorskip("torch")
    inner = cache / "inner"
    shutil.copytree(built, inner)
    inner.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        only_cache(patch, inner, home=cache)
        assert is_kept(torch)
        os.chown(cache, 12345, 12345)
        assert not is_kept(torch)
        with pytest.raises(
            CaptureUnavailableError, match=rf"\({cache} belongs to another user\): set OPPROF_"
        ):
            observed(torch)


def test_missing_usable_folder_is_reported(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    nowhere = tmp_path / "file"
    nowhere.touch()
    monkeypatch.setenv("OPPROF_CACHE_DIR", str(nowhere))
    monkeypatch.setenv("HOME", str(nowhere))
    (Path.cwd() / ".pytest_cache").touch()
    (Path.cwd() / f"opprof-{os.getuid()}").touch()
    with pytest.raises(CaptureUnavailableError, match="set OPPROF_CACHE_DIR to one that only you can write"):
        observed(torch)


def test_nameless_user_has_folders_too(cache: Path) -> None:
    """In a container, a user may have no password entry, no home, and a folder that no longer exists."""
    done = run_python(
        """
    import os, sys
    from pytest_opprof.capture.folders import observer_folders

    if os.getuid() == 0:
        os.setuid(54321)
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir("../gone")
    print(list(observer_folders())[-1].name == f"opprof-{os.getuid()}")
    """,
        environment={"HOME": None, "OPPROF_CACHE_DIR": None},
        cwd=writable_by_all(cache.parent / "anywhere"),
    )
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def writable_by_all(folder: Path) -> Path:
    folder.mkdir()
    folder.chmod(0o777)
    for parent in folder.parents[:3]:
        parent.chmod(parent.stat().st_mode | 0o011)
    return folder
