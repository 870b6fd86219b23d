"""The causes of a page: the line, its text, the ops below their callers, the tests, what to type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_opprof.compare.common_cause import CommonCause
from pytest_opprof.compare.comparison import TestComparison
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.report.blocks import Block, BlockRow, advice_on, blocks_of, title_of
from pytest_opprof.report.causes import acceptance, accepting, cause_words, test_totals
from pytest_opprof.report.overview import short_names
from pytest_opprof.report.rows import means_of, numbers_of
from pytest_opprof.report.summary import Summary

_MOST_TESTS = 20  # the list of all tests shows the others


def page_causes(causes: Sequence[CommonCause], summary: Summary) -> list[dict[str, Any]]:
    """The causes of failures, each with the blocks of its first test."""
    names = short_names([test.node_id for test in summary.tests])
    numbers = {test.node_id: number for number, test in enumerate(summary.tests)}
    return [
        {
            "number": cause.number,
            "words": cause_words(cause),
            "blocks": block_data(cause.tests[0]) if cause.tests[0].verdict is Verdict.REGRESSED else [],
            "tests": [
                {"number": numbers[test.node_id], "name": name, "total": total}
                for test, (name, total) in zip(shown, test_totals(shown, names), strict=True)
            ],
            "more": len(cause.tests) - len(shown),
            "command": acceptance(cause, accepting(summary)),
        }
        for cause in causes
        for shown in [cause.tests[:_MOST_TESTS]]
    ]


def block_data(test: TestComparison) -> list[dict[str, Any]]:
    """The regressions of a test, by line."""
    return [_block(block, test) for block in blocks_of(test)]


def _block(block: Block, test: TestComparison) -> dict[str, Any]:
    return {
        "title": title_of(block),
        "is_edited": block.line is not None and block.line.is_edited,
        "text": block.line.text if block.line is not None else "",
        "advice": advice_on(block, test),
        "rows": [_row(row) for row in block.rows],
    }


def _row(row: BlockRow) -> dict[str, Any]:
    change = row.change
    return {
        "name": row.name,
        "op": change.op,
        "caller": change.caller,
        "depth": row.depth,
        **numbers_of(change),
        **means_of(change),
        "words": row.words,
    }
