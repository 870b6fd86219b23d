"""A test's FLOPs: shown, saved, and compared with a budget and a baseline."""

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("torch_installed")]

TESTS = """\
    import pytest, torch

    WIDTH = 8

    @pytest.mark.profile(with_flops=True, limits={"flops.total": 2048, "aten::mm.flops": "<= 1024"})
    def test_products():
        a = torch.ones(8, WIDTH)
        a @ a.t()
"""


@pytest.fixture(scope="module")
def sessions(make_project: MakeProject) -> tuple[Project, Session, Session]:
    project = make_project("flops")
    project.write("test_it.py", TESTS)
    saved = project.pytest("--opprof-save=main", "-v")
    project.replace("test_it.py", "WIDTH = 8", "WIDTH = 12")
    return project, saved, project.pytest("--opprof-baseline=main")


def test_each_step_has_its_flops(sessions: tuple[Project, Session, Session]) -> None:
    _, saved, _ = sessions
    assert saved.exit_code == 0
    test = saved.result("test_products")
    assert "flops" in test.sources
    assert test.totals["flops.total"].to_document() == 1024
    flops = {row.name: row.metrics["flops"].low for row in test.ops if "flops" in row.metrics}
    assert flops.pop("ProfilerStep*") == 1024
    assert flops == {"aten::matmul": 1024, "aten::mm": 1024}
    saved.lines.fnmatch_lines(["*# of Calls   Total FLOPs*", "*aten::mm* 3.07 KFLOPs*"])


def test_more_flops_with_the_same_ops_are_a_regression(sessions: tuple[Project, Session, Session]) -> None:
    _, _, compared = sessions
    told = compared.failures["test_products"]
    assert "aten::mm.flops is 1.54 KFLOPs in each step, but the limit is <= 1.02 KFLOPs" in told
    lines = pytest.LineMatcher(told.splitlines())
    lines.fnmatch_lines_random(["REGRESSED: *", "all FLOPs*1*->*1*+*"])
