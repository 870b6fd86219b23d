"""A user's project: files in a folder, and pytest run there in its own process."""

import contextlib
import os
import pty
import re
import subprocess
import sys
import sysconfig
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from pytest_opprof.results.files import read_run
from pytest_opprof.results.run import Run, TestResult

PYTEST = ("pytest",)

INI = """\
[pytest]
addopts = -p opprof
filterwarnings =
    error
    ignore:Module already imported so cannot be rewritten; _editable:pytest.PytestAssertRewriteWarning
"""

# a test whose steps do their work twice
WORK_TWICE = """\
    import pytest
    from pytest_opprof import record_function

    @pytest.mark.profile
    def test_it():
        for _ in range(2):
            with record_function("work"):
                pass
"""

# A conftest.py whose tests launch work on devices that do not exist.
CUDA_CONFTEST = """\
    import pytest
    from support.cuda import fake_cuda

    CUDA = fake_cuda.load()

    @pytest.fixture
    def cuda():
        yield CUDA
        CUDA.reset()
        CUDA.use_device(0)
"""

# The interpreter of `made_environment`.
OWN_PYTHON = ".venv/bin/python"

# Elements of a JUnit report that give a test's outcome.
_OUTCOMES = ("failure", "error", "skipped")
# Variables of an outer pytest, its workers or a Git hook, which would mislead inner processes.
_LEFT_OUT = ("PYTEST_", "GIT_", "OPPROF_MAX_BYTES", "COLUMNS", "CI", "BUILD_NUMBER")
_OWN = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTHONDONTWRITEBYTECODE": "1",  # files are edited within a second: no stale bytecode
    "COLUMNS": "120",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def made_environment(module: str) -> str:
    """A command that makes an environment like ours in a folder, and installs a module there.

    As an installer it copies the file, and notes where the copy comes from.
    """
    name = Path(module).stem
    return f"""\
set -e
{sys.executable} -m venv --without-pip .venv
site=$(echo .venv/lib/python*/site-packages)
info=$site/{name}-1.0.dist-info
echo 'import site; site.addsitedir("{sysconfig.get_path("purelib")}")' > "$site/ours.pth"
cp {module} "$site"
mkdir "$info"
echo {name}.py,, > "$info/RECORD"
printf 'Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n' > "$info/METADATA"
echo '{{"url": "file://'"$PWD"'", "dir_info": {{}}}}' > "$info/direct_url.json"
"""


@dataclass(frozen=True, kw_only=True)
class Session:
    """One pytest session in a project.

    Attributes:
        exit_code: Of the process.
        stdout: The output.
        stderr: The errors.
        junit: Its JUnit report.
        document: The path of its run file.
    """

    exit_code: int
    stdout: str
    stderr: str
    junit: Path
    document: Path

    @property
    def lines(self) -> pytest.LineMatcher:
        return pytest.LineMatcher(self.stdout.splitlines())

    @property
    def told(self) -> list[str]:
        """The plugin's own sentences, except the progress of a save."""
        both = [*self.stdout.splitlines(), *self.stderr.splitlines()]
        said = [line for line in both if line.startswith(("opprof: ", "ERROR: opprof: "))]
        return [line for line in said if not line.startswith("opprof: certifying ")]

    @property
    def banner(self) -> str:
        """Why a session fails whose last line is green; empty if it does not say so."""
        found = re.search(r"^!+ opprof fails this session: (.*) !+$", self.stdout, re.MULTILINE)
        return found[1] if found else ""

    @cached_property
    def outcomes(self) -> dict[str, str]:
        """Each test's outcome in the JUnit report, by name."""
        # pytest has just written the file: it holds no hostile XML
        return {
            case.attrib["name"]: next((child.tag for child in case if child.tag in _OUTCOMES), "passed")
            for case in ET.parse(self.junit).iter("testcase")  # noqa: S314
        }

    @cached_property
    def failures(self) -> dict[str, str]:
        """The text of each failure in the JUnit report, by test name."""
        return {
            case.attrib["name"]: failure.text or ""
            for case in ET.parse(self.junit).iter("testcase")  # noqa: S314
            for failure in case.findall("failure")
        }

    @cached_property
    def run(self) -> Run:
        """The run file that it wrote, checked against its schema."""
        return read_run(self.document)

    def result(self, name: str) -> TestResult:
        """The measurement of the test with this name."""
        (found,) = (test for test in self.run.tests if test.node_id.rpartition("::")[2] == name)
        return found


class Project:
    """A folder with tests, in which pytest and git run as a user runs them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._sessions = 0
        self.write("pytest.ini", INI)

    def write(self, name: str, text: str) -> Path:
        """Write a file, dedented."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def replace(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    def pytest(
        self,
        *arguments: str,
        plugins: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
        cwd: str = ".",
        writes_run: bool = True,
        timeout: float = 120,
        program: Sequence[str] = PYTEST,
    ) -> Session:
        """Run pytest; it writes a run document and a JUnit report.

        Args:
            plugins: Entry points to load besides ours.
            env: Extra environment variables.
            cwd: The folder it starts in.
            writes_run: Whether it writes a run file.
            timeout: Seconds after which it counts as hung.
            program: The module to run, and its first arguments.
        """
        process = self.start(
            *arguments, plugins=plugins, env=env, cwd=cwd, writes_run=writes_run, program=program
        )
        return self.ended(process, timeout=timeout)

    def start(
        self,
        *arguments: str,
        plugins: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
        cwd: str = ".",
        writes_run: bool = True,
        program: Sequence[str] = PYTEST,
    ) -> "Process":
        """Run pytest without waiting for it."""
        self._sessions += 1
        reports = self.folder.parent / f"{self.folder.name}-reports"
        reports.mkdir(exist_ok=True)
        junit, document = reports / f"{self._sessions}.xml", reports / f"{self._sessions}.json"
        loaded = [part for plugin in plugins for part in ("-p", plugin)]
        own = [f"--junitxml={junit}", f"--basetemp={self.folder.parent / f'{self.folder.name}-tmp'}"]
        if "asyncio" in plugins:
            own += ["-o", "asyncio_default_fixture_loop_scope=function"]
        if writes_run:
            own.append(f"--opprof-json={document}")
        popen = subprocess.Popen(
            [sys.executable, "-m", *program, *loaded, *own, *arguments],
            cwd=self.folder / cwd,
            env=environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        return Process(popen=popen, junit=junit, document=document)

    @staticmethod
    def ended(process: "Process", *, timeout: float = 120) -> Session:
        """Wait for a process of `start`."""
        try:
            stdout, stderr = process.popen.communicate(timeout=timeout)
        finally:
            process.popen.kill()
        # pytest shows this if a test fails
        print(stdout, stderr, sep="\n")
        return Session(
            exit_code=process.popen.returncode,
            stdout=stdout,
            stderr=stderr,
            junit=process.junit,
            document=process.document,
        )

    def python(
        self, *arguments: str, env: Mapping[str, str] | None = None, cwd: str = "."
    ) -> subprocess.CompletedProcess[str]:
        """Run Python; pytest shows its output if a test fails."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder / cwd,
            env=environment(env),
            capture_output=True,
            text=True,
            check=False,
        )
        print(done.stdout, done.stderr, sep="\n")
        return done

    def on_a_terminal(self, *arguments: str, types: str = "") -> str:
        """Run Python on a terminal and return what the terminal shows.

        Args:
            arguments: Python's.
            types: Text that is typed from the start.
        """
        ours, theirs = pty.openpty()
        os.write(ours, types.encode())
        with subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment(),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        ):
            os.close(theirs)
            shown = b""
            with contextlib.suppress(OSError):  # Linux reports this once nobody writes
                while chunk := os.read(ours, 65_536):
                    shown += chunk
        os.close(ours)
        print(shown.decode(errors="replace"))
        return shown.decode()

    def git(self, *arguments: str) -> str:
        """Run git and return its output."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self) -> str:
        """Commit everything that the plugin does not ignore, and return the commit."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "A change")
        return self.git("rev-parse", "HEAD")

    def stored(self, name: str = "main") -> list[Path]:
        """The files of a baseline."""
        return sorted((self.folder / ".opprof" / name).glob("*"))


@dataclass(frozen=True, kw_only=True)
class Process:
    """A running pytest process."""

    popen: subprocess.Popen[str]
    junit: Path
    document: Path


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of inner processes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_LEFT_OUT)}
    return kept | _OWN | dict(more or {})
