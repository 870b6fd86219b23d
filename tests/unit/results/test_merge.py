"""A run joins an earlier one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest
from strategies import simple_run, simple_test

from pytest_opprof.results.merge import Collected, differences, joined, merged
from pytest_opprof.results.run import Commit, Environment, Outcome

A, B = (simple_test({"aten::mul": 1}, node_id=f"tests/test_a.py::test_{name}") for name in "ab")
DAY = datetime(2026, 1, 1, tzinfo=UTC)
OTHER = simple_test({"aten::mul": 1}, node_id="tests/sub/test_c.py::test_c")


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
def test_only_whole_files_lack_tests(whole: set[str], node_id: str, lacks: bool) -> None:
    collected = Collected(node_ids=frozenset({"tests/test_a.py::test_a"}), whole_paths=frozenset(whole))
    assert collected.lacks(node_id) is lacks


def test_tests_that_did_not_run_are_carried() -> None:
    previous = simple_run(A, B, run_id="old", commit=Commit(id="1" * 40, dirty=False))
    again = simple_test({"aten::mul": 2}, node_id=A.node_id)
    result = merged(previous, simple_run(again, run_id="new"), collected=Collected())
    assert result.carried == 1
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


def test_joined_runs_have_of_each_test_what_was_measured_last() -> None:
    first = simple_run(A, B, run_id="one", created=DAY)
    again = simple_test({"aten::mul": 2}, node_id=A.node_id)
    # The later run has a test of the earlier one, and does not know that it was measured again between the two.
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


def test_joined_runs_of_two_environments_are_the_newer_one() -> None:
    older = simple_run(A, B, created=DAY)
    newer = simple_run(
        A,
        created=DAY + timedelta(hours=1),
        environment=Environment(fingerprint={"python": "3.12", "torch": "2.13.0"}),
    )
    assert joined([older, newer]) == newer
    assert joined([older]) == older


def test_tests_that_are_no_more_are_dropped() -> None:
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
    assert "torch 2.12.0 -> 2.13.0" in result.notes[0]


def test_unknown_fields_are_no_other_environment() -> None:
    with_torch = simple_run(B)
    without = simple_run(A, environment=Environment(fingerprint={"python": "3.11"}))
    result = merged(with_torch, without, collected=Collected())
    assert result.carried == 1
    assert result.run.environment.fingerprint == {"python": "3.11", "torch": "2.13.0"}


def test_differences_read_as_words() -> None:
    base = Environment(fingerprint={"torch": "2.12.0", "python": "3.11"})
    head = Environment(fingerprint={"python": "3.12"})
    assert differences(base, head) == {"python": "Python 3.11 -> 3.12", "torch": "torch 2.12.0 -> unknown"}
    assert differences(base, head, ignore_unknown=True) == {"python": "Python 3.11 -> 3.12"}


def test_paths_left_out_lack_nothing() -> None:
    collected = Collected(whole_paths=frozenset({"tests"}), unread_paths=frozenset({"tests/test_a.py"}))
    assert not collected.lacks(A.node_id)
    assert collected.lacks(OTHER.node_id)
