"""The folder that a project keeps for us, ``.opprof``, and what lies in it beside baselines.

What was accepted is there to be committed. What only this checkout needs, such as its last comparison, is in
``.opprof/.state``, a folder that git leaves alone and that no baseline can be named like.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from pytest_opprof.baselines.directory import writing

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
        folder: The project's ``.opprof``.
    """
    return folder / _STATE / name


def project_writing(folder: Path) -> AbstractContextManager[None]:
    """Have the project's folder, made where it is missing, to oneself: two writers at once take turns.

    Raises:
        StoreError: It cannot be written.
    """
    return writing(state_file(folder, "lock"), ignore=b"*\n")
