"""``@pytest.mark.profile``: its arguments, their effect, and refusals."""

import re

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session

from pytest_opprof.results.names import MAX_TESTS

CONFTEST = """\
    import collections, json, pytest
    CALLS = collections.Counter()

    @pytest.fixture
    def called(request):
        def count():
            CALLS[request.node.name] += 1
        return count

    def pytest_unconfigure(config):
        (config.rootpath / "calls.json").write_text(json.dumps(CALLS))
"""

SCHEDULES = """\
    import pytest
    from pytest_opprof import ProfilerAction, record_function, schedule

    def own(step):
        return [ProfilerAction.NONE, ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE][step % 3]

    @pytest.mark.profile
    def test_bare(called):
        called()

    @pytest.mark.profile(wait=2, warmup=0, active=4)
    def test_wait(called):
        called()

    @pytest.mark.profile(wait=1, warmup=1, active=2, repeat=3)
    def test_repeat(called):
        called()

    @pytest.mark.profile(skip_first=5, active=1)
    def test_skip_first(called):
        called()

    @pytest.mark.profile(wait=2, warmup=1, active=1, repeat=2, skip_first_wait=1)
    def test_skip_first_wait(called):
        called()

    @pytest.mark.profile(warmup=0, active=1)
    def test_once(called):
        called()

    @pytest.mark.profile(schedule=own)
    def test_own_schedule(called):
        called()

    @pytest.mark.profile(schedule=schedule(wait=1, warmup=1, active=3))
    def test_made_schedule(called):
        called()

    @pytest.mark.profile(schedule=lambda step: ProfilerAction(2 if step == 0 else 3 if step == 2 else 0))
    def test_odd_schedule(called):
        called()

    @pytest.mark.profile(active=7)
    class TestMarked:
        @pytest.mark.profile(active=2)
        def test_closest_marker(self, called):
            called()

    @pytest.mark.profile(["cpu", "xpu"])
    def test_more_than_there_is(called):
        called()

    @pytest.mark.profile(activities=["xpu"])
    def test_without_cpu(called):
        with record_function("mine"):
            called()
"""


@pytest.fixture(scope="module")
def scheduled(make_project: MakeProject) -> tuple[Project, Session]:
    project = make_project("schedules")
    project.write("conftest.py", CONFTEST)
    project.write("test_it.py", SCHEDULES)
    return project, project.pytest("--opprof-instructions=off")  # for which the test is called again


@pytest.mark.parametrize(
    ("name", "calls", "steps"),
    [
        ("test_bare", 4, 3),
        ("test_wait", 6, 4),
        ("test_repeat", 12, 6),
        ("test_skip_first", 7, 1),
        ("test_skip_first_wait", 6, 2),
        ("test_once", 1, 1),
        ("test_own_schedule", 3, 2),
        ("test_made_schedule", 5, 3),
        ("test_odd_schedule", 3, 2),
        ("test_closest_marker", 3, 2),
    ],
)
def test_a_test_is_called_as_its_schedule_says(
    scheduled: tuple[Project, Session], name: str, calls: int, steps: int
) -> None:
    project, session = scheduled
    counted = (project.folder / "calls.json").read_text()
    assert f'"{name}": {calls}' in counted
    assert session.outcomes[name] == "passed"
    assert session.result(name).steps == steps


def test_unsupported_activities_are_reported(scheduled: tuple[Project, Session]) -> None:
    _, session = scheduled
    assert [line for line in session.told if "not supported" in line] == [
        "opprof: activity xpu: not supported, so it was not recorded "
        "(asked for by test_more_than_there_is and 1 more)",
    ]
    assert session.result("test_more_than_there_is").activities == ("cpu", "xpu")


def test_without_the_cpu_only_ranges_are_seen(scheduled: tuple[Project, Session]) -> None:
    _, session = scheduled
    test = session.result("test_without_cpu")
    assert test.sources == ("ranges",)
    assert test.totals["ranges.count"].low == 1


# The marker, and its error.
REFUSED = {
    "warmpu=1": "unknown argument 'warmpu' (did you mean 'warmup'?)",
    "frobnicate=1": "unknown argument 'frobnicate' (there are: activities, schedule, ",
    "['cpu'], ['cpu']": "pass all arguments except `activities` by name",
    "['cpu'], activities=['cpu']": "pass all arguments except `activities` by name",
    "active='3'": "active must be a whole number, not '3'",
    "wait=True": "wait must be a whole number, not True",
    "active=0": "Invalid profiler schedule arguments",
    "warmup=-1": "Invalid profiler schedule arguments",
    "schedule=3": "`schedule` is a function from a step's number to a ProfilerAction",
    "schedule=print": "the schedule answered None for step 0",
    "schedule=lambda step: A.NONE": "its schedule returns no RECORD_AND_SAVE in 10000 steps",
    "schedule=lambda step: A.NONE, active=1": "`schedule` and `active` cannot both be given",
    "activities=['gpu']": "unknown activity 'gpu'; there are cpu, cuda",
    "activities=[]": "activities is empty",
    "record_shapes=1": "record_shapes must be True or False, not 1",
    "with_stack='yes'": "with_stack must be True or False, 'python', 'cpp' or 'all', not 'yes'",
    "trace='dir'": "trace must be True or False, not 'dir'",
    "limits={'aten::item.cout': 0}": "unknown metric 'aten::item.cout' in limits of ",
    "limits={'ops.coutn': 0}": "(did you mean 'ops.count'?)",
    "limits={'ops.count': 'many'}": "ops.count",
    "limits=['no_sink']": "unknown preset 'no_sink' in limits of",
    "limits=[3]": "3 is neither a preset's name nor a dict of limits",
    "limits=3": "limits are a dict, a preset's name, or a list of both, not 3",
    "limits=0": "limits are a dict, a preset's name, or a list of both, not 0",
    "gates=[]": "gates must be a dict from a metric to a rule, not []",
    "gates={'ops.count': 'strict'}": "'strict' is not a rule: it is exact, off, advisory, or like '2%'",
    "gates={'cpu_memory.peek': 'exact'}": "(did you mean 'cpu_memory.peak'?)",
}


def test_all_refused_markers_are_reported_at_once(project: Project) -> None:
    tests = "".join(
        f"@pytest.mark.profile({marker})\ndef test_{i}(): pass\n" for i, marker in enumerate(REFUSED)
    )
    project.write(
        "test_it.py",
        f"import pytest\nfrom pytest_opprof import ProfilerAction as A\n{tests}",
    )
    session = project.pytest()
    assert session.exit_code == pytest.ExitCode.USAGE_ERROR
    assert "test_it.py ." not in session.stdout
    for i, (marker, complaint) in enumerate(REFUSED.items()):
        (told,) = (line for line in session.told if re.search(rf"test_it\.py::test_{i}\b", line))
        assert complaint in told, marker
    assert len(session.told) == len(REFUSED)


@pytest.mark.slow
def test_only_the_hypothesis_test_fails(project: Project) -> None:
    project.write(
        "test_it.py",
        """\
        import pytest
        from hypothesis import given
        from hypothesis.strategies import integers

        pytestmark = pytest.mark.profile

        @given(integers())
        def test_property(n): pass

        def test_plain(): pass
        """,
    )
    unasked = project.pytest()
    assert unasked.exit_code == 0
    session = project.pytest("--opprof-save=main")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert session.outcomes == {"test_property": "passed", "test_plain": "passed"}
    assert session.result("test_plain").is_usable
    assert session.result("test_property").measurement.status == "error"
    assert session.banner.startswith("test_it.py::test_property: a hypothesis test draws new examples")


def test_marker_of_a_deselected_test_is_ignored(project: Project) -> None:
    project.write(
        "test_it.py",
        """\
        import pytest

        @pytest.mark.profile(warmpu=1)
        def test_mistyped(): pass

        @pytest.mark.profile
        def test_right(): pass
        """,
    )
    assert project.pytest("-k", "right").outcomes == {"test_right": "passed"}
    assert project.pytest("--opprof=off").outcomes == {"test_mistyped": "passed", "test_right": "passed"}


def test_a_marker_added_by_a_conftest_counts(project: Project) -> None:
    project.write(
        "conftest.py",
        """\
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                item.add_marker(pytest.mark.profile(active=2))
        """,
    )
    project.write("test_it.py", "def test_plain(): pass")
    assert project.pytest().result("test_plain").steps == 2


def test_only_functions_can_be_profiled(project: Project) -> None:
    project.write("conftest.py", "def pytest_collection_modifyitems(items): items[0].add_marker('profile')")
    project.write("test_it.txt", ">>> 1\n1\n")
    session = project.pytest("--opprof-save=main")
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert session.banner == (
        "test_it.txt::test_it.txt: only test functions and methods can be profiled, and this is neither"
    )


@pytest.mark.slow
def test_unknown_torch_ops_are_refused_with_the_nearest(project: Project, torch_installed: None) -> None:
    project.write(
        "test_it.py",
        """\
        import pytest, torch

        @pytest.mark.profile(limits={"aten::itme.count": 0})
        def test_limit(): pass

        @pytest.mark.profile(gates={"aten::clnoe.count": "exact"})
        def test_gate(): pass
        """,
    )
    session = project.pytest()
    assert session.exit_code == pytest.ExitCode.USAGE_ERROR
    assert session.told == [
        "ERROR: opprof: unknown metric 'aten::itme.count' in limits of test_it.py::test_limit "
        "(did you mean 'aten::item.count'?)",
        "ERROR: opprof: unknown metric 'aten::clnoe.count' in gates of test_it.py::test_gate "
        "(did you mean 'aten::clone.count'?)",
    ]
    gate = project.pytest("--opprof-gate=aten::clnoe.count=exact", "--deselect=test_it.py")
    assert gate.exit_code == pytest.ExitCode.USAGE_ERROR
    assert gate.told == [
        (
            "ERROR: opprof: unknown metric 'aten::clnoe.count' in --opprof-gate "
            "(did you mean 'aten::clone.count'?)"
        )
    ]


@pytest.mark.slow
def test_more_tests_than_a_file_holds_are_refused_before_they_run(project: Project) -> None:
    tests = f"""
        import pytest

        @pytest.mark.profile
        @pytest.mark.parametrize("number", range({MAX_TESTS + 1}))
        def test_it(number):
            pass
    """
    project.write("test_it.py", tests)
    session = project.pytest("-q", "--opprof-save=main", writes_run=False)
    assert session.exit_code == pytest.ExitCode.USAGE_ERROR
    assert "a run has at most 20000 marked tests, not 20001. Profile fewer tests, or" in session.stderr
