"""Long commands that are killed: what they leave, and how the next one continues."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from e2e.project import Project, environment

from pytest_opprof.errors import CaptureUnavailableError

WORK = """\
    from pytest_opprof import record_function

    def work():
        with record_function("work"):
            return sum(range(20_000))
"""
# The eighth process kills the measuring command, then waits as if its own work took long.
TESTS = """\
    import os, pathlib, signal
    import pytest
    import work

    @pytest.mark.profile(warmup=0, active=1)
    def test_it():
        work.work()
        path = pathlib.Path(os.environ["PROCESSES"])
        with path.open("a") as file:
            file.write(f"{os.getpid()}\\n")
        if len(set(path.read_text().split())) == 8 and "SIGNAL" in os.environ:
            os.kill(os.getppid(), signal.Signals[os.environ["SIGNAL"]])
            signal.pause()
"""
OPTIONS = ("HEAD", "--processes=8", "--steps=2", "--max-time=0", "--seed=5")
# Load on the machine must not decide.
LENIENT = ("--min-effect=10000%", "--max-noise=10000%", "--fail-on=regressed")


@pytest.fixture
def edited(project: Project) -> Project:
    """A repository with work in progress: staged, changed, new and ignored files."""
    project.git("init", "-q", "-b", "main")
    project.write("work.py", WORK)
    project.write("tests/test_it.py", TESTS)
    project.write("tests/conftest.py", "")
    project.write(".gitignore", "ignored.txt\n")
    project.replace("pytest.ini", "addopts = -p opprof", "addopts = -p opprof\npythonpath = .")
    project.commit()
    project.write("staged.txt", "staged\n")
    project.git("add", "staged.txt")
    project.replace("work.py", "20_000", "20_001")
    project.write("new.txt", "new\n")
    project.write("ignored.txt", "ignored\n")
    return project


def state(project: Project) -> dict[str, object]:
    """The user's tree without our files: its files and their git status."""
    files = (path for path in project.folder.rglob("*") if path.is_file())
    theirs = (path for path in files if path.relative_to(project.folder).parts[0] not in {".git", ".opprof"})
    return {
        **{str(path): (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode) for path in theirs},
        "status": project.git("status", "--porcelain", "-uall", "--ignored", "--", ".", ":!.opprof"),
        "refs": project.git("for-each-ref"),
        "head": project.git("rev-parse", "--symbolic-full-name", "HEAD"),
        "config": (project.folder / ".git" / "config").read_bytes(),
    }


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    """The only folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


def left(project: Project, temporary: Path) -> list[str]:
    """The kinds of leftovers of an experiment."""
    known = project.git("worktree", "list", "--porcelain").count("worktree ") - 1
    return sorted(path.name.rpartition("-")[0] for path in temporary.iterdir()) + ["git's entry"] * known


def opprof(
    project: Project, *arguments: str, temporary: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest_opprof", *arguments],
        cwd=project.folder,
        env=environment({"TMPDIR": str(temporary), **variables}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    print(done.stdout, done.stderr, sep="\n")
    return done


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
def test_a_killed_experiment_leaves_the_users_tree_and_goes_on(
    edited: Project, tmp_path: Path, temporary: Path, name: str
) -> None:
    processes = tmp_path / "processes"
    before = state(edited)
    killed = opprof(edited, "ab", *OPTIONS, temporary=temporary, PROCESSES=str(processes), SIGNAL=name)
    assert state(edited) == before
    (kept,) = (path.parent for path in (edited.folder / ".opprof" / "ab").glob("*/plan.json"))
    measured = {path: path.stat().st_mtime_ns for path in kept.glob("first-*.json.gz")}
    assert len(measured) == 5, "of 8 processes two are tried first, and one did not end"
    last = int(processes.read_text().split()[-1])
    if name == "SIGTERM":
        assert killed.returncode == 128 + signal.SIGINT
        assert f"opprof ab --resume={kept.name} HEAD" in killed.stderr
        assert left(edited, temporary) == []
    else:
        assert killed.returncode == -signal.SIGKILL
        assert left(edited, temporary) == ["opprof-ab", "opprof-exchange", "opprof-worktree", "git's entry"]
    assert not is_running(last)

    again = opprof(
        edited, "ab", *OPTIONS, *LENIENT, "--resume", temporary=temporary, PROCESSES=str(processes)
    )
    assert again.returncode == 0
    assert re.search(r"^5/16 processes ", again.stdout, re.MULTILINE)
    assert {path: path.stat().st_mtime_ns for path in measured} == measured, "not measured again"
    assert len(list(kept.glob("first-*.json.gz"))) == 16
    assert left(edited, temporary) == []
    assert state(edited) == before


# Writes half of its output, says so, and waits, as does a child of its own.
SLOW_COMPILER = """\
#!/bin/sh
while [ "$1" != -o ]; do shift; done
echo half > "$2"
sleep 600 &
echo $$ $! > "{told}"
wait
"""


@pytest.mark.usefixtures("torch_installed")
@pytest.mark.parametrize("where", ["cache", "--output"])
@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
def test_killed_while_it_compiles_prepare_leaves_nothing_that_is_found(
    project: Project, tmp_path: Path, temporary: Path, *, name: str, where: str
) -> None:
    cache, told, compiler = tmp_path / "cache", tmp_path / "told", tmp_path / "c++"
    os.mkfifo(told)
    compiler.write_text(SLOW_COMPILER.format(told=told), encoding="utf-8")
    compiler.chmod(0o755)
    arguments = ("prepare", f"--output={cache}") if where == "--output" else ("prepare",)
    variables = {"OPPROF_CACHE_DIR": str(cache), "HOME": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest_opprof", *arguments],
        cwd=project.folder,
        env=environment({**variables, "TMPDIR": str(temporary), "CXX": str(compiler)}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    children = [int(word) for word in told.read_text(encoding="utf-8").split()]
    process.send_signal(signal.Signals[name])
    stdout, stderr = process.communicate(timeout=60)
    assert stdout == ""
    if name == "SIGTERM":
        assert (process.returncode, stderr) == (128 + signal.SIGINT, "opprof: interrupted\n")
        assert not [child for child in children if is_running(child)]
        assert {path.suffix for path in cache.iterdir()} == {".lock"}
        assert list(temporary.iterdir()) == []
    else:
        for child in children:
            os.kill(child, signal.SIGKILL)  # they would end on their own at some time

    # The next one finds neither an observer nor a held lock, and compiles again.
    compiler.write_text("#!/bin/sh\necho it is asked again >&2\nexit 3\n", encoding="utf-8")
    again = opprof(project, *arguments, temporary=temporary, **variables, CXX=str(compiler))
    assert again.returncode == CaptureUnavailableError.exit_code
    assert again.stderr.endswith("it is asked again\n")
    assert {path.suffix for path in cache.iterdir()} == {".lock"}
    assert list(temporary.iterdir()) == []


def is_running(pid: int) -> bool:
    """Whether a process is still active: an ended one may be a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
