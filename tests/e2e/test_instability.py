"""Counts that vary: between processes, between steps, between measurements."""

from dataclasses import dataclass

import pytest
from e2e.conftest import MakeProject
from e2e.project import INI, Project, Session

from pytest_opprof.results.files import read_run
from pytest_opprof.results.run import Run

# Counts the project's processes from 1, and logs the order in which each ran its tests.
CONFTEST = """\
    import pytest

    def pytest_configure(config):
        path = config.rootpath / "processes"
        config.process = int(path.read_text()) + 1 if path.exists() else 1
        path.write_text(str(config.process))

    def pytest_runtest_setup(item):
        with open(item.config.rootpath / f"order-{item.config.process}", "a") as file:
            print(item.name, file=file)

    @pytest.fixture
    def process(request):
        return request.config.process
"""

TESTS = """\
    import pytest
    from pytest_opprof import record_function

    pytestmark = pytest.mark.profile(warmup=1, active=2)
    CALLS = []

    def work(times=1, name="work"):
        for _ in range(times):
            with record_function(name):
                pass

    def is_first_look():
        CALLS.append(0)
        return len(CALLS) <= 3

    def test_same(): work()
    def test_by_process(process): work(2 if process == 3 else 1)
    def test_by_step(): work()
    def test_by_measurement(): work()

    @pytest.mark.profile(warmup=1, active=2, gates={"sure.count": "exact", "ranges.count": "off"})
    def test_one_of_two(): work(1, "sure"); work(1, "moody")

    @pytest.mark.profile(
        warmup=1, active=2, gates={"sure.count": "exact", "moody.count": "exact", "ranges.count": "off"}
    )
    def test_both_gated(): work(1, "sure"); work(1, "moody")
"""
CHANGES = {
    "def test_by_step(): work()": "def test_by_step(): CALLS.append(0); work(len(CALLS))",
    "def test_by_measurement(): work()": "def test_by_measurement(): work(1 + is_first_look())",
    'def test_one_of_two(): work(1, "sure"); work(1, "moody")': (
        'def test_one_of_two(): work(2, "sure"); work(1 + is_first_look(), "moody")'
    ),
    'def test_both_gated(): work(1, "sure"); work(1, "moody")': (
        'def test_both_gated(): work(2, "sure"); work(1 + is_first_look(), "moody")'
    ),
}
MOODY = "became nondeterministic: 1 before, 1 to 2 from one measurement to the next"


def stored(project: Project) -> Run:
    return read_run(project.stored()[-1])


def made(project: Project) -> Project:
    project.write("conftest.py", CONFTEST)
    project.write("test_it.py", TESTS)
    return project


@dataclass(frozen=True, kw_only=True)
class Story:
    """A save by two processes, and one comparison for each test, because all share a list of calls."""

    project: Project
    sessions: dict[str, Session]

    def section(self, name: str) -> pytest.LineMatcher:
        """The section of a failed test."""
        return pytest.LineMatcher(self.sessions[name].failures[name].splitlines())


@pytest.fixture(scope="module")
def story(make_project: MakeProject) -> Story:
    project = made(make_project("instability"))
    saved = project.pytest("--opprof-save=main")
    assert not any("not certified" in line for line in saved.told)
    for before, after in CHANGES.items():
        project.replace("test_it.py", before, after)
    names = ("test_by_process", "test_by_step", "test_by_measurement", "test_one_of_two", "test_both_gated")
    sessions = {name: project.pytest("--opprof-baseline=main", "-k", name) for name in names}
    return Story(project=project, sessions=sessions)


@pytest.mark.slow
def test_two_processes_may_agree_against_a_third(story: Story) -> None:
    base = stored(story.project).test("test_it.py::test_by_process")
    assert base is not None
    assert (base.processes, base.unstable) == (2, ())
    # The fourth process, the second look before a failure, agrees with the first two.
    story.section("test_by_process").fnmatch_lines([f"INCONCLUSIVE: *{MOODY}*"])


@pytest.mark.slow
def test_four_processes_alternate_order_and_find_instability(project: Project) -> None:
    made(project)
    saved = project.pytest("--opprof-save=main", "--opprof-save-processes=4")
    run = stored(project)
    assert {test.processes for test in run.tests} == {4}
    assert {test.node_id.partition("::")[2]: test.unstable for test in run.tests if test.unstable} == {
        "test_by_process": ("ranges.count", "python.instructions", "work.count")
    }
    orders = [(project.folder / f"order-{number}").read_text().splitlines() for number in (1, 2, 3, 4)]
    assert orders[0] == orders[2] == orders[1][::-1] == orders[3][::-1]
    assert saved.exit_code == 0
    project.replace("test_it.py", "def test_same(): work()", "def test_same(): work(2)")
    session = project.pytest("--opprof-baseline=main", "-k", "same or by_process")
    assert "certified in 4 processes" in session.failures["test_same"]
    assert session.outcomes["test_by_process"] == "passed"


def test_one_process_alone_certifies_nothing_and_says_so(project: Project) -> None:
    project.write("test_it.py", "import pytest\n@pytest.mark.profile\ndef test_it(): pass\n")
    project.replace("pytest.ini", "[pytest]", "[pytest]\nopprof_save_processes = 1")
    saved = project.pytest("--opprof-save=main")
    sentence = "not certified: --opprof-save-processes=1 starts no process to confirm what this one measured"
    assert f"opprof: {sentence}" in saved.told
    run = stored(project)
    assert run.notes == (sentence,)
    assert [test.processes for test in run.tests] == [1]


@pytest.mark.slow
def test_a_count_that_grows_with_each_call_is_inconclusive(story: Story) -> None:
    story.section("test_by_step").fnmatch_lines(
        [
            "INCONCLUSIVE: ranges, total: became nondeterministic: 1 before, 2 to 5 from one measurement to "
            "the next (more in every"
        ]
    )


@pytest.mark.slow
def test_count_flipping_in_the_second_look_is_demoted(story: Story) -> None:
    assert story.sessions["test_by_measurement"].result("test_by_measurement").unstable == (
        "ranges.count",
        "work.count",
    )
    story.section("test_by_measurement").fnmatch_lines([f"INCONCLUSIVE: ranges, total: {MOODY}"])


@pytest.mark.slow
def test_beside_a_demoted_count_another_still_fails(story: Story) -> None:
    told = story.section("test_both_gated")
    told.fnmatch_lines(["REGRESSED: 1 more call of sure in each step *", "  sure * 1 -> 2 * +1*"])
    told.fnmatch_lines(["moody * 1 * 1 to 2 * inconclusive: became*"])


@pytest.mark.slow
def test_demoted_count_without_a_gate_is_advisory(story: Story) -> None:
    told = story.section("test_one_of_two")
    told.fnmatch_lines(["REGRESSED: 1 more call of sure in each step *"])
    assert f"moody: {MOODY}: not gated" in " ".join(line.strip() for line in told.lines)


VARYING = """\
    import pytest
    from pytest_opprof import record_function

    pytestmark = pytest.mark.profile(warmup=1, active=3)
    CALLS = []

    def work(times):
        for _ in range(times):
            with record_function("work"):
                pass

    def turns():
        CALLS.append(0)
        return len(CALLS) % 3

    def test_same(): work(1)
    def test_by_step(): work(1 + turns())
    def test_by_process(process): work(1 + 2 * (process % 2))
"""


@pytest.fixture
def varying(project: Project) -> Project:
    """A baseline of a count of 1 to 3 that depends on the step, and of one of 3 or 1 by process."""
    project.write("conftest.py", CONFTEST)
    project.write("test_it.py", VARYING)
    saved = project.pytest("--opprof-save=main")
    assert (
        "opprof: 2 tests have counts that vary, so gates only hold them to their range: "
        "test_it.py::test_by_step (ranges.count 1 to 3), test_it.py::test_by_process (ranges.count 1 to 3)"
    ) in saved.told
    return project


@pytest.mark.slow
def test_rise_above_a_varying_range_fails(varying: Project) -> None:
    varying.replace("test_it.py", "work(1 + turns())", "turns(); work(100)")
    varying.replace("test_it.py", "work(1 + 2 * (process % 2))", "work(100)")
    session = varying.pytest("--opprof-baseline=main")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    for name in ("test_by_step", "test_by_process"):
        told = pytest.LineMatcher(session.failures[name].splitlines())
        told.fnmatch_lines(
            [
                "REGRESSED: 97 more ranges in each step than main ever had (it varies: 1 to 3; now 100)",
                "  work *1 to 3 -> 100 * +97*",
                "all ranges *1 to 3 -> 100 * +97*",
            ]
        )
    accept = ("-m", "pytest_opprof.cli.main", "accept", "test_it.py::test_by_step", "--reason", "so")
    assert varying.python(*accept).returncode == 0
    assert varying.pytest("--opprof-baseline=main", "-k", "by_step").exit_code == 0


@pytest.mark.slow
def test_count_beyond_the_processes_range_is_reported(
    varying: Project,
) -> None:
    session = varying.pytest("--opprof-baseline=main")
    assert session.exit_code == 0
    session.lines.fnmatch_lines(["1 passed, 2 measured * nothing dropped"])
    # Another process may differ from these two as much as they differ from each other.
    varying.replace("test_it.py", "work(1 + 2 * (process % 2))", "work(5)")
    session = varying.pytest("--opprof-baseline=main")
    assert session.exit_code == 0
    session.lines.fnmatch_lines(["1 passed, 2 measured * nothing dropped"])
    note = "not gated, because the baseline varies between processes: test_it.py::test_by_process (ranges, total: 1 to 3; now 5)"
    assert f"opprof: {note}" in session.told


@pytest.mark.slow
def test_where_no_gate_could_be_judged_nothing_passes(project: Project) -> None:
    project.write("conftest.py", CONFTEST)
    project.write("test_it.py", VARYING)
    project.replace("test_it.py", "def test_same(): work(1)", "def test_empty(): pass")
    marker = '@pytest.mark.profile(warmup=1, active=3, gates={"ranges.count": "off"})\n'
    project.replace("test_it.py", "def test_by_step", f"{marker}def test_off(): work(1)\n\ndef test_by_step")
    project.write("pytest.ini", INI + "opprof_instructions = off\n")  # every test has them
    project.pytest("--opprof-save=main")
    session = project.pytest("--opprof-baseline=main", "-v")
    assert session.exit_code == 0
    session.lines.fnmatch_lines_random(
        [
            "test_empty * PASS *",
            "test_off * measured *",
            "test_by_step * measured *",
            "1 passed, 3 measured *",
        ]
    )
