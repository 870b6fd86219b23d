"""The section of one test: the verdict, the ops that changed, where they come from, what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_opprof.compare.comparison import TestComparison
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.report.blocks import (
    blocks_in_lines,
    blocks_of,
    is_in_a_block,
    left_out,
    number_rows,
)
from pytest_opprof.report.causes import RAISE_LIMIT
from pytest_opprof.report.kernel_names import short_names
from pytest_opprof.report.rows import Row, change_rows, limit_rows
from pytest_opprof.report.text import escaped, table, wrapped

_MOST_ROWS = 15
_CHANGE_HEADERS = ("op", "metric", "base", "head", "change", "cause")
_LIMIT_HEADERS = ("limit", "allowed", "measured", "verdict")
_INDENT = " " * 10


def section_title(test: TestComparison) -> str:
    """The headline over a test's section."""
    return f"opprof: {escaped(test.node_id)}"


def failure_section(
    test: TestComparison,
    *,
    baseline: str | None,
    width: int,
    traces: Sequence[str] = (),
    intended: str | None = None,
    show: str | None = None,
) -> list[str]:
    """A test's section, line by line.

    The name of a baseline is for the command that records it anew. `intended` says what to do about an
    intended rise, such as the command that accepts it. `show` is the command that prints what is left out of
    a long section; if it is empty, nothing is left out.
    """
    label = test.verdict.label if test.verdict else "advisory"
    lines = wrapped(f"{label}: {test.reason}" if test.reason else label, width=width)
    if changed := change_lines(test, width=width, show=show):
        lines += ["", *changed]
    if limits := _limits(test, width=width):
        lines += ["", *limits]
    notes = [
        *(_note("advisory", advisory, width=width) for advisory in test.advisories),
        *(_note("traces", trace, width=width) for trace in traces),
        *_next_steps(test, baseline=baseline, intended=intended, width=width),
    ]
    return [*lines, "", *(line for note in notes for line in note)] if notes else lines


def change_lines(test: TestComparison, *, width: int, show: str | None = None) -> list[str]:
    """A test's changes: its regressions by cause, a table of the others, and the totals."""
    shown = [row for row in change_rows(test) if row.source is not None]
    has_failed = any(row.verdict is Verdict.REGRESSED for row in shown)
    of_blocks = [row for block in blocks_of(test) for row in block.rows]
    told = [row.change for row in of_blocks]
    blocks = blocks_in_lines(test, width=width, show=show)
    text = "\n".join(line for block in blocks for line in block)
    # A block says what its op replaced, if there is room for it.
    replacing = {(row.change.op,) for row in of_blocks if row.was and f"  {row.words}" in text}
    ops = [
        row
        for row in shown
        if row.source and not (row.is_total or is_in_a_block(row.source) or row.source in told)
        if not (row.source.rewrite and row.source.rewrite.after in replacing)
    ]
    totals = [
        (f"all {row.source.about.label}", row.source, "" if row.source.line else row.why)
        for row in shown
        if row.is_total and row.source and not ((has_failed and row.source.is_slight) or row.source in told)
    ]
    parts = [
        *blocks,
        _table(ops, width=width, show=show) if ops else [],
        [
            line
            for _, change, _ in totals
            if change.line is not None  # the functions in which a total rose, never cut
            for line in wrapped(f"{change.about.label} rose {change.cause}", width=width)
        ],
        number_rows(totals, width=width),
    ]
    return [line for part in parts if part for line in ("", *part)][1:]


def _table(ops: Sequence[Row], *, width: int, show: str | None) -> list[str]:
    kept = ops if show == "" else ops[:_MOST_ROWS]
    names = short_names(row.what for row in kept)
    lines = table(
        _CHANGE_HEADERS,
        [
            [name, row.metric, row.base, row.head, row.change, row.why]
            for row, name in zip(kept, names, strict=True)
        ],
        width=width,
        names=_CHANGE_HEADERS.index("op"),
        sentences=_CHANGE_HEADERS.index("cause"),
        right=("base", "head", "change"),
    )
    return [*lines, left_out(len(ops) - len(kept), "more op", show)] if len(ops) > len(kept) else lines


def _limits(test: TestComparison, *, width: int) -> list[str]:
    broken = limit_rows(test)
    if not broken:
        return []
    return table(
        _LIMIT_HEADERS,
        [[row.what, row.base, row.head, _over(row)] for row in broken],
        width=width,
        names=_LIMIT_HEADERS.index("limit"),
        sentences=_LIMIT_HEADERS.index("verdict"),
    )


def _over(row: Row) -> str:
    is_explained = row.verdict is Verdict.REGRESSED and row.why
    return f"{row.change}: {row.why}" if is_explained else row.why or row.change


def _next_steps(
    test: TestComparison, *, baseline: str | None, intended: str | None, width: int
) -> Iterable[list[str]]:
    may_be_meant = test.regressed or test.verdict is Verdict.MISSING
    if may_be_meant and intended:
        # On one line whatever the width, to be copied.
        yield [escaped(f"intended? {intended}")]
    elif may_be_meant and baseline:
        yield _note("intended?", f"record it: pytest --opprof-save={baseline}", width=width)
    if test.broken_limits:
        yield _note("intended?", RAISE_LIMIT, width=width)


def _note(label: str, text: str, *, width: int) -> list[str]:
    first = f"{label} " if label.endswith("?") else f"{label}:".ljust(len(_INDENT))
    return wrapped(text, width=width, first=first, rest=_INDENT)
