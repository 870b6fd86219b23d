"""All tests of a comparison in one table: the verdict, the totals, and what changed most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pytest_opprof.compare.comparison import Change, TestComparison
from pytest_opprof.compare.phrases import name_of
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import OPS_COUNT, RANGES_COUNT, TOTAL_SELF_CPU_TIME, TOTALS, WALL_TIME, Metric
from pytest_opprof.metrics.device import KERNELS_COUNT
from pytest_opprof.report.device_changes import telling_changes
from pytest_opprof.report.device_text import has_some
from pytest_opprof.report.rows import change_text, value_text
from pytest_opprof.results.run import TestResult
from pytest_opprof.units import format_change, format_duration

# For these the reason says more than any number.
TOLD_BY_REASON = frozenset({Verdict.ERROR, Verdict.MISSING, Verdict.INCONCLUSIVE})
_MEMORY = TOTALS["cpu_memory.allocated"]


def overview(tests: Sequence[TestComparison]) -> tuple[list[str], list[list[str]]]:
    """The titles of a table's columns, and a row for each test: its name first, its worst change last."""
    names = short_names([test.node_id for test in tests])
    metrics = summary_metrics(tests)
    is_timed = any(test.head is not None and WALL_TIME.name in test.head.totals for test in tests)
    times = [TOTAL_SELF_CPU_TIME, *([WALL_TIME] if is_timed else [])]
    labels = [metric.label for metric in (*metrics, *times)]
    rows = [
        [
            names[test.node_id],
            test.verdict.label if test.verdict else "measured",
            *(_total_cell(test, metric) for metric in metrics),
            *(_time_cell(test.head, time) for time in times),
            worst_change(test),
        ]
        for test in tests
    ]
    return ["test", "verdict", *labels, "worst change"], rows


def short_names(node_ids: Sequence[str]) -> dict[str, str]:
    """A test's name without its file, if no other test of the table has it."""
    short = {node_id: node_id.partition("::")[2] or node_id for node_id in node_ids}
    how_often = Counter(short.values())
    return {node_id: name if how_often[name] == 1 else node_id for node_id, name in short.items()}


def summary_metrics(tests: Iterable[TestComparison]) -> list[Metric]:
    """The totals worth a column: ranges if some test has nothing else, kernels, and measured memory."""
    heads = [test.head for test in tests if test.head is not None]
    metrics = [OPS_COUNT]
    if any(has_some(head, RANGES_COUNT.name) and not has_some(head, OPS_COUNT.name) for head in heads):
        metrics.append(RANGES_COUNT)
    if any(has_some(head, KERNELS_COUNT.name) for head in heads):
        metrics.append(KERNELS_COUNT)
    if any(_MEMORY.name in head.totals for head in heads):
        metrics.append(_MEMORY)
    return metrics


def _total_cell(test: TestComparison, metric: Metric) -> str:
    if test.head is None or metric.name not in test.head.totals:
        return ""
    text = value_text(test.head.totals[metric.name], unit=metric.unit)
    changed = next(
        (change for change in test.changes if change.op is None and change.metric == metric.name), None
    )
    if changed is not None and changed.rise:
        text += f" ({format_change(changed.rise, unit=metric.unit)})"
    return text


def _time_cell(test: TestResult | None, metric: Metric) -> str:
    """The fastest step: the others add what the machine did meanwhile."""
    samples = test.totals.get(metric.name) if test is not None else None
    return format_duration(samples.low) if samples is not None else ""


def worst_change(test: TestComparison) -> str:
    """The clearest change of a test, in a few words; empty if nothing changed."""
    if test.broken_limits:
        first = test.broken_limits[0]
        return f"{first.path} over its limit ({first.limit})"
    if test.verdict in TOLD_BY_REASON:
        return test.reason
    told = [
        change
        for change in telling_changes(test)
        if change.verdict is not None and (change.rise or change.rewrite)
    ]
    # Ops say more than their total.
    ops = [change for change in told if change.op is not None] or told
    if test.verdict is Verdict.IMPROVED:
        ops = [change for change in ops if change.rise < 0] or ops
    if not ops:
        return ""
    texts = [_change_words(ops[0])]
    opposite = next((change for change in ops if (change.rise > 0) != (ops[0].rise > 0)), None)
    if test.verdict is Verdict.CHANGED and opposite is not None:
        texts.append(_change_words(opposite))
    return ", ".join(texts)


def _change_words(change: Change) -> str:
    if change.rewrite is not None and not change.rise:
        return name_of(change)
    if change.op is not None and change.base is None:
        return f"{name_of(change)} new, {change_text(change)}"
    return f"{name_of(change)} {change_text(change)}"
