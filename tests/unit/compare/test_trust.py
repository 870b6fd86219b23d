"""Differences between two sides: in fields that a metric depends on, caches, sources, losses."""

from dataclasses import replace

import pytest
from support.documents.judged_tests import TORCH_212, compared, verdicts
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.compare.sessions import compare_test
from pytest_opprof.compare.trust import Trust
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import (
    CPU_MEMORY_ALLOCATED,
    FINGERPRINT_FIELDS,
    OPS_COUNT,
    RANGES_COUNT,
    TOTAL_SELF_CPU_TIME,
    Metric,
)
from pytest_opprof.metrics.fingerprint import COMPILE_CACHE, SETTINGS
from pytest_opprof.results.agreement import repeated
from pytest_opprof.results.run import CaptureStats, Environment, OpRow, TestResult
from pytest_opprof.results.samples import Samples

TEST = simple_test({"aten::mul": 4, "forward": 1})
FAMILIES = {
    "ranges": RANGES_COUNT,
    "counts": OPS_COUNT,
    "memory": CPU_MEMORY_ALLOCATED,
    "times": TOTAL_SELF_CPU_TIME,
}


def objection(metric: Metric, base: TestResult, head: TestResult, *, field: str | None = None) -> str:
    """The objection to a metric if the sides differ in one field of the environment."""
    fields = [{field: value} if field else {} for value in ("one", "other")]
    if field in SETTINGS:
        base, head = replace(base, settings=fields[0]), replace(head, settings=fields[1])
        fields = [{}, {}]
    sides = tuple(Environment(fingerprint=each) for each in fields)
    return Trust.between(base, head, environments=(sides[0], sides[1])).objection(metric)


def of_devices(test: TestResult) -> TestResult:
    """The test with a kernel; without one, device fields do not matter."""
    return replace(test, totals={**test.totals, "kernels.count": Samples.constant(1, steps=test.steps)})


def with_memory(source: str) -> TestResult:
    return of_devices(replace(TEST, sources=("ranges", "ops", source)))


@pytest.mark.parametrize("field", [field for field in FINGERPRINT_FIELDS if field != COMPILE_CACHE])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_field_matters_to_the_families_that_depend_on_it(family: str, field: str) -> None:
    metric = FAMILIES[family]
    test = with_memory("memory-malloc")
    told = objection(metric, test, test, field=field)
    expected = f"measured in another environment: {FINGERPRINT_FIELDS[field]} one -> other"
    assert told == (expected if field in metric.depends_on else "")


@pytest.mark.parametrize("field", sorted(SETTINGS))
def test_settings_after_a_test_do_not_matter(field: str) -> None:
    test = with_memory("memory")
    at_the_end, not_yet = Environment(fingerprint={field: "set"}), Environment()
    trust = Trust.between(test, test, environments=(at_the_end, not_yet))
    assert not any(trust.objection(metric) for metric in FAMILIES.values())


@pytest.mark.parametrize("field", ["numpy", "blas", "numpy_cpu"])
def test_numpy_matters_to_memory_that_holds_its_arrays(field: str) -> None:
    tensors, malloc = with_memory("memory"), with_memory("memory-malloc")
    assert objection(CPU_MEMORY_ALLOCATED, tensors, tensors, field=field) == ""
    assert FINGERPRINT_FIELDS[field] in objection(CPU_MEMORY_ALLOCATED, malloc, malloc, field=field)
    assert FINGERPRINT_FIELDS[field] in objection(TOTAL_SELF_CPU_TIME, tensors, tensors, field=field)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (("warm",), ("cold",), "compiled with a cold cache here, with a warm one in the base"),
        (("cold",), ("warm",), "compiled with a warm cache here, with a cold one in the base"),
        (("cold", "warm"), ("warm",), ""),
        (("cold", "warm"), ("cold",), ""),
        (("cold",), ("cold",), ""),
        ((), ("cold",), ""),
        (("warm",), (), ""),
    ],
)
def test_counts_of_compiled_code_depend_on_its_cache(
    before: tuple[str, ...], after: tuple[str, ...], told: str
) -> None:
    base, head = replace(TEST, compile_cache=before), replace(TEST, compile_cache=after)
    assert objection(OPS_COUNT, base, head) == told
    assert objection(RANGES_COUNT, base, head) == ""


def test_another_cache_leaves_a_test_inconclusive() -> None:
    base, head = replace(TEST, compile_cache=("warm",)), replace(TEST, compile_cache=("cold",))
    found = compare_test(head, base, base=simple_run(base, name="main"), head=simple_run(head))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason == "ops, total: compiled with a cold cache here, with a warm one in the base"


def test_a_certificate_remembers_both_states() -> None:
    cold, warm = replace(TEST, compile_cache=("cold",)), replace(TEST, compile_cache=("warm",))
    assert repeated(cold, warm, fresh_process=True).compile_cache == ("cold", "warm")
    assert repeated(warm, warm, fresh_process=True).compile_cache == ("warm",)


def test_missing_source_is_explained() -> None:
    deaf = replace(TEST, sources=("ranges",), unheard={"ops": "no C++ compiler was found"})
    assert objection(OPS_COUNT, TEST, deaf) == (
        "captured by ops in the base, by nothing here (no C++ compiler was found)"
    )


def test_requested_gate_explains_its_missing_source() -> None:
    deaf = replace(TEST, gates={"kernels.count": "exact"}, unheard={"cuda": "libcuda.so.1 not found"})
    found = compare_test(deaf, TEST, base=simple_run(TEST, name="main"), head=simple_run(deaf))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "needs cuda capture, which did not run: libcuda.so.1 not found" in found.reason
    limited = replace(deaf, gates={}, limits={"kernels.count": 0})
    found = compare_test(limited, None, base=None, head=simple_run(limited))
    assert "needs cuda capture, which did not run: libcuda.so.1 not found" in found.reason


def test_other_environment_is_inconclusive() -> None:
    base = simple_test({"aten::mul": 4})
    found = compared(base, base, environment=TORCH_212)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason == "ops, total: measured in another environment: torch 2.12.0 -> 2.13.0"


def test_ranges_do_not_depend_on_torch() -> None:
    base = simple_test({"forward": 4})
    assert compared(base, base, environment=TORCH_212).verdict is Verdict.PASS


def test_other_cpu_model_matters_to_times_only() -> None:
    base = simple_test({"aten::mul": 4})
    cpu = Environment(fingerprint={"python": "3.11", "torch": "2.13.0", "cpu_model": "other"})
    found = compared(base, base, environment=cpu)
    assert found.verdict is Verdict.PASS
    assert "CPU model other -> unknown" in found.advisories[0]


def test_other_sources_are_inconclusive() -> None:
    base = simple_test({"aten::mul": 4})
    found = compared(base, replace(base, sources=("ranges", "ops-itt")))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "captured by ops in the base, by ops-itt here" in found.reason


@pytest.mark.parametrize("is_new", [True, False])
def test_calls_that_one_side_did_not_record_are_inconclusive(*, is_new: bool) -> None:
    name, before = "model.py: Encoder.forward", simple_test({"aten::mul": 4})
    row = OpRow(name=name, kind=OpKind.CALL, metrics={"count": Samples.constant(2, steps=3)})
    stacks = replace(before, ops=(*before.ops, row), sources=(*before.sources, "python"))
    sides = (before, stacks) if is_new else (stacks, before)
    found = compared(sides[0], replace(sides[1], gates={f"{name}.count": "exact"}))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert f"{name}: captured by " in found.reason
    assert compared(stacks, replace(stacks, gates={f"{name}.count": "exact"})).verdict is Verdict.PASS
    # A process that has started CUDA records its calls too, whichever tests ran in it.
    with_cuda = replace(stacks, sources=(*stacks.sources, "cuda"))
    assert compared(with_cuda, replace(stacks, gates={f"{name}.count": "exact"})).verdict is Verdict.PASS
    only_cuda = replace(before, sources=(*before.sources, "cuda"))
    sides = (only_cuda, stacks) if is_new else (stacks, only_cuda)
    found = compared(sides[0], replace(sides[1], gates={f"{name}.count": "exact"}))
    assert found.verdict is Verdict.INCONCLUSIVE


def test_lost_total_is_inconclusive() -> None:
    base = simple_test({"aten::mul": 4})
    totals = {name: value for name, value in base.totals.items() if name != "ops.count"}
    found = compared(base, replace(base, totals=totals))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "it was not measured in this run" in found.reason


@pytest.mark.parametrize(
    ("capture", "reason"),
    [
        (CaptureStats(dropped=12), "12 events were dropped in this run"),
        (CaptureStats(truncated=True), "the recording of this run was cut off at its byte budget"),
        (CaptureStats(names_overflowed=1), "too many names in this run: some ops have no row of their own"),
        (CaptureStats(sampled_ppm=125_000), "this run recorded only 12.5% of the ops (sampling)"),
    ],
)
def test_incomplete_recording_is_inconclusive(capture: CaptureStats, reason: str) -> None:
    base = simple_test({"aten::mul": 4})
    found = compared(base, replace(base, capture=capture))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert reason in found.reason


def test_samples_without_a_single_op_are_not_equal() -> None:
    nothing = simple_test({"aten::mul": 0}, capture=CaptureStats(sampled_ppm=1))
    found = compared(nothing, nothing)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "the base recorded only 0.0001% of the ops (sampling)" in found.reason


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("capture", [CaptureStats(dropped=9), CaptureStats(truncated=True)])
def test_two_empty_recordings_with_losses_are_not_equal(capture: CaptureStats, side: int) -> None:
    nothing = simple_test({})
    sides = [nothing, nothing]
    sides[side] = replace(nothing, capture=capture)
    found = compared(*sides)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert ("the base", "this run")[side] in found.reason


def test_ranges_are_judged_although_ops_were_sampled() -> None:
    before = simple_test({"load": 2, "aten::mul": 4})
    sampled = simple_test({"load": 3, "aten::mul": 1}, capture=CaptureStats(sampled_ppm=10_000))
    found = compared(before, sampled)
    assert verdicts(found)["load"] is Verdict.REGRESSED
    assert {verdicts(found)[name] for name in ("ops.count", "aten::mul")} == {Verdict.INCONCLUSIVE}


def test_cut_off_rows_are_not_a_change() -> None:
    base = simple_test({"aten::mul": 4, "aten::add": 1})
    head = replace(base, ops=base.ops[:1], ops_omitted=1)
    assert compared(base, head).changes == ()


def test_inconclusive_reason_of_unchanged_rows_is_given_once() -> None:
    test = simple_test({"aten::item": 2, "aten::mul": 1})
    found = compared(test, test, environment=TORCH_212)
    told = [change for change in found.changes if change.verdict is Verdict.INCONCLUSIVE]
    assert told
    assert all(change.op is None for change in told)
