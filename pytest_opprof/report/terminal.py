"""What a session prints: its header, and the summary of all tests with failures first."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING

from pytest_opprof.baselines.keys import LONG_AGO
from pytest_opprof.compare.sessions import name_of
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import OPS_COUNT, RANGES_COUNT, TOTAL_SELF_CPU_TIME, TOTALS, WALL_TIME
from pytest_opprof.metrics.device import KERNELS_COUNT
from pytest_opprof.report.device_changes import telling_changes
from pytest_opprof.report.section import change_text, failure_section, section_title, value_text
from pytest_opprof.report.text import Line, Style, escaped, table
from pytest_opprof.results.run import MeasurementStatus, Outcome
from pytest_opprof.units import format_change, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_opprof.compare.comparison import Change, Comparison, TestComparison
    from pytest_opprof.metrics import Metric
    from pytest_opprof.results.run import Run, TestResult

_MEMORY = TOTALS["cpu_memory.allocated"]
# A session of many tests that nothing was asked of shows so many of them, and says how many it left out.
_MOST_MEASURED = 20
_MOST_REASONS = 10

VERDICT_STYLES = {
    Verdict.ERROR: Style.BAD,
    Verdict.REGRESSED: Style.BAD,
    Verdict.MISSING: Style.BAD,
    Verdict.INCONCLUSIVE: Style.WARN,
    Verdict.ACCEPTED: Style.WARN,
    Verdict.CHANGED: Style.WARN,
    Verdict.IMPROVED: Style.GOOD,
    Verdict.NEW: Style.GOOD,
    Verdict.PASS: Style.GOOD,
}
_ALL_REASON = {Verdict.ERROR, Verdict.MISSING, Verdict.INCONCLUSIVE}
_QUIET = {None, Verdict.PASS, Verdict.NEW}
_WORDS = {
    Verdict.ERROR: "in error",
    Verdict.PASS: "passed",
}


def header_lines(
    *, version: str, capturing: str, baseline: str | None, store: str | None, missing: Iterable[str] = ()
) -> list[str]:
    """The lines over a session: what is captured and compared with, and what is missing.

    Args:
        version: this release.
        capturing: such as ``torch 2.13.0 ops, ranges``.
        baseline: the label of the baseline in use.
        store: the store's URI.
        missing: a sentence for each thing that does not work here.
    """
    parts = [capturing]
    if baseline:
        parts.append(f"baseline {baseline}")
    if store:
        parts.append(f"store {store}")
    return [
        escaped(f"opprof {version}: {' · '.join(parts)}"),
        *(escaped(f"opprof: {sentence}") for sentence in missing),
    ]


def comparison_lines(
    comparison: Comparison, *, width: int, verbosity: int = 0, accept: str | None = None
) -> list[Line]:
    """A whole comparison: the sections of the tests that changed, then the summary.

    Args:
        comparison: all tests.
        width: the columns of the terminal.
        verbosity: below 0 the last line alone; above 0 every test in the summary.
        accept: see `failure_section`.
    """
    lines: list[Line] = []
    if verbosity >= 0:
        base = comparison.base.title if comparison.base else "nothing"
        lines = [Line(escaped(f"{base} -> {comparison.head.title}"), Style.BOLD)]
        lines += [Line(escaped(note), Style.DIM) for note in comparison.notes]
        name = comparison.base.name if comparison.base else None
        for test in comparison.tests:
            if test.verdict not in _QUIET:
                section = failure_section(test, baseline=name, width=width, accept=accept)
                lines += [Line(""), Line(section_title(test), Style.BOLD), *map(Line, section)]
        lines.append(Line(""))
    return [*lines, *summary_lines(comparison, width=width, verbosity=verbosity)]


def run_title(run: Run) -> Line:
    """The line over all tests of a run."""
    ran = sum(test.is_usable for test in run.tests)
    measured = "reviewed counts" if run.created == LONG_AGO else f"measured {run.created:%Y-%m-%d %H:%M} UTC"
    text = f"{run.title}: {measured}, {ran} of {len(run.tests)} tests"
    return Line(escaped(text), Style.BOLD)


def result_title(test: TestResult) -> Line:
    """The line over one test of a run: what it is, and why there are no numbers where there are none."""
    reason = test.measurement.reason
    state = "" if test.is_usable else f", {test.measurement.status}{f': {reason}' if reason else ''}"
    origin = ""
    if test.carried_from is not None:
        origin = f", from {test.carried_from.commit or f'{test.carried_from.created:%Y-%m-%d %H:%M}'}"
    steps = "1 step" if test.steps == 1 else f"{test.steps} steps"
    wall = test.totals.get(WALL_TIME.name)
    timed = f", {format_duration(wall.low)} at best of {wall.steps} without the profiler" if wall else ""
    return Line(escaped(f"{test.node_id} ({steps}{timed}{origin}{state})"), Style.BOLD)


def summary_lines(comparison: Comparison, *, width: int, verbosity: int = 0) -> list[Line]:
    """The summary of a session: a table with failures first, reasons that no table can hold, one last line.

    Args:
        comparison: all tests.
        width: the columns of the terminal.
        verbosity: below 0 the last line alone; above 0 every test; passed ones are only counted else.
    """
    last = Line(_totals(comparison), worst_style(comparison.counts))
    if verbosity < 0:
        return [last]
    shown = [test for test in comparison.tests if _is_shown(test, verbosity=verbosity)]
    folded = 0
    if verbosity == 0:
        measured = [test for test in shown if test.verdict is None]
        left_out = set(map(id, measured[_MOST_MEASURED:]))
        shown = [test for test in shown if id(test) not in left_out]
        folded = len(left_out)
    lines = _table(shown, width=width) if shown else []
    if folded:
        lines.append(Line(f"... and {folded} more measured (-v shows all)", Style.DIM))
    return [*lines, *_reasons(shown, width=width), last]


def _is_shown(test: TestComparison, *, verbosity: int) -> bool:
    if test.verdict is None and not _is_measured(test):
        return False
    return verbosity > 0 or test.verdict is not Verdict.PASS


def _is_measured(test: TestComparison) -> bool:
    head = test.head
    return (
        head is not None
        and head.outcome is Outcome.PASSED
        and head.measurement.status is not MeasurementStatus.NOT_RUN
    )


def _table(tests: Sequence[TestComparison], *, width: int) -> list[Line]:
    names = short_names([test.node_id for test in tests])
    metrics = _metrics_of(tests)
    times = _times_of(tests)
    labels = [metric.label for metric in (*metrics, *times)]
    headers = ["test", "verdict", *labels, "worst change"]
    rows = [
        [
            names[test.node_id],
            test.verdict.label if test.verdict else "measured",
            *(_total_cell(test, metric) for metric in metrics),
            *(_time_cell(test.head, time) for time in times),
            _worst_change(test),
        ]
        for test in tests
    ]
    head, *body = table(headers, rows, width=width, names=0, sentences=len(headers) - 1)
    styles = [VERDICT_STYLES[test.verdict] if test.verdict else Style.PLAIN for test in tests]
    return [Line(head, Style.BOLD), *(Line(text, style) for text, style in zip(body, styles, strict=True))]


def short_names(node_ids: Sequence[str]) -> dict[str, str]:
    """A test's name without its file, where no other test of the table has the same."""
    short = {node_id: node_id.partition("::")[2] or node_id for node_id in node_ids}
    how_often = Counter(short.values())
    return {node_id: name if how_often[name] == 1 else node_id for node_id, name in short.items()}


def _metrics_of(tests: Iterable[TestComparison]) -> list[Metric]:
    """The totals worth a column: ranges where some test has nothing else, kernels, and memory if measured."""
    heads = [test.head.totals for test in tests if test.head is not None and test.head.totals]
    metrics = [OPS_COUNT]
    for totals in heads:
        ops, ranges = totals.get(OPS_COUNT.name), totals.get(RANGES_COUNT.name)
        if ranges is not None and ranges.high and not (ops is not None and ops.high):
            metrics = [*metrics, RANGES_COUNT]
            break
    if any(KERNELS_COUNT.name in totals and totals[KERNELS_COUNT.name].high for totals in heads):
        metrics.append(KERNELS_COUNT)
    if any(_MEMORY.name in totals for totals in heads):
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


def _times_of(tests: Iterable[TestComparison]) -> list[Metric]:
    timed = any(test.head is not None and WALL_TIME.name in test.head.totals for test in tests)
    return [TOTAL_SELF_CPU_TIME, WALL_TIME] if timed else [TOTAL_SELF_CPU_TIME]


def _time_cell(test: TestResult | None, metric: Metric) -> str:
    """The fastest step: the others are that one and what the machine did meanwhile."""
    samples = test.totals.get(metric.name) if test is not None else None
    return format_duration(samples.low) if samples is not None else ""


def _worst_change(test: TestComparison) -> str:
    broken = [limit for limit in test.limits if limit.verdict is Verdict.REGRESSED]
    if broken:
        return f"{broken[0].path} over its limit ({broken[0].limit})"
    if test.verdict in _ALL_REASON:
        return test.reason
    told = [
        change
        for change in telling_changes(test)
        if change.verdict is not None and (change.rise or change.rewrite)
    ]
    # The ops say more than their total.
    ops = [change for change in told if change.op is not None] or told
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


def _reasons(tests: Iterable[TestComparison], *, width: int) -> list[Line]:
    """The whole sentence where the reason is what counts, which a table's last column would cut."""
    lines: list[Line] = []
    told = {*_ALL_REASON, Verdict.ACCEPTED}
    telling = [test for test in tests if test.verdict in told or _is_beside_times(test)]
    for test in telling[:_MOST_REASONS]:
        if test.verdict is None:
            said, style = "; ".join(test.advisories or (test.reason,)), Style.PLAIN
        else:
            said, style = f"{test.verdict.label}: {test.reason}", VERDICT_STYLES[test.verdict]
        text = escaped(f"{test.node_id}: {said}")
        wrapped = textwrap.wrap(text, width=max(width, 40), subsequent_indent="    ", break_on_hyphens=False)
        lines += [Line(line, style) for line in wrapped]
    return lines


def _is_beside_times(test: TestComparison) -> bool:
    """Whether there was nothing to judge a test by but times of another day."""
    base = test.base
    return test.verdict is None and base is not None and not base.steps and _is_measured(test)


def counts_in_words(counts: Counter[Verdict]) -> list[str]:
    """How many tests got which verdict, the worst first: ``1 regressed``, ``3 passed``."""
    return [
        f"{counts[verdict]} {_WORDS.get(verdict, verdict.value)}" for verdict in Verdict if counts[verdict]
    ]


def _totals(comparison: Comparison) -> str:
    words = counts_in_words(comparison.counts)
    measured = sum(test.verdict is None and _is_measured(test) for test in comparison.tests)
    if measured:
        words.append(f"{measured} measured")
    parts = [", ".join(words) or "nothing measured", _losses(comparison)]
    if comparison.not_run:
        parts.append(f"{comparison.not_run} other {'test' if comparison.not_run == 1 else 'tests'} not run")
    return " · ".join(parts)


def _losses(comparison: Comparison) -> str:
    captures = [test.head.capture for test in comparison.tests if test.head is not None]
    dropped = sum(capture.dropped for capture in captures)
    truncated = sum(capture.truncated for capture in captures)
    sampled = sum(capture.is_sampled for capture in captures)
    torn = sum(bool(capture.device_gap) for capture in captures)
    told = [f"{dropped} events dropped"] if dropped else [] if truncated else ["nothing dropped"]
    if truncated:
        told.append(f"{truncated} {'recording' if truncated == 1 else 'recordings'} cut off")
    if torn:
        told.append(f"{torn} {'test' if torn == 1 else 'tests'} with devices recorded in part")
    if sampled:
        told.append(f"{sampled} {'test' if sampled == 1 else 'tests'} sampled")
    return ", ".join(told)


def worst_style(counts: Counter[Verdict]) -> Style:
    """How the last line under so many verdicts looks."""
    styles = {VERDICT_STYLES[verdict] for verdict in counts}
    return next((style for style in (Style.BAD, Style.WARN) if style in styles), Style.GOOD)
