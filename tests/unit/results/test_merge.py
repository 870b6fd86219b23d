"""Merging a run with an earlier one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.metrics import WALL_TIME
from pytest_opprof.results.merge import Collected, differences, joined, merged
from pytest_opprof.results.run import Commit, Environment, Outcome, Run, TestResult, Timing
from pytest_opprof.results.samples import Samples

A, B = (simple_test({"aten::mul": 1}, node_id=f"tests/test_a.py::test_{name}") for name in "ab")
DAY = datetime(2026, 1, 1, tzinfo=UTC)
OTHER = simple_test({"aten::mul": 1}, node_id="tests/sub/test_c.py::test_c")
HOST = {
    "python": "3.11",
    "torch": "2.13.0",
    "cpu_model": "one",
    "cpu_count": "4",
    "threads": "4",
    "gpu_model": "H200",
    "gpu_driver": "550",
}


def times_of(test: TestResult) -> TestResult:
    """A test's times in a pytest-benchmark file."""
    wall = Samples.constant(7, steps=3)
    return TestResult(node_id=test.node_id, timing=Timing(steps=3), totals={WALL_TIME.name: wall})


def measured_on(*tests: TestResult, hours: int = 0, **fields: Any) -> Run:
    """A run on a host like `HOST`, with other or missing fields."""
    fingerprint = {name: value for name, value in (HOST | fields).items() if value is not None}
    return simple_run(
        *tests,
        run_id=f"run{hours}",
        created=DAY + timedelta(hours=hours),
        environment=Environment(fingerprint=fingerprint),
    )


def names(run: Run) -> set[str]:
    return {test.node_id for test in run.tests}


@pytest.mark.parametrize(
    ("whole", "node_id", "lacks"),
    [
        ({"tests/test_a.py"}, "tests/test_a.py::test_gone", True),
        ({"tests"}, "tests/sub/test_c.py::test_c", True),
        ({"."}, "tests/test_a.py::test_gone", True),
        ({"tests/test_b.py"}, "tests/test_a.py::test_gone", False),
        (set(), "tests/test_a.py::test_gone", False),
        ({"."}, "tests/test_a.py::test_a", False),
        ({"tests/te"}, "tests/test_a.py::test_gone", False),
    ],
)
def test_only_wholly_collected_files_lack_tests(whole: set[str], node_id: str, lacks: bool) -> None:
    collected = Collected(node_ids=frozenset({"tests/test_a.py::test_a"}), whole_paths=frozenset(whole))
    assert collected.lacks(node_id) is lacks


def test_tests_that_did_not_run_are_carried() -> None:
    previous = simple_run(A, B, run_id="old", commit=Commit(id="1" * 40, dirty=False))
    again = simple_test({"aten::mul": 2}, node_id=A.node_id)
    result = merged(previous, simple_run(again, run_id="new"), collected=Collected())
    assert result.run.test(A.node_id) == again
    carried = result.run.test(B.node_id)
    assert carried is not None
    assert carried.carried_from is not None
    assert (carried.carried_from.run_id, carried.carried_from.commit) == ("old", "1111111")
    assert result.notes == ("1 test that did not run kept from 1111111",)


def test_origin_of_a_carried_test_stays() -> None:
    first = merged(simple_run(A, B, run_id="one"), simple_run(A, run_id="two"), collected=Collected()).run
    second = merged(first, simple_run(A, run_id="three"), collected=Collected()).run
    carried = second.test(B.node_id)
    assert carried is not None
    assert carried.carried_from is not None
    assert carried.carried_from.run_id == "one"


def test_joined_runs_keep_each_tests_latest_measurement() -> None:
    first = simple_run(A, B, run_id="one", created=DAY)
    again = simple_test({"aten::mul": 2}, node_id=A.node_id)
    # The later run carries a test of the earlier one, unaware that it was measured again between them.
    between = simple_run(again, run_id="two", created=DAY + timedelta(hours=1))
    later = merged(
        first, simple_run(OTHER, run_id="three", created=DAY + timedelta(hours=2)), collected=Collected()
    )
    for order in permutations((first, between, later.run)):
        found = joined(order)
        assert {test.node_id for test in found.tests} == {A.node_id, B.node_id, OTHER.node_id}
        kept = found.test(A.node_id)
        assert kept is not None
        assert (kept.totals, kept.carried_from is None) == (again.totals, False)
        assert (found.run_id, found.test(OTHER.node_id)) == ("three", OTHER)


def test_joining_two_environments_keeps_the_newer() -> None:
    older = simple_run(A, B, created=DAY)
    newer = simple_run(
        A,
        created=DAY + timedelta(hours=1),
        environment=Environment(fingerprint={"python": "3.12", "torch": "2.13.0"}),
    )
    assert joined([older, newer]) == newer
    assert joined([older]) == older


def test_removed_tests_are_dropped() -> None:
    collected = Collected(node_ids=frozenset({A.node_id}), whole_paths=frozenset({"tests/test_a.py"}))
    result = merged(simple_run(A, B, OTHER), simple_run(A), collected=collected)
    assert [test.node_id for test in result.run.tests] == [A.node_id, OTHER.node_id]


def test_failed_tests_keep_their_earlier_numbers() -> None:
    failed = replace(A, outcome=Outcome.FAILED, ops=())
    result = merged(simple_run(A), simple_run(failed, B), collected=Collected())
    kept = result.run.test(A.node_id)
    assert kept is not None
    assert kept.ops == A.ops


def test_other_environment_is_left_behind() -> None:
    elsewhere = simple_run(B, environment=Environment(fingerprint={"python": "3.11", "torch": "2.12.0"}))
    result = merged(elsewhere, simple_run(A), collected=Collected())
    assert result.run.tests == (A,)
    what = "measured in another environment (torch 2.12.0 -> 2.13.0)"
    assert result.notes == (f"1 test of {elsewhere.title} left out, {what}: {B.node_id}",)


def test_unknown_fields_are_not_another_environment() -> None:
    with_torch = simple_run(B)
    without = simple_run(A, environment=Environment(fingerprint={"python": "3.11"}))
    result = merged(with_torch, without, collected=Collected())
    assert [test.node_id for test in result.run.tests if test.carried_from] == [B.node_id]
    assert result.run.environment.fingerprint == {"python": "3.11", "torch": "2.13.0"}


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("cpu_model", "CPU model one -> two"),
        ("cpu_count", "CPU count 4 -> two"),
        ("gpu_driver", "GPU driver 550 -> two"),
        ("threads", ""),  # which each test records itself
        ("determinism", ""),
    ],
)
def test_host_that_counts_the_same_keeps_tests(field: str, told: str) -> None:
    one: dict[str, Any] = {field: HOST.get(field, "one")}
    previous = measured_on(A, B, **one)
    head = measured_on(A, hours=1, **(one | {field: "two"}))
    result = merged(previous, head, collected=Collected())
    assert [test.node_id for test in result.run.tests if test.carried_from] == [B.node_id]
    assert result.run.environment.fingerprint == {key: HOST[key] for key in HOST if key != field}
    notes = [f"times cannot be compared: the environments differ ({told})"] if told else []
    assert result.notes == (f"1 test that did not run kept from {previous.title}", *notes)
    assert joined([head, previous]).environment == result.run.environment
    assert names(joined([head, previous])) == {A.node_id, B.node_id}


@pytest.mark.parametrize("field", ["torch", "gpu_model", "compile"])
def test_host_with_different_counts_keeps_none(field: str) -> None:
    one, two = (measured_on(A, B, hours=hours, **{field: f"{hours}"}) for hours in (0, 1))
    two = replace(two, tests=(A,))
    assert merged(one, two, collected=Collected()).run == two
    assert joined([one, two]) == two


def test_host_that_was_left_out_stays_unknown() -> None:
    hosts = [
        measured_on(*tests, hours=hours, cpu_model=model)
        for hours, (model, tests) in enumerate((("one", (A, B)), ("two", (A,)), ("three", (A, OTHER))))
    ]
    stored = None
    for run in hosts:
        stored = merged(stored, run, collected=Collected()).run
    assert stored is not None
    assert names(stored) == names(joined(hosts)) == {A.node_id, B.node_id, OTHER.node_id}
    for found in (stored, joined(hosts)):
        assert "cpu_model" not in found.environment.fingerprint, "B is from no third host"


def test_session_without_devices_takes_the_others_driver() -> None:
    without = measured_on(B, hours=1, gpu_model=None, gpu_driver=None)
    assert merged(measured_on(A), without, collected=Collected()).run.environment.fingerprint == HOST


def test_counts_take_precedence_over_times_only() -> None:
    timed = times_of(A)
    result = merged(measured_on(A, B), measured_on(timed, times_of(OTHER), hours=1), collected=Collected())
    kept = result.run.test(A.node_id)
    assert kept is not None
    assert (kept.ops, kept.carried_from is None) == (A.ops, False)
    assert names(result.run) == {A.node_id, B.node_id, OTHER.node_id}
    assert result.notes == (
        "1 test that did not run kept from the run of 2026-01-01 00:00",
        "1 test kept from the run of 2026-01-01 00:00 with the counts: this run has no counts of them, "
        "so its times are left out",
    )
    again = merged(measured_on(timed), measured_on(A, hours=1), collected=Collected())
    assert again.run.tests == (A,)
    assert again.notes == ()


def test_host_of_dropped_times_does_not_matter() -> None:
    timed = measured_on(times_of(A), hours=1, cpu_model="two")
    result = merged(measured_on(A), timed, collected=Collected())
    assert result.run.environment.fingerprint == HOST
    assert len(result.notes) == 1


def test_times_of_another_environment_leave_counts_alone() -> None:
    profiled = measured_on(A, times_of(B), OTHER)
    timed = measured_on(times_of(A), times_of(B), hours=1, python="3.12")
    result = merged(profiled, timed, collected=Collected())
    for found in (result.run, joined([timed, profiled])):
        assert (found.run_id, found.environment) == (timed.run_id, profiled.environment)
        assert [replace(test, carried_from=None) for test in found.tests] == list(profiled.tests)
    assert result.notes == (
        f"3 tests kept from {profiled.title} with the counts",
        "2 tests of this run left out: they have only times, and were measured in another environment (Python 3.11 -> 3.12)",
    )
    collected = Collected(node_ids=frozenset({A.node_id, B.node_id}), whole_paths=frozenset({"."}))
    assert names(merged(profiled, timed, collected=collected).run) == {A.node_id, B.node_id}
    of_times = replace(profiled, tests=(times_of(B),))
    assert names(merged(of_times, replace(timed, tests=(times_of(A),)), collected=Collected()).run) == {
        A.node_id
    }


def test_joined_runs_have_counts_where_one_has() -> None:
    again = simple_test({"aten::mul": 2}, node_id=A.node_id)
    first, between = measured_on(A, B), measured_on(again, times_of(OTHER), hours=1)
    later = measured_on(times_of(A), times_of(B), OTHER, hours=2)
    for order in permutations((first, between, later)):
        found = joined(order)
        assert {test.node_id: test.ops for test in found.tests} == {
            A.node_id: again.ops,
            B.node_id: B.ops,
            OTHER.node_id: OTHER.ops,
        }
    carrying = merged(first, measured_on(OTHER, hours=3), collected=Collected()).run
    kept = joined([measured_on(times_of(A), hours=1), carrying]).test(A.node_id)
    assert kept is not None
    assert kept.ops == A.ops


def test_differences_read_as_words() -> None:
    base = Environment(fingerprint={"torch": "2.12.0", "python": "3.11"})
    head = Environment(fingerprint={"python": "3.12"})
    assert differences(base, head) == {"python": "Python 3.11 -> 3.12", "torch": "torch 2.12.0 -> unknown"}
    assert differences(base, head, ignore_unknown=True) == {"python": "Python 3.11 -> 3.12"}


def test_unread_paths_lack_nothing() -> None:
    collected = Collected(whole_paths=frozenset({"tests"}), unread_paths=frozenset({"tests/test_a.py"}))
    assert not collected.lacks(A.node_id)
    assert collected.lacks(OTHER.node_id)
