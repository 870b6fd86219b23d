"""One more of anything in a step is found, in every total, in one process and in two workers."""

import importlib.util
from dataclasses import dataclass

import pytest
from e2e.conftest import MakeProject
from e2e.project import CUDA_CONFTEST, Session

from pytest_opprof.metrics import TOTALS, Source

# Instructions have their own tests (test_instructions.py, test_replay.py).
COUNTED = {Source.INSTRUCTIONS, Source.REPLAY}
GATED = {name for name, metric in TOTALS.items() if metric.watched and metric.source not in COUNTED}

# The work of each test, repeated if MORE says so; copies by CUpti_ActivityMemcpyKind.
DEVICES = """\
    import os
    import pytest
    from support.cuda import fake_cuda
    from pytest_opprof import record_function

    MORE = int(os.environ["MORE"])
    HTOH = 9

    def named(cuda, many):
        for _ in range(many):
            with record_function("work"):
                pass

    def repeated(call):
        return lambda cuda, many: [call(cuda) for _ in range(many)]

    def copied(kind):
        return lambda cuda: cuda.memcpy(kind, 64, ns=500)

    def longer(kind):
        return lambda cuda, many: cuda.memcpy(kind, 64 * many, ns=500)

    DOES = {
        "ranges.count": named,
        "kernels.count": lambda cuda, many: cuda.graph("node", nodes=many, ns=500),
        "launches.count": repeated(lambda cuda: cuda.launch("gemm", ns=500)),
        "memsets.count": repeated(lambda cuda: cuda.memset(64, ns=500)),
        "syncs.count": repeated(lambda cuda: cuda.synchronize()),
        "copies.count": repeated(copied(fake_cuda.DTOD)),
        "host_copies.count": repeated(copied(fake_cuda.HTOD)),
        "copies_htod.count": repeated(copied(fake_cuda.HTOD)),
        "copies_dtoh.count": repeated(copied(fake_cuda.DTOH)),
        "copies_dtod.count": repeated(copied(fake_cuda.DTOD)),
        "copies_ptop.count": repeated(lambda cuda: cuda.run("peer", bytes=64, ns=500, peer=1)),
        "copies_htoh.count": repeated(copied(HTOH)),
        "copies.bytes": longer(fake_cuda.DTOD),
        "copies_htod.bytes": longer(fake_cuda.HTOD),
        "copies_dtoh.bytes": longer(fake_cuda.DTOH),
        "copies_dtod.bytes": longer(fake_cuda.DTOD),
        "copies_ptop.bytes": lambda cuda, many: cuda.run("peer", bytes=64 * many, ns=500, peer=1),
        "copies_htoh.bytes": longer(HTOH),
    }

    @pytest.mark.profile
    @pytest.mark.parametrize("total", DOES)
    def test_does(cuda, total):
        DOES[total](cuda, 1 + MORE)
"""
DEVICE_MEMORY = """\
    import os
    import pytest

    MORE = int(os.environ["MORE"])

    def take(cuda, address, many):
        cuda.run("malloc", address=address, bytes=many)

    def give(cuda, address):
        cuda.run("free", address=address)

    def allocated(cuda):
        take(cuda, 0x1000, 1024 + MORE)
        give(cuda, 0x1000)

    def allocations(cuda):
        for _ in range(1 + MORE):
            take(cuda, 0x1000, 1024 // (1 + MORE))
            give(cuda, 0x1000)

    def peak(cuda):
        take(cuda, 0x1000, 1024)
        if not MORE:
            give(cuda, 0x1000)
        take(cuda, 0x9000, 1024)
        give(cuda, 0x9000)
        if MORE:
            give(cuda, 0x1000)

    DOES = {
        "device_memory.allocated": allocated,
        "device_memory.allocations": allocations,
        "device_memory.peak": peak,
    }

    @pytest.mark.profile(profile_memory=True)
    @pytest.mark.parametrize("total", DOES)
    def test_does(cuda, total):
        DOES[total](cuda)
"""
OPS = """\
    import os
    import pytest, torch

    MORE = int(os.environ["MORE"])

    def ops():
        for _ in range(1 + MORE):
            torch.neg(ONES)

    def given():
        torch.neg(ONES[: 1 + MORE])

    def nodes():
        with torch.set_grad_enabled(bool(MORE)):
            torch.neg(LEAF)

    def flops():
        ONES[: 4 + MORE] @ ONES

    def allocated():
        torch.empty(1024 + MORE)

    def allocations():
        for _ in range(1 + MORE):
            torch.empty(1024 // (1 + MORE))

    def peak():
        first = torch.empty(1024)
        if not MORE:
            del first
        torch.empty(1024)

    def retained():
        KEPT.extend(torch.empty(8) for _ in range(1 + MORE))

    def compiled(*, breaks=False, shapes=(2,)):
        def scaled(x):
            if breaks:
                torch._dynamo.graph_break()
            return x + 1

        torch._dynamo.reset()  # else one step compiles for all
        product = torch.compile(scaled, backend="eager", dynamic=False)
        for shape in shapes:
            product(torch.ones(shape))

    def graphs():
        for _ in range(1 + MORE):
            compiled()

    def recompiles():
        compiled(shapes=(2, 3, 4) if MORE else (2, 3))

    def graph_breaks():
        compiled(breaks=MORE)

    KEPT = []
    ONES = torch.ones(8, 8)
    LEAF = torch.ones(8, requires_grad=True)
    DOES = {
        "ops.count": ops,
        "ops.bytes": given,
        "autograd.nodes": nodes,
        "flops.total": flops,
        "cpu_memory.allocated": allocated,
        "cpu_memory.allocations": allocations,
        "cpu_memory.peak": peak,
        "memory.retained": retained,
        "compile.graphs": graphs,
        "compile.recompiles": recompiles,
        "compile.graph_breaks": graph_breaks,
    }

    @pytest.mark.profile(with_flops=True, profile_memory=True)
    @pytest.mark.parametrize("total", DOES)
    def test_does(total):
        DOES[total]()
"""


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """The baseline, the same again in two workers, and one more of each in one process and in two workers."""

    saved: Session
    same: Session
    more: Session
    more_in_two: Session


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, marks=pytest.mark.slow) for kind in ("devices", "device memory", "ops")],
)
def sessions(request: pytest.FixtureRequest, make_project: MakeProject) -> Sessions:
    pytest.importorskip("xdist")
    project = make_project(f"totals of {request.param}")
    variables: dict[str, str] = {}
    text = {"devices": DEVICES, "device memory": DEVICE_MEMORY, "ops": OPS}[request.param]
    if request.param != "ops":
        variables = request.getfixturevalue("fake_cuda_variables")
        project.write("conftest.py", CUDA_CONFTEST)
    elif importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    project.write("test_it.py", text)
    two, baseline = ("-n", "2"), "--opprof-baseline=main"
    plain, more = {**variables, "MORE": "0"}, {**variables, "MORE": "1"}
    return Sessions(
        saved=project.pytest("--opprof-save=main", env=plain),
        same=project.pytest(baseline, *two, plugins=("xdist",), env=plain),
        more=project.pytest(baseline, env=more),
        more_in_two=project.pytest(baseline, *two, plugins=("xdist",), env=more),
    )


def totals_of(session: Session) -> list[str]:
    """The totals after which a session's tests are named."""
    return [name.partition("[")[2].rstrip("]") for name in session.outcomes]


def test_every_total_has_a_test() -> None:
    named = {
        line.split('"')[1]
        for text in (DEVICES, DEVICE_MEMORY, OPS)
        for line in text.splitlines()
        if '": ' in line
    }
    assert named == GATED


def test_unchanged_totals_pass(sessions: Sessions) -> None:
    assert sessions.same.exit_code == 0
    assert set(sessions.same.outcomes.values()) == {"passed"}


@pytest.mark.parametrize("where", ["more", "more_in_two"])
def test_one_more_of_any_total_fails(sessions: Sessions, where: str) -> None:
    found: Session = getattr(sessions, where)
    assert found.exit_code == 1
    for total in totals_of(sessions.saved):
        name = f"test_does[{total}]"
        before = sessions.saved.result(name).totals[total].low
        assert found.result(name).totals[total].low > before, total
        assert found.failures[name].startswith("REGRESSED: "), total
