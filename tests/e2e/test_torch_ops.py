"""Torch ops in a user's project: counted, saved, gated and named."""

import gzip
import json
from importlib.metadata import version
from pathlib import Path

import pytest
from e2e.conftest import MakeProject
from e2e.project import Project, Session

pytestmark = pytest.mark.usefixtures("torch_installed")

BASE = """\
    import pytest, torch
    from torch import nn
    from pytest_opprof import record_function

    @pytest.fixture
    def model():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))

    @pytest.fixture
    def batch():
        return torch.ones(2, 4)

    @pytest.mark.profile(record_shapes=True)
    def test_train(model, batch):
        loss = model(batch).sum()
        loss.backward()

    @pytest.mark.profile
    def test_item(batch):
        total = batch.sum()

    @pytest.mark.profile
    def test_fused(batch):
        for _ in range(10):
            batch = batch * 2
        return None

    @pytest.mark.profile
    def test_no_ops():
        with record_function("work"):
            pass

    @pytest.mark.profile(limits={"aten::item.count": 0, "ops.count": "<= 9"})
    def test_limit(batch):
        batch.sum()

    @pytest.mark.profile(limits=["no_sync"])
    def test_preset(batch):
        batch.sum()

    @pytest.mark.profile(warmup=0, active=2)
    def test_steps(opprof, model, batch):
        for _ in range(2):
            model(batch)
            opprof.step()
        assert opprof.counts["aten::linear"] == 4
        assert opprof.counts["aten::item"] == 0
"""


PLAIN = """\
    import pytest
    from pytest_opprof import record_function

    @pytest.mark.profile
    def test_plain():
        with record_function("work"):
            pass
"""


@pytest.fixture(scope="module")
def torch_project(make_project: MakeProject) -> tuple[Project, Session, Session]:
    project = make_project("torch_ops")
    project.write("test_it.py", BASE)
    project.write("test_plain.py", PLAIN)
    saved = project.pytest("--opprof-save=main", "--opprof-traces=traces")
    project.replace("test_it.py", "loss = model(batch).sum()", "loss = model(batch.clone()).sum()")
    project.replace("test_it.py", "total = batch.sum()", "total = batch.sum().item()")
    project.replace(
        "test_it.py", "for _ in range(10):", "batch = torch.addcmul(batch, batch, batch)\n    for _ in []:"
    )
    project.replace(
        "test_it.py",
        "    batch.sum()\n\n@pytest.mark.profile(limits=[",
        "    batch.sum().item()\n\n@pytest.mark.profile(limits=[",
    )
    compared = project.pytest("--opprof-baseline=main", "-v")
    return project, saved, compared


def test_the_header_names_torch(torch_project: tuple[Project, Session, Session]) -> None:
    _, saved, _ = torch_project
    saved.lines.fnmatch_lines(["opprof * torch 2.* ops, ranges *"])


def test_a_preset_that_needs_a_gpu_is_inconclusive_without_one(
    torch_project: tuple[Project, Session, Session],
) -> None:
    _, saved, _ = torch_project
    assert saved.exit_code == pytest.ExitCode.TESTS_FAILED
    assert {name for name, outcome in saved.outcomes.items() if outcome == "failure"} == {"test_preset"}
    assert "needs cuda capture, which did not run" in saved.failures["test_preset"]


def test_added_clone_regresses_and_is_named(torch_project: tuple[Project, Session, Session]) -> None:
    _, _, compared = torch_project
    told = pytest.LineMatcher(compared.failures["test_train"].splitlines())
    told.fnmatch_lines(
        [
            "REGRESSED: * more ops in each step than main (same in 3 of 3 steps, certified in 2 processes)",
            "test_it.py:* in test_train",
            "  aten::clone *2 -> *3 * +1",
            "all ops * -> *",
        ]
    )


def test_added_item_regresses_and_is_named(torch_project: tuple[Project, Session, Session]) -> None:
    _, _, compared = torch_project
    assert "aten::item" in compared.failures["test_item"]
    assert "aten::item.count is 1 in each step, but the limit is <= 0" in compared.failures["test_limit"]


def test_ten_ops_replaced_by_one_do_not_regress(torch_project: tuple[Project, Session, Session]) -> None:
    _, _, compared = torch_project
    assert compared.outcomes["test_fused"] == "passed"
    compared.lines.fnmatch_lines(["test_fused * CHANGED * aten::mul -> aten::addcmul -49"])


def test_backward_ops_belong_to_the_step(torch_project: tuple[Project, Session, Session]) -> None:
    _, saved, _ = torch_project
    train = saved.result("test_train")
    counts = {row.name: (row.count.low, row.count.high) for row in train.ops if not row.background}
    assert counts["AddmmBackward0"] == (2, 2)
    assert counts["aten::linear"] == (2, 2)
    assert train.totals["ops.count"].is_constant


def test_environment_records_torch(torch_project: tuple[Project, Session, Session]) -> None:
    _, saved, _ = torch_project
    release, _, _ = saved.run.environment.fingerprint["torch"].partition(
        "+"
    )  # the wheel's name does not say which build it is
    assert release == version("torch").partition("+")[0]
    assert saved.result("test_no_ops").totals["ops.count"].high == 0


def test_traces_load_and_hold_the_ops(torch_project: tuple[Project, Session, Session]) -> None:
    project, _, _ = torch_project
    (path,) = (project.folder / "traces").glob("test_train-*.json.gz")
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    assert {"aten::linear", "ProfilerStep#1"} <= {event.get("name") for event in events}
    assert len(list((project.folder / "traces").iterdir())) == 8


def test_session_without_torch_is_comparable(torch_project: tuple[Project, Session, Session]) -> None:
    project, _, _ = torch_project
    assert project.pytest("--opprof-baseline=main", "test_plain.py").exit_code == 0
    blind = project.pytest("--opprof-baseline=main", "test_plain.py", "--opprof-capture=ranges")
    assert "ops, total: captured by ops in the base, by nothing here" in blind.failures["test_plain"]


@pytest.mark.slow
def test_another_torch_makes_counts_of_ops_inconclusive(
    torch_project: tuple[Project, Session, Session],
) -> None:
    project, _, _ = torch_project
    (path,) = project.stored()
    text = path.read_text()
    assert '"torch":"2.' in text
    project.write(".opprof/older/1.json", text.replace('"torch":"2.', '"torch":"1.'))
    session = project.pytest("--opprof-baseline=older", "-k", "test_item or test_plain")
    assert session.outcomes == {"test_item": "failure", "test_plain": "passed"}
    assert "measured in another environment: torch 1." in session.failures["test_item"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compiler", "said"),
    [
        pytest.param(None, "no C++ compiler was found", id="none"),
        pytest.param("sleep 600", "it was stopped after 1 s without a result", id="hangs"),
        pytest.param("exit 0", "it ended with status 0 and wrote no file", id="writes-nothing"),
        pytest.param(
            "head -c 2G /dev/zero >&2; exit 1", "cannot compile the torch observer", id="two-gigabytes"
        ),
    ],
)
def test_ops_that_cannot_be_observed_leave_a_test_inconclusive(
    project: Project, tmp_path: Path, compiler: str | None, said: str
) -> None:
    project.write("test_it.py", BASE)
    # The demo's or another test's build lies in one of the other folders.
    folders = dict.fromkeys(("OPPROF_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "TMPDIR"), str(tmp_path))
    program = tmp_path / "c++"
    if compiler is not None:
        program.write_text(f"#!/bin/sh\n{compiler}\n")
        program.chmod(0o755)
    limit = "1" if compiler == "sleep 600" else "60"
    nobody_built = {"CXX": str(program), "OPPROF_COMPILE_TIMEOUT": limit, **folders}
    session = project.pytest("-k", "test_fused or test_limit", env=nobody_built)
    assert any(said in line for line in session.told)
    for name in ("test_fused", "test_limit"):
        measurement = session.result(name).measurement
        assert measurement.status == "inconclusive"
        assert measurement.reason.startswith("torch's ops were not recorded: ")
    assert session.outcomes == {"test_fused": "passed", "test_limit": "failure"}


@pytest.mark.slow
def test_without_a_compiler_names_come_through_itt(
    torch_project: tuple[Project, Session, Session], torch_profiler_allowed: None
) -> None:
    project, _, _ = torch_project
    if project.python(
        "-c", "import torch; raise SystemExit(not torch.profiler.itt.is_available())"
    ).returncode:
        pytest.skip("this torch was built without ITT")
    session = project.pytest("--opprof-capture=ranges,ops-itt", "-k", "test_item")
    session.lines.fnmatch_lines(["opprof * torch ops through ITT (names only)*"])
    test = session.result("test_item")
    assert "ops-itt" in test.sources
    assert "aten::item" in {row.name for row in test.ops}
