"""A copy of the sources to be edited, with a Python that imports them and two folders to build them in."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mutants.detector import Detector

_PTH: Final = "mutants.pth"


class BuildError(Exception):
    """The sources do not compile; the compiler's words."""


class Tree:
    """The copy, in a folder that stays: what did not change since is not built again.

    Args:
        repository: Whose sources are copied; nothing in it is touched but `folder`.
        folder: Of the copy and what is built.

    Attributes:
        root: Of the copied sources.
    """

    def __init__(self, repository: Path, *, folder: Path) -> None:
        self.root = folder / "tree"
        self._repository = repository
        self._folder = folder
        self._python = folder / "venv" / "bin" / "python"
        self._extension = folder / "extension"
        # Where tests that drive native/tests from Python build it.
        self._programs = self.root / "build" / "c"

    def prepare(self) -> str:
        """Copy what changed, and make what builds and runs it; a digest of all sources.

        Raises:
            BuildError: They cannot be configured.
        """
        digest = self.copy()
        self._make_python()
        python = f"-DPython_EXECUTABLE={self._python}"
        self._configure(self._extension, "-DSKBUILD=2", python)
        # With the same words as `native_programs.build`, so that it does not configure anew.
        self._configure(self._programs, f"-DOP_PYTHON={self._python}", "-DOP_FAULTS=ON")
        return digest

    def copy(self) -> str:
        """Copy what changed, and remove what is no more; a digest of all sources."""
        listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        done = subprocess.run(listing, cwd=self._repository, check=True, capture_output=True)
        names = sorted(filter(None, os.fsdecode(done.stdout).split("\0")))
        digest = hashlib.sha256()
        kept = set()
        for name in names:
            source, target = self._repository / name, self.root / name
            if not source.exists():
                continue  # removed, and not committed yet
            kept.add(target)
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_symlink():
                if not target.is_symlink():
                    target.symlink_to(source.readlink())
                continue
            content = source.read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
            if not target.exists() or target.read_bytes() != content:
                shutil.copyfile(source, target)
        for folder in ("pytest_opprof", "tests", "native"):
            for path in (self.root / folder).rglob("*"):
                if path.suffix in {".py", ".c", ".h", ".cpp"} and path not in kept:
                    path.unlink()
        return digest.hexdigest()

    @contextlib.contextmanager
    def without(self, detector: Detector) -> Iterator[None]:
        """The copy without a detector, for a while."""
        path = self.root / detector.file
        before = path.read_text(encoding="utf-8")
        try:
            self._write(path, detector.edited(self.root))
            yield
        finally:
            self._write(path, before)

    def program(self, unit: str) -> list[Path]:
        """Build a test of native/tests; one program for each CUPTI where it runs over both.

        Raises:
            BuildError: It does not compile.
        """
        known = (self._programs / "build.ninja").read_text(encoding="utf-8")
        names = [name for name in (unit, f"{unit}_12", f"{unit}_13") if f"build {name}: phony" in known]
        if names:
            self._run("--build", str(self._programs), "--target", *names)
        return [self._programs / "tests" / name for name in names]

    def python(self) -> Path:
        """Build the package; the interpreter that imports it.

        Raises:
            BuildError: It does not compile.
        """
        self._run("--build", str(self._extension))
        self._run("--install", str(self._extension), "--prefix", str(self.root))
        return self._python

    def _make_python(self) -> None:
        """An interpreter with all that this one has, but for the package itself, which is the copy's."""
        venv.EnvBuilder(symlinks=True, system_site_packages=_sees_system()).create(self._folder / "venv")
        packages = self._folder / "venv" / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
        # What .pth files of the other environment install, as its editable finder, is not installed here.
        (packages / _PTH).write_text(f"{self.root}\n{sysconfig.get_path('purelib')}\n", encoding="utf-8")

    def _configure(self, folder: Path, *options: str) -> None:
        build = ["-S", str(self.root / "native"), "-B", str(folder), "-DCMAKE_BUILD_TYPE=RelWithDebInfo"]
        self._run("-G", "Ninja", *build, *options)

    def _run(self, *arguments: str) -> None:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        cmake = shutil.which("cmake", path=path)
        if cmake is None:
            raise BuildError("there is no cmake: see the dev extra")
        done = subprocess.run(
            [cmake, *arguments],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise BuildError((done.stdout + done.stderr)[-2_000:])

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        # Bytecode is told from another's by second and size, and an edit may keep both.
        for cached in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            cached.unlink()


def _sees_system() -> bool:
    config = Path(sys.prefix, "pyvenv.cfg")
    return config.exists() and "include-system-site-packages = true" in config.read_text(encoding="utf-8")
