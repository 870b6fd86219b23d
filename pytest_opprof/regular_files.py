"""Opening regular files to read, and nothing else: a pipe keeps its reader until somebody writes."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO, Final

# Windows alone turns line ends around, and it alone has no pipes among its files.
BINARY: Final[int] = getattr(os, "O_BINARY", 0)
AT_ONCE: Final[int] = getattr(os, "O_NONBLOCK", 0)


class NotRegularError(OSError):
    """What is there is not a regular file."""

    def __init__(self) -> None:
        super().__init__(errno.EINVAL, "this is not a regular file")


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """A regular file, open to be read from its beginning.

    Raises:
        NotRegularError: It is a pipe, a device, a folder.
        OSError: It cannot be opened.
    """
    file = open(path, "rb", opener=_at_once)  # noqa: SIM115  # it is the answer
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise NotRegularError
    return file


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | AT_ONCE)
