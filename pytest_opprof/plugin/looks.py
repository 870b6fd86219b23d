"""What a test's run shows before it ends: whether it is unchanged, would fail, and fails again."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import pytest

from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.plugin.certify import SecondLooks
from pytest_opprof.plugin.fresh import first_run
from pytest_opprof.plugin.measurement import measured, unmeasured
from pytest_opprof.plugin.plans import PLAN
from pytest_opprof.plugin.shortfall import FAULTS, fault
from pytest_opprof.results.agreement import repeated
from pytest_opprof.results.names import canonical_node_id
from pytest_opprof.results.run import CERTIFICATE, MeasurementStatus, Outcome, TestResult

if TYPE_CHECKING:
    from pytest_opprof.compare.comparison import TestComparison
    from pytest_opprof.plugin.marker import ProfileRequest
    from pytest_opprof.plugin.session import OpprofSession
    from pytest_opprof.plugin.stepping import Stepping

_LAST: Final[pytest.StashKey[TestComparison | None]] = pytest.StashKey()


class Looks:
    """Asks how a measurement would be judged."""

    def __init__(self, session: OpprofSession) -> None:
        self._session = session
        self._fresh = SecondLooks(session.config)

    def before_all(self, item: pytest.Item, request: ProfileRequest) -> tuple[ProfileRequest, ...]:
        """Smaller requests than a test's marker, in order, one of which may answer.

        One active step can if the test has a certified baseline and no more is kept, or if it confirms the
        first process: then even the first call, without a warm-up.
        """
        options, is_to_confirm = self._session.options, first_run(self._session.config) is not None
        before = self._session.before.get(canonical_node_id(item.nodeid))
        one = request.with_one_active_step()
        if (
            one is request
            or before is None
            or before.unstable
            or before.processes < (1 if is_to_confirm else CERTIFICATE)
            or options.save
            or options.traces
            or options.timed_steps
        ):
            return ()
        return one.from_the_first_call() if is_to_confirm else (one,)

    def is_as_before(self, item: pytest.Item, stepping: Stepping) -> bool:
        """Whether the measurement equals the baseline, to the last op."""
        found = self._look(item, stepping)
        return found is not None and found.verdict is Verdict.PASS and not found.changes

    def would_fail(self, item: pytest.Item, stepping: Stepping) -> bool:
        """Whether a gate would fail a test that has run."""
        if self._session.baseline.run is None and not item.stash[PLAN].limits:
            return False
        found = self._look(item, stepping)
        return found is not None and found.verdict is Verdict.REGRESSED and self._session.fails(found)

    def last(self, item: pytest.Item, stepping: Stepping) -> TestComparison | None:
        """The last look's result, if only instructions were counted after it."""
        found = item.stash.get(_LAST, None)
        item.stash[_LAST] = None  # a rerun of the same item starts anew
        return found if stepping.is_as_seen else None

    def confirmed(self, item: pytest.Item, found: TestComparison) -> TestComparison:
        """The same, but a test that would fail is first measured in a fresh process."""
        session = self._session
        if found.base is None or found.verdict is not Verdict.REGRESSED or not session.fails(found):
            return found
        again = self._fresh.at(item)
        # A fresh process that also fails confirms this one; one without a verdict says nothing.
        if again is None or not again.is_usable or session.fails(session.compare(again)):
            return found
        return session.compare(repeated(measured_of(found), again, fresh_process=False))

    def _look(self, item: pytest.Item, stepping: Stepping) -> TestComparison | None:
        item.stash[_LAST] = found = None
        test = measured_or_error(unjudged(item, Outcome.PASSED), stepping)
        with contextlib.suppress(*FAULTS):  # this runs inside the test, which is judged later
            item.stash[_LAST] = found = self._session.compare(test)
        return found


def outcome_of(report: pytest.TestReport) -> Outcome:
    """A test's outcome by the report of its call, or of a setup that did not pass."""
    if report.when == "setup":
        return Outcome.SKIPPED if report.skipped else Outcome.ERROR
    if report.passed:
        return Outcome.PASSED
    return Outcome.SKIPPED if report.skipped else Outcome.FAILED


def unjudged(item: pytest.Item, outcome: Outcome) -> TestResult:
    """A finished marked test without its numbers."""
    plan = item.stash[PLAN]
    return TestResult(
        node_id=canonical_node_id(item.nodeid),
        outcome=outcome,
        limits=plan.limits,
        gates=plan.request.gates,
    )


def measured_or_error(test: TestResult, stepping: Stepping) -> TestResult:
    """`test` with its recording, or why that cannot be read."""
    try:
        return measured(test, stepping)
    except FAULTS as error:
        return unmeasured(test, MeasurementStatus.ERROR, fault(error))


def measured_of(found: TestComparison) -> TestResult:
    """The measurement of a test of this session."""
    assert found.head is not None, "a test of this session has run"
    return found.head
