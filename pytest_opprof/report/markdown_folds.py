"""The folds of a page of Markdown: why tests fail, other changes, all tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.report.causes import RAISE_LIMIT, again
from pytest_opprof.report.markdown_text import (
    fold,
    name_in_code,
    name_in_summary,
    quantity,
    sentence_in_code,
    size,
    stacked,
    table_head,
    table_line,
)
from pytest_opprof.report.overview import overview, short_names
from pytest_opprof.report.rows import Row
from pytest_opprof.report.summary import Summary, TestSummary
from pytest_opprof.wording import counted

_MOST_ROWS = 15
_MOST_ADVISORIES = 5
_OF_FIELDS = ("what", "base", "head")
_NUMBERS = ("base", "head", "change")
CHANGE_HEAD = table_head(("what", *_NUMBERS), right=_NUMBERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """A part of a page that can be left out, or cut."""

    title: str  # HTML
    head: Sequence[str]  # lines that it always has
    count: int
    rows: Iterable[str]  # table lines under them, made one by one: there may be a million and room for ten
    tail: Sequence[str] = ()  # lines under the table

    def within(self, room: int) -> tuple[list[str], int]:
        """Its lines, none if not even one row fits, and how many rows are missing."""
        kept: list[str] = []
        left = room - size("\n".join(fold(self.title, [*self.head, *self.tail]))) - 1
        for row in self.rows:
            left -= size(row) + 1
            if left < 0:
                break
            kept.append(row)
        if not kept and (self.count or left < 0):
            return [], max(self.count, 1)
        return fold(self.title, [*self.head, *kept, *self.tail]), self.count - len(kept)


def change_line(row: Row, *, name: str, widths: tuple[int, int] = (120, 240)) -> str:
    """A change as a line under `CHANGE_HEAD`.

    Args:
        name: The test's; empty if the line above is of the same test.
        widths: How many characters a name and the cause may have; 0 for no cause.
    """
    of_name, of_cause = widths
    verdict = f"**{row.verdict.label}**" if row.verdict else ""
    metric = "" if row.is_total else row.metric
    what = [
        " ".join(filter(None, (name_in_code(name, width=of_name), verdict))) if name else "",
        " ".join(filter(None, (name_in_code(row.what, width=of_name), metric, "" if name else verdict))),
        sentence_in_code(row.why, width=of_cause) if of_cause else "",
    ]
    return table_line([stacked(*what), *_numbers(row)])


def folds_of(summary: Summary, *, shown: Sequence[Row]) -> Iterator[Fold]:
    """All folds, the most useful first, without the rows that are shown already."""
    known = set(map(id, shown))
    for test in summary.tests:
        if test.is_failing:
            yield _why(test, summary, known=known)
    yield from _others(summary, known=known)
    yield from _all_tests(summary)
    yield _environment(summary)


def _why(test: TestSummary, summary: Summary, *, known: set[int]) -> Fold:
    """One failing test: the whole reason, its other rows, its advisories, what to do next."""
    others = [row for row in test.rows if id(row) not in known]
    head = [sentence_in_code(test.reason, width=1_000), ""] if test.reason else []
    rows = [change_line(row, name="") for row in others[:_MOST_ROWS]]
    if rows:
        head += CHANGE_HEAD
    advisories = test.exact.advisories if test.exact is not None else ()
    untold = len(advisories) - _MOST_ADVISORIES
    tail = [
        *([""] if rows else []),
        *(
            [f"... and {counted(len(others) - _MOST_ROWS, 'more row')}", ""]
            if len(others) > _MOST_ROWS
            else []
        ),
        *(f"- advisory: {sentence_in_code(advisory)}" for advisory in advisories[:_MOST_ADVISORIES]),
        *([f"- ... and {counted(untold, 'more advisory', 'more advisories')}"] if untold > 0 else []),
        *(f"- {step}" for step in _next_steps(test, summary)),
    ]
    assert test.verdict is not None, "a test that fails has a verdict"
    title = f"{name_in_summary(test.node_id)} {test.verdict.label}"
    return Fold(title=title, head=head, count=len(rows), rows=rows, tail=tail)


def _next_steps(test: TestSummary, summary: Summary) -> Iterator[str]:
    if command := again(summary, test):
        yield f"see it again: {name_in_code(command, width=4_000)}"
    if any(row.metric == "limit" and row.verdict is Verdict.REGRESSED for row in test.failing_rows):
        yield f"intended? {RAISE_LIMIT}"


def _others(summary: Summary, *, known: set[int]) -> Iterator[Fold]:
    """Changes that fail nothing."""
    found = [
        row for test in summary.tests if not test.is_failing for row in test.rows if id(row) not in known
    ]
    if not found:
        return
    names = short_names([test.node_id for test in summary.tests])
    before = ["", *(row.test for row in found)]
    rows = (
        change_line(row, name="" if row.test == last else names[row.test])
        for last, row in zip(before, found, strict=False)
    )
    many = counted(len(found), "row")
    yield Fold(title=f"What else changed: {many}", head=CHANGE_HEAD, count=len(found), rows=rows)


def _all_tests(summary: Summary) -> Iterator[Fold]:
    """Every test in a row, with its totals, or with its times of an A/B."""
    ran = [test for test in summary.tests if test.did_run]
    if not ran:
        return
    if summary.times is None:
        headers, cells = overview([test.exact for test in ran if test.exact is not None])
        rows = (
            table_line(
                [
                    stacked(f"{name_in_code(name)} {verdict}", sentence_in_code(worst, width=120)),
                    *map(_total, totals),
                ]
            )
            for name, verdict, *totals, worst in cells
        )
        labels = headers[2:-1]
        head = table_head(("test", *labels), right=labels)
    else:
        names = short_names([test.node_id for test in ran])
        rows = (_times_line(test, name=names[test.node_id]) for test in ran)
        head = table_head(("test", *_NUMBERS), right=_NUMBERS)
    title = f"All tests: {len(ran)}" if len(ran) != 1 else "The test"
    yield Fold(title=title, head=head, count=len(ran), rows=rows)


def _total(text: str) -> str:
    value, bracket, change = text.partition(" (")
    return f"{quantity(value)} ({quantity(change.removesuffix(')'))})" if bracket else quantity(value)


def _times_line(test: TestSummary, *, name: str) -> str:
    row = next((row for row in test.rows if row.metric == "time"), None)
    verdict = test.verdict.label if test.verdict else "not run"
    return table_line([f"{name_in_code(name)} {verdict}", *(_numbers(row) if row else ["", "", ""])])


def _numbers(row: Row) -> list[str]:
    return [quantity(text) for text in (row.base, row.head, row.change)]


def _environment(summary: Summary) -> Fold:
    """Both sides' environments, differences first."""
    fields = summary.environment
    differing = sum(field.differs for field in fields)
    rows = [table_line(map(name_in_code, (field.name, field.base, field.head))) for field in fields]
    told = (
        counted(differing, "difference")
        if differing
        else "the same on both sides"
        if summary.exact.base
        else "head"
    )
    return Fold(title=f"Environment: {told}", head=table_head(_OF_FIELDS), count=len(rows), rows=rows)
