"""A session in which nothing can be measured: marked tests run as plain tests, and the output says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_opprof.compare.verdicts import parse_fail_on
from pytest_opprof.plugin.failing import GREEN
from pytest_opprof.plugin.options import calls_no_test
from pytest_opprof.plugin.stash import ASIDE, OPTIONS, UNMEASURED
from pytest_opprof.results.files import shown

if TYPE_CHECKING:
    from pytest_opprof.capture.native import Absence
    from pytest_opprof.plugin.options import Options


def stand_aside(config: pytest.Config, absence: Absence) -> None:
    """Note the sentences of header and summary on what cannot be measured here.

    Raises:
        UsageError: A verdict to fail on is unknown.
    """
    config.stash[ASIDE] = f"opprof: {absence}"
    leave_undone(config, reason=absence.reason)


def leave_undone(config: pytest.Config, *, reason: str) -> None:
    """Note the summary's sentence on all that was requested and is not done."""
    if not calls_no_test(config):
        undone = _undone(config.stash[OPTIONS])
        config.stash[UNMEASURED] = "; ".join([f"opprof: not measured: {reason}", *undone])


def fail(session: pytest.Session) -> None:
    """Fail a session that passed, if ``--opprof-fail-on`` says so."""
    if parse_fail_on(session.config.stash[OPTIONS].fail_on).unmeasured and session.exitstatus in GREEN:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _undone(options: Options) -> Iterator[str]:
    if options.baseline:
        yield f"nothing was compared with {options.baseline}"
    if options.save:
        yield f"nothing was saved as {options.save}"
    files = [options.json, *(report.path for report in options.reports)]
    for path in filter(None, files):
        yield f"{shown(path)} was not written"
    if parse_fail_on(options.fail_on).unmeasured:
        yield "--opprof-fail-on makes this fail"
