"""The causes of failures as Markdown: the line, its text, the ops below their callers, the tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from urllib.parse import quote

from pytest_opprof.compare.common_cause import CommonCause
from pytest_opprof.compare.comparison import CallLine, TestComparison
from pytest_opprof.compare.phrases import name_of
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import COUNT
from pytest_opprof.report.blocks import Block, advice_on, blocks_of
from pytest_opprof.report.causes import acceptance, cause_words, test_totals
from pytest_opprof.report.markdown_text import (
    link,
    name_in_code,
    quantity,
    sentence_in_code,
    table_head,
    table_line,
)
from pytest_opprof.report.rows import numbers_of
from pytest_opprof.wording import counted

_MOST_BLOCKS = 3
_MOST_ROWS = 6
_MOST_TESTS = 5
_INDENT = "&emsp;"
_HEADERS = ("op", "base", "head", "change")


def cause_in_markdown(
    cause: CommonCause, names: Mapping[str, str], *, accept: str, source: str | None
) -> list[str]:
    """A cause: the block of its first test, its tests, and the command that accepts it.

    Lines are links if `source` is the address below which the head's files lie.
    """
    lines = []
    first = cause.tests[0]
    blocks = blocks_of(first)[:_MOST_BLOCKS] if first.verdict is Verdict.REGRESSED else []
    for block in blocks:
        lines += [*_block(block, first, source=source), ""]
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
        yield sentence_in_code(block.place or "no line is known")
    yield ""
    yield from table_head(_HEADERS, right=_HEADERS[1:])
    for row in block.rows[:_MOST_ROWS]:
        change = row.change
        is_plain = change.op is None or change.metric == COUNT.name
        name = name_in_code(row.name) if is_plain else f"{name_in_code(name_of(change))} {change.metric}"
        numbers = map(quantity, numbers_of(change).values())
        yield table_line([f"{_INDENT * row.depth}{name}", *numbers])
    if len(block.rows) > _MOST_ROWS:
        yield table_line([f"... and {len(block.rows) - _MOST_ROWS} more", "", "", ""])
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
