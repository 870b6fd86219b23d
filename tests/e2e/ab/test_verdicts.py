"""Whole runs of ``opprof ab``: their findings and gates."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from e2e.ab.experiments import NOT_BY_TIME, TESTS, ab, experiments, nothing_left
from e2e.project import Project

from pytest_opprof.baselines.accepted import Acceptance, accept
from pytest_opprof.compare.timing.comparison import TimeComparison
from pytest_opprof.compare.timing.document import read_judged
from pytest_opprof.metrics import RANGES_COUNT
from pytest_opprof.units import Unit, format_quantity


@pytest.mark.slow
def test_a_slower_op_is_found_and_named(project: Project, tmp_path: Path) -> None:
    project.git("checkout", "-q", "-b", "topic")
    project.replace("tests/test_it.py", "def test_unmarked", "@pytest.mark.profile\ndef test_new")
    project.commit()
    project.replace("work.py", "for _ in range(1)", "for _ in range(4)")  # not committed
    written = tmp_path / "ab.json"
    # Load on the machine must not decide: here a change of less than half does not count.
    quiet = ("--min-effect=50%", "--max-noise=99%")
    told = ab(
        project,
        "main",
        "tests",
        "--processes",
        "8",
        "--steps=5",
        "--max-time=0",
        "-o",
        str(written),
        "--seed=1",
        *quiet,
    )
    assert told.code == 1
    assert told.stderr == ""
    told.lines.fnmatch_lines(
        [
            "base main@??????? | head ???????+dirty | 2 tests | 8 processes a side, interleaved",
            "1/16 processes · * elapsed · * left*",
            "16/16 processes · * elapsed · 00:00 left · noise floor so far * %",
            "confirmation: 16/16 processes · *",
            "test_pipeline *REGRESSED *solve*",
            "test_new *NEW*",
            "test_other *PASS*",
        ]
    )
    judged = read_judged(written)
    assert isinstance(judged, TimeComparison)
    assert judged.base_processes == 8
    assert judged.control.noise_ppm is not None
    floor = format_quantity(judged.control.noise_ppm, unit=Unit.PPM)
    told.lines.fnmatch_lines([f"16/16 processes · * · noise floor so far {floor}"])
    told.lines.fnmatch_lines(
        ["traces: .opprof/traces/test_pipeline-????????????.{base,head}.json.gz * view test_pipeline)"]
    )
    assert len(list((project.folder / ".opprof" / "traces").glob("*.json.gz"))) == 2
    assert nothing_left(project)
    assert project.git("status", "--porcelain") == "M work.py"
    (kept,) = experiments(project)
    assert len(list(kept.glob("first-*.json.gz"))) == 16
    assert (kept / "finished").exists()
    assert json.loads((kept / "plan.json").read_bytes())["max_time"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "verdict"),
    [
        ("nothing", "REGRESSED"),
        ("ini file", "CHANGED"),
        ("command line", "CHANGED"),
        ("accepted", "ACCEPTED"),
    ],
)
def test_gates_and_accepted_rises_of_the_head_hold(project: Project, by: str, verdict: str) -> None:
    total = "total = sum(range(20_000))"
    project.replace("work.py", total, f'{total}\n    with record_function("parse"):\n        pass')
    given = []
    if by == "ini file":
        project.replace("pytest.ini", "pythonpath = .", "pythonpath = .\nopprof_gate = ranges.count=off")
    if by == "command line":
        given.append("--opprof-gate=ranges.count=off")
    if by == "accepted":
        rise = Acceptance(
            test="tests/test_it.py::test_pipeline",
            op=None,
            metric=RANGES_COUNT.name,
            value=3,
            reason="parses twice",
            baseline="main",
            created=datetime.now(UTC),
        )
        accept(project.folder / ".opprof", [rise])
    told = ab(project, "HEAD", *given, *NOT_BY_TIME, "--processes=8", "--steps=2")
    told.lines.fnmatch_lines([f"test_pipeline *{verdict}*"])
    assert told.code == (verdict == "REGRESSED")


@pytest.mark.slow
def test_a_project_below_the_repositorys_top_has_its_own_folder(project: Project, tmp_path: Path) -> None:
    """As for pytest and the other commands, which do not find what lies in that of the repository."""
    (project.folder / ".opprof").mkdir()
    inner = Project(project.folder / "inner")
    for name in ("pytest.ini", "work.py", "tests/test_it.py"):
        inner.write(name, (project.folder / name).read_text())
    project.commit()
    total = "total = sum(range(20_000))"
    inner.replace("work.py", total, f'{total}\n    with record_function("parse"):\n        pass')
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    options = (*NOT_BY_TIME, "--processes=8", "--steps=1", "--max-time=0", "-o", str(tmp_path / "ab.json"))
    told = ab(inner, "HEAD", "tests/test_it.py", *options, env={"TMPDIR": str(temporary)})
    told.lines.fnmatch_lines(["traces: *", "test_pipeline *REGRESSED*"])
    assert len(experiments(inner)) == 1
    viewed = inner.python("-m", "pytest_opprof", "view")
    assert "1 test has traces in .opprof/traces: " in viewed.stdout
    given = ("tests/test_it.py::test_pipeline", "--reason=wanted", f"--comparison={tmp_path / 'ab.json'}")
    assert inner.python("-m", "pytest_opprof", "accept", *given).returncode == 0
    assert (inner.folder / ".opprof" / "accepted.json").exists()
    assert list((project.folder / ".opprof").iterdir()) == []


@pytest.mark.slow
def test_maxfail_does_not_stop_an_experiment(project: Project) -> None:
    project.replace("pytest.ini", "addopts = ", "addopts = -x ")
    project.write("tests/test_a.py", TESTS)
    project.commit()
    project.write("tests/test_a.py", TESTS.replace("work.other", "work.added"))
    project.replace("work.py", "def other", "def added(): pass\n\ndef other")
    told = ab(project, "HEAD", *NOT_BY_TIME, "--processes=8", "--steps=2")
    told.lines.fnmatch_lines(["tests/test_it.py::test_other *PASS*"])
    assert "NEW" not in told.stdout
