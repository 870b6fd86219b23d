"""Tests that fork, leave threads behind, end the session, fill the memory or profile themselves."""

import gzip
import json

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session

from pytest_opprof.results.files import read_run

TESTS = """\
    import os, threading, time
    import pytest
    from pytest_opprof import profile, record_function, range_push, range_pop

    pytestmark = pytest.mark.profile

    def work(times=1):
        for _ in range(times):
            with record_function("work"):
                pass

    def test_forks():
        work()
        child = os.fork()
        if child == 0:
            work(100)
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        work()

    def test_forks_with_a_range_open():
        with record_function("outer"):
            child = os.fork()
            if child == 0:
                try:
                    raise SystemExit  # leaves the range in the child as well
                finally:
                    os._exit(0)
            os.waitpid(child, 0)

    THREADS, LET_GO = [], threading.Event()

    def test_leaves_threads_behind():
        started = threading.Event()

        def run():
            with record_function("left behind"):
                started.set()
                LET_GO.wait(60)

        THREADS.append(threading.Thread(target=run, daemon=True))
        THREADS[-1].start()
        started.wait(60)
        work()

    def test_after_it():
        work()
        LET_GO.set()
        for thread in THREADS:
            thread.join()

    def test_joins_its_threads():
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def test_leaves_a_range_open():
        range_push("open")
        work()

    def test_closes_too_many():
        range_pop()
        work()

    @pytest.mark.profile(warmup=0, active=2)
    def test_profiles_itself():
        with pytest.raises(Exception, match="already"), profile():
            pass
        work()

    @pytest.mark.profile(warmup=1, active=2)
    def test_profiles_itself_unguarded():
        with profile() as profiler:
            work()
        assert len(profiler.events()) == 1

    OPEN = []

    @pytest.mark.profile(warmup=1, active=2)
    def test_leaves_a_profiler_running():
        if not OPEN:
            OPEN.append(profile())
            OPEN[0].start()

    @pytest.mark.profile(warmup=0, active=1)
    def test_after_the_profiler():
        OPEN.pop().stop()

    def test_odd_names():
        for name in ("", "a" * 5000, "new\\nline", "\\x1b[31m", "日本", "\\ud800", 'a"b\\\\c'):
            with record_function(name):
                pass

    def test_deep():
        def down(depth):
            with record_function("deep"):
                if depth:
                    down(depth - 1)
        down(200)
"""


@pytest.fixture(scope="module")
def hostile_project(make_project: MakeProject) -> Project:
    project = make_project("hostile")
    project.write("test_it.py", TESTS)
    return project


@pytest.fixture(scope="module")
def hostile(hostile_project: Project) -> Session:
    return hostile_project.pytest("-v", "--opprof-traces=traces")


def test_every_hostile_test_keeps_its_outcome(hostile: Session) -> None:
    assert set(hostile.outcomes.values()) == {"passed"}
    assert hostile.exit_code == 0


@pytest.mark.parametrize(
    ("name", "ranges"),
    [
        ("test_forks", 2),
        ("test_forks_with_a_range_open", 1),
        ("test_after_it", 1),
        ("test_joins_its_threads", 3),
        ("test_closes_too_many", 1),
        ("test_profiles_itself", 1),
        ("test_odd_names", 7),
        ("test_deep", 201),
    ],
)
def test_hostile_tests_are_counted_right(hostile: Session, name: str, ranges: int) -> None:
    test = hostile.result(name)
    assert test.measurement.reason == ""
    assert (test.totals["ranges.count"].low, test.totals["ranges.count"].high) == (ranges, ranges)


def test_leftover_threads_and_ranges_are_recorded(hostile: Session) -> None:
    left = hostile.result("test_leaves_threads_behind")
    assert left.measurement.reason == ""
    assert {row.name for row in left.ops} >= {"work", "left behind"}
    opened = hostile.result("test_leaves_a_range_open")
    assert opened.measurement.reason == ""
    assert {row.name for row in opened.ops} >= {"work", "open"}
    assert {row.name for row in hostile.result("test_closes_too_many").ops} == {"ProfilerStep*", "work"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (
            "test_profiles_itself_unguarded",
            "the test profiles itself: call 2 raised CaptureBusyError. Leave out its own profiler, or the marker",
        ),
        (
            "test_leaves_a_profiler_running",
            "a profile is being recorded in this process already; stop it before starting another",
        ),
    ],
)
def test_two_profilers_at_once_are_an_error_of_the_measurement(
    hostile: Session, name: str, reason: str
) -> None:
    measurement = hostile.result(name).measurement
    assert (measurement.status, measurement.reason) == ("error", reason)


def test_hostile_names_are_printed_harmlessly(hostile: Session) -> None:
    assert "\x1b[31m" not in hostile.stdout
    hostile.lines.fnmatch_lines([r"*new\nline*"])


def test_every_hostile_trace_loads(hostile_project: Project, hostile: Session) -> None:
    measured = [test for test in hostile.run.tests if test.steps]
    paths = list((hostile_project.folder / "traces").iterdir())
    assert len(paths) == len(measured)
    names = {
        event.get("name")
        for path in paths
        for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    }
    assert {"work", "left behind", "new\nline", "\x1b[31m", "日本", 'a"b\\c'} <= names


@pytest.mark.slow
def test_full_byte_budget_is_reported(project: Project) -> None:
    project.write(
        "test_it.py",
        """\
        import pytest
        from pytest_opprof import record_function

        @pytest.mark.profile(active=1, limits={"busy.count": "<= 5000000"})
        def test_many():
            for _ in range(400_000):
                with record_function("busy"):
                    pass

        @pytest.mark.profile(active=1)
        def test_few():
            with record_function("work"):
                pass
        """,
    )
    session = project.pytest(env={"OPPROF_MAX_BYTES": "4 MiB"})
    many = session.result("test_many")
    assert many.capture.truncated
    assert many.capture.dropped > 0
    # The limit cannot be judged, because a count that is too low proves nothing.
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    assert (
        "INCONCLUSIVE: the limit on busy.count cannot be judged: events were dropped"
        in session.failures["test_many"]
    )
    assert session.outcomes["test_few"] == "passed"
    assert session.result("test_few").capture.is_complete
    session.lines.fnmatch_lines(["1 inconclusive, 1 measured * events dropped, 1 recording cut off"])


def test_invalid_byte_budget_is_reported(project: Project) -> None:
    project.write("test_it.py", "import pytest\n@pytest.mark.profile\ndef test_it(): pass\n")
    session = project.pytest(env={"OPPROF_MAX_BYTES": "much"})
    assert session.exit_code == 0
    assert session.result("test_it").measurement.status == "error"
    assert any(line.startswith("opprof: OPPROF_MAX_BYTES: ") for line in session.told)


ENDS = {
    "first call, exit": "pytest.exit('that is it')",
    "second call, exit": "CALLS.append(0)\n    if len(CALLS) == 2: pytest.exit('that is it')",
    "second call, interrupt": "CALLS.append(0)\n    if len(CALLS) == 2: raise KeyboardInterrupt",
    "second call, exit code": "CALLS.append(0)\n    if len(CALLS) == 2: pytest.exit('so', returncode=7)",
}


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDS)
def test_a_test_may_end_the_session(project: Project, ending: str) -> None:
    project.write(
        "test_it.py",
        f"""\
import pytest
CALLS = []

@pytest.mark.profile
def test_before(): pass

@pytest.mark.profile
def test_ends():
    {ENDS[ending]}

@pytest.mark.profile
def test_never(): pass
""",
    )
    session = project.pytest("--opprof-save=main")
    assert session.exit_code == (7 if "code" in ending else pytest.ExitCode.INTERRUPTED)
    assert [test.node_id for test in session.run.tests] == [
        "test_it.py::test_before",
        "test_it.py::test_ends",
    ]
    measurement = session.result("test_ends").measurement
    assert (measurement.status, measurement.reason) == ("not-run", "the session ended while it ran")
    # pytest prints no summary after an exit code other than its own.
    assert ("opprof: nothing was saved: the session was cut short" in session.told) == (
        session.exit_code != 7
    )
    assert project.stored() == []


@pytest.mark.slow
def test_torch_first_imported_in_a_step_is_inconclusive(project: Project, torch_installed: None) -> None:
    project.write(
        "test_it.py",
        """\
        import pytest

        @pytest.mark.profile(warmup=0, active=2)
        def test_imports():
            import torch
            torch.ones(2).clone()

        @pytest.mark.profile(warmup=1, active=2, limits={"aten::clone.count": 1})
        def test_uses():
            import torch
            torch.ones(2).clone()
        """,
    )
    session = project.pytest()
    measurement = session.result("test_imports").measurement
    assert (measurement.status, measurement.reason) == (
        "inconclusive",
        "torch was first imported in step 0, so its ops were not recorded: import it before the test, or "
        "give the marker a warm-up step",
    )
    assert session.exit_code == 0, "nobody asked for a verdict on it"
    assert session.result("test_uses").totals["ops.count"].low == 6


@pytest.mark.slow
def test_torch_first_imported_in_a_warm_up_is_certified(project: Project, torch_installed: None) -> None:
    """In the certifying process the importing first call could be taken as the measured step; it is not."""
    project.write(
        "test_it.py",
        """\
        import pytest

        @pytest.mark.profile
        def test_it():
            import torch
            torch.ones(2).clone()
        """,
    )
    assert project.pytest("--opprof-save=main").exit_code == 0
    (test,) = read_run(project.stored()[-1]).tests
    assert (test.processes, test.unstable, test.measurement.reason) == (2, (), "")


@pytest.mark.slow
def test_torchs_own_profiler_works_inside(
    project: Project, torch_installed: None, torch_profiler_allowed: None
) -> None:
    project.write(
        "test_it.py",
        """\
        import pytest, torch
        from torch.profiler import ProfilerActivity, profile

        @pytest.mark.profile(warmup=1, active=2)
        def test_it():
            torch.ones(2).clone()
            with profile(activities=[ProfilerActivity.CPU]) as profiler:
                torch.ones(2).clone()
            assert any(event.name == "aten::clone" for event in profiler.events())
            torch.ones(2).clone()
        """,
    )
    session = project.pytest("-W", "default")
    assert session.outcomes == {"test_it": "passed"}
    test = session.result("test_it")
    assert test.measurement.reason == ""
    (clone,) = (row for row in test.ops if row.name == "aten::clone")
    assert clone.count.low >= 2
