"""Where session files, spilled chunks and compiled observers go."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

POOL_BYTES: Final = 16 << 20
_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # the kernel's own; files in it are made O_EXCL and private
_start: Path | None = None
_SHARE: Final = 8  # use at most 1/8 of shared memory: containers have 64 MiB, and data loaders need it


def start_folder() -> Path:
    """The working folder when a session, or else this process's first recording, began.

    Files are shown relative to it. A test may change the working folder meanwhile.
    """
    global _start  # noqa: PLW0603  # one for each process
    if _start is None:
        _start = Path.cwd()
    return _start


def start_in(folder: Path | None = None) -> Path:
    """A session begins or ends: set the start folder, by default the working folder; return the one before.

    An outer session may have that.
    """
    global _start  # one for each process
    before, _start = start_folder(), folder or Path.cwd()
    return before


def session_folders() -> Iterator[Path]:
    """Folders for the session file, best first; the first that takes the file is used.

    Memory comes before disk: a mapped file on disk stalls its writer when the kernel writes it back.
    """
    named = os.environ.get("OPPROF_DIR")
    if named:
        yield Path(named)
    if _free_bytes(_SHARED_MEMORY) >= _SHARE * POOL_BYTES:
        yield _SHARED_MEMORY
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        yield Path(runtime)
    yield spill_folder()


def spill_folder() -> Path:
    """The folder for chunks that the pool cannot hold: on disk, as memory is short.

    If no folder is writable, this is one that takes no files, and the pool grows instead.
    """
    named = os.environ.get("OPPROF_DIR")
    if named and os.access(named, os.W_OK | os.X_OK):
        return Path(named)
    return temporary_folder() or Path("/")


def temporary_folder() -> Path | None:
    """The folder for temporary files; None if there is none, as in a read-only container."""
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:
        return None


def observer_folders() -> Iterator[Path]:
    """Folders for compiled observers, best first; the first that can be made private is used."""
    named = os.environ.get("OPPROF_CACHE_DIR")
    if named:
        yield Path(named)
    cache_home = os.environ.get("XDG_CACHE_HOME")
    if cache_home:
        yield Path(cache_home) / "opprof"
    with contextlib.suppress(RuntimeError):  # a container's user may have no home
        home = Path.home()
        if home.is_absolute() and home != Path("/"):
            yield home / ".cache" / "opprof"
    with contextlib.suppress(FileNotFoundError):  # the working folder may be gone
        yield Path.cwd() / ".pytest_cache" / "d" / "opprof"
    temporary = temporary_folder()
    if temporary is not None:
        yield temporary / f"opprof-{os.getuid()}"


def objection(folder: Path) -> str | None:
    """Why code in a folder must not be loaded; None if only this user or root can have put it there.

    The path is from `direct`, so that the folder checked is the folder used later.
    """
    try:
        found = folder.lstat()
        parents = [(parent, parent.lstat()) for parent in folder.parents]
    except OSError as error:
        return str(error)
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is not a folder"
    if not _is_written_by_us_alone(found):
        return f"{folder} belongs to another user, or others may write it"
    for parent, state in parents:
        if not _is_ours_or_roots(state):
            return f"{parent} belongs to another user"
        if _lets_others_rename(state):
            return f"others may write {parent}"
    return None


def direct(folder: Path) -> Path:
    """A folder's path without links among its parents, which another user could redirect."""
    try:
        return folder.parent.resolve() / folder.name
    except RuntimeError as error:  # before Python 3.13
        raise OSError(str(error)) from error


def make_private(folder: Path) -> Path:
    """Make a folder that only this user can write, or check that it is one; its `direct` path.

    An `OSError` says why there is none.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = direct(folder)
    why_not = objection(folder)
    if why_not is None and not (folder.stat().st_uid == os.getuid() and os.access(folder, os.W_OK)):
        why_not = f"{folder} cannot be written"
    if why_not is not None:
        raise PermissionError(why_not)
    return folder


def is_private_file(path: Path) -> bool:
    """Whether a path is a regular file, not a link, that only this user or root can write."""
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and _is_written_by_us_alone(found)


def _is_written_by_us_alone(found: os.stat_result) -> bool:
    return _is_ours_or_roots(found) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_ours_or_roots(found: os.stat_result) -> bool:
    return found.st_uid in {0, os.getuid()}


def _lets_others_rename(found: os.stat_result) -> bool:
    """Whether others can swap a folder's contents; see StrictModes in sshd_config(5)."""
    is_open = found.st_mode & stat.S_IWOTH or (found.st_mode & stat.S_IWGRP and not _is_our_own(found.st_gid))
    return bool(is_open) and not found.st_mode & stat.S_ISVTX


def _is_our_own(group: int) -> bool:
    """Whether this user is alone in a group; many systems give each user a group of the same name."""
    import grp  # noqa: PLC0415  # Windows has none, nor pwd, and nothing to keep there
    import pwd  # noqa: PLC0415

    if group != os.getgid():
        return False
    try:
        found, user = grp.getgrgid(group), pwd.getpwuid(os.getuid())
    except KeyError:  # a group without a name may have other members
        return False
    return found.gr_name == user.pw_name and set(found.gr_mem) <= {user.pw_name}


def _free_bytes(folder: Path) -> int:
    try:
        found = os.statvfs(folder)
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize if os.access(folder, os.W_OK) else 0
