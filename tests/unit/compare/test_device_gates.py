"""Gates and budgets on device work."""

from dataclasses import replace
from typing import Any

import pytest
from support.documents.strategies import cuda_test, simple_run, simple_test

from pytest_opprof.compare.comparison import TestComparison
from pytest_opprof.compare.limits import evaluate_limits, parse_limits
from pytest_opprof.compare.sessions import compare_test
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.errors import UsageError
from pytest_opprof.kinds import OpKind
from pytest_opprof.results.run import CaptureStats, Environment, TestResult
from pytest_opprof.results.samples import Samples

ADD, COPY = (
    {"kernels": 1, "launches": 1},
    {"copies": 1, "copies_dtoh": 1, "host_copies": 1, "copied_bytes": 8},
)
PLAIN = cuda_test({"aten::add": ADD, "aten::to": {}})
FUSED = cuda_test({"aten::add": {**ADD, "kernels": 2}, "aten::to": {}})
COPIES = cuda_test({"aten::add": ADD, "aten::to": {**COPY, "syncs": 1}})
NO_CUDA = simple_test({"aten::add": 1, "aten::to": 1})
GAPS = {
    "device_partial": "CUPTI delivered only some of the device records",
    "device_dropped": "1 device record was dropped",
    "unmatched_launches": "1 launch has no kernel on record",
    "unmatched_kernels": "1 kernel, copy or fill has no launch on record",
    "untimed_work": "1 kernel, copy or fill has no time",
}


def compared(
    base: TestResult, head: TestResult, *, environment: dict[str, str] | None = None
) -> TestComparison:
    before = simple_run(base, name="main")
    if environment:
        fields = {**before.environment.fingerprint, **environment}
        before = replace(before, environment=Environment(fingerprint=fields))
    return compare_test(head, base, base=before, head=simple_run(head))


def verdicts(found: TestComparison) -> dict[str, Verdict | None]:
    return {
        f"{change.op}.{change.metric}" if change.op else change.metric: change.verdict
        for change in found.changes
    }


def test_a_kernel_more_regresses_with_the_op_and_the_kernel() -> None:
    found = compared(PLAIN, FUSED)
    assert found.verdict is Verdict.REGRESSED
    assert verdicts(found) == dict.fromkeys(
        ["kernels.count", "aten::add.kernels", "kernel of aten::add.count"], Verdict.REGRESSED
    )
    assert found.changes[-1].cause == "launched by aten::add"
    assert found.reason.startswith("1 more kernel in each step than main")


def test_a_copy_to_the_host_regresses_by_direction() -> None:
    found = verdicts(compared(PLAIN, COPIES))
    risen = {"copies.count", "copies_dtoh.count", "host_copies.count", "copies.bytes", "syncs.count"}
    assert risen <= {name for name, verdict in found.items() if verdict is Verdict.REGRESSED}
    assert found["aten::to.copies_dtoh"] is Verdict.REGRESSED


def test_fewer_kernels_improve() -> None:
    assert compared(FUSED, PLAIN).verdict is Verdict.IMPROVED


def test_another_kernel_in_its_place_is_a_change() -> None:
    other = tuple(
        replace(row, name=row.name.replace("add", "add_v2")) for row in PLAIN.ops if row.kind.is_on_device
    )
    found = compared(PLAIN, replace(PLAIN, ops=(*PLAIN.ops[:2], *other)))
    assert found.verdict is Verdict.CHANGED


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("side", ["the base", "this run"])
def test_device_losses_make_device_gates_inconclusive(gap: str, side: str) -> None:
    missing: dict[str, Any] = {gap: 1}
    torn = replace(PLAIN, capture=CaptureStats(**missing))
    found = compared(torn, FUSED) if side == "the base" else compared(FUSED, torn)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert verdicts(found)["kernels.count"] is Verdict.INCONCLUSIVE
    assert f"{GAPS[gap]} in {side}" in found.reason


def test_device_losses_leave_op_gates_alone() -> None:
    torn = replace(PLAIN, capture=CaptureStats(device_dropped=1), totals=NO_CUDA.totals, ops=NO_CUDA.ops)
    assert compared(NO_CUDA, torn).verdict is Verdict.PASS


def test_unrecorded_ops_make_launches_inconclusive() -> None:
    unheard = replace(
        PLAIN, sources=("ranges", "cuda"), ops=tuple(row for row in PLAIN.ops if row.kind is OpKind.KERNEL)
    )
    found = {(change.op, change.metric): change.verdict for change in compared(PLAIN, unheard).changes}
    assert found["aten::add", "kernels"] is Verdict.INCONCLUSIVE


def test_another_architecture_leaves_kernels_inconclusive() -> None:
    found = compared(PLAIN, FUSED, environment={"gpu_arch": "8.0"})
    assert verdicts(found)["kernels.count"] is Verdict.INCONCLUSIVE
    assert "GPU architecture 8.0 -> unknown" in found.reason


def test_other_driver_is_not_another_environment() -> None:
    assert compared(PLAIN, FUSED, environment={"gpu_driver": "550.54"}).verdict is Verdict.REGRESSED


def test_device_environment_is_ignored_without_devices() -> None:
    unused = cuda_test({"aten::add": {}, "aten::to": {}})
    assert compared(unused, unused, environment={"gpu_arch": "8.0", "cuda": "12.8"}).verdict is Verdict.PASS
    more = replace(unused, totals={**unused.totals, "ops.count": Samples.constant(3, steps=3)})
    assert compared(unused, more, environment={"gpu_arch": "8.0"}).verdict is Verdict.REGRESSED


def test_devices_missing_in_the_head_are_inconclusive() -> None:
    found = compared(PLAIN, NO_CUDA)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "needs cuda capture, which did not run" in found.reason


@pytest.mark.parametrize("path", ["kernels.count", "aten::add.kernels", "syncs.count"])
def test_a_gate_asked_for_without_devices_is_inconclusive(path: str) -> None:
    asked = replace(NO_CUDA, gates={path: "exact"})
    assert compared(NO_CUDA, asked).verdict is Verdict.INCONCLUSIVE
    assert compared(NO_CUDA, replace(NO_CUDA, gates={path: "off"})).verdict is Verdict.PASS
    assert compared(PLAIN, replace(PLAIN, gates={path: "exact"})).verdict is Verdict.PASS


def judged(test: TestResult, limits: object) -> list[tuple[Verdict, str]]:
    limited = replace(test, limits=parse_limits(limits, where="limits of test_x"))
    return [(result.verdict, result.reason) for result in evaluate_limits(limited)]


@pytest.mark.parametrize("preset", ["no_sync", "no_host_copy"])
def test_presets_hold_where_devices_were_seen(preset: str) -> None:
    assert judged(PLAIN, preset) == [(Verdict.PASS, "")]
    assert judged(COPIES, preset) == [(Verdict.REGRESSED, "aten::to (1)")]
    assert judged(NO_CUDA, preset) == [(Verdict.INCONCLUSIVE, "needs cuda capture, which did not run")]


def test_lost_records_do_not_satisfy_a_budget() -> None:
    lost = CaptureStats(device_dropped=3)
    assert judged(replace(PLAIN, capture=lost), "no_sync") == [
        (Verdict.INCONCLUSIVE, "3 device records were dropped")
    ]
    assert judged(replace(COPIES, capture=lost), {"syncs.count": 0, "copies.bytes": "< 8"}) == [
        (Verdict.REGRESSED, "aten::to (1)"),
        (Verdict.REGRESSED, "aten::to (8 B)"),
    ]
    assert judged(replace(PLAIN, capture=lost), {"ops.count": 2}) == [(Verdict.PASS, "")]


@pytest.mark.parametrize(
    "path",
    ["cudaStreamSynchronize.count", "cuda*.count", "void relu<float>(int).count", "Memcpy DtoH*.count"],
)
def test_device_metrics_need_devices(path: str) -> None:
    assert judged(NO_CUDA, {path: 0}) == [(Verdict.INCONCLUSIVE, "needs cuda capture, which did not run")]
    assert judged(PLAIN, {path: 0}) == [(Verdict.PASS, "")]


def test_the_best_step_holds_a_budget_of_time() -> None:
    times = {
        "device.queue_depth": Samples.of([500, 2500]),
        "device.idle_fraction": Samples.of([200_000, 900_000]),
    }
    test = replace(PLAIN, steps=2, totals=times, ops=())
    limits = {"device.queue_depth": ">= 2.5", "device.idle_fraction": "<= 20 %"}
    assert judged(test, limits) == [(Verdict.PASS, ""), (Verdict.PASS, "")]
    limits = {"device.queue_depth": ">= 2.6", "device.idle_fraction": "< 20 %"}
    assert judged(test, limits) == [(Verdict.REGRESSED, ""), (Verdict.REGRESSED, "")]


def test_share_needs_a_percent_sign() -> None:
    with pytest.raises(UsageError, match="'20' is not a share: write it like '20 %'"):
        judged(PLAIN, {"device.idle_fraction": "<= 20"})
