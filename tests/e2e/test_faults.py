"""Broken, foreign and newer files, places that cannot be written, a full disk: one clear error each."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project

from pytest_opprof.results.files import read_run

TEST = """\
    import pytest
    from pytest_opprof import record_function

    @pytest.mark.profile
    def test_it():
        for _ in range(2):
            with record_function("work"):
                pass

    @pytest.mark.profile
    def test_other(): pass
"""


@pytest.fixture(scope="module")
def recorded(make_project: MakeProject) -> tuple[Project, bytes]:
    """A project with a baseline, and the bytes of it."""
    project = make_project("recorded")
    project.git("init", "-q", "-b", "main")
    project.write("test_it.py", TEST)
    project.commit()
    project.pytest("--opprof-save=main")
    (path,) = project.stored()
    return project, path.read_bytes()


def changed(good: bytes, **changes: object) -> bytes:
    return json.dumps(json.loads(good) | changes).encode()


def with_negative_count(good: bytes) -> bytes:
    document = json.loads(good)
    document["tests"][0]["ops"][0]["count"] = -2
    return json.dumps(document).encode()


BAD = {
    "cut off": (lambda good: good[: len(good) // 2], "this is no JSON: "),
    "empty": (lambda good: b"", "this is no JSON: "),
    "binary": (lambda good: b"\x93NUMPY\x00\xff", "this is no UTF-8 text"),
    "damaged gzip": (lambda good: b"\x1f\x8b\x08\x00broken", "the gzip data is damaged or cut off"),
    "foreign": (
        lambda good: b'{"machine_info": {}, "benchmarks": []}',
        "no run or comparison of pytest-opprof",
    ),
    "newer": (lambda good: changed(good, schema_version=99), "99"),
    "negative": (with_negative_count, "tests[0].ops[0].count"),
    "stranger": (lambda good: changed(good, surprise=1), "surprise"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_baseline_is_one_sentence_and_stays_as_it_is(
    recorded: tuple[Project, bytes], kind: str
) -> None:
    project, good = recorded
    make, complaint = BAD[kind]
    (path,) = project.stored()
    bad = make(good)
    try:
        path.write_bytes(bad)
        session = project.pytest("--opprof-baseline=main", writes_run=False)
        assert path.read_bytes() == bad
    finally:
        path.write_bytes(good)
    assert session.exit_code == pytest.ExitCode.USAGE_ERROR
    (line,) = session.told
    assert line.startswith("ERROR: opprof: ")
    assert path.name in line
    assert complaint in line
    assert "Traceback" not in session.stdout + session.stderr


def test_a_damaged_file_of_the_same_commit_is_not_saved_over(recorded: tuple[Project, bytes]) -> None:
    project, good = recorded
    (path,) = project.stored()
    try:
        path.write_bytes(good[:100])
        session = project.pytest("--opprof-save=main")
        assert path.read_bytes() == good[:100]
    finally:
        path.write_bytes(good)
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert set(session.outcomes.values()) == {"passed"}
    (line,) = (line for line in session.told if path.name in line)
    assert "this is no JSON" in line


@pytest.mark.parametrize("option", ["--opprof-store=dir:pytest.ini/store", "--opprof-store=dir:/proc/opprof"])
def test_a_store_that_cannot_be_written_is_one_sentence(recorded: tuple[Project, bytes], option: str) -> None:
    project, _ = recorded
    session = project.pytest("--opprof-save=main", option)
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert set(session.outcomes.values()) == {"passed"}
    (line,) = session.told
    assert line.startswith("opprof: ")
    assert "cannot be written" in line


def test_what_else_is_asked_for_is_done_all_the_same(recorded: tuple[Project, bytes]) -> None:
    project, good = recorded
    before = project.folder / "run.json"
    before.mkdir(exist_ok=True)
    session = project.pytest(
        *("--opprof-json=run.json", "--opprof-traces=pytest.ini", "--opprof-save=other"), writes_run=False
    )
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert set(session.outcomes.values()) == {"passed"}
    assert any("run.json cannot be written: it is a folder" in line for line in session.told)
    assert any("the trace" in line and "cannot be written" in line for line in session.told)
    assert len(project.stored("other")) == 1
    assert project.stored()[0].read_bytes() == good


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system takes root's rights")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_one_sentence_and_harms_no_earlier_file(project: Project, small_disk: Path) -> None:
    project.write("test_it.py", TEST)
    store = f"--opprof-store=dir:{small_disk}/store"
    first = project.pytest("--opprof-save=main", store)
    assert first.exit_code == 0
    (path,) = (small_disk / "store" / "main").iterdir()
    good = path.read_bytes()
    (small_disk / "filler").write_bytes(b"x" * (os.statvfs(small_disk).f_bavail * 4096))
    full = project.pytest("--opprof-save=main", store)
    assert full.exit_code == pytest.ExitCode.TESTS_FAILED
    assert set(full.outcomes.values()) == {"passed"}
    (line,) = full.told
    assert "cannot be written: the disk is full. Free some space and run again" in line
    assert list((small_disk / "store" / "main").iterdir()) == [path]
    assert path.read_bytes() == good
    assert project.pytest("--opprof-baseline=main", store).exit_code == 0


@pytest.mark.parametrize("under_git", [True, False], ids=["one commit", "no commit"])
def test_two_saves_at_once_lose_nothing(project: Project, under_git: bool) -> None:
    project.write("test_it.py", TEST)
    project.write("test_too.py", TEST)
    if under_git:
        project.git("init", "-q")
        project.commit()
    sessions = [project.start("--opprof-save=main", f"test_{name}.py") for name in ("it", "too")]
    codes = [project.ended(session).exit_code for session in sessions]
    assert codes == [0, 0]
    newest = max(project.stored(), key=lambda path: read_run(path).created)
    documents = [read_run(path) for path in project.stored()]
    assert len(documents) == (1 if under_git else 2)
    # The later one has joined what the earlier one left.
    most = max(len(document.tests) for document in documents)
    assert most == 4
    assert project.pytest("--opprof-baseline=main").exit_code == 0
    assert newest in project.stored()
