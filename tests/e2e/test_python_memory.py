"""The memory of tests without torch: that of their calls only, equal in each step, and gated."""

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session

TESTS = """\
    import unittest
    import pytest

    MORE = 0
    pytestmark = pytest.mark.profile(profile_memory=True, active=4)

    def work():
        for _ in range(1 + MORE):
            rows = [None] * 1000

    @pytest.fixture
    def given():
        return 1

    def test_nothing():
        pass

    def test_plain():
        work()

    def test_with_fixtures(given, tmp_path):
        work()

    @pytest.mark.asyncio
    async def test_async():
        work()

    class TestCase(unittest.TestCase):
        def test_unittest(self):
            work()

    class TestAsyncCase(unittest.IsolatedAsyncioTestCase):
        async def test_async_unittest(self):
            work()

    def test_stepping(opprof):
        for _ in range(5):
            work()
            opprof.step()

    def test_benchmarked(benchmark):
        benchmark(work)
"""
WORKING = [
    *("test_plain", "test_with_fixtures", "test_async", "test_unittest", "test_async_unittest"),
    *("test_stepping", "test_benchmarked"),
]
PLUGINS = ("asyncio", "benchmark")


@pytest.fixture(scope="module", params=["memory-python", "memory-malloc"])
def sessions(
    request: pytest.FixtureRequest, make_project: MakeProject
) -> tuple[str, Session, Session, Session]:
    """The source, a save, the same again, and a session with one more list."""
    for plugin in ("pytest_asyncio", "pytest_benchmark"):
        pytest.importorskip(plugin)
    project: Project = make_project(f"python {request.param}")
    project.write("test_it.py", TESTS)
    capture = f"--opprof-capture=ranges,ops,{request.param}"
    saved = project.pytest("--opprof-save=main", capture, plugins=PLUGINS)
    same = project.pytest("--opprof-baseline=main", capture, plugins=PLUGINS)
    project.replace("test_it.py", "MORE = 0", "MORE = 1")
    return request.param, saved, same, project.pytest("--opprof-baseline=main", capture, plugins=PLUGINS)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKING)
def test_each_step_has_the_memory_of_its_call(
    sessions: tuple[str, Session, Session, Session], name: str
) -> None:
    source, saved, _, more = sessions
    before, after = saved.result(name), more.result(name)
    assert source in before.sources
    for total in ("cpu_memory.allocated", "cpu_memory.allocations", "cpu_memory.peak"):
        assert before.totals[total].is_constant, before.totals[total]
    assert before.unstable == ()
    taken = {total: after.totals[total].low - before.totals[total].low for total in before.totals}
    assert taken["cpu_memory.allocations"] <= 3  # the list, and the numbers that count it
    assert 8000 <= taken["cpu_memory.allocated"] <= 8100


@pytest.mark.slow
def test_empty_call_takes_no_memory(sessions: tuple[str, Session, Session, Session]) -> None:
    _, saved, _, _ = sessions
    assert saved.result("test_nothing").totals["cpu_memory.allocations"].high == 0


@pytest.mark.slow
def test_more_python_memory_fails(sessions: tuple[str, Session, Session, Session]) -> None:
    _, saved, same, more = sessions
    assert saved.exit_code == 0
    assert same.exit_code == 0
    same.lines.fnmatch_lines(["8 passed * nothing dropped"])
    assert more.exit_code == 1
    assert more.outcomes == {"test_nothing": "passed", **dict.fromkeys(WORKING, "failure")}


@pytest.mark.slow
@pytest.mark.parametrize("source", ["memory-python", "memory-malloc"])
def test_session_option_records_memory_of_all_tests(project: Project, source: str) -> None:
    """As with Python calls, the marker need not ask for it."""
    project.write(
        "test_it.py",
        """\
        import pytest

        @pytest.mark.profile
        def test_it():
            rows = [None] * 1000
        """,
    )
    capture = f"--opprof-capture=ranges,ops,{source}"
    saved = project.pytest("--opprof-save=main", capture)
    assert source in saved.result("test_it").sources
    project.replace("test_it.py", "1000", "2000")
    assert project.pytest("--opprof-baseline=main", capture).exit_code == 1
