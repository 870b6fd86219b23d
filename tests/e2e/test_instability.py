"""Counts that flip: from process to process, from step to step, from one measurement to the next."""

from dataclasses import dataclass

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session

from pytest_opprof.results.files import read_run
from pytest_opprof.results.run import Run

# Which process of the project this is, counted from 1; and the order in which each ran its tests.
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
    """A save by two processes, and one comparison for each test, as all share a list of calls."""

    project: Project
    sessions: dict[str, Session]

    def section(self, name: str) -> pytest.LineMatcher:
        """What a failed test tells."""
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


def test_two_processes_may_agree_on_what_a_third_does_not(story: Story) -> None:
    base = stored(story.project).test("test_it.py::test_by_process")
    assert base is not None
    assert (base.processes, base.unstable) == (2, ())
    # The fourth process, which looks at it before it fails, says what the first two said.
    story.section("test_by_process").fnmatch_lines([f"INCONCLUSIVE: *{MOODY}*"])


@pytest.mark.slow
def test_more_processes_take_turns_with_the_order_and_find_it_out(project: Project) -> None:
    made(project)
    saved = project.pytest("--opprof-save=main", "--opprof-save-processes=4")
    run = stored(project)
    assert {test.processes for test in run.tests} == {4}
    assert {test.node_id.partition("::")[2]: test.unstable for test in run.tests if test.unstable} == {
        "test_by_process": ("ranges.count", "work.count")
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
    sentence = "not certified: --opprof-save-processes=1 leaves nobody to confirm what this process measured"
    assert f"opprof: {sentence}" in saved.told
    run = stored(project)
    assert run.notes == (sentence,)
    assert [test.processes for test in run.tests] == [1]


def test_a_count_that_flips_from_step_to_step_is_inconclusive(story: Story) -> None:
    story.section("test_by_step").fnmatch_lines(
        [
            "INCONCLUSIVE: ranges, total: became nondeterministic: 1 before, 2 to 3 from step to step "
            "(more in every step)"
        ]
    )


def test_a_count_that_flips_in_the_second_look_is_demoted_and_shown(story: Story) -> None:
    assert story.sessions["test_by_measurement"].result("test_by_measurement").unstable == (
        "ranges.count",
        "work.count",
    )
    story.section("test_by_measurement").fnmatch_lines([f"INCONCLUSIVE: ranges, total: {MOODY}"])


def test_beside_a_demoted_count_another_still_fails(story: Story) -> None:
    told = story.section("test_both_gated")
    told.fnmatch_lines(["REGRESSED: 1 more call of sure in each step *", "sure * 1 * 2 * +1 *"])
    told.fnmatch_lines(["moody * 1 * 1 to 2 * inconclusive: became*"])


def test_a_demoted_count_that_is_no_gate_is_advisory(story: Story) -> None:
    told = story.section("test_one_of_two")
    told.fnmatch_lines(["REGRESSED: 1 more call of sure in each step *"])
    assert f"moody: {MOODY}: not judged" in " ".join(line.strip() for line in told.lines)
