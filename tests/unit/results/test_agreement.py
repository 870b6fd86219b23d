"""A test measured twice."""

from dataclasses import replace
from typing import Any

import pytest
from support.documents.strategies import cuda_test, simple_test

from pytest_opprof.results.agreement import repeated, settled
from pytest_opprof.results.build import MAX_LINES
from pytest_opprof.results.run import CaptureStats, Outcome, TestResult
from pytest_opprof.results.samples import Samples

FIRST = simple_test({"aten::mul": 2, "aten::add": 1}, processes=1)


def counts(test: TestResult) -> dict[str, tuple[int, int]]:
    return {row.name: (row.count.low, row.count.high) for row in test.ops}


def test_agreement_in_a_fresh_process_certifies() -> None:
    again = repeated(FIRST, FIRST, fresh_process=True)
    assert again == replace(FIRST, processes=2)


def test_agreement_in_the_same_process_does_not() -> None:
    assert repeated(FIRST, FIRST, fresh_process=False) == FIRST


def test_each_process_that_agrees_counts() -> None:
    first, again = replace(FIRST, processes=2), replace(FIRST, processes=3)
    assert repeated(first, again, fresh_process=True).processes == 5
    assert repeated(first, again, fresh_process=False).processes == 2


def test_disagreement_becomes_a_range() -> None:
    again = repeated(FIRST, simple_test({"aten::mul": 5, "aten::add": 1}, processes=1), fresh_process=True)
    assert counts(again) == {"aten::mul": (2, 5), "aten::add": (1, 1)}
    assert again.unstable == ("ops.count", "aten::mul.count")
    assert (again.totals["ops.count"].low, again.totals["ops.count"].high) == (3, 6)


def test_memory_that_disagrees_becomes_a_range() -> None:
    mul, add = FIRST.ops
    taken = replace(FIRST, ops=(mul.with_metrics(cpu_memory=Samples.constant(64, steps=3)), add))
    again = repeated(FIRST, taken, fresh_process=False)
    assert again.unstable == ("aten::mul.cpu_memory",)
    assert again.ops[0].metrics["cpu_memory"] == Samples(steps=3, total=0, low=0, high=64)
    assert again.ops[1] is add


@pytest.mark.parametrize(
    ("again", "is_a_range"), [(10_100, False), (9_900, False), (10_101, True), (9_899, True)]
)
def test_peaks_that_disagree_become_a_range(again: int, *, is_a_range: bool) -> None:
    """By more than their gates tolerate: otherwise the second look would fail with the first one's value."""
    peaks = [
        replace(FIRST, totals={**FIRST.totals, "cpu_memory.peak": Samples.constant(peak, steps=3)})
        for peak in (10_000, again)
    ]
    found = repeated(*peaks, fresh_process=True)
    assert found.unstable == (("cpu_memory.peak",) if is_a_range else ())
    assert found.totals["cpu_memory.peak"].is_constant is not is_a_range


def taking(*values: int, sources: tuple[str, ...] = ("memory-python",)) -> TestResult:
    totals = {**FIRST.totals, "cpu_memory.allocated": Samples.of(values)}
    return replace(FIRST, totals=totals, steps=len(values), sources=sources)


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ((96,), (48, 48, 48), (48,)),
        ((96, 64, 48), (48, 48, 48), (48, 48, 48)),
        ((40, 48, 48), (48, 48, 48), (40, 48, 48)),  # it rose
        ((96, 48, 48), (64, 48, 48), (96, 48, 48)),  # it still falls
    ],
    ids=["one step", "several", "rose", "varies"],
)
def test_pythons_memory_that_fell_and_stayed_is_settled(
    first: tuple[int, ...], last: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert settled(taking(*first), taking(*last)) == taking(*expected)


def test_only_pythons_memory_settles() -> None:
    """Torch's allocations do not depend on how often the interpreter ran the code, nor do counts."""
    torchs = taking(96, sources=("memory",))
    assert settled(torchs, taking(48, 48, sources=("memory",))) == torchs
    fewer = replace(taking(48, 48), totals={"ops.count": Samples.constant(1, steps=2)})
    assert settled(taking(96), fewer) == taking(96)
    assert settled(taking(96), replace(taking(48, 48), outcome=Outcome.FAILED)) == taking(96)


def test_rows_of_one_side_only_are_ranges_from_zero() -> None:
    again = repeated(FIRST, simple_test({"aten::mul": 2, "aten::sub": 1}), fresh_process=False)
    assert counts(again) == {"aten::mul": (2, 2), "aten::add": (0, 1), "aten::sub": (0, 1)}
    assert set(again.unstable) == {"aten::add.count", "aten::sub.count"}


def test_times_may_disagree() -> None:
    slower = replace(
        FIRST, totals={**FIRST.totals, "total.self_cpu_time_total": Samples.constant(9, steps=3)}
    )
    assert repeated(FIRST, slower, fresh_process=False) == FIRST


def test_second_looks_callers_are_taken_with_their_lines() -> None:
    first = replace(FIRST, lines={"f, a.py:1": "x * 2"})
    again = replace(
        FIRST, callers={"f, a.py:1": ("g, b.py:20",)}, lines={"f, a.py:1": "x * 2", "g, b.py:20": "f(x)"}
    )
    both = repeated(first, again, fresh_process=False)
    assert both.callers == again.callers
    assert both.lines == again.lines


def test_both_looks_respect_the_schemas_maximum_of_lines() -> None:
    first, again = (
        replace(FIRST, lines={f"{function}, a.py:{number}": "x * 2" for number in range(MAX_LINES - 1)})
        for function in "fg"
    )
    both = repeated(first, again, fresh_process=False)
    assert len(both.lines) == MAX_LINES
    assert first.lines.items() <= both.lines.items()


def test_failed_repetition_changes_nothing() -> None:
    failed = replace(FIRST, outcome=Outcome.FAILED)
    assert repeated(FIRST, failed, fresh_process=True) is FIRST


def test_background_may_disagree() -> None:
    rows = tuple(replace(row, background=True) for row in FIRST.ops)
    first = replace(FIRST, ops=rows)
    assert repeated(first, replace(first, ops=()), fresh_process=False) == first


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dropped", 3),
        ("truncated", True),
        ("names_overflowed", 3),
        ("device_partial", True),
        ("device_dropped", 3),
        ("unmatched_launches", 3),
        ("unmatched_kernels", 3),
        ("untimed_work", 3),
    ],
)
def test_incomplete_second_look_says_so(field: str, value: int) -> None:
    losses: dict[str, Any] = {field: value}
    torn = replace(FIRST, capture=CaptureStats(**losses))
    for first, again in ((FIRST, torn), (torn, FIRST)):
        assert getattr(repeated(first, again, fresh_process=False).capture, field) == value


def test_devices_that_disagree_become_a_range() -> None:
    first = cuda_test({"aten::mm": {"kernels": 1}})
    again = repeated(first, cuda_test({"aten::mm": {"kernels": 3}}), fresh_process=False)
    assert again.unstable == ("kernels.count", "aten::mm.kernels", "kernel of aten::mm.count")
    assert again.ops[0].metrics["kernels"] == Samples(steps=3, total=3, low=1, high=3)
    assert again.totals["kernels.count"].high == 3
