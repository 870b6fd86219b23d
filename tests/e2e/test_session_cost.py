"""The cost of a session: no more steps than needed, and no window that pays for the heap."""

from collections import Counter

import pytest
from e2e.conftest import MakeProject
from e2e.project import INI, Project

from pytest_opprof.results.files import read_run

TESTS = """\
    import gc
    import pytest
    from pytest_opprof import record_function

    def work(times=1):
        for _ in range(times):
            with record_function("work"):
                pass

    def noted(name):
        with open("calls", "a") as file:
            print(name, gc.get_freeze_count() > 0, file=file)

    @pytest.mark.profile
    def test_same():
        noted("same")
        work()

    @pytest.mark.profile
    def test_more():
        noted("more")
        work()

    def test_plain():
        noted("plain")
"""


UNCOUNTED = INI + "opprof_instructions = off\n"


@pytest.mark.slow
def test_instructions_take_two_agreeing_calls_then_one_unchanged(make_project: MakeProject) -> None:
    project = make_project("counted")
    project.write("test_it.py", TESTS)
    assert project.pytest("--opprof-save=main").exit_code == 0
    # calls of the schedule plus counted calls: here, and in the confirming process
    assert Counter(line.split()[0] for line in calls(project))["same"] == (4 + 2) + (1 + 1)
    assert project.pytest("--opprof-baseline=main").exit_code == 0
    assert Counter(line.split()[0] for line in calls(project))["same"] == 2 + 1


@pytest.fixture(scope="module")
def saved(make_project: MakeProject) -> Project:
    project = make_project("cost")
    project.write("pytest.ini", UNCOUNTED)
    project.write("test_it.py", TESTS)
    assert project.pytest("--opprof-save=main").exit_code == 0
    return project


def calls(project: Project) -> list[str]:
    """The calls of tests since this was last asked, one line per call."""
    path = project.folder / "calls"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


CONFIRMED = """\
    import functools
    import os
    import pytest
    from pytest_opprof import record_function

    def work(times=1):
        for _ in range(times):
            with record_function("work"):
                pass

    cached = functools.cache(work)

    @pytest.fixture(autouse=True)
    def noted(request):
        def call(name):
            with open("calls", "a") as file:
                print(name, file=file)
        return call

    @pytest.mark.profile
    def test_same(noted):
        noted("same")
        work()

    @pytest.mark.profile
    def test_cached(noted):
        noted("cached")
        cached()
        work()

    @pytest.mark.profile(warmup=3)
    def test_warmed_up(noted):
        noted("warmed_up")
        with open("calls") as file:
            calls = file.read().count("warmed_up")
        work(5 - calls if calls < 4 else 9 - calls if 6 < calls < 10 else 1)

    @pytest.mark.profile
    def test_seeded(noted):
        noted("seeded")
        work(1 + bool(os.environ["PYTHONHASHSEED"]))
"""


@pytest.mark.slow
def test_fresh_process_confirms_at_the_first_equal_call(make_project: MakeProject) -> None:
    project = make_project("confirmed")
    project.write("pytest.ini", UNCOUNTED)
    project.write("test_it.py", CONFIRMED)
    project.pytest("--opprof-save=main", env={"PYTHONHASHSEED": ""})
    # Calls here plus calls in the confirming process, where a differing test runs its whole schedule.
    assert Counter(calls(project)) == {
        "same": 4 + 1,
        "cached": 4 + 2,
        "warmed_up": 6 + 4,
        "seeded": 4 + 2 + 4,
    }
    tests = {test.node_id.partition("::test_")[2]: test for test in read_run(project.stored()[-1]).tests}
    assert {test.processes for test in tests.values()} == {2}
    assert {test.steps for test in tests.values()} == {3}
    assert {name: test.unstable for name, test in tests.items() if test.unstable} == {
        "seeded": ("ranges.count", "work.count")
    }


@pytest.fixture
def project(saved: Project) -> Project:
    calls(saved)
    return saved


def test_unchanged_tests_take_one_active_step(project: Project) -> None:
    session = project.pytest("--opprof-baseline=main")
    assert session.exit_code == 0
    assert [line.split()[0] for line in calls(project)] == ["same"] * 2 + ["more"] * 2 + ["plain"]
    told = session.result("test_same")
    assert (told.steps, told.schedule and told.schedule.active) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "option", ["--opprof-save=other", "--opprof-traces=traces", "--opprof-timed-steps=9"]
)
def test_saved_or_timed_tests_take_all_steps(project: Project, option: str) -> None:
    timed = option.startswith("--opprof-timed")
    session = project.pytest(
        "--opprof-baseline=main",
        "--opprof-save-processes=1",
        "--opprof-timed-max-time=0",
        option,
        "-k",
        "same",
    )
    assert session.exit_code == 0
    assert len(calls(project)) == 4 + 9 * timed


@pytest.mark.slow
def test_the_process_that_confirms_leaves_no_comparison_behind(make_project: MakeProject) -> None:
    project = make_project("saved")
    project.write("test_it.py", TESTS)
    project.pytest("--opprof-save=main")
    accepted = project.python("-m", "pytest_opprof.cli.main", "accept", "--all", "--reason=none")
    assert "nothing was compared here yet" in accepted.stderr


@pytest.mark.slow
def test_an_uncertified_baseline_takes_all_steps(project: Project) -> None:
    project.pytest("--opprof-save=alone", "--opprof-save-processes=1", "-k", "same")
    calls(project)
    assert project.pytest("--opprof-baseline=alone", "-k", "same").exit_code == 0
    assert len(calls(project)) == 4


@pytest.mark.slow
def test_changed_test_is_measured_by_its_schedule_and_again(project: Project) -> None:
    project.replace("test_it.py", 'noted("more")\n    work()', 'noted("more")\n    work(2)')
    try:
        session = project.pytest("--opprof-baseline=main")
    finally:
        project.replace("test_it.py", "work(2)", "work()")
    assert session.exit_code == 1
    assert session.failures.keys() == {"test_more"}
    names = [line.split()[0] for line in calls(project)]
    # One active step, the whole schedule, and both second looks before a failure: here and in a fresh
    # process.
    assert names.count("same") == 2
    assert names.count("more") >= 2 + 4 + 4
    told = session.result("test_more")
    assert (told.steps, told.schedule and told.schedule.active) == (3, 3)


def test_a_failure_in_a_later_call_names_it(project: Project) -> None:
    source = project.folder / "test_it.py"
    kept = source.read_text(encoding="utf-8")
    source.write_text(
        f"{kept}\nCALLS = []\n\n@pytest.mark.profile\ndef test_thrice():\n"
        "    CALLS.append(0)\n    work()\n    assert len(CALLS) < 4\n",
        encoding="utf-8",
    )
    session = project.pytest("--opprof-baseline=main", "-k", "thrice")
    source.write_text(kept, encoding="utf-8")
    assert any("call 4 raised AssertionError" in line for line in session.lines.lines)


def test_the_heap_rests_while_marked_tests_run_and_not_else(project: Project) -> None:
    project.pytest("-k", "same or plain")
    assert calls(project) == ["same True"] * 4 + ["plain False"]


def test_a_heap_that_the_project_froze_stays_frozen(project: Project) -> None:
    conftest = project.write("conftest.py", "import gc\ngc.freeze()\n")
    project.pytest("-k", "same or plain")
    conftest.unlink()
    assert calls(project) == ["same True"] * 4 + ["plain True"]
