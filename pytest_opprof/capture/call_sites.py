"""Call sites: the lines of the user's own code that called ops, as the collector noted them."""

from __future__ import annotations

import functools
import os
import site
import sys
import sysconfig
from pathlib import Path
from typing import Final, NamedTuple

from pytest_opprof.capture.folders import start_folder, temporary_folder

SITES: Final = "sites"
CALLERS: Final = "callers"
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})


class CallSite(NamedTuple):
    """A line of the user's own code."""

    file: str  # path as Python imported it
    function: str
    line: int  # counted from 1; 0 if unknown
    # the line that called the function; None if callers were not noted, or none is the user's
    caller: CallSite | None = None


class CalledFrom(NamedTuple):
    """How often the steps called an op or range from one site."""

    name: str
    site: CallSite
    calls: int
    nbytes: int  # bytes of the tensors given to these calls
    nodes: int  # nodes that these calls added to autograd's graph
    flops: int  # FLOPs of these calls, by formula
    retained: int  # bytes that these calls allocated and that were still in use when their step ended


def library_folders() -> tuple[str, ...]:
    """How paths begin of installed packages, of ours, and of code that torch's inductor writes."""
    return _beginnings(os.environ.get("TORCHINDUCTOR_CACHE_DIR"))


@functools.cache
def _beginnings(inductor: str | None) -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    named = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    own = str(Path(__file__).parents[1])
    # A `.pth` file or PYTHONPATH may add another environment's.
    added = {folder for folder in sys.path if Path(folder).name in _INSTALLED}
    folders = {*named, *site.getsitepackages(), site.getusersitepackages(), *added, own}
    folders |= {str(start_folder() / inductor)} if inductor else set()
    real = {os.path.realpath(folder) for folder in folders}
    found = {folder.rstrip(os.sep) + os.sep for folder in folders | real if folder}
    # Torch names the folder by the user's name, and sets the variable when it first compiles.
    temporary = temporary_folder()
    if temporary is not None:
        found |= {str(folder / "torchinductor_") for folder in (temporary, temporary.resolve())}
    return tuple(sorted(found))
