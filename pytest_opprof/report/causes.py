"""Why tests failed, in words, and the command that accepts it, once for each cause."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_opprof.compare.common_cause import Beginning, CommonCause
from pytest_opprof.compare.comparison import TestComparison
from pytest_opprof.compare.phrases import name_of
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import COUNT
from pytest_opprof.report.rows import value_text
from pytest_opprof.report.summary import Summary, TestSummary
from pytest_opprof.report.text import Line, Style, columns, escaped, wrapped
from pytest_opprof.units import format_change
from pytest_opprof.wording import counted, listed

# Of the project's last comparison.
ACCEPT = "opprof accept"
# What to do if a limit was exceeded on purpose: it cannot be accepted.
RAISE_LIMIT = "raise the limit in the test's marker"
_MOST_NAMES = 20
_MOST_BOUNDS = 3
_INDENT = " " * 4


def cause_title(cause: CommonCause) -> str:
    """``cause 1, 3 tests: model.py:9 in forward: aten::clone +1 to +2 a step``."""
    many = len(cause.tests)
    return f"cause {cause.number}, {counted(many, 'test')}: {cause_words(cause)}"


def names_of(
    tests: Sequence[TestComparison | TestSummary], names: Mapping[str, str], *, most: int = _MOST_NAMES
) -> str:
    """The names of tests, by the `short_names` of the comparison: ``test_a, test_b and 3 more``."""
    return listed([names[test.node_id] for test in tests], most=most)


def again(summary: Summary, test: TestSummary | None = None) -> str:
    """The command that measures and compares a test again, or all; empty for a test that is gone."""
    if test is not None and test.verdict is Verdict.MISSING:
        return ""
    base, tests = summary.exact.base, [test.node_id] if test is not None else []
    if base is None:
        return shlex.join(["pytest", *tests])
    name = base.name or "NAME"
    if summary.times is not None:
        return shlex.join(["opprof", "ab", name, *tests])
    return f"{shlex.join(['pytest', *tests])} --opprof-baseline={shlex.quote(name)}"


def accepting(summary: Summary) -> str:
    """The command that accepts failures, up to what it accepts: an A/B is in no project's last comparison."""
    return ACCEPT if summary.times is None else f"{ACCEPT} --comparison FILE"


def acceptance(cause: CommonCause, accept: str) -> str:
    """The command that accepts all tests of a cause; empty if a limit must be raised instead.

    It begins with `accept`. A cause of one test is named by the test, which stays right in later comparisons.
    """
    if not cause.is_missing and not any(test.regressed for test in cause.tests):
        return ""
    if len(cause.tests) == 1:
        return test_acceptance(cause.tests[0].node_id, accept)
    return f'{accept} --cause {cause.number} --reason "..."'


def test_acceptance(node_id: str, accept: str) -> str:
    """The command that accepts a test's rises."""
    return f'{accept} {shlex.quote(node_id)} --reason "..."'


def showing(node_id: str) -> str:
    """The command that prints all of a test's section, from the project's last comparison."""
    return f"opprof show --test {shlex.quote(node_id.partition('::')[2] or node_id)}"


def intentions(causes: Sequence[CommonCause], accept: str, tests: Iterable[TestComparison]) -> dict[str, str]:
    """What ends the sentence ``intended? ...`` of each of these tests that can be accepted, by node id.

    The first of them with a cause has the command.
    """
    told: dict[str, str] = {}
    shown = {test.node_id for test in tests}
    for cause in causes:
        names = [test.node_id for test in cause.tests if test.node_id in shown]
        if names and (command := acceptance(cause, accept)):
            first, *others = names
            told[first] = command
            told |= dict.fromkeys(others, f"accept cause {cause.number}, see {first}")
    return told


def cause_lines(
    causes: Sequence[CommonCause], names: Mapping[str, str], *, width: int, accept: str | None
) -> Iterator[Line]:
    """Each cause with its tests and its command, and one command for all; none if `accept` is None."""
    commands = 0
    for cause in causes:
        # On one line up to the first place, for the problem matcher.
        first, more, others = cause_title(cause).partition("; ")
        lines = wrapped(others, width=width, first=escaped(first + more)) or [escaped(first)]
        yield from (Line(line, Style.BAD) for line in lines)
        yield from map(Line, _test_lines(cause.tests, names, width=width))
        command = acceptance(cause, accept) if accept else ""
        if command:
            commands += 1
            # On one line whatever the width, to be copied.
            yield Line(escaped(f"    intended? {command}"))
    if commands > 1:
        yield Line(escaped(f'all of it intended? {accept} --all --reason "..."'))


def _test_lines(tests: Sequence[TestComparison], names: Mapping[str, str], *, width: int) -> list[str]:
    """``test_step 1056 (+10)``: each test of a cause with its number of ops, and the rise."""
    cells = [(escaped(name), total) for name, total in test_totals(tests[:_MOST_NAMES], names)]
    widest = max(columns(name) for name, _ in cells)
    lines = []
    for name, total in cells:
        space = " " * (widest - columns(name) + 2)
        if len(_INDENT) + widest + 2 + len(total) > width:
            space = f"\n{_INDENT}{_INDENT}"
        lines += f"{_INDENT}{name}{space if total else ''}{total}".split("\n")
    if len(tests) > _MOST_NAMES:
        lines.append(f"{_INDENT}and {len(tests) - _MOST_NAMES} more")
    return lines


def test_totals(tests: Sequence[TestComparison], names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Each test's name and risen total: ``1056 ops (+10)``; empty if none rose."""
    return [(names[test.node_id], _total(test)) for test in tests]


def _total(test: TestComparison) -> str:
    """``1056 (+10)``, the total that rose; empty if none did."""
    first = next((change for change in test.regressed if change.op is None and change.rise > 0), None)
    if first is None:
        return ""
    unit = first.about.unit
    return f"{value_text(first.head, unit=unit)} {first.about.label} ({format_change(first.rise, unit=unit)})"


def cause_words(cause: CommonCause) -> str:
    """A cause without its number: the line, the op, how many more calls."""
    first = cause.tests[0]
    if cause.is_missing:
        file = first.node_id.partition("::")[0]
        return f"missing, because {file} was collected without {'it' if len(cause.tests) == 1 else 'them'}"
    told = [_beginning(one) for one in cause.beginnings]
    bounds: defaultdict[str, dict[str, None]] = defaultdict(dict)  # sets, in the order of the tests
    for limit in (limit for test in cause.tests for limit in test.broken_limits):
        bounds[limit.path][limit.limit] = None
    told += [f"{path} over its limit ({listed([*each], most=_MOST_BOUNDS)})" for path, each in bounds.items()]
    return "; ".join(told)


def _beginning(one: Beginning) -> str:
    change = one.change
    metric = "" if change.op is None or change.metric == COUNT.name else f" {change.metric}"
    least, most = (format_change(rise, unit=change.about.unit) for rise in (one.least, one.most))
    rise = f" {least if least == most else f'{least} to {most}'} a step"
    # These ops run as often as those they replaced; the tests show what else rose.
    told = f"{name_of(change)}{metric}{rise if one.most > 0 else ''}"
    if change.line is not None:
        return f"{'' if change.line.is_certain else 'perhaps '}{change.line.location}: {told}"
    return f"{told}{f', {one.place}' if one.place else ''}"
