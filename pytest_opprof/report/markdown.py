"""A comparison as Markdown: a pull request's comment, a job's summary, a merge request's note.

The verdict comes first, then the rows that fail the tests, then folds. Failures are never cut silently: rows
get shorter, and if that is not enough the first lines say how many are missing.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote

from pytest_opprof.compare.common_cause import CommonCause, common_causes
from pytest_opprof.compare.comparison import CallLine, TestComparison
from pytest_opprof.compare.phrases import name_of
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import COUNT
from pytest_opprof.report.blocks import Block, advice_on, blocks_of, first_rows, title_of
from pytest_opprof.report.causes import acceptance, accepting, again, cause_words, test_totals
from pytest_opprof.report.markdown_folds import CHANGE_HEAD, Fold, change_line, folds_of
from pytest_opprof.report.markdown_text import (
    fold,
    link,
    name_in_code,
    quantity,
    sentence_in_code,
    size,
    table_head,
    table_line,
)
from pytest_opprof.report.overview import short_names
from pytest_opprof.report.rows import Row, numbers_of
from pytest_opprof.report.summary import Judged, Summary
from pytest_opprof.wording import counted, listed

# GitHub refuses a comment of more than 65,536 characters, a summary of more than 1 MiB, GitLab a note of
# more than 1,000,000 characters. Each page keeps well below.
COMMENT_LIMIT = 60_000
SUMMARY_LIMIT = 1_000_000
NOTE_LIMIT = 500_000
# A table that is read in ten seconds has no more rows; only failures make it longer.
_MOST_ROWS = 10
_MOST_NOTES = 5
_MOST_CAUSES = 10
_SELF_REPORTED = (
    "The pull request's own code measured these numbers. This repository judged them again, against its own "
    "baseline."
)
_MOST_BLOCKS = 3
_MOST_PLACES = 10
_MOST_ROWS_OF_A_BLOCK = 6
_MOST_TESTS = 5
_INDENT = "&emsp;"
_HEADERS_OF_A_BLOCK = ("op", "base", "head", "change")


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """The renderer's addresses that a page links to; None for missing ones."""

    summary: str | None = None  # the page of the job
    document: str | None = None
    traces: str | None = None  # the traces of tests that regressed
    source: str | None = None  # the address below which the head's files lie


_NO_LINKS = Links()
# How many characters a row's names and its cause may have; 0 for no cause.
_WIDTHS = ((120, 160), (60, 60), (32, 0))


def markdown_comment(
    comparison: Judged,
    *,
    marker: str | None = None,
    limit: int = COMMENT_LIMIT,
    links: Links = _NO_LINKS,
    self_reported: bool = False,
) -> str:
    """The comment of a pull request, in at most `limit` bytes; its marker, the first line, identifies it.

    `self_reported` says that the pull request's own code produced the numbers.
    """
    rest = _linked("the job summary", links.summary)
    return _page(comparison, limit=limit, rest=rest, links=links, marker=marker, self_reported=self_reported)


def job_summary(
    comparison: Judged,
    *,
    limit_bytes: int = SUMMARY_LIMIT,
    links: Links = _NO_LINKS,
    self_reported: bool = False,
) -> str:
    """The summary of a job of GitHub Actions: as `markdown_comment`, with room for more."""
    rest = _linked("the comparison file", links.document)
    return _page(comparison, limit=limit_bytes, rest=rest, links=links, self_reported=self_reported)


def gitlab_note(
    comparison: Judged, *, marker: str | None = None, limit: int = NOTE_LIMIT, links: Links = _NO_LINKS
) -> str:
    """The note of a merge request of GitLab, which has no summaries of jobs: as `markdown_comment`."""
    rest = _linked("the job's artifacts", links.summary)
    return _page(comparison, limit=limit, rest=rest, links=links, marker=marker)


def _page(
    comparison: Judged,
    *,
    limit: int,
    rest: str,
    links: Links,
    marker: str | None = None,
    self_reported: bool = False,
) -> str:
    """A page; `rest` names where the rest is."""
    summary = Summary.of(comparison)
    said = [_SELF_REPORTED, ""] if self_reported else []
    head = [*filter(None, [marker]), *_headline(summary), *said]
    known = {"Job": links.summary, "Comparison file": links.document, "Traces": links.traces}
    linked = [link(label, address) for label, address in known.items() if address]
    foot = [" · ".join(linked)] if linked else []
    # Room for the sentences that count what is missing.
    room = limit - size("\n".join([*head, *foot])) - 4 * size(rest) - 200
    names = short_names([test.node_id for test in summary.tests])
    causes, told = _causes(summary, names, source=links.source, room=room // 2)
    room -= size("\n".join(causes)) + 1
    lead, more = _ordered(summary, told=told)
    table, missing = _table(lead, more, names=names, room=room)
    room -= size("\n".join(table)) + 1
    folds, omitted = _fitting(folds_of(summary, shown=[*lead, *more]), room=room)
    alarm = [f"**{counted(missing, 'more row')} of tests that fail, see {rest}.**", ""] if missing else []
    cut = [f"{counted(omitted, 'row')} omitted, see {rest}.", ""] if omitted else []
    return "\n".join([*head, *alarm, *causes, *table, *folds, *cut, *foot]).rstrip("\n") + "\n"


def _causes(
    summary: Summary, names: Mapping[str, str], *, source: str | None, room: int
) -> tuple[list[str], set[str]]:
    """The causes that fit, each with the command that accepts it, and the node ids of their tests."""
    causes = common_causes(summary.exact)
    lines: list[str] = []
    told: set[str] = set()
    for cause in causes[:_MOST_CAUSES]:
        part = cause_in_markdown(cause, names, accept=accepting(summary), source=source)
        room -= size("\n".join(part)) + 1
        if room < 0:
            break
        lines += part
        told |= {test.node_id for test in cause.tests}
    shown = sum(cause.tests[0].node_id in told for cause in causes)
    if lines and shown < len(causes):
        lines += [f"... and {counted(len(causes) - shown, 'more cause')}", ""]
    if lines and summary.exact.base is not None:
        command = again(summary) + (" -o FILE" if summary.times else "")
        see = name_in_code(command, width=4_000)
        lines += [f"Run {see} before you accept: the numbers are those of the last run.", ""]
    return lines, told


def _linked(label: str, address: str | None) -> str:
    return link(label, address) if address else label


def _headline(summary: Summary) -> list[str]:
    """The verdict, the counts, the two sides, the notes."""
    base = summary.exact.base
    sides = [name_in_code(base.title)] if base else []
    sides.append(name_in_code(summary.exact.head.title))
    held_to = " → ".join(sides) if base else f"{sides[0]}, compared with nothing"
    notes = [f"- {sentence_in_code(note)}" for note in summary.notes[:_MOST_NOTES]]
    if more := len(summary.notes[_MOST_NOTES:]):
        notes.append(f"- ... and {counted(more, 'more note')}")
    return [
        f"### opprof: {summary.headline}",
        "",
        f"{summary.totals}  ",
        held_to,
        "",
        *notes,
        *([""] if notes else []),
    ]


def _ordered(summary: Summary, *, told: Container[str]) -> tuple[list[Row], list[Row]]:
    """The rows of the first table, and the failing rows beyond it.

    Each failing test has a row there, however many fail, unless its cause is above (it is in `told`). If few
    do, the table has their other rows and other changes too, until it is as long as can be read at a glance.
    """
    known = [row for test in summary.tests if test.node_id in told for row in test.failing_rows]
    failing = [test.failing_rows for test in summary.tests if test.is_failing and test.node_id not in told]
    rest = list(itertools.chain.from_iterable(rows[1:] for rows in failing))
    others = (
        row
        for test in summary.tests
        for row in (() if test.is_failing else test.rows)
        if row.source is None or row.source.rise != 0 or row.source.rewrite is not None
    )
    leads = [rows[0] for rows in failing]
    room = max(_MOST_ROWS - len(leads), 0)
    if len(rest) > room:
        return leads + rest[:room], rest[room:] + known
    all_of_them = list(itertools.chain.from_iterable(failing))
    return all_of_them + list(itertools.islice(others, room - len(rest))), known


def _table(
    lead: Sequence[Row], more: Sequence[Row], *, names: dict[str, str], room: int
) -> tuple[list[str], int]:
    """The first table and its fold, in the widest rows that fit, and how many rows did not."""
    if not (lead or more):
        return [], 0
    head = CHANGE_HEAD
    around = fold(f"{counted(len(more), 'row')} of tests that fail", head) if more else []
    room -= size("\n".join([*head, *around])) + 2
    for widths in _WIDTHS:
        lines = list(_lines_within([lead, more], names=names, widths=widths, room=room))
        if len(lines) == len(lead) + len(more):
            break
    missing = len(lead) + len(more) - len(lines)
    first, others = lines[: len(lead)], lines[len(lead) :]
    folded = fold(f"{counted(len(others), 'row')} of tests that fail", [*head, *others]) if others else []
    return [*([*head, *first, ""] if first else []), *folded], missing


def _lines_within(
    tables: Iterable[Sequence[Row]], *, names: dict[str, str], widths: tuple[int, int], room: int
) -> Iterator[str]:
    """The lines of the rows that fit; no others are made."""
    for rows in tables:
        test = ""
        for row in rows:
            line = change_line(row, name=names[row.test] if row.test != test else "", widths=widths)
            room -= size(line) + 1
            if room < 0:
                return
            yield line
            test = row.test


def _fitting(folds: Iterable[Fold], *, room: int) -> tuple[list[str], int]:
    """The folds that fit, in order, and how many rows the others have."""
    lines: list[str] = []
    omitted = 0
    for one in folds:
        rows, left = one.within(room)
        omitted += left
        if rows:
            lines += rows
            room -= size("\n".join(rows)) + 1
    return lines, omitted


def cause_in_markdown(
    cause: CommonCause, names: Mapping[str, str], *, accept: str, source: str | None
) -> list[str]:
    """A cause: the blocks of its first test, its tests, and the command that accepts it.

    Lines are links if `source` is the address below which the head's files lie.
    """
    lines = []
    first = cause.tests[0]
    blocks = blocks_of(first) if first.verdict is Verdict.REGRESSED else []
    for block in blocks[:_MOST_BLOCKS]:
        lines += [*_block(block, first, source=source), ""]
    if left := blocks[_MOST_BLOCKS:]:
        places = listed([name_in_code(title_of(block)) for block in left], most=_MOST_PLACES)
        lines += [f"... and {counted(len(left), 'more place')}: {places}", ""]
    if not blocks:
        lines += [f"**Cause {cause.number}**: {sentence_in_code(cause_words(cause))}", ""]
    else:
        lines[0] = f"**Cause {cause.number}**: {lines[0]}"
    lines += [_tests(cause, names), ""]
    if command := acceptance(cause, accept):
        lines += [f"intended? {name_in_code(command, width=4_000)}", ""]
    return lines


def _block(block: Block, test: TestComparison, *, source: str | None) -> Iterator[str]:
    if block.line is not None:
        perhaps = "" if block.line.is_certain else "perhaps "
        edited = ", changed in this branch" if block.line.is_edited else ""
        where = f"{_location(block.line, source=source)} in {name_in_code(block.line.function)}"
        yield f"{perhaps}{where}{edited}"
        if block.line.text:
            yield ""
            yield f"> {sentence_in_code(block.line.text)}"
    else:
        yield sentence_in_code(block.place)
    yield ""
    yield from table_head(_HEADERS_OF_A_BLOCK, right=_HEADERS_OF_A_BLOCK[1:])
    for row in first_rows(block.rows, most=_MOST_ROWS_OF_A_BLOCK):
        change = row.change
        is_plain = change.op is None or change.metric == COUNT.name
        name = name_in_code(row.name) if is_plain else f"{name_in_code(name_of(change))} {change.metric}"
        was = f"was {name_in_code(row.was)}" if row.was else ""
        named = " ".join(filter(None, (name, row.words if row.is_backward else was)))
        numbers = map(quantity, numbers_of(change).values())
        yield table_line([f"{_INDENT * row.depth}{named}", *numbers])
    if len(block.rows) > _MOST_ROWS_OF_A_BLOCK:
        yield table_line([f"... and {len(block.rows) - _MOST_ROWS_OF_A_BLOCK} more", "", "", ""])
    if told := advice_on(block, test):
        yield ""
        yield told


def _location(line: CallLine, *, source: str | None) -> str:
    shown = name_in_code(line.where)
    path = PurePosixPath(line.file)
    # A document is untrusted: an address leads to a file of this commit, or nowhere.
    if source is None or path.is_absolute() or ".." in path.parts or not line.is_certain:
        return shown
    return link(shown, f"{source}{quote(str(path))}" + (f"#L{line.number}" if line.number else ""))


def _tests(cause: CommonCause, names: Mapping[str, str]) -> str:
    totals = test_totals(cause.tests[:_MOST_TESTS], names)
    told = [" ".join(filter(None, (name_in_code(name), total))) for name, total in totals]
    more = len(cause.tests) - _MOST_TESTS
    return ", ".join(told) + (f" and {counted(more, 'more test')}" if more > 0 else "")
