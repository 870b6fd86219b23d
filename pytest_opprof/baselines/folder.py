"""The folder that a project keeps for us, ``.opprof``, and what lies in it beside baselines.

What was accepted is there to be committed. What only this checkout needs, such as its last comparison, is in
``.opprof/.state``, a folder that git leaves alone and that no baseline can be named like.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_opprof.baselines.directory import locked
from pytest_opprof.results.files import write_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(".opprof")
_STATE = ".state"


def project_folder(start: Path) -> Path:
    """Our folder of the project that `start` lies in: of the nearest folder upwards that has one.

    Where none has, it is the one that `start` itself would have.
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / FOLDER).is_dir():
            return folder / FOLDER
    return start / FOLDER


def state_file(folder: Path, name: str) -> Path:
    """Where a file lies that only this checkout needs.

    Args:
        folder: the project's ``.opprof``.
        name: of the file.
    """
    return folder / _STATE / name


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Have the project's folder, made where it is missing, to oneself: two writers at once take turns.

    Args:
        folder: the project's ``.opprof``.

    Raises:
        StoreError: it cannot be written.
    """
    ignore, lock = state_file(folder, ".gitignore"), state_file(folder, "lock")
    if not ignore.exists():
        write_bytes(ignore, b"*\n")
    with locked(lock):
        yield
