"""A test with sampled ops: its numbers are called a sample, and gate nothing exactly."""

import pytest
from e2e.conftest import MakeProject
from e2e.project import Session

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("torch_installed")]

TESTS = """\
    import pytest, torch
    from pytest_opprof import record_function

    @pytest.mark.profile(sampling=0.01, limits={"forward.count": 2, "aten::neg.count": "<= 4000"})
    def test_sampled():
        ones = torch.ones(1)
        for _ in range(2):
            with record_function("forward"):
                for _ in range(1000):
                    ones.neg()

    @pytest.mark.profile(sampling=1.5)
    def test_misunderstood():
        pass
"""


@pytest.fixture(scope="module")
def sessions(make_project: MakeProject) -> tuple[Session, Session]:
    project = make_project("sampling")
    project.write("test_it.py", TESTS)
    only = "test_it.py::test_sampled"
    saved = project.pytest("--opprof-save=main", "--opprof-fail-on=regressed", only)
    return saved, project.pytest("--opprof-baseline=main", only)


def test_the_document_says_how_much_was_recorded(sessions: tuple[Session, Session]) -> None:
    saved, _ = sessions
    assert saved.exit_code == 0
    test = saved.result("test_sampled")
    assert test.capture.sampled_ppm == 10_000
    (forward,) = (row for row in test.ops if row.name == "forward")
    assert (forward.count.low, forward.count.high) == (2, 2)
    assert 0 < test.totals["ops.count"].total < 3 * 2000 * 0.05
    saved.lines.fnmatch_lines(["*nothing dropped, 1 test sampled*"])


def test_counts_of_a_sample_are_inconclusive(sessions: tuple[Session, Session]) -> None:
    _, compared = sessions
    told = " ".join(compared.failures["test_sampled"].split())  # wherever its lines were wrapped
    assert "1% of the ops (sampling)" in told
    assert (
        "the limit on aten::neg.count cannot be judged: only 1% of the ops were recorded (sampling)" in told
    )
    assert "limit on forward.count" not in told


@pytest.mark.slow
def test_invalid_share_is_a_usage_error(make_project: MakeProject) -> None:
    project = make_project("sampling-misunderstood")
    project.write("test_it.py", TESTS)
    session = project.pytest()
    assert session.exit_code == pytest.ExitCode.USAGE_ERROR
    assert "test_misunderstood: sampling is 1.5; it is the share of torch's ops to record" in session.stderr
