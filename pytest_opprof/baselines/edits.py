"""The lines of a work tree that a branch changed since a commit."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_opprof.baselines.code_edits import edits_between
from pytest_opprof.baselines.edited_file import EditedFile
from pytest_opprof.baselines.git import run_git

_MOST_FILES = 1_000  # an environment that git does not ignore has many more
_FILE = b"100"  # a mode of git's: neither a link nor a submodule
_NONE = b"0" * 40


def edits_since(folder: Path, commit: str) -> Mapping[str, EditedFile]:
    """The edits below a folder of the work tree since a commit, by path in the folder; empty if git fails.

    Files that git does not track yet are new.
    """
    try:
        base = _sources_of(folder, dict(_changed(folder, commit)))
        names = [*base, *_untracked(folder)][:_MOST_FILES]
    except (OSError, subprocess.SubprocessError):
        return {}
    head = {}
    for name in names:
        with contextlib.suppress(OSError):  # it was removed
            if not (folder / name).is_symlink():
                head[name] = (folder / name).read_bytes()
    same = {name for name, source in head.items() if base.get(name) == source}  # git compared times alone
    base, head = (
        {name: source for name, source in side.items() if name not in same} for side in (base, head)
    )
    return {
        name: EditedFile(folder / name, *edits, is_new=not base.get(name))
        for name, edits in edits_between(base, head).items()
    }


def _changed(folder: Path, commit: str) -> Iterator[tuple[str, bytes]]:
    """The changed files, with the ids of their older contents."""
    options = ("--raw", "--no-abbrev", "-z", "--no-renames", "--no-ext-diff", "--relative")
    told = _asked(folder, "diff", *options, "--end-of-options", commit, "--", "*.py").split(b"\0")
    for about, name in zip(told[::2], told[1::2], strict=False):
        mode, _, blob, *_ = about.removeprefix(b":").split()
        yield os.fsdecode(name), blob if mode.startswith(_FILE) else _NONE


def _sources_of(folder: Path, blobs: Mapping[str, bytes]) -> dict[str, bytes]:
    """The older contents of files; empty for new ones."""
    told = _asked(folder, "cat-file", "--batch", given=b"".join(blob + b"\n" for blob in blobs.values()))
    found = {}
    for name in blobs:
        about, _, told = told.partition(b"\n")
        size = int(about.split()[-1]) if about.split()[1:2] == [b"blob"] else -1
        found[name] = told[: max(size, 0)]
        told = told[size + 1 :]
    return found


def _untracked(folder: Path) -> list[str]:
    told = _asked(folder, "ls-files", "-z", "--others", "--exclude-standard", "--", "*.py")
    return [os.fsdecode(name) for name in told.split(b"\0") if name]


def _asked(folder: Path, *arguments: str, given: bytes = b"") -> bytes:
    """What git prints.

    Raises:
        OSError, subprocess.SubprocessError: It failed.
    """
    done = run_git(folder, "-c", "diff.autoRefreshIndex=false", *arguments, given=given)
    done.check_returncode()
    return done.stdout
