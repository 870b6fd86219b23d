"""A comparison as workflow commands of GitHub: each failing test at the line that runs the new op.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_opprof.compare.cause import Causes
from pytest_opprof.compare.pairing import pair_rows
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.report.summary import Summary
from pytest_opprof.report.text import cut_end, cut_middle, escaped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_opprof.compare.comparison import Change, TestComparison
    from pytest_opprof.report.rows import Row
    from pytest_opprof.report.summary import Judged, TestSummary

# GitHub shows so many of a kind for a step, and drops the others in silence.
_MOST_OF_A_KIND = 10
_MOST_ROWS = 3
_MOST_NAME = 120
_MOST_TEXT = 500
_MOST_PATH = 4_096  # what Linux takes
_PLACE = re.compile(r".*, (?P<file>.+):(?P<line>[1-9][0-9]{0,8})", re.DOTALL)
_KINDS = {Verdict.INCONCLUSIVE: "warning"}
_OTHERS = "error"


def github_annotations(comparison: Judged) -> str:
    """A command for each failing test, at most ten of a kind; no line at all where none fails."""
    by_kind: dict[str, list[TestSummary]] = {_OTHERS: [], "warning": []}
    for test in Summary.of(comparison).tests:
        if test.is_failing and test.verdict is not None:
            by_kind[_KINDS.get(test.verdict, _OTHERS)].append(test)
    return "".join(f"{line}\n" for kind, tests in by_kind.items() for line in _commands(kind, tests))


def _commands(kind: str, tests: list[TestSummary]) -> Iterable[str]:
    shown = tests if len(tests) <= _MOST_OF_A_KIND else tests[: _MOST_OF_A_KIND - 1]
    for test in shown:
        assert test.verdict is not None, "a test that fails has a verdict"
        file, line = _place(test)
        name = cut_middle(escaped(test.node_id), width=_MOST_NAME)
        shown_at = escaped(file) if len(file) <= _MOST_PATH else ""
        where = {"file": shown_at, "line": line, "title": f"opprof: {test.verdict.label}: {name}"}
        yield _command(kind, where, _message(test))
    if len(shown) < len(tests):
        more = f"{len(tests) - len(shown)} more tests fail: see the job's summary, or the comparison document"
        yield _command(kind, {"title": "opprof"}, more)


def _message(test: TestSummary) -> str:
    """The first rows that fail it, and the whole reason."""
    rows = [_told(row) for row in test.failing_rows if row.what][:_MOST_ROWS]
    return cut_end(escaped("; ".join([*rows, test.reason])), width=_MOST_TEXT)


def _told(row: Row) -> str:
    why = f": {row.why}" if row.why else ""
    return f"{row.what} {row.metric} {row.base} -> {row.head} ({row.change}){why}"


def _place(test: TestSummary) -> tuple[str, str]:
    """The file and line that run more ops; the test's own file where no stacks were taken."""
    risen = [row.source for row in test.failing_rows if row.source is not None and row.source.rise > 0]
    if test.exact is not None:
        for source in _sources(risen, test.exact):
            found = _PLACE.fullmatch(source)
            if found is not None:
                return found["file"], found["line"]
    return test.node_id.partition("::")[0], ""


def _sources(risen: Iterable[Change], test: TestComparison) -> Iterator[str]:
    """``forward, model.py:41``: where each op is called from more often than before; empty: not known."""
    if test.base is None or test.head is None:
        return
    causes = Causes(test.base, test.head)
    pairs = {(pair.name, pair.kind, pair.background): pair for pair in pair_rows(test.base, test.head)}
    for change in risen:
        if change.op is not None and change.kind is not None:
            pair = pairs.get((change.op, change.kind, change.background))
            yield (causes.source(pair) if pair else None) or ""


def _command(kind: str, where: dict[str, str], message: str) -> str:
    """``::error file=a.py,line=3,title=...::...``: what separates its parts is encoded in them."""
    properties = ",".join(f"{name}={_property(value)}" for name, value in where.items() if value)
    return f"::{kind} {properties}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
