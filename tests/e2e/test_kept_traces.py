"""Stored traces: of saved tests beside their baseline, and of base and head if a gate fails."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from e2e.project import WORK_TWICE, Project

TRACES = ".opprof/traces"


def kept(project: Project, folder: str = TRACES) -> list[str]:
    """The names of all traces in a folder."""
    return sorted(
        str(path.relative_to(project.folder / folder))
        for path in (project.folder / folder).rglob("*.json.gz")
    )


def ops(path: Path) -> list[str]:
    trace: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return [event["name"] for event in trace["traceEvents"] if event.get("cat") == "user_annotation"]


@pytest.fixture
def saved(project: Project) -> Project:
    """A project with a baseline, and a test that has done more since."""
    project.write("test_it.py", WORK_TWICE)
    assert project.pytest("--opprof-save=main").exit_code == 0
    project.replace("test_it.py", "range(2)", "range(3)")
    return project


def test_a_failed_gate_shows_base_and_head(saved: Project) -> None:
    (beside,) = kept(saved)
    assert beside.startswith("saved/test_it-")
    session = saved.pytest("--opprof-baseline=main")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    session.lines.fnmatch_lines(
        ["traces:   .opprof/traces/test_it-????????????.{base,head}.json.gz   (opprof view test_it)"]
    )
    _, base, head = (saved.folder / TRACES / name for name in kept(saved))
    assert (base.name[-13:], head.name[-13:]) == (".base.json.gz", ".head.json.gz")
    assert (ops(base).count("work"), ops(head).count("work")) == (2 * 3, 3 * 3)


@pytest.mark.slow
def test_pairs_are_written_to_the_traces_folder(saved: Project) -> None:
    session = saved.pytest("--opprof-baseline=main", "--opprof-traces=artifact")
    told = "traces:   artifact/test_it-????????????.{base,head}.json.gz   (opprof view test_it --traces=artifact)"
    session.lines.fnmatch_lines([told])
    assert [name.partition(".")[2] for name in kept(saved, "artifact")] == [
        "base.json.gz",
        "head.json.gz",
        "json.gz",
    ]


@pytest.mark.slow
def test_passing_again_removes_the_pair(saved: Project) -> None:
    saved.pytest("--opprof-baseline=main")
    assert len(kept(saved)) == 3
    saved.replace("test_it.py", "range(3)", "range(2)")
    saved.pytest()  # which judges nothing
    assert len(kept(saved)) == 3
    assert saved.pytest("--opprof-baseline=main").exit_code == 0
    assert len(kept(saved)) == 1


@pytest.mark.slow
def test_base_of_another_environment_is_reported(saved: Project) -> None:
    for name in kept(saved):
        (saved.folder / TRACES / name).unlink()
    session = saved.pytest("--opprof-baseline=main")
    told = " ".join(session.stdout.split())
    assert ".head.json.gz (opprof view test_it); no trace of main is kept here" in told
    assert [name[-13:] for name in kept(saved)] == [".head.json.gz"]


def test_only_saved_tests_keep_traces(project: Project) -> None:
    failing = "\n    @pytest.mark.profile\n    def test_fails():\n        assert False\n"
    project.write("test_it.py", WORK_TWICE + failing)
    project.pytest("--opprof-save=main")
    assert [name.partition("-")[0] for name in kept(project)] == ["saved/test_it"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("store", "shown"),
    [("git:", ".{base,head}.json.gz"), ("counts:counts", "no trace of main is kept here")],
    ids=["git", "counts, which say of no run"],
)
def test_stores_that_others_read_have_no_traces(project: Project, store: str, shown: str) -> None:
    project.git("init", "-q")
    project.write("test_it.py", WORK_TWICE)
    project.commit()
    assert project.pytest("--opprof-save=main", f"--opprof-store={store}").exit_code == 0
    (trace,) = project.folder.rglob("*.json.gz")
    assert trace.parent == project.folder / TRACES / "saved"
    assert "json.gz" not in project.git("status", "--porcelain", "--untracked-files=all")
    project.replace("test_it.py", "range(2)", "range(3)")
    session = project.pytest("--opprof-baseline=main", f"--opprof-store={store}")
    assert shown in " ".join(session.stdout.split())  # whatever the width


@pytest.mark.slow
def test_git_ignores_traces(project: Project) -> None:
    project.git("init", "-q")
    project.write("test_it.py", WORK_TWICE)
    project.commit()
    project.pytest("--opprof-save=main", "--opprof-store=kept")
    project.replace("test_it.py", "range(2)", "range(3)")
    project.pytest("--opprof-baseline=main", "--opprof-store=kept")
    assert len(kept(project, "kept/traces")) == 1
    assert len(kept(project)) == 2
    told = project.git("status", "--porcelain", "--untracked-files=all")
    assert "json.gz" not in told


@pytest.mark.slow
def test_zero_budget_keeps_nothing(project: Project) -> None:
    project.write("test_it.py", WORK_TWICE)
    project.pytest("--opprof-save=main", "--opprof-trace-budget=0")
    project.replace("test_it.py", "range(2)", "range(3)")
    session = project.pytest("--opprof-baseline=main", "--opprof-trace-budget=0")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert "traces:" not in session.stdout
    assert not list(project.folder.rglob("*.json.gz"))


@pytest.mark.slow
def test_oversized_trace_is_left_out_and_reported(project: Project) -> None:
    project.write("pytest.ini", (project.folder / "pytest.ini").read_text() + "opprof_trace_budget = 300 B\n")
    project.write("test_it.py", WORK_TWICE)
    session = project.pytest("--opprof-save=main")
    said = "no trace of test_it.py::test_it was stored: it does not fit into the 300 B of opprof_trace_budget"
    assert f"opprof: {said}" in session.told
    project.replace("test_it.py", "range(2)", "range(3)")
    session = project.pytest("--opprof-baseline=main")
    assert "traces:   no trace of test_it.py::test_it was stored" in session.stdout
    assert kept(project) == []


def test_traces_past_the_budget_are_reported_not_written(project: Project) -> None:
    project.write("pytest.ini", (project.folder / "pytest.ini").read_text() + "opprof_trace_budget = 300 B\n")
    project.write(
        "test_it.py", WORK_TWICE + "\n    @pytest.mark.profile\n    def test_too():\n        pass\n"
    )
    told = project.pytest("--opprof-save=main", "--opprof-save-processes=1").told
    of_the_first = "earlier ones used up the 300 B of opprof_trace_budget"
    assert f"opprof: traces of later tests were not stored: {of_the_first}" in told


@pytest.mark.slow
def test_workers_keep_traces_too(project: Project) -> None:
    pytest.importorskip("xdist")
    second = "\n    @pytest.mark.profile\n    def test_too():\n        test_it()\n"
    project.write("test_it.py", WORK_TWICE + second)
    project.pytest("--opprof-save=main", "-n2", plugins=("xdist",))
    assert [name.partition("-")[0] for name in kept(project)] == ["saved/test_it", "saved/test_too"]
    project.replace("test_it.py", "range(2)", "range(3)")
    session = project.pytest("--opprof-baseline=main", "-n2", plugins=("xdist",))
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert len(kept(project)) == 6
    assert session.stdout.count("(opprof view test_") == 2


@pytest.mark.slow
@pytest.mark.parametrize("order", [(212, 420), (420, 212)], ids=["passed last", "saved last"])
def test_tests_of_one_name_have_files_of_their_own(project: Project, order: tuple[int, int]) -> None:
    """Their digests have a common prefix: one test took or removed the other's files."""
    files = [f"test_{number}.py" for number in order]
    project.write("test_212.py", WORK_TWICE)
    project.write("test_420.py", WORK_TWICE.replace("range(2)", "range(7)"))
    project.pytest("--opprof-save=main", *reversed(files))
    project.replace("test_212.py", "range(2)", "range(3)")
    session = project.pytest("--opprof-baseline=main", *files)
    (told,) = (line for line in session.stdout.splitlines() if line.startswith("traces:"))
    stem = told.split()[1].partition(".{")[0]
    for side in ("base", "head"):
        path = project.folder / f"{stem}.{side}.json.gz"
        assert ops(path).count("work") == {"base": 6, "head": 9}[side]


LOOP = """
import pytest
from pytest_opprof import record_function

@pytest.mark.profile
def test_it():
    with record_function("all"):
        for _ in range(140_000):
            with record_function("work"):
                pass
"""


@pytest.mark.slow
def test_long_recordings_keep_sums_only(project: Project) -> None:
    project.write("test_it.py", LOOP)
    saved = project.pytest("--opprof-save=main")
    saved.lines.fnmatch_lines(["opprof: no trace of 420,00? events was stored: *--opprof-traces=*"])
    assert project.pytest("--opprof-baseline=main").exit_code == pytest.ExitCode.OK
    project.replace("test_it.py", "140_000", "140_001")
    session = project.pytest("--opprof-baseline=main")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    session.lines.fnmatch_lines(["*REGRESSED: 1 more range*"])
    counts = {row.name: row.count.total for row in session.result("test_it").ops}
    assert counts["work"] == 140_001 * 3
    assert not (project.folder / TRACES).exists()
    project.pytest("--opprof-baseline=main", "--opprof-traces=all")
    assert [name for name in kept(project, "all") if ".head" not in name]
