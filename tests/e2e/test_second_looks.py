"""Before a test fails, while its fixtures are still set up: what they replaced, and what they made."""

import pytest
from e2e.project import Project

IMPORTS = """\
import os, subprocess, tempfile, threading
from pathlib import Path
from unittest import mock

import pytest
from pytest_opprof import record_function

MORE = 0
MODE = int(os.environ.get("MODE", "0"))
"""
TESTS = """
@pytest.mark.profile
def test_it(named):
    for _ in range(1 + MORE + MODE):
        with record_function("work"):
            pass

def test_after():
    pass
"""
# Each process that runs the tests writes a line. A signal to all processes is written down, not sent.
CONFTEST = """\
    import os
    from pathlib import Path

    with open("processes", "a") as file:
        print(os.getpid(), file=file)

    killpg = os.killpg
    os.killpg = lambda pid, kind: killpg(pid, kind) if int(pid) > 1 else Path("killed").touch()
"""


def compared(project: Project, fixture: str) -> tuple[str, dict[str, str], int]:
    """Save a baseline, have the test do more, and compare.

    Args:
        project: Where the files go.
        fixture: The fixture `named`.

    Returns:
        Why the test failed, the outcomes, and how many processes the last session had.
    """
    project.write("conftest.py", CONFTEST)
    project.write("test_it.py", f"{IMPORTS}\n{fixture}{TESTS}")
    project.write(".gitignore", "processes\n")
    project.git("init", "-q", "-b", "main")
    project.commit()
    assert project.pytest("--opprof-save=main", env={"MODE": "1"}).exit_code == 0
    project.replace("test_it.py", "MORE = 0", "MORE = 1")
    (project.folder / "processes").unlink()
    session = project.pytest("--opprof-baseline=main", env={"MODE": "1"})
    assert session.exit_code == 1
    assert not (project.folder / "killed").exists()
    processes = (project.folder / "processes").read_text().splitlines()
    return session.failures.get("test_it", ""), session.outcomes, len(processes)


def replacing(*what: str) -> str:
    return "\n    ".join(["@pytest.fixture\ndef named(monkeypatch):", *what]) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "fixture",
    [
        pytest.param(
            replacing('monkeypatch.setattr(subprocess, "Popen", mock.MagicMock())'), id="stand-in process"
        ),
        pytest.param(
            replacing(
                'monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("no processes"))',
                'monkeypatch.setattr(threading, "Thread", mock.MagicMock())',
            ),
            id="no processes and threads",
        ),
        pytest.param(
            replacing('monkeypatch.setenv("MODE", "0")', 'monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such")'),
            id="environment",
        ),
    ],
)
def test_fresh_process_starts_despite_what_a_fixture_replaced(project: Project, fixture: str) -> None:
    why, outcomes, processes = compared(project, fixture)
    assert why.startswith("REGRESSED: 1 more range in each step")
    assert outcomes == {"test_it": "failure", "test_after": "passed"}
    assert processes == 2


@pytest.mark.slow
def test_first_measurement_stands_if_no_fresh_process_can_start(project: Project) -> None:
    fixture = replacing('monkeypatch.setattr(tempfile, "mkdtemp", mock.Mock(side_effect=RuntimeError))')
    why, outcomes, processes = compared(project, fixture)
    assert why.startswith("REGRESSED: 1 more range in each step")
    assert outcomes == {"test_it": "failure", "test_after": "passed"}
    assert processes == 1


@pytest.mark.slow
def test_measurement_that_cannot_be_judged_fails_alone(project: Project) -> None:
    raises = 'monkeypatch.setattr(Path, "read_bytes", mock.Mock(side_effect=RuntimeError))'
    why, outcomes, _ = compared(project, replacing("if MORE:", f"    {raises}"))
    assert (why, outcomes) == ("", {"test_it": "passed", "test_after": "passed"})
