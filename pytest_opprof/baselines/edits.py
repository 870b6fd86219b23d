"""The lines of a work tree that a branch changed since a commit."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from pytest_opprof.baselines.code_edits import edits_between
from pytest_opprof.baselines.edited_file import EditedFile
from pytest_opprof.baselines.git import run_git

_MOST_FILES = 1_000  # an environment that git does not ignore has many more
_FILE = b"100"  # a mode of git's: neither a link nor a submodule
_NONE = b"0" * 40
_FOR_PEOPLE = {".md", ".rst"}  # what no program reads


class Edits(Mapping[str, EditedFile]):
    """Edited files by path, absolute or from a folder. A lookup follows links."""

    def __init__(self, folder: Path, files: Mapping[str, EditedFile]) -> None:
        self._folder = os.path.realpath(folder)
        self._files = files  # by real path
        # Asking the system takes long, and the same files are asked for often.
        self._real: dict[str, str] = {}

    def __getitem__(self, file: str) -> EditedFile:
        """What was edited in a file."""
        if file not in self._real:
            self._real[file] = os.path.realpath(os.path.join(self._folder, file))  # noqa: PTH118
        return self._files[self._real[file]]

    def __iter__(self) -> Iterator[str]:
        """The paths, relative if they are below the folder."""
        return (file.removeprefix(self._folder + os.sep) for file in self._files)

    def __len__(self) -> int:
        """The number of files."""
        return len(self._files)


def edits_since(folder: Path, commit: str) -> Edits:
    """The edits of a folder's whole work tree since a commit; empty if git fails.

    Python files that git does not track yet are new. Of a file in another language only that it was edited is
    known: its first line stands for it.
    """
    try:
        top = Path(os.fsdecode(_asked(folder, "rev-parse", "--show-toplevel").removesuffix(b"\n"))).resolve()
        changed = dict(_changed(top, commit))
        sources = ((name, blob) for name, blob in changed.items() if name.endswith(".py"))
        base = _sources_of(top, dict(islice(sources, _MOST_FILES)))
        told = _asked(top, "ls-files", "-z", "--others", "--exclude-standard", "--", "*.py")
        names = [*base, *(os.fsdecode(name) for name in told.split(b"\0") if name)][:_MOST_FILES]
        others = _edited(top, {name: blob for name, blob in changed.items() if not name.endswith(".py")})
    except (OSError, subprocess.SubprocessError):
        return Edits(folder, {})
    head = {}
    for name in names:
        with contextlib.suppress(OSError):  # it was removed
            if not (top / name).is_symlink():
                head[name] = (top / name).read_bytes()
    same = {name for name, source in head.items() if base.get(name) == source}  # git compared times alone
    base, head = (
        {name: source for name, source in side.items() if name not in same} for side in (base, head)
    )
    found = {name: EditedFile(top / name, *edits) for name, edits in edits_between(base, head).items()}
    found |= {name: EditedFile(top / name, lines=frozenset({1})) for name in others}
    return Edits(folder, {str(top / name): one for name, one in found.items()})


def _changed(folder: Path, commit: str) -> Iterator[tuple[str, bytes]]:
    """The changed files, with the ids of their older contents."""
    options = ("--raw", "--no-abbrev", "-z", "--no-renames", "--no-ext-diff", "--no-relative")
    told = _asked(folder, "diff", *options, "--end-of-options", commit).split(b"\0")
    for about, name in zip(told[::2], told[1::2], strict=False):
        mode, _, blob, *_ = about.removeprefix(b":").split()
        yield os.fsdecode(name), blob if mode.startswith(_FILE) else _NONE


def _sources_of(folder: Path, blobs: Mapping[str, bytes]) -> dict[str, bytes]:
    """The older contents of files; empty for new ones."""
    given = b"".join(blob + b"\n" for blob in blobs.values())
    told = io.BytesIO(_asked(folder, "cat-file", "--batch", given=given))
    found = {}
    for name in blobs:
        _, kind, *size = told.readline().split()
        found[name] = told.read(int(size[0]) + 1)[:-1] if kind == b"blob" else b""
    return found


def _edited(folder: Path, blobs: Mapping[str, bytes]) -> list[str]:
    """Those of other files that have another content; git compared times alone."""
    read = [name for name in blobs if (folder / name).is_file() and "\n" not in name]
    told = _asked(
        folder, "hash-object", "--stdin-paths", given=b"".join(os.fsencode(name) + b"\n" for name in read)
    )
    now = dict(zip(read, told.split(), strict=True))
    return [
        name
        for name, blob in blobs.items()
        if now.get(name) != blob and Path(name).suffix.lower() not in _FOR_PEOPLE
    ]


def _asked(folder: Path, *arguments: str, given: bytes = b"") -> bytes:
    """What git prints; raises `OSError` or `subprocess.SubprocessError` if it fails."""
    done = run_git(folder, "-c", "diff.autoRefreshIndex=false", *arguments, given=given)
    done.check_returncode()
    return done.stdout
