"""The same ops on more data, under the bare marker: the test fails, and names what grew and where."""

import textwrap

import pytest
from e2e.conftest import MakeProject
from e2e.project import Session

pytestmark = pytest.mark.slow

MODEL = """\
    import torch
    from torch import nn

    torch.manual_seed(0)
    NET = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 8))
    KEPT = []

    def data(rows):
        return torch.ones(rows, 32)

    def train(rows=8):
        NET(data(rows)).square().mean().backward()

    def evaluate():
        with torch.no_grad():
            return NET(data(8)).argmax(1)

    def scale(batch):
        weights = torch.linspace(0, 1, 32)
        return (batch * weights).sum(1)

    def apply(x):
        return NET[0].weight @ (NET[0].weight.t() @ x)

    def halve(x):
        return x / 2

    def measure():
        KEPT[:] = [NET(data(8)).mean().detach()]
"""
TESTS = """\
    import pytest, torch
    import model

    @pytest.mark.profile
    def test_batch(): model.train()

    @pytest.mark.profile
    def test_no_grad(): model.evaluate()

    @pytest.mark.profile
    def test_wider(): model.scale(model.data(8))

    @pytest.mark.profile
    def test_order(): model.apply(torch.ones(32, 1))

    @pytest.mark.profile
    def test_half(): model.halve(model.data(8))

    @pytest.mark.profile
    def test_kept(): model.measure()

    @pytest.mark.profile
    def test_same(): model.train(rows=8)
"""
EDITS = {
    "def train(rows=8):": "def train(rows=128):",
    "with torch.no_grad():": "if True:",
    "torch.linspace(0, 1, 32)": "torch.linspace(0, 1, 32, dtype=torch.float64)",
    "NET[0].weight @ (NET[0].weight.t() @ x)": "(NET[0].weight @ NET[0].weight.t()) @ x",
    "x / 2": "x * 0.5",
    "KEPT[:] = [NET(data(8)).mean().detach()]": "KEPT.append(NET(data(8)).mean())",
}
# For each test: a total that rose, and the file of the cause.
TOLD = {
    "test_batch": ("bytes given to ops", "model.py"),
    "test_no_grad": ("graph nodes", "model.py"),
    "test_wider": ("bytes given to ops", "model.py"),
    "test_order": ("FLOPs", "model.py"),
    "test_kept": ("retained memory", "model.py"),
}


@pytest.fixture(scope="module")
def session(make_project: MakeProject) -> Session:
    pytest.importorskip("torch")
    project = make_project("more_work")
    project.write("model.py", textwrap.dedent(MODEL))
    project.write("test_it.py", textwrap.dedent(TESTS))
    assert project.pytest("--opprof-save=main").exit_code == 0
    again = project.pytest("--opprof-baseline=main")
    assert again.exit_code == 0, "unchanged code passes"
    for old, new in EDITS.items():
        project.replace("model.py", old, new)
    return project.pytest("--opprof-baseline=main", env={"COLUMNS": "200"})


@pytest.mark.parametrize("test", TOLD)
def test_more_work_fails_and_is_named(session: Session, test: str) -> None:
    section = session.failures[test]
    assert "REGRESSED" in section
    total, place = TOLD[test]
    assert total in section
    assert place in section


def test_unchanged_test_passes(session: Session) -> None:
    assert session.outcomes["test_same"] == "passed"


def test_replaced_elementwise_op_is_not_more_work(session: Session) -> None:
    """Torch's profiler counts FLOPs of `mul` but none of `div`."""
    assert session.outcomes["test_half"] == "passed"
    assert "test_half (aten::div -> aten::mul)" in session.stdout
