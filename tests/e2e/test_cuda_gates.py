"""CUDA work in whole sessions: measured, saved and gated; incomplete records are never taken for complete.

The fake CUDA replaces the libraries; the plugin is the one that users have.
"""

import pytest
from e2e.conftest import MakeProject
from e2e.project import CUDA_CONFTEST, Project, Session

from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics.device import OP_COUNTS, OP_TIMES, TOTAL_OF_COUNT, TOTAL_TIMES
from pytest_opprof.results.files import read_run
from pytest_opprof.results.run import TestResult

# Copies by CUpti_ActivityMemcpyKind: HtoD, DtoH, DtoD, HtoH.
TESTS = """\
    import pytest
    from support.cuda import fake_cuda
    from pytest_opprof import record_function

    @pytest.mark.profile(active=2)
    def test_everything(cuda):
        cuda.launch("ahead", stream=13, ns=20_000, delay_ns=50_000_000)
        with record_function("work"):
            cuda.launch("gemm", ns=20_000, delay_ns=5_000)
            cuda.graph("node", nodes=3, ns=1_000)
            for kind in (1, 2, 8, 9):
                cuda.memcpy(kind, 4096, ns=500)
            cuda.run("peer", bytes=64, ns=500, peer=1)
            cuda.memset(256, ns=500)
            cuda.run("sync_stream")

    @pytest.mark.profile
    def test_step(cuda):
        with record_function("forward"):
            cuda.launch("gemm", ns=2_000)

    @pytest.mark.profile(limits=["no_sync"])
    def test_waits(cuda):
        cuda.launch("gemm", ns=2_000)
        cuda.synchronize()

    @pytest.mark.profile(limits=["no_host_copy"])
    def test_copies(cuda):
        cuda.memcpy(fake_cuda.DTOH, 64, ns=500)

    @pytest.mark.profile(limits=["no_sync", "no_host_copy"])
    def test_keeps_them(cuda):
        cuda.launch("gemm", ns=2_000)
        cuda.memcpy(fake_cuda.DTOD, 64, ns=500)

    @pytest.mark.profile(limits=["no_sync"])
    def test_taken(cuda):
        cuda.launch("gemm", ns=2_000)
        cuda.control("other_client", 1)
        cuda.synchronize()
        cuda.control("other_client", 0)

    @pytest.mark.profile(limits=["no_sync"])
    def test_drops(cuda):
        cuda.control("drop", 1)
        cuda.launch("gemm", ns=2_000)
"""


@pytest.fixture(scope="module")
def sessions(
    make_project: MakeProject, fake_cuda_variables: dict[str, str]
) -> tuple[Project, Session, Session]:
    project = make_project("cuda")
    project.write("conftest.py", CUDA_CONFTEST)
    project.write("test_it.py", TESTS)
    saved = project.pytest("--opprof-save=main", "--opprof-traces=traces", "-v", env=fake_cuda_variables)
    project.replace(
        "test_it.py", 'cuda.launch("gemm", ns=2_000)', 'cuda.launch("gemm", ns=2_000), cuda.launch("relu")'
    )
    compared = project.pytest("--opprof-baseline=main", "-k", "test_step", env=fake_cuda_variables)
    return project, saved, compared


def row_of(test: TestResult, name: str) -> dict[str, int]:
    (row,) = (row for row in test.ops if row.name == name)
    return {metric: samples.low for metric, samples in row.metrics.items()}


def test_every_device_metric_is_measured(sessions: tuple[Project, Session, Session]) -> None:
    test = sessions[1].result("test_everything")
    assert "cuda" in test.sources
    assert test.capture.device_gap == ""
    totals = {
        metric.name: test.totals[metric.name].low for metric in (*TOTAL_OF_COUNT.values(), *TOTAL_TIMES)
    }
    assert [name for name, value in totals.items() if not value] == []
    assert totals["kernels.count"] == 5
    assert totals["launches.count"] == 3
    assert totals["copies.count"] == 5
    assert totals["host_copies.count"] == 3
    assert totals["copies.bytes"] == 4 * 4096 + 64
    assert totals["syncs.count"] == 1
    assert totals["memsets.count"] == 1
    work = row_of(test, "work")
    assert {*OP_COUNTS, *(metric.name for metric in OP_TIMES)} <= set(work)
    assert {name: work[name] for name in ("kernels", "launches", "copied_bytes_ptop")} == {
        "kernels": 4,
        "launches": 2,
        "copied_bytes_ptop": 64,
    }
    kernels = {row.name: row.parent_op for row in test.ops if row.kind is OpKind.KERNEL}
    assert kernels == {"ahead": None, "gemm": "work", "node": "work"}


def test_counts_are_the_same_in_each_step(sessions: tuple[Project, Session, Session]) -> None:
    test = sessions[1].result("test_everything")
    assert all(test.totals[metric.name].is_constant for metric in TOTAL_OF_COUNT.values())


@pytest.mark.slow
def test_the_trace_of_a_test_says_the_same(sessions: tuple[Project, Session, Session]) -> None:
    project, saved, _ = sessions
    (trace,) = project.folder.glob("traces/*test_everything*")
    done = project.python(
        "-m", "pytest_opprof.cli.main", "trace", "to-run", str(trace), "-o", "trace.run.json"
    )
    assert done.returncode == 0
    (told,) = read_run(project.folder / "trace.run.json").tests
    test = saved.result("test_everything")
    counts = {metric.name for metric in TOTAL_OF_COUNT.values()}
    assert {name: told.totals[name] for name in counts} == {name: test.totals[name] for name in counts}
    assert told.capture.device_gap == ""
    assert row_of(told, "work").keys() == row_of(test, "work").keys()


def test_table_shows_device_columns(sessions: tuple[Project, Session, Session]) -> None:
    _, saved, _ = sessions
    saved.lines.fnmatch_lines_random(
        [
            "*Self CUDA*CUDA total*",
            "CUDA, in each step: kernels 5, launches 3, memsets 1, syncs 1, HtoD 1 (4.0 KiB), *",
        ]
    )


def test_one_kernel_more_fails_the_test(sessions: tuple[Project, Session, Session]) -> None:
    _, _, compared = sessions
    assert compared.outcomes["test_step"] == "failure"
    told = pytest.LineMatcher(compared.failures["test_step"].splitlines())
    told.fnmatch_lines_random(
        [
            "REGRESSED: 1 more kernel in each step than *",
            "  forward kernels*1 -> 2*+1*",
            "*relu *0 -> 1*+1*new",
            "all kernels *1 -> 2*+1*",
        ]
    )


def test_presets_fail_waits_and_copies(sessions: tuple[Project, Session, Session]) -> None:
    _, saved, _ = sessions
    assert saved.outcomes["test_keeps_them"] == "passed"
    assert "syncs.count is 1 in each step, but the limit is <= 0" in saved.failures["test_waits"]
    assert "host_copies.count is 1 in each step, but the limit is <= 0" in saved.failures["test_copies"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("test_drops", "device records were dropped"),
        ("test_taken", "CUPTI delivered only some of the device records"),
    ],
)
def test_incomplete_device_records_are_inconclusive(
    sessions: tuple[Project, Session, Session], name: str, reason: str
) -> None:
    _, saved, _ = sessions
    assert "INCONCLUSIVE: the limit on syncs.count cannot be judged" in saved.failures[name]
    assert reason in saved.result(name).capture.device_gap


@pytest.mark.slow
def test_without_cuda_presets_are_inconclusive(project: Project) -> None:
    project.write(
        "test_it.py",
        """\
    import pytest

    @pytest.mark.profile(limits=["no_sync"])
    def test_asks():
        pass

    @pytest.mark.profile(gates={"kernels.count": "exact"})
    def test_gates():
        pass
    """,
    )
    assert (
        "needs cuda capture, which did not run" in project.pytest("--opprof-save=main").failures["test_asks"]
    )
    compared = project.pytest("--opprof-baseline=main")
    assert "INCONCLUSIVE: kernels, total: needs cuda capture" in compared.failures["test_gates"]
