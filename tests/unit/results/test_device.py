"""Device work, from the collector's names to metrics."""

from dataclasses import replace
from typing import Any

import pytest
from support.kineto.made_groups import EMPTY, Group, cycle, op, row

from pytest_opprof.capture.op_groups import MEASURES, DeviceUse
from pytest_opprof.kinds import EventKind, OpKind
from pytest_opprof.metrics import OP_METRICS, TOTALS
from pytest_opprof.metrics.device import OP_COUNTS, OP_TIMES, TOTAL_OF_COUNT, TOTAL_TIMES
from pytest_opprof.results.build import DETAILED_OPS, with_measurement
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples

CUDA = replace(EMPTY, sources=("ranges", "ops", "cuda"))
# every measure has its own number, so that a mix-up shows
ALL = {name: (at + 1, 2 * (at + 1)) for at, name in enumerate(MEASURES)}


def use(**told: Any) -> DeviceUse:
    gaps = dict.fromkeys(("unmatched_launches", "unmatched_kernels", "untimed", "unsized", "undirected"), 0)
    return DeviceUse(**({"steps": {}, "outside": {}, "launchers": {}} | gaps | told))


OF_DEVICES = (*OP_COUNTS, *(metric.name for metric in OP_TIMES))


def measured(*groups: Group, device: DeviceUse, test: TestResult = CUDA) -> TestResult:
    return with_measurement(test, [replace(cycle(*groups), device=device)])


def test_every_measure_becomes_a_metric_of_the_op() -> None:
    times = {"device_total_ns": (7, 8), "self_device_ns": (5, 6)}
    found = row(measured(op("aten::mul", 1, 1, each_step=times | ALL), device=use()), "aten::mul")
    assert set(OF_DEVICES) <= set(found.metrics)
    assert found.metrics["kernels"] == Samples.of(ALL["kernels"])
    assert found.metrics["copied_bytes_dtoh"] == Samples.of(ALL["copied_bytes_dtoh"])
    assert found.metrics["device_time_total"] == Samples.of([7, 8])
    assert found.metrics["self_device_time_total"] == Samples.of([5, 6])
    assert found.metrics["device_busy_time"] == Samples.of(ALL["device_busy_time"])
    host = [ALL["copies_htod"], ALL["copies_dtoh"], ALL["copies_htoh"]]
    assert found.metrics["host_copies"] == Samples.of(map(sum, zip(*host, strict=True)))


def test_every_measure_becomes_a_total() -> None:
    kernel = op("gemm", 1, 1, kind=EventKind.KERNEL, device_type=1, each_step={"self_device_ns": (5, 6)})
    totals = measured(kernel, device=use(steps=ALL)).totals
    assert {metric.name for metric in (*TOTAL_OF_COUNT.values(), *TOTAL_TIMES)} <= set(totals)
    assert totals["copies_htod.bytes"] == Samples.of(ALL["copied_bytes_htod"])
    assert totals["total.self_device_time_total"] == Samples.of([5, 6])
    assert totals["device.busy_time"] == Samples.of(ALL["device_busy_time"])


def test_cheaper_ops_lose_only_step_times() -> None:
    groups = [
        op(f"op{at}", 1, 1, each_step=ALL | {"self_ns": (900 - at, 900 - at)})
        for at in range(DETAILED_OPS + 1)
    ]
    last = measured(*groups, device=use()).ops[-1]
    times = {metric.name for metric in OP_TIMES} | {"cpu_time_total", "self_cpu_time_total"}
    varying = {name: samples for name, samples in last.metrics.items() if not samples.is_constant}
    assert not times.isdisjoint(varying)
    assert not times.issuperset(varying)
    assert {name for name, samples in varying.items() if not samples.is_exact} == times & varying.keys()


def test_shares_and_means_are_of_each_step() -> None:
    work = {"span_ns": (400, 100), "idle_ns": (100, 0), "depth": (3, 0), "depths": (2, 1)}
    totals = measured(device=use(steps=work)).totals
    assert totals["device.idle_fraction"] == Samples.of([250_000, 0])
    assert totals["device.queue_depth"] == Samples.of([1500, 0])


def test_a_device_that_was_never_idle_has_no_idle_share() -> None:
    totals = measured(device=use(steps={"span_ns": (4, 1)})).totals
    assert totals["device.idle_fraction"] == Samples.constant(0, steps=2)


def test_a_step_without_a_device_has_no_idle_share() -> None:
    totals = measured(device=use(steps={"span_ns": (4, 0), "idle_ns": (1, 0)})).totals
    assert totals["device.idle_fraction"] == Samples.of([250_000, 0])


def test_idle_recorded_devices_count_zero() -> None:
    totals = with_measurement(CUDA, [cycle(op("aten::mul", 1, 1))]).totals
    assert totals["syncs.count"] == totals["device.busy_time"] == Samples.constant(0, steps=2)
    assert "syncs.count" not in with_measurement(EMPTY, [cycle(op("aten::mul", 1, 1))]).totals


def test_cycles_follow_one_another() -> None:
    cycles = [
        replace(cycle(op("aten::mul", *values, each_step=work), steps=len(values)), device=use(steps=work))
        for values in ((1, 2), (3,))
        for work in [{"kernels": values}]
    ]
    test = with_measurement(CUDA, cycles)
    assert test.totals["kernels.count"] == row(test, "aten::mul").metrics["kernels"] == Samples.of([1, 2, 3])


@pytest.mark.parametrize("kind", ["KERNEL", "MEMCPY", "MEMSET"])
def test_work_has_rows_with_its_launching_op(kind: str) -> None:
    each_step = {"self_device_ns": (30, 40), "kernels": (1, 1), "copied_bytes": (8, 8)}
    work = op("work", 1, 1, kind=EventKind[kind], device_type=1, each_step=each_step)
    test = measured(op("aten::mul", 1, 1), work, device=use(launchers={1: 0}))
    found = row(test, "work")
    assert (found.kind, found.parent_op) == (OpKind[kind], "aten::mul")
    assert set(found.metrics) - {"count", "cpu_time_total", "self_cpu_time_total"} == {
        "copied_bytes",
        "self_device_time_total",
    }
    assert test.ops[0] is found


def test_background_work_belongs_to_no_step() -> None:
    group = op("aten::add", 0, 0, background=True, count=7, device_total_ns=9, kernels=3)
    found = row(measured(group, device=use()), "aten::add")
    assert found.metrics["kernels"] == Samples(steps=2, total=3, low=0, high=3)
    assert found.metrics["device_time_total"].total == 9


def test_copies_that_do_not_say_their_size_leave_it_untold() -> None:
    totals = measured(device=use(steps=ALL, unsized=1)).totals
    assert not [name for name in totals if name.endswith(".bytes")]
    assert "copies_htod.count" in totals


def test_copies_that_do_not_say_their_way_leave_it_untold() -> None:
    totals = measured(device=use(steps=ALL, undirected=1)).totals
    assert {"copies.count", "copies.bytes"} <= set(totals)
    assert not [name for name in totals if name.startswith(("copies_", "host_copies"))]


def test_gaps_are_reported_with_the_capture() -> None:
    torn = replace(cycle(), device=use(unmatched_launches=1, unmatched_kernels=2, untimed=3))
    capture = with_measurement(CUDA, [torn, torn, cycle()]).capture
    assert (capture.unmatched_launches, capture.unmatched_kernels, capture.untimed_work) == (2, 4, 6)
    assert capture.device_gap.startswith("2 launches have no kernel on record, 4 kernels")


def test_all_metrics_are_known_by_name() -> None:
    assert set(OF_DEVICES) <= set(OP_METRICS)
    assert {metric.name for metric in TOTAL_OF_COUNT.values()} <= set(TOTALS)
