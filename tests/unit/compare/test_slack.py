"""Judging instructions: small rises never fail, and doubts are advisory."""

from dataclasses import replace
from types import MappingProxyType

import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.compare.comparison import TestComparison
from pytest_opprof.compare.gates import parse_gates
from pytest_opprof.compare.sessions import Policy, compare_test
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import LIBRARY_INSTRUCTIONS, PYTHON_INSTRUCTIONS, Metric
from pytest_opprof.metrics.host import NATIVE_INSTRUCTIONS
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples

NOTHING = MappingProxyType[str, str]({})


def with_total(
    low: int, high: int | None = None, *, metric: Metric = PYTHON_INSTRUCTIONS, libraries: str = "3.11.7 a"
) -> TestResult:
    test = simple_test({"aten::add": 2})
    counts = Samples.ranging([high or low, low], steps=test.steps)
    return replace(
        test,
        processes=2,
        sources=(*test.sources, "instructions"),
        settings={"libraries": libraries},
        totals={**test.totals, metric.name: counts},
    )


def compared(
    base: TestResult, head: TestResult, *, gates: MappingProxyType[str, str] = NOTHING
) -> TestComparison:
    policy = Policy(command_line=parse_gates(gates, where="gates"))
    return compare_test(head, base, base=simple_run(base, name="main"), head=simple_run(head), policy=policy)


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        (50_000, 50_000, Verdict.PASS),
        (50_000, 50_500, Verdict.CHANGED),
        (50_000, 50_501, Verdict.REGRESSED),
        (50_000, 49_990, Verdict.CHANGED),
        (50_000, 40_000, Verdict.IMPROVED),
        (100, 300, Verdict.CHANGED),
        (100, 301, Verdict.REGRESSED),
    ],
)
def test_a_rise_fails_above_both_thresholds(base: int, head: int, verdict: Verdict) -> None:
    assert compared(with_total(base), with_total(head)).verdict is verdict


def test_a_baseline_of_one_process_gates_no_instructions() -> None:
    base = replace(with_total(50_000), processes=1)
    found = compared(base, with_total(60_000))
    assert found.verdict is Verdict.PASS
    assert any("one process measured the baseline" in advisory for advisory in found.advisories)
    same = compared(base, with_total(50_000))
    assert not any("one process measured the baseline" in advisory for advisory in same.advisories)
    asked = MappingProxyType({"python.instructions": "1%"})
    assert compared(base, with_total(60_000), gates=asked).verdict is Verdict.REGRESSED


def test_an_exact_gate_has_no_floor() -> None:
    gates = MappingProxyType({"python.instructions": "exact"})
    assert compared(with_total(50_000), with_total(50_001), gates=gates).verdict is Verdict.REGRESSED


def test_a_small_rise_says_how_small() -> None:
    found = compared(with_total(50_000), with_total(50_100))
    assert found.reason == "100 more Python instructions in each step than main, within the tolerance of 1%"


@pytest.mark.parametrize(
    ("base", "head"),
    [(with_total(100, 900), with_total(90_000)), (with_total(100), with_total(90_000, 99_000))],
)
def test_varying_instructions_are_advisory(base: TestResult, head: TestResult) -> None:
    found = compared(base, head)
    assert found.verdict is Verdict.PASS
    assert any("Python instructions" in advisory for advisory in found.advisories)


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        (with_total(8_121, 8_139), with_total(30_672), Verdict.REGRESSED),
        (with_total(8_121, 8_139), with_total(30_672, 30_690), Verdict.REGRESSED),
        (with_total(8_121, 8_139), with_total(8_130), Verdict.PASS),
        (with_total(8_121, 8_139), with_total(8_339), Verdict.CHANGED),
        (with_total(8_121, 8_139), with_total(8_300, 8_500), Verdict.PASS),
        (with_total(8_121, 8_139), with_total(6_000, 6_018), Verdict.IMPROVED),
    ],
)
def test_a_baseline_that_jitters_within_the_tolerance_gates(
    base: TestResult, head: TestResult, verdict: Verdict
) -> None:
    """Which of two tests fills a cache decides whether a key is compared once more."""
    base = replace(base, unstable=(PYTHON_INSTRUCTIONS.name,))
    assert compared(base, head).verdict is verdict


def test_instructions_that_vary_with_the_ops_do_not_gate() -> None:
    base = with_total(8_121, 8_139)
    base = replace(base, totals={**base.totals, "ops.count": Samples.of([2, 3, 2])})
    assert compared(base, with_total(30_672)).verdict is not Verdict.REGRESSED


def both(project: int, libraries: int, *, version: str = "3.11.7 a") -> TestResult:
    test, other = with_total(project), with_total(libraries, metric=LIBRARY_INSTRUCTIONS, libraries=version)
    return replace(other, totals={**test.totals, **other.totals})


def test_other_libraries_make_their_total_advisory() -> None:
    base, head = both(1_000, 5_000), both(1_000, 9_000, version="3.11.7 b")
    found = compared(base, head)
    assert found.verdict is Verdict.PASS
    assert any("installed libraries 3.11.7 a -> 3.11.7 b" in advisory for advisory in found.advisories)
    assert compared(base, both(1_000, 9_000)).verdict is Verdict.REGRESSED


def test_varying_project_instructions_ungate_libraries() -> None:
    """In a test with random sizes, equal library calls are luck."""
    varying = replace(both(1_000, 9_000), unstable=(PYTHON_INSTRUCTIONS.name,))
    for base, head in ((both(1_000, 5_000), varying), (varying, both(1_000, 15_000))):
        found = compared(base, head)
        assert found.verdict is Verdict.PASS
        assert any("Python instructions vary" in advisory for advisory in found.advisories)


@pytest.mark.parametrize(
    ("head", "verdict"),
    [
        (both(9_000, 1_000), Verdict.CHANGED),
        (both(9_000, 1_200), Verdict.CHANGED),
        (both(9_000, 1_201), Verdict.REGRESSED),
        (both(9_000, 1_000, version="3.11.7 b"), Verdict.REGRESSED),
    ],
)
def test_work_moved_from_a_library_is_not_more(head: TestResult, verdict: Verdict) -> None:
    assert compared(both(5_000, 5_000), head).verdict is verdict


def test_requested_project_gate_applies() -> None:
    gates = MappingProxyType({"python.instructions": "1%"})
    assert compared(both(5_000, 5_000), both(9_000, 1_000), gates=gates).verdict is Verdict.REGRESSED


def test_run_without_instructions_is_judged_without() -> None:
    assert compared(with_total(5_000), simple_test({"aten::add": 2})).verdict is Verdict.PASS


def test_why_nothing_was_counted_is_advisory() -> None:
    head = replace(
        simple_test({"aten::add": 2}), unheard={"instructions": "coverage holds the trace function"}
    )
    found = compared(with_total(5_000), head)
    assert found.verdict is Verdict.PASS
    assert any("coverage holds the trace function" in advisory for advisory in found.advisories)


def replayed(
    low: int, high: int | None = None, *, python: Samples | None = None, cpu: str = "Haswell"
) -> TestResult:
    """A test under `opprof replay`, with Python instructions if they were counted."""
    test = with_total(low, high, metric=NATIVE_INSTRUCTIONS)
    of_python = (
        {} if python is None else {PYTHON_INSTRUCTIONS.name: python, LIBRARY_INSTRUCTIONS.name: STEADY}
    )
    return replace(
        test,
        sources=(*test.sources, "replay"),
        settings={**test.settings, "guest": cpu},
        totals={**test.totals, **of_python},
    )


STEADY = Samples.constant(900, steps=3)
VARYING = Samples.ranging([100, 900], steps=3)


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        ((1_000_000,), (1_000_000,), Verdict.PASS),
        ((1_000_000,), (1_020_000,), Verdict.PASS),
        ((1_000_000,), (980_000,), Verdict.PASS),
        ((1_000_000,), (1_020_001,), Verdict.REGRESSED),
        ((1_000_000,), (900_000,), Verdict.IMPROVED),
        ((10_000,), (12_000,), Verdict.PASS),
        ((10_000,), (12_001,), Verdict.REGRESSED),
        ((900_000, 1_000_000), (1_020_001,), Verdict.REGRESSED),
    ],
)
def test_machine_instructions_vary_a_little_by_themselves(
    base: tuple[int, ...], head: tuple[int, ...], verdict: Verdict
) -> None:
    found = compared(replayed(*base, python=STEADY), replayed(*head, python=STEADY))
    assert found.verdict is verdict


@pytest.mark.parametrize(
    ("base", "head", "why"),
    [
        (VARYING, STEADY, "the baseline's Python instructions vary: 100 to 900"),
        (STEADY, VARYING, "this run's Python instructions vary: 100 to 900"),
        (None, STEADY, "the baseline's Python instructions were not counted"),
        (STEADY, None, "this run's Python instructions were not counted"),
    ],
)
def test_varying_python_instructions_ungate_machine_instructions(
    base: Samples | None, head: Samples | None, why: str
) -> None:
    found = compared(replayed(1_000_000, python=base), replayed(9_000_000, python=head))
    assert found.verdict is not Verdict.REGRESSED
    assert any("machine instructions" in told and why in told for told in found.advisories)


def test_machine_instructions_of_another_cpu_are_inconclusive() -> None:
    found = compared(replayed(1_000_000, python=STEADY), replayed(1_000_000, python=STEADY, cpu="Nehalem"))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "CPU of opprof replay" in found.reason
