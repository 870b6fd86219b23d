"""A copy of the sources to edit, with a Python that imports them and two build folders."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from mutants.detector import Detector

_PTH: Final = "mutants.pth"


class BuildError(Exception):
    """The sources do not compile; the message is the compiler's."""


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
        self._packages = folder / "venv" / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
        self._extension = folder / "extension"
        # the build folder of Python tests that drive native/tests
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
        # with the same options as `native_programs.build`, so that it does not configure again
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
                continue  # removed, but not committed yet
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

    def without(self, detector: Detector) -> AbstractContextManager[None]:
        """The copy without a detector, inside the block."""
        return self.edited(detector.file, detector.edited(self.root))

    @contextlib.contextmanager
    def edited(self, file: str, text: str) -> Iterator[None]:
        """The copy with another text in a file, inside the block."""
        path = self.root / file
        before = path.read_text(encoding="utf-8")
        try:
            self._write(path, text)
            yield
        finally:
            self._write(path, before)

    def fails(self, programs: str, *, longest_s: float) -> bool:
        """Build native/tests and run those that a pattern of ctest names: does one fail?

        Raises:
            BuildError: They do not compile.
            subprocess.TimeoutExpired: They ran for longer.
        """
        self._run("--build", str(self._programs))
        command = ["ctest", "--test-dir", str(self._programs), "--stop-on-failure", "-R", programs]
        return self.run(command, longest_s=longest_s).returncode != 0

    @contextlib.contextmanager
    def at_every_start(self, line: str) -> Iterator[None]:
        """Run a line at the start of each process of the copy's Python, inside the block."""
        path = self._packages / "every_start.pth"
        path.write_text(f"{line}\n", encoding="utf-8")
        try:
            yield
        finally:
            path.unlink()

    def pytest(
        self,
        arguments: Sequence[str],
        *,
        longest_s: float,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> subprocess.CompletedProcess[str]:
        """Run pytest over the copy, in the order of its arguments.

        Raises:
            BuildError: The sources do not compile.
            subprocess.TimeoutExpired: It ran for longer.
        """
        command = [str(self.python()), "-m", "pytest", "-p", "no:randomly", *arguments]
        return self.run(command, longest_s=longest_s, variables=variables)

    def run(
        self,
        command: Sequence[str],
        *,
        longest_s: float,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the copy, without what was set for this process alone.

        Raises:
            subprocess.TimeoutExpired: It ran for longer; it was killed.
        """
        left_out = ("PYTEST_", "OPPROF_", "PYTHONPATH")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
        return subprocess.run(
            command,
            cwd=self.root,
            env={**kept, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=longest_s,
            check=False,
        )

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
        """An interpreter with this one's packages, except that the package itself is the copy's."""
        venv.EnvBuilder(symlinks=True, system_site_packages=_sees_system()).create(self._folder / "venv")
        # .pth files of the other environment, such as its editable finder, are not installed here
        (self._packages / _PTH).write_text(
            f"{self.root}\n{sysconfig.get_path('purelib')}\n", encoding="utf-8"
        )

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
        # Bytecode is validated by second and size, and an edit may keep both.
        for cached in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            cached.unlink()


def _sees_system() -> bool:
    config = Path(sys.prefix, "pyvenv.cfg")
    return config.exists() and "include-system-site-packages = true" in config.read_text(encoding="utf-8")
