"""What made tests fail, in words, and the command that accepts it: once for each cause."""

from __future__ import annotations

import shlex
import textwrap
from typing import TYPE_CHECKING

from pytest_opprof.compare.phrases import name_of
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import COUNT
from pytest_opprof.report.overview import short_names
from pytest_opprof.report.text import Line, Style, escaped
from pytest_opprof.units import format_change
from pytest_opprof.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_opprof.compare.common_cause import Beginning, CommonCause
    from pytest_opprof.compare.comparison import Change, TestComparison
    from pytest_opprof.report.summary import TestSummary

# Of the project's last comparison.
ACCEPT = "opprof accept"
# What to do where a limit was passed on purpose: nothing accepts that.
RAISE_LIMIT = "raise the limit in the test's marker"
_MOST_NAMES = 20
_NARROWEST = 40


def cause_title(cause: CommonCause) -> str:
    """``cause 1, 3 tests: aten::clone +1 to +2 a step, in forward, model.py:9``."""
    many = len(cause.tests)
    return f"cause {cause.number}, {counted(many, 'test')}: {_words(cause)}"


def names_of(tests: Sequence[TestComparison | TestSummary], *, most: int = _MOST_NAMES) -> str:
    """The names of tests, without their file where that is clear: ``test_a, test_b and 3 more``."""
    names = list(short_names([test.node_id for test in tests]).values())
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def acceptance(cause: CommonCause, accept: str) -> str:
    """The command that accepts all tests of a cause; empty where a limit is to be raised instead.

    A cause of one test is named by the test: that is true of any later comparison too.

    Args:
        cause: What made them fail.
        accept: The command, up to what it accepts.
    """
    if not cause.is_missing and not any(_has_regressed(test.changes) for test in cause.tests):
        return ""
    if len(cause.tests) == 1:
        return test_acceptance(cause.tests[0].node_id, accept)
    return f'{accept} --cause {cause.number} --reason "..."'


def test_acceptance(node_id: str, accept: str) -> str:
    """The command that accepts what a test does more."""
    return f'{accept} {shlex.quote(node_id)} --reason "..."'


def intentions(causes: Sequence[CommonCause], accept: str) -> dict[str, str]:
    """What the section of each test says of accepting it: the first test of a cause has the command.

    Returns:
        By node id, the end of the sentence ``intended? ...``; nothing of tests that cannot be accepted.
    """
    told: dict[str, str] = {}
    for cause in causes:
        if command := acceptance(cause, accept):
            first, *others = (test.node_id for test in cause.tests)
            told[first] = command
            told |= dict.fromkeys(others, f"accept cause {cause.number}, see {first}")
    return told


def is_over_limit(test: TestComparison) -> bool:
    """Whether a test is over a limit, which no command accepts."""
    return any(limit.verdict is Verdict.REGRESSED for limit in test.limits)


def cause_lines(causes: Sequence[CommonCause], *, width: int, accept: str | None) -> Iterator[Line]:
    """Each cause with its tests and its command, and one command for all of them.

    Args:
        causes: Of a comparison.
        width: The columns of the terminal.
        accept: See `acceptance`; None where no command knows of this comparison.
    """
    commands = 0
    for cause in causes:
        # In one line to the end of the first place: there a problem matcher looks for it.
        first, more, others = cause_title(cause).partition("; ")
        lines = _wrapped(others, width=width, first=escaped(first + more)) or [escaped(first)]
        yield from (Line(line, Style.BAD) for line in lines)
        if len(cause.tests) > 1:
            yield from map(Line, _wrapped(names_of(cause.tests), width=width, first="    "))
        command = acceptance(cause, accept) if accept else ""
        if command:
            commands += 1
            # In one line whatever the width: it is there to be copied.
            yield Line(escaped(f"    intended? {command}"))
    if commands > 1:
        yield Line(escaped(f'all of it intended? {accept} --all --reason "..."'))


def _words(cause: CommonCause) -> str:
    first = cause.tests[0]
    if cause.is_missing:
        file = first.node_id.partition("::")[0]
        return f"missing, as {file} was collected without {'it' if len(cause.tests) == 1 else 'them'}"
    limits = [limit for limit in first.limits if limit.verdict is Verdict.REGRESSED]
    told = [_beginning(one) for one in cause.beginnings]
    told += [f"{limit.path} over its limit ({limit.limit})" for limit in limits]
    return "; ".join(told)


def _beginning(one: Beginning) -> str:
    change = one.change
    metric = "" if change.op is None or change.metric == COUNT.name else f" {change.metric}"
    least, most = (format_change(rise, unit=change.about.unit) for rise in (one.least, one.most))
    rise = least if least == most else f"{least} to {most}"
    return f"{name_of(change)}{metric} {rise} a step{f', {one.place}' if one.place else ''}"


def _has_regressed(changes: Sequence[Change]) -> bool:
    return any(change.verdict is Verdict.REGRESSED for change in changes)


def _wrapped(text: str, *, width: int, first: str = "") -> list[str]:
    return textwrap.wrap(
        escaped(text),
        width=max(width, _NARROWEST),
        initial_indent=first,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
