"""The project's folder for us, ``.opprof``, and its files beside baselines.

accepted.json is made to be committed. Files that only this checkout needs, such as its last comparison, are
in ``.opprof/.state``, which git ignores, and no baseline can have that name.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from pytest_opprof.baselines.directory import writing

FOLDER = Path(".opprof")
STATE = ".state"


def project_folder(start: Path) -> Path:
    """Our folder of the nearest folder upwards from `start` with one; if there is none, that of `start`."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / FOLDER).is_dir():
            return folder / FOLDER
    return start / FOLDER


def state_file(folder: Path, name: str) -> Path:
    """The path of a file for only this checkout, in the project's ``.opprof``."""
    return folder / STATE / name


def project_writing(folder: Path) -> AbstractContextManager[None]:
    """Lock the project's folder, made if missing: two writers take turns."""
    return writing(state_file(folder, "lock"), ignore=b"*\n")
