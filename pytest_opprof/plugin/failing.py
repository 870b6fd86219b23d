"""How a failed verdict becomes a failed test, and a failed session whatever becomes of the test's report."""

from __future__ import annotations

from bdb import BdbQuit
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Never

import pytest
from _pytest.outcomes import Failed

from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.plugin.hooks import FAILED
from pytest_opprof.report.text import escaped
from pytest_opprof.results.names import canonical_node_id

if TYPE_CHECKING:
    from pytest_opprof.compare.comparison import Comparison
    from pytest_opprof.plugin.session import OpprofSession

# No fault of the test's: they fail the session at its end, never a test.
NOT_THE_TESTS: Final = frozenset({Verdict.ERROR, Verdict.MISSING})
GREEN: Final = frozenset({pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED})
_LOST: Final = "another plugin replaced or dropped the failed report"


class GateFailed(Failed, BdbQuit):
    """A gate failed. pytest starts no debugger for a `BdbQuit`: no frame of the user's is left to look at."""


def fail_test(call: pytest.CallInfo[Any], report: pytest.TestReport, section: str) -> None:
    """Have a test that passed fail with a section of ours.

    Plugins that run a test again ask the call for its exception, not the report for its outcome: both say it.
    """
    call.excinfo = pytest.CallInfo.from_call(partial(_fail, section), when="call").excinfo
    report.outcome = "failed"
    report.longrepr = section
    vars(report).pop("wasxfail", None)  # it passed against expectation, and fails for another reason


def _fail(section: str) -> Never:
    raise GateFailed(section, pytrace=False)


def failures_of(session: OpprofSession, comparison: Comparison) -> Iterator[str]:
    """Sentences on what fails a session although pytest knows of no test that failed for it."""
    if session.baseline.problem and session.fails_without_baseline:
        yield session.baseline.problem
    failed = {canonical_node_id(node_id) for node_id in session.config.stash[FAILED]}
    for test in comparison.tests:
        if test.verdict is None or not session.fails(test):
            continue
        if test.verdict in NOT_THE_TESTS:
            yield f"{test.node_id}: {test.reason}"
        elif test.node_id not in failed:
            yield f"{test.node_id}: {test.verdict.label}, but {_LOST}"


def fail_session(its: pytest.Session, failures: Sequence[str]) -> None:
    """Fail a session that pytest would call a success, and have it say so beside its green last line."""
    if not failures or its.exitstatus not in GREEN:
        return
    its.exitstatus = pytest.ExitCode.TESTS_FAILED
    more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    its.shouldfail = escaped(f"opprof fails this session: {failures[0]}{more}")
