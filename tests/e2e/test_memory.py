"""A test's memory: shown, saved, and compared with a budget and a baseline."""

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session

pytestmark = pytest.mark.usefixtures("torch_installed")

TESTS = """\
    import pytest, torch

    @pytest.mark.profile(profile_memory=True)
    def test_sum():
        rows = torch.empty(1024)
        (rows * rows).sum()

    @pytest.mark.profile(profile_memory=True, limits={"cpu_memory.allocated": "<= 64 MiB"})
    def test_within():
        torch.empty(1024)

    @pytest.mark.profile(profile_memory=True, limits={"cpu_memory.peak": "<= 4 KiB"})
    def test_over():
        first = torch.empty(1024)
        second = torch.empty(1024)

    @pytest.mark.profile(limits={"cpu_memory.allocated": "<= 64 MiB"})
    def test_not_asked():
        torch.empty(1024)
"""


@pytest.fixture(scope="module")
def sessions(make_project: MakeProject) -> tuple[Project, Session, Session]:
    project = make_project("memory")
    project.write("test_it.py", TESTS)
    saved = project.pytest("--opprof-save=main", "-v")
    project.replace("test_it.py", "(rows * rows)", "(rows * torch.empty(1024))")
    return project, saved, project.pytest("--opprof-baseline=main", "-k", "test_sum")


def test_each_step_has_its_memory(sessions: tuple[Project, Session, Session]) -> None:
    _, saved, _ = sessions
    test = saved.result("test_sum")
    assert "memory" in test.sources
    totals = {name: samples.low for name, samples in test.totals.items() if name.startswith("cpu_memory")}
    assert totals == {
        "cpu_memory.allocated": 2 * 4096 + 4,
        "cpu_memory.peak": 2 * 4096 + 4,
        "cpu_memory.allocations": 3,
    }
    assert all(test.totals[name].is_constant for name in totals)
    (empty,) = (row for row in test.ops if row.name == "aten::empty")
    assert empty.metrics["cpu_memory"].low == 4096
    saved.lines.fnmatch_lines(["*CPU Mem*", "*aten::empty*12.00 KB*"])


def test_budgets_hold_or_break(sessions: tuple[Project, Session, Session]) -> None:
    _, saved, _ = sessions
    assert saved.outcomes["test_within"] == "passed"
    assert "cpu_memory.peak is 8.0 KiB in each step, but the limit is <= 4 KiB" in saved.failures["test_over"]
    assert "needs memory capture, which did not run" in saved.failures["test_not_asked"]


def test_more_memory_is_a_regression(sessions: tuple[Project, Session, Session]) -> None:
    _, _, compared = sessions
    told = pytest.LineMatcher(compared.failures["test_sum"].splitlines())
    told.fnmatch_lines_random(
        [
            "REGRESSED: *",
            "*allocated memory*8.0 KiB*12.0 KiB*",
            "*peak memory*",
        ]
    )


SHARED = """\
    import pytest

    def spread(**fields):
        for name, value in fields.items():
            pass

    @pytest.mark.profile(profile_memory=True)
    @pytest.mark.parametrize("place", ["first", "between", "last"])
    def test_it(place):
        spread(one=1, two=2)
"""


@pytest.mark.slow
def test_first_test_to_run_code_has_no_extra_memory(make_project: MakeProject) -> None:
    """The interpreter's own objects, for code that it has not specialized yet, belong to the process."""
    project = make_project("shared")
    project.write("test_it.py", SHARED)
    assert project.pytest("--opprof-save=main").exit_code == 0
    alone = project.pytest("--opprof-baseline=main", "-k", "between")
    assert alone.outcomes == {"test_it[between]": "passed"}
    assert alone.exit_code == 0


LEAKS = """\
    import pytest, torch

    KEPT = []

    def step(rows):
        loss = (rows * rows).sum()
        KEPT.append({kept})

    @pytest.mark.profile(limits=[{{"memory.retained": 0}}])
    def test_limited(): step(torch.ones(1024))

    @pytest.mark.profile
    def test_gated(): step(torch.ones(1024))
"""


@pytest.mark.slow
def test_retained_result_names_its_op_and_line(project: Project) -> None:
    project.write("test_it.py", LEAKS.format(kept="loss.item()"))
    assert project.pytest("--opprof-save=main").exit_code == 0
    assert project.pytest("--opprof-baseline=main").exit_code == 0
    project.write("test_it.py", LEAKS.format(kept="loss"))
    session = project.pytest("--opprof-baseline=main", env={"COLUMNS": "300"})
    assert set(session.failures) == {"test_limited", "test_gated"}
    assert "over: aten::sum in step, test_it.py:6 (4 B)" in session.failures["test_limited"]
    assert "aten::sum retained  0 B -> 4 B" in session.failures["test_gated"]
