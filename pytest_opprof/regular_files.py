"""Tell regular files from pipes and devices: a pipe blocks its reader, and must not be replaced by a file."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

# Only Windows converts line ends, and only Windows has no pipes among its files.
BINARY: Final[int] = getattr(os, "O_BINARY", 0)
AT_ONCE: Final[int] = getattr(os, "O_NONBLOCK", 0)


class NotRegularError(OSError):
    """The path is not a regular file."""

    def __init__(self) -> None:
        super().__init__(errno.EINVAL, "this is not a regular file")


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading; NotRegularError for a pipe, a device or a folder."""
    file = open(path, "rb", opener=_at_once)  # noqa: SIM115  # it is the answer
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise NotRegularError
    return file


def is_device(path: Path) -> bool:
    """Whether it is a pipe, a terminal or /dev/null: replacing that by a file would break other programs."""
    return path.exists() and not path.is_file() and not path.is_dir()


def write_into_device(path: Path, data: bytes) -> None:
    """Write to a pipe or a device; OSError with ENXIO, instead of waiting, if nobody reads the pipe."""
    with open(path, "wb", buffering=0, opener=_at_once) as file:
        if AT_ONCE:
            os.set_blocking(file.fileno(), True)  # a slow reader of a full pipe is waited for
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | AT_ONCE)
