"""Temporary work trees, in which commits are measured."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_opprof.addresses import shown
from pytest_opprof.baselines.git import run_git
from pytest_opprof.errors import ExperimentError
from pytest_opprof.experiment.place import Place, remove_stale

CONFTEST: Final = "conftest.py"
_PREFIX: Final = "opprof-worktree-"
_SUBMODULE: Final = "160000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worktree:
    """A work tree of a commit."""

    folder: Path  # its top
    lock: int  # the descriptor of its lock; see `Place`
    submodules: tuple[str, ...]  # the paths of submodules, which are empty folders here


@contextlib.contextmanager
def checked_out(repository: Path, commit: str) -> Iterator[Worktree]:
    """A work tree of a commit: made on entry, removed on exit; raises `ExperimentError` if git fails.

    Entering first removes work trees that killed processes left; those in use are locked.
    """
    top = top_folder(repository)
    _remove_stale(repository)
    with contextlib.ExitStack() as stack:
        try:
            home = stack.enter_context(Place("worktree"))
        except OSError as error:
            raise ExperimentError(
                f"no folder for the files of {commit[:7]} in {tempfile.gettempdir()}: "
                f"{error.strerror}. Set TMPDIR to one that can be written"
            ) from error
        folder = home.folder / (top.name or "root")
        stack.callback(_forget, repository, folder)
        # The user's hooks are not meant for a temporary folder.
        quietly = ("-c", f"core.hooksPath={os.devnull}")
        git(repository, *quietly, "worktree", "add", "--quiet", "--detach", str(folder), commit)
        listed = git(folder, "ls-files", "--stage", "-z").split("\0")
        submodules = tuple(line.partition("\t")[2] for line in listed if line.startswith(_SUBMODULE))
        yield Worktree(folder=folder, lock=home.lock, submodules=submodules)


def put(files: Mapping[Path, bytes | None], *, top: Path) -> None:
    """Replace files of a work tree, or the links in their places; None removes one.

    Raises `ExperimentError` if a folder is outside of the work tree, for example by a symbolic link.
    """
    for path, data in files.items():
        if not path.parent.resolve().is_relative_to(top.resolve()):
            raise ExperimentError(f"{path} cannot be replaced: its folder is outside of the work tree {top}")
        path.unlink(missing_ok=True)
        if data is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def top_folder(folder: Path) -> Path:
    """The top of the work tree that a folder is in; raises `ExperimentError` without one."""
    return Path(git(folder, "rev-parse", "--show-toplevel").rstrip("\n"))


def git(folder: Path, *arguments: str) -> str:
    """Run git, and return what it prints; raises `ExperimentError` with its last line if it fails."""
    try:
        done = run_git(folder, *arguments, timeout_s=None)
    except OSError as error:
        raise ExperimentError(f"git cannot be run in {folder}: {error.strerror}. Is it installed?") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        command = next(word for word in arguments if not word.startswith("-") and "=" not in word)
        raise ExperimentError(
            f"git {command} failed in {folder}: {shown(said[-1]) if said else 'it printed nothing'}"
        )
    return done.stdout.decode("utf-8", "surrogateescape")


def _forget(repository: Path, folder: Path) -> None:
    # --force twice: once for new or changed files, once for a lock of git's own.
    with contextlib.suppress(ExperimentError):
        git(repository, "worktree", "remove", "--force", "--force", str(folder))


def _remove_stale(repository: Path) -> None:
    """Remove work trees that killed processes left; those in use are locked.

    A folder that is not here may be in use on another machine or in another container. If nobody has it, git
    itself forgets it, by default after three months (gc.worktreePruneExpire).
    """
    for line in git(repository, "worktree", "list", "--porcelain").splitlines():
        word, _, path = line.partition(" ")
        folder = Path(path)
        if word != "worktree" or not folder.parent.name.startswith(_PREFIX):
            continue
        if folder.parent.exists() and remove_stale(folder.parent):
            _forget(repository, folder)
