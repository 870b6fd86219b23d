"""``opprof ab`` in real repositories: what it measures, says and leaves, and what happens when it is disturbed."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from e2e.conftest import MakeProject
from e2e.project import OWN_PYTHON, Project, environment, made_environment

from pytest_opprof.baselines.accepted import Acceptance, accept
from pytest_opprof.compare.timing.comparison import TimeComparison
from pytest_opprof.compare.timing.document import read_judged
from pytest_opprof.metrics import RANGES_COUNT
from pytest_opprof.results.files import read_run, write_run
from pytest_opprof.units import Unit, format_quantity

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
# A test's process that ends, stops or changes things once, in the process that it is told of.
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

# Nothing that the machine does beside decides: a test a hundred times as slow is not a change here.
NOT_BY_TIME = ("--min-effect=10000%", "--max-noise=10000%")


@dataclass(frozen=True, kw_only=True)
class Ab:
    """How ``opprof ab`` ended, and what it said."""

    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> pytest.LineMatcher:
        """Its output, to be matched line by line."""
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
    """Where it makes its work trees."""
    folder = project.folder.parent / "temporary"
    folder.mkdir(exist_ok=True)
    return folder


def nothing_left(project: Project) -> bool:
    """Whether neither git nor the temporary folder knows of a work tree any more."""
    listed = project.git("worktree", "list", "--porcelain").count("worktree ")
    return listed == 1 and not list(temporary(project).glob("opprof-*"))


def experiments(project: Project) -> list[Path]:
    """The folders of kept experiments."""
    return sorted(path.parent for path in (project.folder / ".opprof" / "ab").glob("*/plan.json"))


@pytest.fixture
def project(make_project: MakeProject, request: pytest.FixtureRequest) -> Project:
    """A repository with two commits of a program and its tests."""
    project = make_project(re.sub(r"\W", "-", request.node.name)[:40])
    project.git("init", "-q", "-b", "main")
    project.write("work.py", WORK)
    project.write("tests/test_it.py", TESTS)
    project.write("tests/conftest.py", "")
    project.replace("pytest.ini", "addopts = -p opprof", "addopts = -p opprof\npythonpath = .")
    project.commit()
    return project


@pytest.mark.slow
def test_a_slower_op_is_found_and_named(project: Project, tmp_path: Path) -> None:
    project.git("checkout", "-q", "-b", "topic")
    project.replace("tests/test_it.py", "def test_unmarked", "@pytest.mark.profile\ndef test_new")
    project.commit()
    project.replace("work.py", "for _ in range(1)", "for _ in range(4)")  # not committed
    written = tmp_path / "ab.json"
    # What this machine does beside must not decide: a change of less than half is none here.
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
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_what_was_measured_is_kept_and_resumed(project: Project, tmp_path: Path, name: str) -> None:
    project.write("tests/test_it.py", DISTURBING)
    project.commit()
    counted = {"COUNTED": str(tmp_path / "counted"), "SIGNAL": name}
    # Two processes are tried first; the seventh to be measured is interrupted, the fourth killed.
    disturbed = counted | {"INTERRUPTED_AT": "9", "KILLED_AT": "6"}
    first = ab(
        project, "HEAD", "tests", "--processes=8", "--steps=2", "--seed=5", "--max-time=0", env=disturbed
    )
    assert first.code == 128 + signal.SIGINT
    assert "died and is run again: killed by SIGKILL" in first.stdout
    (kept,) = experiments(project)
    done = sorted(path.name for path in kept.glob("first-*.json.gz"))
    assert len(done) == 5
    resume = f"opprof: 5 processes are kept in .opprof/ab/{kept.name}; go on with: opprof ab HEAD --resume="
    assert first.stderr.splitlines() == [resume + kept.name, "opprof: interrupted"]
    assert nothing_left(project)
    other = ab(project, "HEAD", f"--resume={kept.name}", "--seed=6", env=counted)
    assert (other.code, "has another seed" in other.stderr) == (2, True)
    before = {path.name: path.stat().st_mtime_ns for path in kept.glob("first-*.json.gz")}
    # No machine is so quiet.
    second = ab(project, "HEAD", f"--resume={kept.name}", "-v", "--max-noise=0%", env=counted)
    assert second.code == 1
    second.lines.fnmatch_lines(["test_other *INCONCLUSIVE *its base differs from itself by *"])
    after = {path.name: path.stat().st_mtime_ns for path in kept.glob("first-*.json.gz")}
    assert len(after) == 16
    assert all(after[path] == before[path] for path in before), "not measured again"
    assert "processes that died and were run again: 1 of the" in second.stdout
    assert "base and head are the same code" in second.stdout
    again = ab(project, "HEAD", f"--resume={kept.name}", env=counted)
    assert (again.code, "it is finished" in again.stderr) == (2, True)


@pytest.mark.slow
def test_tests_that_met_a_disturbed_machine_get_more_processes(project: Project, tmp_path: Path) -> None:
    project.write("tests/test_it.py", DISTURBING)
    project.commit()
    counted = {"COUNTED": str(tmp_path / "counted"), "SIGNAL": "SIGINT"}
    options = ("HEAD", "tests", "--processes=8", "--steps=2", "--max-time=0.1")
    # Of 18 processes two are tried first; all but the last one of those to be measured are finished.
    ab(project, *options, env=counted | {"INTERRUPTED_AT": "18"})
    (kept,) = experiments(project)
    first = sorted(kept.glob("first-*.json.gz"))
    assert len(first) == 15
    for at, path in enumerate(first):
        run = read_run(path)
        (test,) = run.tests
        # All but one of a side ran at a speed that no real machine has, so that no further one meets it.
        timing = replace(test.timing, probe_ns=2 if at in {0, 1} else 1)
        write_run(path, replace(run, tests=(replace(test, timing=timing),)))
    second = ab(project, *options, "--resume", "--max-noise=10000%", env=counted)
    second.lines.fnmatch_lines(
        ["15/16 processes · *", "*/20 processes · *", "32/32 processes · *", "* processes a side*"]
    )
    assert "the machine was disturbed in " in second.stdout
    second.lines.fnmatch_lines(
        [
            f"resuming {kept.name}; unfinished: {kept.name} (15 of 16 processes)",
            "the machine was busy: tests/test_it.py::* had too few undisturbed processes, so up to 16 more run",
        ]
    )
    assert len(list(kept.glob("first-*.json.gz"))) == 32


@pytest.mark.slow
def test_resume_finds_the_newest_of_the_same_plan_and_starts_in_a_subfolder(
    project: Project, tmp_path: Path
) -> None:
    project.write("tests/test_it.py", DISTURBING)
    project.commit()
    counted = {"COUNTED": str(tmp_path / "counted"), "SIGNAL": "SIGINT"}
    options = ("HEAD", "test_it.py", "--steps=2", "--processes=8", "-p", "no:cacheprovider")
    project.replace("work.py", "range(30_000)", "range(300_000)")
    first = ab(project, *options, cwd="tests", env=counted | {"INTERRUPTED_AT": "4"})
    assert first.code == 128 + signal.SIGINT
    refused = ab(project, *options, "--setup=true", "--resume", cwd="tests", env=counted)
    assert (refused.code, "no unfinished experiment measures just this" in refused.stderr) == (2, True)
    # Ten times as slow is nothing here, and what the machine does beside cannot fail it.
    lenient = ("--min-effect=10000%", "--max-noise=10000%", "--fail-on=regressed")
    quiet = ab(project, *options, *lenient, "-q", "--resume", cwd="tests", env=counted)
    assert quiet.code == 0
    assert len(quiet.stdout.splitlines()) == 1
    assert len(experiments(project)) == 1
    assert nothing_left(project)


@pytest.mark.slow
def test_a_process_that_hangs_is_ended_and_run_again(project: Project, tmp_path: Path) -> None:
    project.write("tests/test_it.py", DISTURBING)
    project.commit()
    counted = {"COUNTED": str(tmp_path / "counted")}
    hung = ab(project, "HEAD", "--processes=8", "--steps=2", "--timeout=30", env=counted | {"HANGS_AT": "4"})
    assert hung.code in {0, 1}
    assert "died and is run again: no end in 30 s (--timeout):" in hung.stdout
    assert "KeyboardInterrupt" in hung.stdout, "where it hung"
    assert "processes that died and were run again: 1 of the" in hung.stdout
    assert nothing_left(project)


@pytest.mark.slow
def test_a_head_that_changes_meanwhile_is_not_measured(project: Project, tmp_path: Path) -> None:
    project.write("tests/test_it.py", DISTURBING)
    project.commit()
    told = ab(project, "HEAD", env={"COUNTED": str(tmp_path / "counted"), "CHANGED_AT": "2"})
    assert told.code == 9
    assert told.stderr.startswith("opprof: the head's files changed while they were measured: start anew")
    assert (experiments(project), nothing_left(project)) == ([], True)


@pytest.mark.slow
def test_a_side_whose_processes_die_is_given_up(project: Project, tmp_path: Path) -> None:
    project.write("tests/test_it.py", DISTURBING.replace("and not once.exists()", ""))
    project.commit()
    killed = " ".join(map(str, range(3, 20)))
    told = ab(project, "HEAD", env={"COUNTED": str(tmp_path / "counted"), "KILLED_AT": killed})
    assert told.code == 9
    assert re.match(r"opprof: 4 processes of the (base|head) died; the last: killed by SIGKILL", told.stderr)
    assert told.stdout.count("died and is run again") == 3


def test_a_base_that_does_not_build_is_told_with_its_last_lines(project: Project) -> None:
    told = ab(
        project, "HEAD", "--setup", 'echo building; test $OPPROF_SIDE = head || { echo "no cc"; exit 3; }'
    )
    assert told.code == 9
    first, *others = told.stderr.splitlines()
    assert first.startswith("opprof: the base does not build: `echo building;")
    assert first.endswith("exit code 3:")
    assert others == ["building", "no cc"]
    assert (experiments(project), nothing_left(project)) == ([], True)


def test_a_base_that_cannot_be_collected_is_told_with_its_last_lines(project: Project) -> None:
    project.write("tests/test_it.py", "import nowhere_to_be_found")
    project.commit()
    project.write("tests/test_it.py", TESTS)
    told = ab(project, "HEAD")
    assert told.code == 9
    assert told.stderr.startswith("opprof: pytest cannot collect the tests in ")
    assert "No module named 'nowhere_to_be_found'" in told.stderr
    assert nothing_left(project)


@pytest.mark.slow
def test_a_base_whose_tests_cannot_run_is_told(project: Project) -> None:
    project.replace("tests/test_it.py", "import work", "import work, added")
    project.write("added.py", "")
    project.git("add", "added.py")
    told = ab(project, "HEAD")
    assert told.code == 9
    assert told.stderr.startswith("opprof: the tests cannot be run on the base: exit code 4:")
    assert "No module named 'added'" in told.stderr


def test_without_a_common_test_there_is_nothing_to_compare(project: Project) -> None:
    project.replace("tests/test_it.py", "def test_pipeline", "def test_renamed")
    told = ab(project, "HEAD", "-k", "renamed")
    assert told.code == 9
    sentence = (
        "opprof: there is nothing to compare: the test tests/test_it.py::test_renamed is not in the base"
    )
    assert told.stderr == sentence + "\n"
    project.write("tests/test_more.py", TESTS)
    told = ab(project, "HEAD", "tests/test_more.py")
    assert "there is nothing to compare: none of 2 tests is in the base" in told.stderr


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
def test_a_project_that_stops_at_its_first_failure_does_not_stop_an_experiment(project: Project) -> None:
    project.replace("pytest.ini", "addopts = ", "addopts = -x ")
    project.write("tests/test_a.py", TESTS)
    project.commit()
    project.write("tests/test_a.py", TESTS.replace("work.other", "work.added"))
    project.replace("work.py", "def other", "def added(): pass\n\ndef other")
    told = ab(project, "HEAD", *NOT_BY_TIME, "--processes=8", "--steps=2")
    told.lines.fnmatch_lines(["tests/test_it.py::test_other *PASS*"])
    assert "NEW" not in told.stdout


def test_where_all_tests_fail_in_the_base_nothing_passes(project: Project) -> None:
    project.write(
        "tests/test_it.py", TESTS.replace("work.other()", "work.gone()").replace("work.p", "work.q")
    )
    project.commit()
    done = ab(project, "HEAD", "tests")
    assert done.code == 9
    both = "tests/test_it.py::test_pipeline and 1 more failed in the base"
    assert f"opprof: there is nothing to compare: {both}" in done.stderr


def test_without_a_marked_test_there_is_nothing_to_measure(project: Project) -> None:
    told = ab(project, "HEAD", "tests/test_it.py::test_unmarked")
    assert told.code == 9
    assert "no test with @pytest.mark.profile is among those asked for" in told.stderr


def test_a_base_that_imports_the_heads_code_is_refused(project: Project) -> None:
    project.replace("pytest.ini", "pythonpath = .", f"pythonpath = {project.folder}")
    project.commit()
    told = ab(project, "HEAD")
    assert told.code == 9
    assert told.stderr.startswith(
        f"opprof: the base's tests import work from the head: {project.folder}/work.py"
    )


def in_src(project: Project) -> None:
    """Put the program where pytest does not find it by itself."""
    (project.folder / "src").mkdir()
    project.git("mv", "work.py", "src/work.py")
    project.replace("pytest.ini", "pythonpath = .", "")
    project.write(".gitignore", ".venv\n.opprof\n")
    project.commit()


def installed(project: Project, folder: Path) -> dict[str, str]:
    """Variables with which `work` is imported as installers leave it: a copy of what the project had."""
    info = folder / "work-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "work.py").write_text((project.folder / "src" / "work.py").read_text())
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: work\nVersion: 1.0\n")
    (info / "RECORD").write_text("work.py,,\n")
    (info / "direct_url.json").write_text(json.dumps({"url": project.folder.as_uri(), "dir_info": {}}))
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ["PYTHONPATH"]])}


def test_a_copy_that_is_installed_for_both_sides_is_refused(project: Project, tmp_path: Path) -> None:
    in_src(project)
    told = ab(project, "HEAD", env=installed(project, tmp_path / "site"))
    assert told.code == 9
    assert told.stderr.startswith(
        "opprof: the base's tests import work from a copy of the project that is installed for all commits: "
        f"{tmp_path}/site/work.py. Install it in editable mode, or give each its own environment"
    )


@pytest.mark.slow
def test_each_side_has_an_environment_of_its_own(project: Project, tmp_path: Path) -> None:
    in_src(project)
    project.replace("src/work.py", "range(30_000)", "range(90_000)")
    document = tmp_path / "ab.json"
    told = ab(
        project,
        *("HEAD", "--setup", made_environment("src/work.py"), "--python", OWN_PYTHON, "-k", "other"),
        *("--processes=8", "--steps=3", "--max-time=0", "-o", str(document)),
        env={"VIRTUAL_ENV": str(tmp_path)},
    )
    assert told.code == 1
    judged = read_judged(document)
    assert isinstance(judged, TimeComparison)
    (test,) = judged.tests
    assert test.verdict == "regressed", "each side has run its own code"
    assert nothing_left(project)


@pytest.mark.parametrize(
    ("setup", "python", "sentence"),
    [
        ("true", OWN_PYTHON, "the base has no interpreter {base}/.venv/bin/python: let --setup make it"),
        ("true", "python-nobody-has", "the base has no interpreter python-nobody-has: let --setup make it"),
        ("true", "./tests", "the base's interpreter {base}/tests cannot be run: Permission denied"),
        (
            f"{sys.executable} -m venv --without-pip .venv",
            OWN_PYTHON,
            "the base's interpreter {base}/.venv/bin/python has no pytest-opprof: "
            "let --setup install pytest-opprof==",
        ),
    ],
)
def test_environment_that_cannot_measure_is_told(
    project: Project, setup: str, python: str, sentence: str
) -> None:
    told = ab(project, "HEAD", "--setup", setup, "--python", python)
    assert told.code == 9
    pattern = re.escape(sentence).replace(re.escape("{base}"), re.escape(str(temporary(project))) + "/[^ ]+")
    assert re.match(f"opprof: {pattern}", told.stderr)
    assert (experiments(project), nothing_left(project)) == ([], True)


@pytest.mark.slow
def test_python_path_leads_each_side_to_its_own_code(project: Project) -> None:
    in_src(project)
    path = os.pathsep.join([str(project.folder / "src"), os.environ["PYTHONPATH"]])
    told = ab(project, "HEAD", "--setup", "test $OPPROF_SIDE = base", env={"PYTHONPATH": path})
    assert "the head does not build" in told.stderr, "the base is built first"
    project.replace(
        "tests/test_it.py", "work.other()", "work.other(); assert work.__file__.startswith(os.getcwd())"
    )
    project.replace("tests/test_it.py", "import pytest", "import os, pytest")
    few = ("-k", "other", "--processes=8", "--steps=1", "--max-time=0")
    told = ab(project, "HEAD", *few, "--fail-on=none", env={"PYTHONPATH": path})
    assert (told.code, told.stderr) == (0, "")
    told.lines.fnmatch_lines(["test_other *", "* 8 processes a side"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nothing-such",), "BASE is a branch, tag or commit, and git knows no 'nothing-such' here"),
        (("HEAD", "--processes=7"), "--processes=7: it must be a number from 8 to 1000"),
        (("HEAD", "--steps=0"), "--steps=0: it must be a number from 1 to 1000"),
        (("HEAD", "--max-time=-1"), "--max-time=-1.0: it must be a number from 0 to 3600"),
        (("HEAD", "--timeout=0"), "--timeout=0: it must be a number of seconds above 0"),
        (("HEAD", "--min-effect=some"), "--min-effect"),
        (("HEAD", "--max-noise=some"), "--max-noise"),
        (("HEAD", "--fail-on=slower"), "--fail-on: unknown verdict 'slower'"),
        (
            ("HEAD", "--resume"),
            "--resume: no unfinished experiment measures just this; leave it out to start one. Unfinished: none",
        ),
        (("HEAD", "--resume=one"), "--resume=one: no such experiment in .opprof/ab; unfinished: none"),
    ],
)
def test_what_cannot_be_meant_is_refused(project: Project, arguments: tuple[str, ...], sentence: str) -> None:
    told = ab(project, *arguments)
    assert told.code == 2
    assert told.stderr.startswith(f"opprof: {sentence}")
    assert experiments(project) == []


def test_outside_a_repository_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    told = ab(Project(tmp_path / "bare"), "main", env={"GIT_CEILING_DIRECTORIES": str(tmp_path)})
    assert told.code == 9
    assert "not a git repository" in told.stderr
