"""A torch on disk, as a compiler sees it, whether imported here or only unpacked."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_opprof.errors import CaptureUnavailableError

# The releases that `make test-matrix` tries; docs/compatibility.md is its table.
OLDEST: Final = (2, 6)
NEWEST: Final = (2, 15)

SUPPORTED: Final = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"

# c10::Error(SourceLocation, std::string), as libc10 exports it if std::string is that of C++11.
_NEW_STRING: Final = b"_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx11"
# Torch's first header refuses older standards.
_MINIMUM: Final = re.compile(r"__cplusplus < (\d{4})\d\dL")
_STANDARDS: Final = {"2017": "c++17", "2020": "c++20", "2023": "c++23"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchBuild:
    """One build of torch."""

    folder: Path  # the package, which has ``include`` and ``lib``
    version: str  # as ``torch.__version__``
    commit: str  # torch's own; "Unknown" in some distributions' builds
    cxx11_abi: bool  # its ``std::string`` is that of C++11
    standard: str  # the oldest C++ standard that its headers accept, as ``c++20``
    digest: str  # of libc10, its smallest library, which each build changes

    @property
    def is_tried(self) -> bool:
        """Whether this release is supported; others may work."""
        return OLDEST <= _release(self.version) <= NEWEST


def torch_build(folder: Path) -> TorchBuild:
    """Read the build of a torch: of the folder of ``torch.__file__``, or ``torch`` in an unpacked wheel.

    A `CaptureUnavailableError` says so if there is none, or if it lacks its C++ headers.
    """
    try:
        said = (folder / "version.py").read_text(encoding="utf-8")
        library = (folder / "lib" / "libc10.so").read_bytes()
    except (OSError, UnicodeDecodeError) as error:
        raise CaptureUnavailableError(f"{folder} is not a torch that can be recorded: {error}") from error
    version = _said(said, "__version__")
    try:
        header = (folder / "include" / "ATen" / "ATen.h").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise CaptureUnavailableError(
            f"torch {version} lacks its C++ headers ({error.filename} cannot be read): install them (Debian, "
            "Ubuntu: apt install libtorch-dev), or install torch's own wheel, which has them"
        ) from error
    return TorchBuild(
        folder=folder,
        version=version,
        commit=_said(said, "git_version"),
        cxx11_abi=_NEW_STRING in library,
        standard=_STANDARDS.get(max(_MINIMUM.findall(header), default=""), "c++20"),
        digest=hashlib.sha256(library).hexdigest(),
    )


@functools.cache
def installed_torch() -> str:
    """The ``__version__`` of the installed torch, without importing it; "" if there is none."""
    try:
        found = importlib.util.find_spec("torch")
        folders = found.submodule_search_locations if found else None
        said = Path(folders[0], "version.py").read_text(encoding="utf-8") if folders else ""
    except (ImportError, OSError, ValueError):
        return ""
    return _said(said, "__version__") if said else ""


def _said(text: str, name: str) -> str:
    found = re.search(rf"^{name}\b[^=\n]*= *'([^']*)'", text, re.MULTILINE)
    return found[1] if found else "unknown"


def _release(version: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)
