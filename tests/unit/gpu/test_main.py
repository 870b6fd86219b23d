from collections.abc import Callable

import pytest
from gpu.__main__ import FAILED, NOTHING_RAN, compared, exit_code, launches
from gpu.comparison import Seen
from gpu.page import Line, Verdict
from gpu.workloads import WORKLOADS, Workload

WORKLOAD = WORKLOADS["training"]


def seen(count: int) -> list[Seen]:
    return [Seen(counts={"gemm": count}, device_ns=1_000)]


def line_of(ours: int, theirs: int, *, workload: Workload = WORKLOAD, lack: str | None = None) -> Line:
    return compared(
        "training", workload, lack=lambda needs: lack, both=lambda name: (seen(ours), seen(theirs))
    )


def test_equal_work_holds() -> None:
    line = line_of(5, 5)
    assert line.verdict is Verdict.HOLDS
    assert line.ours == line.torch == "5 of 1 names, 1.0 µs"


def test_different_count_fails_and_is_named() -> None:
    line = line_of(4, 5)
    assert line.verdict is Verdict.FAILS
    assert "gemm: 4" in line.detail


def test_lacking_workload_is_not_run() -> None:
    line = line_of(5, 5, lack="cupy is not installed")
    assert (line.verdict, line.detail) == (Verdict.NOT_RUN, "cupy is not installed")


def test_a_program_that_fails_is_a_failure() -> None:
    def broken(name: str) -> tuple[list[Seen], list[Seen]]:
        raise RuntimeError("CUDA error: out of memory")

    line = compared("training", WORKLOAD, lack=lambda needs: None, both=broken)
    assert (line.verdict, line.detail) == (Verdict.FAILS, "CUDA error: out of memory")


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        (80.0, 100.0, Verdict.HOLDS),
        (80.5, 100.0, Verdict.FAILS),
        (1.0, 0.0, Verdict.FAILS),
        (-5.0, -1.0, Verdict.FAILS),
    ],
    ids=["at most", "more", "nothing to compare with", "noise"],
)
def test_a_launch_costs_at_most_four_fifths(ours: float, theirs: float, verdict: Verdict) -> None:
    assert launches(lambda: (ours, theirs)).verdict is verdict


def test_launches_that_cannot_be_timed_fail() -> None:
    def broken() -> tuple[float, float]:
        raise RuntimeError("no")

    assert launches(broken).verdict is Verdict.FAILS


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([Verdict.HOLDS, Verdict.NOT_RUN], 0),
        ([Verdict.HOLDS, Verdict.FAILS], FAILED),
        ([Verdict.NOT_RUN], NOTHING_RAN),
        ([], NOTHING_RAN),
    ],
    ids=["some not run", "one fails", "none ran", "no lines"],
)
def test_unrun_lines_are_not_a_pass(verdicts: list[Verdict], code: int) -> None:
    make: Callable[[Verdict], Line] = lambda verdict: Line(what="it", verdict=verdict)  # noqa: E731
    assert exit_code([make(verdict) for verdict in verdicts]) == code
