"""Open only regular files for reading: a pipe would block its reader until somebody writes."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO, Final

# Only Windows converts line ends, and only Windows has no pipes among its files.
BINARY: Final[int] = getattr(os, "O_BINARY", 0)
AT_ONCE: Final[int] = getattr(os, "O_NONBLOCK", 0)


class NotRegularError(OSError):
    """The path is not a regular file."""

    def __init__(self) -> None:
        super().__init__(errno.EINVAL, "this is not a regular file")


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        NotRegularError: It is a pipe, a device or a folder.
        OSError: It cannot be opened.
    """
    file = open(path, "rb", opener=_at_once)  # noqa: SIM115  # it is the answer
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise NotRegularError
    return file


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | AT_ONCE)
