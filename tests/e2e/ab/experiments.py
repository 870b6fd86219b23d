"""``opprof ab`` in a project of its own: the program, how the command ended, and what it left."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from e2e.project import Project, environment

WORK = """\
    from pytest_opprof import record_function

    def pipeline():
        with record_function("parse"):
            total = sum(range(20_000))
        with record_function("solve"):
            for _ in range(1):
                total += sum(range(40_000))
        return total

    def other():
        return sum(range(30_000))
"""
TESTS = """\
    import pytest
    import work

    @pytest.mark.profile(warmup=1, active=2)
    def test_pipeline():
        work.pipeline()

    @pytest.mark.profile(warmup=1, active=2)
    def test_other():
        work.other()

    def test_unmarked():
        work.other()
"""
# One process of this test ends, stops or changes things; the environment gives its number.
DISTURBING = """\
    import os, pathlib, signal
    import pytest
    import work

    def processes():
        path = pathlib.Path(os.environ["COUNTED"])
        with path.open("a") as file:
            file.write(f"{os.getpid()}\\n")
        return len(set(path.read_text().split()))

    @pytest.mark.profile(warmup=0, active=1)
    def test_other():
        work.other()
        count, once = processes(), pathlib.Path(os.environ["COUNTED"] + "-once")
        if f"{count}" in os.environ.get("KILLED_AT", "").split() and not once.exists():
            once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if f"{count}" == os.environ.get("HANGS_AT"):
            signal.pause()
        if f"{count}" == os.environ.get("INTERRUPTED_AT"):
            os.kill(os.getppid(), signal.Signals[os.environ["SIGNAL"]])
            signal.pause()
        if f"{count}" == os.environ.get("CHANGED_AT"):
            pathlib.Path("work.py").write_text(pathlib.Path("work.py").read_text() + "\\n")
"""

# Load on the machine must not decide: here even a test a hundred times slower is not a change.
NOT_BY_TIME = ("--min-effect=10000%", "--max-noise=10000%")


@dataclass(frozen=True, kw_only=True)
class Ab:
    """How ``opprof ab`` ended, and what it printed."""

    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> pytest.LineMatcher:
        return pytest.LineMatcher(self.stdout.splitlines())


def ab(project: Project, *arguments: str, cwd: str = ".", env: dict[str, str] | None = None) -> Ab:
    """Run the command in a project."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest_opprof.cli.main", "ab", *arguments],
        cwd=project.folder / cwd,
        env=environment({"TMPDIR": str(temporary(project)), **(env or {})}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    print(done.stdout, done.stderr, sep="\n")
    return Ab(code=done.returncode, stdout=done.stdout, stderr=done.stderr)


def temporary(project: Project) -> Path:
    """The folder of its work trees."""
    folder = project.folder.parent / "temporary"
    folder.mkdir(exist_ok=True)
    return folder


def nothing_left(project: Project) -> bool:
    """Whether neither git nor the temporary folder has a work tree left."""
    listed = project.git("worktree", "list", "--porcelain").count("worktree ")
    return listed == 1 and not list(temporary(project).glob("opprof-*"))


def experiments(project: Project) -> list[Path]:
    """The folders of stored experiments."""
    return sorted(path.parent for path in (project.folder / ".opprof" / "ab").glob("*/plan.json"))
