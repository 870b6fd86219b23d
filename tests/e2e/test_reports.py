"""Reports of a session as files, and the same reports from its comparison file later."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from e2e.conftest import MakeProject
from e2e.project import WORK_TWICE, Project, Session
from support.forges.workflow_commands import commands
from support.html.rendered import pages, tables

from pytest_opprof.cli.main import main
from pytest_opprof.compare.timing.document import read_judged
from pytest_opprof.report.formats import FORMATS

BASELINE = ("--opprof-baseline=main", "--opprof-gate=ranges.count=exact")
EVERY_FORMAT = [f"--opprof-report={name}:out/{name}" for name in (*FORMATS, "json")]


@pytest.fixture(scope="module")
def regressed(make_project: MakeProject) -> tuple[Project, Session]:
    """A project whose test does its work once more than before, with every report requested."""
    project = make_project("reported")
    project.write("test_it.py", WORK_TWICE)
    project.pytest("--opprof-save=main", "--opprof-save-processes=1")
    project.replace("test_it.py", "range(2)", "range(3)")
    session = project.pytest(
        *BASELINE, *EVERY_FORMAT, "--opprof-report=annotations:-", "--opprof-report=json:-"
    )
    return project, session


@pytest.mark.slow
def test_every_format_is_written(regressed: tuple[Project, Session]) -> None:
    project, session = regressed
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert {path.name for path in (project.folder / "out").iterdir()} == {*FORMATS, "json"}
    for page in pages((project.folder / "out" / "markdown").read_text(encoding="utf-8")):
        assert ["work", "2", "3", "+1"] in tables(page)[0]
        (title, *numbers), *_ = tables(page)[1][1:]
        assert title.startswith("test_it REGRESSED\nwork count")
        assert numbers == ["2", "3", "+1"]
    suites = ET.parse(project.folder / "out" / "junit")  # noqa: S314 - ours
    assert [case.get("name") for case in suites.iter("testcase") if case.find("failure") is not None] == [
        "test_it"
    ]


def test_annotation_is_printed_for_github(regressed: tuple[Project, Session]) -> None:
    _, session = regressed
    told = [line for line in session.stdout.splitlines() if line.startswith("::")]
    (found,) = commands("\n".join(told))
    assert found.properties == {
        "file": "test_it.py",
        "line": "7",
        "title": "opprof: REGRESSED: test_it.py::test_it",
    }


@pytest.mark.slow
def test_annotations_name_files_from_the_top_of_the_checkout(
    make_project: MakeProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = make_project("annotated_below")
    project.git("init", "-q")
    (project.folder / "packages/a/tests").mkdir(parents=True)
    (project.folder / "pytest.ini").rename(project.folder / "packages/a/pytest.ini")
    project.write("packages/a/tests/test_it.py", WORK_TWICE)
    start = "packages/a/tests"
    project.pytest("--opprof-save=main", "--opprof-save-processes=1", cwd=start)
    project.replace("packages/a/tests/test_it.py", "range(2)", "range(3)")
    session = project.pytest(
        *BASELINE, "--opprof-report=annotations:-", "--opprof-report=json:kept.json", cwd=start
    )
    (printed,) = [line for line in session.stdout.splitlines() if line.startswith("::")]
    (found,) = commands(printed)
    assert (found.properties["file"], found.properties["line"]) == ("packages/a/tests/test_it.py", "7")
    monkeypatch.chdir(project.folder / start)
    capsys.readouterr()
    assert main(["report", "kept.json", "--format=annotations"]) == 0
    assert capsys.readouterr().out == f"{printed}\n"


def test_json_report_is_printed(regressed: tuple[Project, Session]) -> None:
    project, session = regressed
    (printed,) = (
        line for line in session.stdout.splitlines() if line.startswith('{"kind":"opprof-comparison"')
    )
    assert printed == (project.folder / "out" / "json").read_text(encoding="ascii").rstrip()
    assert not (project.folder / "-").exists()


@pytest.mark.slow
def test_a_kept_comparison_gives_the_same_reports(
    regressed: tuple[Project, Session],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project, _ = regressed
    monkeypatch.chdir(project.folder)
    document = project.folder / "out" / "json"
    assert read_judged(document).counts.total() == 1
    for name in FORMATS:
        written = tmp_path / name
        assert main(["report", str(document), "--format", name, "-o", str(written)]) == 0
        assert written.read_bytes() == (project.folder / "out" / name).read_bytes()
        assert main(["report", str(document), "--format", name]) == 0
        assert capsys.readouterr().out == written.read_text(encoding="utf-8")


@pytest.mark.slow
def test_under_xdist_the_controller_writes_one_report(regressed: tuple[Project, Session]) -> None:
    pytest.importorskip("xdist")
    project, _ = regressed
    project.write("test_other.py", WORK_TWICE.replace("test_it", "test_other"))
    reports = ("--opprof-report=openmetrics:both", "--opprof-report=annotations:-")
    session = project.pytest("-n", "2", *BASELINE, *reports, plugins=("xdist",))
    text = (project.folder / "both").read_text(encoding="utf-8")
    assert [
        line.partition("{")[2] for line in text.splitlines() if line.startswith("opprof_ranges_count")
    ] == [
        'test="test_it.py::test_it"} 3',
        'test="test_other.py::test_other"} 2',
    ]
    assert session.stdout.count("\n::error ") == 1


SHARED = """\
    import pytest
    from pytest_opprof import record_function
    from work import work

    @pytest.mark.profile
    @pytest.mark.parametrize("name", ["a, b::c", "d", "e", "f"])
    def test_shared(name): work(2)

    @pytest.mark.profile
    def test_alone():
        for _ in range(2):
            with record_function("other work"):
                pass

    @pytest.mark.profile(limits={"ranges.count": 3})
    def test_limited(): work(2)

    @pytest.mark.profile
    def test_same(): work(2)
"""
WORK = """\
    from pytest_opprof import record_function

    def work(times):
        for _ in range(times):
            with record_function("work"):
                pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "xdist"])
def test_github_gets_one_annotation_for_each_cause(project: Project, workers: tuple[str, ...]) -> None:
    """In a GitHub Actions job: at the line they share, with the command that accepts them."""
    plugins = ("xdist",) if workers else ()
    if workers:
        pytest.importorskip("xdist")
    project.write("test_it.py", SHARED)
    project.write("work.py", WORK)
    project.pytest("--opprof-save=main", "--opprof-save-processes=1")
    project.replace("test_it.py", "def test_shared(name): work(2)", "def test_shared(name): work(3)")
    project.replace("test_it.py", "def test_limited(): work(2)", "def test_limited(): work(4)")
    project.replace("test_it.py", "range(2)", "range(4)")
    session = project.pytest(
        *workers,
        *BASELINE,
        "--opprof-report=annotations:-",
        plugins=plugins,
        env={"GITHUB_ACTIONS": "true", "CI": "true"},
    )
    told = [line for line in session.stdout.splitlines() if line.startswith("::")]
    shared, *others = commands("\n".join(told))
    assert shared.kind == "error"
    assert shared.properties == {"file": "work.py", "line": "5", "title": "opprof: REGRESSED: 4 tests"}
    title, names, intended = shared.message.splitlines()
    assert title == "cause 1, 4 tests: work.py:5 in work: work +1 a step"
    assert title in session.stdout.splitlines(), "it has the number that the summary gives it"
    assert re.fullmatch(r"(test_shared\[[^]]+\](, )?){3} and 1 more", names)
    assert intended == 'intended? opprof accept --cause 1 --reason "..."'
    by_title = {one.properties["title"]: one.message.splitlines() for one in others}
    assert {one.properties["file"] for one in others} == {"test_it.py", "work.py"}
    assert by_title["opprof: REGRESSED: test_it.py::test_alone"][1:] == [
        "test_alone",
        'intended? opprof accept test_it.py::test_alone --reason "..."',
    ]
    assert by_title["opprof: REGRESSED: test_it.py::test_limited"][2:] == [
        'intended? opprof accept test_it.py::test_limited --reason "..."',
        "intended? raise the limit in the test's marker",
    ]
    assert len(by_title) == 2


@pytest.mark.slow
def test_unwritable_report_is_reported(project: Project) -> None:
    project.write("test_it.py", WORK_TWICE)
    session = project.pytest("--opprof-report=junt:report.xml")
    assert session.exit_code == pytest.ExitCode.USAGE_ERROR
    assert session.told == ["ERROR: opprof: --opprof-report: unknown format 'junt' (did you mean 'junit'?)"]
    (project.folder / "folder").mkdir()
    session = project.pytest("--opprof-report=junit:folder")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert any("folder cannot be written: it is a folder" in line for line in session.told)


@pytest.mark.slow
def test_fresh_processes_write_no_reports_of_the_ini_file(project: Project) -> None:
    project.write("test_it.py", WORK_TWICE)
    ini = (project.folder / "pytest.ini").read_text(encoding="utf-8")
    project.write("pytest.ini", f"{ini}opprof_report =\n    summary:report.md\n    annotations:-\n")
    project.write(
        "conftest.py",
        """\
        from pathlib import Path

        def pytest_unconfigure(config):
            # Each process of this project leaves what it was told of reports.
            with Path("asked").open("a") as file:
                file.write(f"{config.getoption('opprof_report')}\\n")
        """,
    )
    session = project.pytest("--opprof-save=main")
    assert session.exit_code == 0
    assert (
        (project.folder / "report.md").read_text(encoding="utf-8").startswith("### opprof: measured 1 test")
    )
    # First the certifying process, which must ignore the ini file's reports.
    assert (project.folder / "asked").read_text().splitlines() == ["['']", "None"]
