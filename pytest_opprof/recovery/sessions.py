"""Find and remove the session files that dead processes left."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from pytest_opprof.capture.folders import session_folders
from pytest_opprof.capture.session_files import LONGEST_NOTE, SessionFile, read_session_file
from pytest_opprof.errors import CollectorError, RecoveryError

_NAME: Final = re.compile(r"opprof-(?P<user>[0-9]+)-[0-9]+-[0-9a-f]+")
_KEPT_NS: Final = 7 * 24 * 3600 * 10**9  # how long an unread recording of a dead process is kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a test process writes to its session file."""

    project: str  # the project's short name, by `project_of`
    worker: str  # the name of the xdist worker; empty without xdist
    node_id: str  # the test that runs

    def __bytes__(self) -> bytes:
        """The note as the file has it, cut if it is too long."""
        text = f"{self.project}\n{self.worker}\n{self.node_id}"
        return text.encode("utf-8", "surrogatepass")[:LONGEST_NOTE]

    @classmethod
    def of(cls, data: bytes) -> Self | None:
        """Read a note; None if there is none, or if no test session wrote it."""
        parts = data.decode("utf-8", "replace").split("\n", 2)
        if len(parts) != len(cls.__slots__):
            return None
        project, worker, node_id = parts
        return cls(project=project, worker=worker, node_id=node_id)


def project_of(root: Path) -> str:
    """A short name for a project's folder, because a path may be longer than a note."""
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def left_sessions(folders: Iterable[Path] | None = None) -> Iterator[SessionFile]:
    """The session files of this user's dead processes in these folders or in ours, oldest first in each."""
    for folder in dict.fromkeys(session_folders() if folders is None else folders):
        found = []
        for path in _candidates(folder):
            try:
                file = read_session_file(path)
            except (RecoveryError, CollectorError):
                continue  # of another release, or removed meanwhile
            if not file.is_alive:
                found.append(file)
        yield from sorted(found, key=lambda file: file.opened_ns)


def _candidates(folder: Path) -> list[Path]:
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError:
        return []  # a missing folder is empty
    matches = filter(None, map(_NAME.fullmatch, names))
    return [folder / match[0] for match in matches if int(match["user"]) == os.getuid()]


def is_leftover(file: SessionFile, *, now_ns: int) -> bool:
    """Whether a dead process's file is useless: nothing ran, or it is older than a week."""
    return (not file.was_recording and not file.note) or now_ns - file.opened_ns > _KEPT_NS


def left_by(pid: int) -> list[SessionFile]:
    """The session files of a process that has ended."""
    return [file for file in left_sessions() if file.pid == pid]


def remove(file: SessionFile) -> None:
    """Remove a dead process's files; the one that names the others goes last."""
    spilled = re.compile(rf"opprof-{os.getuid()}-{file.pid}-[0-9a-f]+\.spill")
    if file.names_path.name == f"{file.path.name}.names":
        _remove(file.names_path)
    if file.spill_path is not None and spilled.fullmatch(file.spill_path.name):
        _remove(file.spill_path)
    _remove(file.path)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # already gone, or cannot be removed now: the next session tries again
        found = path.lstat()
        if stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid():
            path.unlink()
