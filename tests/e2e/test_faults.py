"""Broken, foreign and newer files, unwritable places and a full disk: one clear error each."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project

from pytest_opprof.report.formats import FORMATS
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


def bad_baseline(kind: str, good: bytes) -> bytes:
    """A file in the baseline's place."""
    document = json.loads(good)
    match kind:
        case "cut off":
            return good[: len(good) // 2]
        case "empty":
            return b""
        case "binary":
            return b"\x93NUMPY\x00\xff"
        case "damaged gzip":
            return b"\x1f\x8b\x08\x00broken"
        case "foreign":
            document = {"machine_info": {}, "benchmarks": []}
        case "newer":
            document["schema_version"] = 99
        case "negative":
            document["tests"][0]["ops"][0]["metrics"]["count"] = -2
    return json.dumps(document).encode()


COMPLAINTS = {
    "cut off": "this is not JSON: ",
    "empty": "this is not JSON: ",
    "binary": "this is not UTF-8 text",
    "damaged gzip": "the gzip data is damaged or cut off",
    "foreign": "not a file of pytest-opprof",
    "newer": "99",
    "negative": "tests[0].ops[0].metrics.count: -2",
}


# Files that are not runs at all are refused in one place, which has its own tests.
ALIKE = {"empty", "binary", "damaged gzip", "foreign"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.slow] if kind in ALIKE else []) for kind in COMPLAINTS]
)
def test_bad_baseline_is_one_sentence_and_unchanged(recorded: tuple[Project, bytes], kind: str) -> None:
    project, good = recorded
    (path,) = project.stored()
    bad = bad_baseline(kind, good)
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
    assert COMPLAINTS[kind] in line
    assert "Traceback" not in session.stdout + session.stderr


@pytest.mark.slow
def test_damaged_run_of_the_same_commit_is_not_overwritten(recorded: tuple[Project, bytes]) -> None:
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
    assert "this is not JSON" in line


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--opprof-store=dir:pytest.ini/store", "--opprof-store=dir:/proc/opprof"])
def test_a_store_that_cannot_be_written_is_one_sentence(recorded: tuple[Project, bytes], option: str) -> None:
    project, _ = recorded
    session = project.pytest("--opprof-save=main", option)
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert set(session.outcomes.values()) == {"passed"}
    (line,) = session.told
    assert line.startswith("opprof: ")
    assert "cannot be written" in line


@pytest.mark.slow
def test_other_outputs_are_written_despite_a_failure(recorded: tuple[Project, bytes]) -> None:
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


@pytest.mark.slow
def test_full_disk_is_one_sentence_and_keeps_earlier_files(project: Project, small_disk: Path) -> None:
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


@pytest.mark.slow
def test_a_full_disk_is_one_sentence_for_each_report(project: Project, small_disk: Path) -> None:
    project.write("test_it.py", TEST)
    assert project.pytest("--opprof-save=main").exit_code == 0
    # Nothing changed, so there is nothing to annotate.
    formats = FORMATS.keys() - {"annotations"}
    reports = {f"--opprof-report={name}": small_disk / f"report-{name}" for name in formats}
    files = {**reports, "--opprof-json": small_disk / "run.json", "--opprof-traces": small_disk / "traces"}
    (small_disk / "traces").mkdir()
    for path in reports.values():
        path.write_text("earlier")
    (small_disk / "filler").write_bytes(b"x" * (os.statvfs(small_disk).f_bavail * 4096))
    asked = [f"{option}{':' if option in reports else '='}{path}" for option, path in files.items()]
    full = project.pytest("--opprof-baseline=main", *asked, writes_run=False)
    assert full.exit_code == pytest.ExitCode.TESTS_FAILED
    assert set(full.outcomes.values()) == {"passed"}
    told = [line for line in full.told if "cannot be written" in line]
    for path in files.values():
        assert any(str(path) in line for line in told), path
    assert "Traceback" not in full.stdout + full.stderr
    assert {path.read_text() for path in reports.values()} == {"earlier"}
    assert not files["--opprof-json"].exists()
    assert list(files["--opprof-traces"].iterdir()) == []


@pytest.mark.slow
def test_a_quota_is_one_sentence_and_harms_no_earlier_file(project: Project) -> None:
    project.write("test_it.py", TEST)
    assert project.pytest("--opprof-save=main").exit_code == 0
    (path,) = project.stored()
    good = path.read_bytes()
    project.write(
        "conftest.py",
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, 1 << 14))\n",
    )
    project.replace("test_it.py", "range(2)", "range(400)")
    project.replace("test_it.py", '"work"', 'f"{_} " * 50')
    over = project.pytest("--opprof-save=main", "--opprof-traces=traces", writes_run=False)
    assert over.exit_code == pytest.ExitCode.TESTS_FAILED
    assert set(over.outcomes.values()) == {"passed"}
    assert any("cannot be written" in line for line in over.told)
    assert "Traceback" not in over.stdout + over.stderr
    assert [stored for stored in project.stored() if stored.read_bytes() == good] == [path]


@pytest.mark.slow
@pytest.mark.parametrize("documents", [1, 2], ids=["one commit", "no commit"])
def test_two_saves_at_once_lose_nothing(project: Project, documents: int) -> None:
    project.write("test_it.py", TEST)
    project.write("test_too.py", TEST)
    if documents == 1:
        project.git("init", "-q")
        project.commit()
    sessions = [project.start("--opprof-save=main", f"test_{name}.py") for name in ("it", "too")]
    assert [project.ended(session).exit_code for session in sessions] == [0, 0]
    stored = [read_run(path) for path in project.stored()]
    assert len(stored) == documents
    assert max(len(run.tests) for run in stored) == 4, "the later one joins what the earlier one left"
    assert project.pytest("--opprof-baseline=main").exit_code == 0
