"""What belongs together: the tests of two runs, the rows of two tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_opprof.kinds import OpKind
from pytest_opprof.results.names import STEP_NAME
from pytest_opprof.results.run import OpRow, Run, TestResult


@dataclass(frozen=True, slots=True, kw_only=True)
class TestPair:
    """A test on both sides; None if a side lacks it."""

    __test__ = False  # not a test class for pytest to collect

    node_id: str
    base: TestResult | None
    head: TestResult | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPair:
    """An op's row on both sides; None if a side lacks it."""

    name: str
    kind: OpKind
    background: bool
    base: OpRow | None
    head: OpRow | None


def pair_tests(base: Run | None, head: Run) -> Iterator[TestPair]:
    """The tests of both runs by node id: the head's in their order, then those that only the base has."""
    before = {test.node_id: test for test in base.tests} if base else {}
    for test in head.tests:
        yield TestPair(node_id=test.node_id, base=before.pop(test.node_id, None), head=test)
    for test in before.values():
        yield TestPair(node_id=test.node_id, base=test, head=None)


def pair_rows(base: TestResult, head: TestResult) -> Iterator[RowPair]:
    """The rows of both sides by name, kind and thread class; the steps' own ranges left out."""
    before = {row.key: row for row in base.ops}
    after = {row.key: row for row in head.ops}
    for key in dict.fromkeys((*after, *before)):
        name, kind, background = key
        if name != STEP_NAME:
            yield RowPair(
                name=name, kind=kind, background=background, base=before.get(key), head=after.get(key)
            )
