"""Builds of the torch observer: caches, compilers, and torch releases."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof.capture.observer_build import Observer, build_of, kept, observer_for

CXX = shutil.which("c++") or shutil.which("g++")


def only_cache(patch: pytest.MonkeyPatch, folder: Path, *, home: Path) -> None:
    """Make a folder the first cache, and hide all other caches that could hold an observer."""
    patch.setenv("OPPROF_CACHE_DIR", str(folder))
    patch.setenv("HOME", str(home))
    patch.delenv("XDG_CACHE_HOME", raising=False)
    patch.setenv("TMPDIR", str(home))
    patch.setattr("tempfile.tempdir", str(home))
    patch.chdir(home)


class LoggingCompiler:
    """A working C++ compiler that logs its calls."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "c++-that-logs"
        self._log = folder / "calls"
        self.path.write_text(f'#!/bin/sh\necho called >> "{self._log}"\nexec "{CXX}" "$@"\n')
        self.path.chmod(0o755)

    @property
    def calls(self) -> int:
        """How often it was called."""
        return len(self._log.read_text().splitlines()) if self._log.exists() else 0


def is_kept(torch: Any) -> bool:
    return kept(build_of(torch)) is not None


def observed(torch: Any) -> Observer:
    return observer_for(build_of(torch))


def kept_in(folder: Path) -> set[str]:
    return {path.suffix for path in folder.iterdir()}


def copying_compiler(built: Path, *, log: Path) -> str:
    (library,) = built.glob("*.so")
    return f'#!/bin/sh\necho called >> "{log}"\nwhile [ "$1" != -o ]; do shift; done\ncp "{library}" "$2"\n'


class Unpacked:
    """A torch made of links to the real one's files, some of which can be replaced."""

    def __init__(self, torch: Any, folder: Path) -> None:
        self._real = Path(torch.__file__).parent
        self.folder = folder
        (folder / "include").mkdir(parents=True)
        shutil.copy(self._real / "version.py", folder)
        (folder / "lib").symlink_to(self._real / "lib")
        for part in (self._real / "include").iterdir():
            (folder / "include" / part.name).symlink_to(part)

    def cut_in_half(self, header: str) -> None:
        """Keep only the first half of one of its headers."""
        path = self.folder / "include" / header
        real = path.parent.readlink()
        path.parent.unlink()
        path.parent.mkdir()
        for file in real.iterdir():
            (path.parent / file.name).symlink_to(file)
        text = path.read_text()
        path.unlink()
        path.write_text(text[: len(text) // 2])

    def is_release(self, version: str) -> None:
        """Make it claim another release."""
        path = self.folder / "version.py"
        path.write_text(re.sub(r"__version__ = '[^']*'", f"__version__ = '{version}'", path.read_text()))
