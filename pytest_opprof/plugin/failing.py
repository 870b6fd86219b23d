"""Turn a failed verdict into a failed test, and a failed session even if the test's report is lost."""

from __future__ import annotations

from bdb import BdbQuit
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Never

import pytest
from _pytest.outcomes import Failed

from pytest_opprof.compare.common_cause import common_causes
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.plugin.stash import FAILED
from pytest_opprof.report.causes import ACCEPT, intentions, test_acceptance
from pytest_opprof.report.text import escaped
from pytest_opprof.results.names import canonical_node_id
from pytest_opprof.wording import listed

if TYPE_CHECKING:
    from pytest_opprof.compare.comparison import Comparison, TestComparison
    from pytest_opprof.plugin.session import OpprofSession

# Not the test's fault: these fail the session at its end, never a test.
NOT_THE_TESTS: Final = frozenset({Verdict.ERROR, Verdict.MISSING})
GREEN: Final = frozenset({pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED})
_MOST_NAMES: Final = 10
_LOST: Final = "another plugin replaced or dropped the failed report"


class GateFailed(Failed, BdbQuit):
    """A gate failed. pytest starts no debugger for a `BdbQuit`, because no frame of the user's is left."""


def fail_test(call: pytest.CallInfo[Any], report: pytest.TestReport, section: str) -> None:
    """Fail a passed test with a section of ours.

    Plugins that rerun a test read the call's exception, not the report's outcome: both are set.
    """
    call.excinfo = pytest.CallInfo.from_call(partial(_fail, section), when="call").excinfo
    report.outcome = "failed"
    report.longrepr = section
    vars(report).pop("wasxfail", None)  # it passed unexpectedly, and fails for another reason


def _fail(section: str) -> Never:
    raise GateFailed(section, pytrace=False)


def failures_of(session: OpprofSession, comparison: Comparison) -> Iterator[str]:
    """Sentences on what fails a session without a test of ours."""
    if session.baseline.problem and session.fail_on.no_baseline:
        yield session.baseline.problem
    failed = {canonical_node_id(node_id) for node_id in session.config.stash[FAILED]}
    lost = [test for test in _failing(session, comparison) if test.verdict not in NOT_THE_TESTS]
    yield from _by_reason(
        (f"{test.verdict.label}, but {_LOST}", test.node_id)
        for test in lost
        if test.verdict and test.node_id not in failed
    )


def listed_failures(session: OpprofSession, comparison: Comparison) -> Iterator[str]:
    """Why passed tests fail a session; the summary has each reason beside its test."""
    return _by_reason(
        (test.reason, test.node_id) for test in _failing(session, comparison) if test.verdict in NOT_THE_TESTS
    )


def _failing(session: OpprofSession, comparison: Comparison) -> Iterator[TestComparison]:
    return (test for test in comparison.tests if test.verdict is not None and session.fails(test))


def _by_reason(failures: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Each reason once, with the tests that share it."""
    told: dict[str, list[str]] = {}
    for reason, node_id in failures:
        told.setdefault(reason, []).append(node_id)
    for reason, tests in told.items():
        yield f"{listed(tests, most=_MOST_NAMES)}: {reason}"


def name_causes(reports: dict[str, pytest.TestReport], comparison: Comparison) -> None:
    """Put each cause's command into one failed report; the cause's other reports refer to it.

    Which tests share a cause is known only when all have run. Until then, as in JUnit reports, each section
    has its own test's command.
    """
    by_test = {canonical_node_id(node_id): report for node_id, report in reports.items()}
    for node_id, intended in intentions(common_causes(comparison), ACCEPT, comparison.tests).items():
        report = by_test.get(node_id)
        if report is not None and isinstance(report.longrepr, str):
            own = escaped(test_acceptance(node_id, ACCEPT))
            report.longrepr = report.longrepr.replace(f"intended? {own}", f"intended? {escaped(intended)}")


def fail_session(its: pytest.Session, failures: Sequence[str]) -> bool:
    """Fail a session that pytest would pass, beside its green last line; says whether that was needed."""
    if not failures or its.exitstatus not in GREEN:
        return False
    its.exitstatus = pytest.ExitCode.TESTS_FAILED
    more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    its.shouldfail = escaped(f"opprof fails this session: {failures[0]}{more}")
    return True
