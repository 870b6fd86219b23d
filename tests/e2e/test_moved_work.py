"""Work that moves to an older thread is not gone, and is not an improvement."""

import pytest
from e2e.project import Project

POOLED = """\
    from concurrent.futures import ThreadPoolExecutor

    import pytest
    from pytest_opprof import record_function

    POOL = ThreadPoolExecutor(1)
    POOL.submit(int).result()  # its thread is there before any step

    def work(times, name="work"):
        for _ in range(times):
            with record_function(name):
                pass

    @pytest.mark.profile(warmup=1, active=3)
    def test_moved(): work(1, "step"); work(5)

    @pytest.mark.profile(warmup=1, active=3)
    def test_better(): work(5); POOL.submit(work, 2).result()

    @pytest.mark.profile(warmup=1, active=3)
    def test_worse(): work(5); POOL.submit(work, 2).result()
"""


@pytest.fixture
def pooled(project: Project) -> Project:
    project.write("test_it.py", POOLED)
    project.pytest("--opprof-save=main")
    return project


@pytest.mark.slow
def test_work_moved_to_the_background_is_not_an_improvement(pooled: Project) -> None:
    pooled.replace("test_it.py", 'work(1, "step"); work(5)', 'work(1, "step"); POOL.submit(work, 5).result()')
    pooled.replace("test_it.py", "def test_better(): work(5)", "def test_better(): work(4)")
    session = pooled.pytest("--opprof-baseline=main")
    assert session.exit_code == 0
    session.lines.fnmatch_lines_random(
        [
            "1 changed: test_moved (work (background) new, +5, work -5)",
            "1 improved: test_better (work -1)",
            "1 changed, 1 improved, 1 passed * nothing dropped",
        ]
    )
    compare = ("-m", "pytest_opprof.cli.main", "compare", "main", str(session.document))
    told = " ".join(pooled.python(*compare).stdout.split())
    assert "CHANGED: 5 fewer ranges in each step than main, and more in the background (5 of work)" in told


@pytest.mark.slow
def test_rows_of_the_background_are_shown_beside_a_failure(pooled: Project) -> None:
    pooled.replace(
        "test_it.py",
        "def test_worse(): work(5); POOL.submit(work, 2)",
        "def test_worse(): work(6); POOL.submit(work, 9)",
    )
    session = pooled.pytest("--opprof-baseline=main")
    told = pytest.LineMatcher(session.failures["test_worse"].splitlines())
    told.fnmatch_lines(
        [
            "REGRESSED: 1 more range in each step than main *",
            "  work * 5 -> 6 * +1*",
            "work (background) * count * 2 * 9 * +7 *",
            "all ranges * 5 -> 6 * +1",
        ]
    )


LIMITED = """\
    from concurrent.futures import ThreadPoolExecutor

    import pytest
    from pytest_opprof import record_function

    POOL = ThreadPoolExecutor(1)
    POOL.submit(int).result()  # its thread is there before any step

    def work(times):
        for _ in range(times):
            with record_function("work"):
                pass

    @pytest.mark.profile(limits={"work.count": 5})
    def test_op(): POOL.submit(work, MANY).result()

    @pytest.mark.profile(limits={"ranges.count": 6})
    def test_total(): work(1); POOL.submit(work, MANY).result()

    @pytest.mark.profile(limits={"work.count": ">= 1"})
    def test_least(): POOL.submit(work, MANY).result()

    @pytest.mark.profile(limits={"work.count": 0})
    def test_own(): work(1); POOL.submit(work, MANY).result()
"""


def test_a_limit_cannot_be_passed_by_moving_work_to_a_pool(project: Project) -> None:
    project.write("test_it.py", LIMITED.replace("MANY", "6"))
    session = project.pytest()
    assert session.exit_code == pytest.ExitCode.TESTS_FAILED
    cannot = "the limit on {} cannot be judged: {} in each step, and 6 more in the background"
    for test, path, own in (
        ("test_op", "work.count", 0),
        ("test_total", "ranges.count", 1),
        ("test_least", "work.count", 0),
    ):
        assert session.failures[test].startswith(f"INCONCLUSIVE: {cannot.format(path, own)}")
    assert session.failures["test_own"].startswith(
        "REGRESSED: work.count is 1 in each step, but the limit is <= 0"
    )


def test_work_in_a_pool_that_keeps_the_limit_passes(project: Project) -> None:
    project.write(
        "test_it.py", LIMITED.replace("MANY", "5").replace(">= 1", ">= 0").replace('count": 0', 'count": 6')
    )
    session = project.pytest()
    assert session.exit_code == 0
    session.lines.fnmatch_lines(["4 passed * nothing dropped"])
