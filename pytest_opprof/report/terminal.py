"""A session's output: its header, and the summary of all tests with failures first."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from statistics import median

from pytest_opprof.baselines.keys import LONG_AGO
from pytest_opprof.compare.common_cause import CAUSED, CommonCause, common_causes
from pytest_opprof.compare.comparison import Comparison, TestComparison
from pytest_opprof.compare.timing.comparison import TestTimes
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import TOTALS, WALL_TIME
from pytest_opprof.report.causes import cause_lines, cause_title, intentions, names_of
from pytest_opprof.report.overview import TOLD_BY_REASON, overview, short_names, worst_change
from pytest_opprof.report.section import failure_section, section_title
from pytest_opprof.report.summary import (
    QUIET,
    VERDICT_WORDS,
    Judged,
    exact_totals,
    failed_alone,
    is_measured,
    naming,
    uncompared,
)
from pytest_opprof.report.text import Line, Style, escaped, table, wrapped
from pytest_opprof.results.run import Run, TestResult
from pytest_opprof.units import format_duration, format_quantity
from pytest_opprof.wording import counted, listed

# A session without a baseline or limits shows so many tests, and says how many it left out.
_MOST_MEASURED = 20
_MOST_REASONS = 10
# For these the reason matters.
_TOLD_WHOLE = TOLD_BY_REASON | {Verdict.ACCEPTED}

VERDICT_STYLES: Mapping[Verdict | None, Style] = {
    None: Style.PLAIN,
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


def header_lines(
    *, version: str, capturing: str, baseline: str | None, store: str | None, missing: Iterable[str] = ()
) -> list[str]:
    """A session's header: captured sources, the baseline, and a sentence for each source that fails here."""
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
    comparison: Comparison,
    *,
    width: int,
    verbosity: int = 0,
    accept: str | None = None,
    show: str | None = None,
) -> list[Line]:
    """A whole comparison: the sections of the tests that changed, then the summary.

    Below verbosity 0 it is only the summary. `accept` is None if no command knows this comparison.
    """
    lines: list[Line] = []
    if verbosity >= 0:
        base = comparison.base.title if comparison.base else "nothing"
        lines = [Line(escaped(f"{base} -> {comparison.head.title}"), Style.BOLD)]
        lines += [Line(escaped(note), Style.DIM) for note in comparison.notes]
        telling = [test for test in comparison.tests if test.verdict not in QUIET]
        lines += section_lines(telling, comparison, width=width, accept=accept, show=show)
        lines.append(Line(""))
    return [*lines, *summary_lines(comparison, width=width, verbosity=verbosity, accept=accept)]


def section_lines(
    tests: Sequence[TestComparison],
    comparison: Comparison,
    *,
    width: int,
    accept: str | None,
    show: str | None,
) -> list[Line]:
    """The sections of some tests of a comparison, each after an empty line."""
    intended = intentions(common_causes(comparison), accept, tests) if accept else {}
    name = comparison.base.name if comparison.base else None
    lines: list[Line] = []
    for test in tests:
        told = intended.get(test.node_id)
        section = failure_section(test, baseline=name, width=width, intended=told, show=show)
        lines += [Line(""), Line(section_title(test), Style.BOLD), *map(Line, section)]
    return lines


def run_title(run: Run) -> Line:
    """The line over all tests of a run."""
    ran = sum(test.is_usable for test in run.tests)
    measured = "reviewed counts" if run.created == LONG_AGO else f"measured {run.created:%Y-%m-%d %H:%M} UTC"
    text = f"{run.title}: {measured}, {ran} of {len(run.tests)} tests"
    return Line(escaped(text), Style.BOLD)


def result_title(test: TestResult) -> Line:
    """The line over one test of a run: its name, and why it has no numbers, if so."""
    reason = test.measurement.reason
    state = "" if test.is_usable else f", {test.measurement.status}{f': {reason}' if reason else ''}"
    origin = ""
    if test.carried_from is not None:
        origin = f", from {test.carried_from.commit or f'{test.carried_from.created:%Y-%m-%d %H:%M}'}"
    steps = counted(test.steps, "step")
    wall = test.totals.get(WALL_TIME.name)
    timed = f", {format_duration(wall.low)} at best of {wall.steps} without the profiler" if wall else ""
    return Line(escaped(f"{test.node_id} ({steps}{timed}{origin}{state})"), Style.BOLD)


def rank_lines(test: TestResult, *, width: int) -> list[str]:
    """The totals of a merged run that differ between its ranks."""
    rows = []
    for name, metric in TOTALS.items():
        values = sorted((totals[name], rank) for rank, totals in test.ranks.items() if name in totals)
        if values and values[0][0] != values[-1][0]:
            middle, lowest, highest = (
                format_quantity(round(value), unit=metric.unit)
                for value in (median(value for value, _ in values), values[0][0], values[-1][0])
            )
            rows.append((metric.label, middle, lowest, values[0][1], highest, values[-1][1]))
    headers = (f"of {counted(len(test.ranks), 'rank')}", "median", "lowest", "rank", "highest", "rank")
    return table(headers, rows, width=width, names=0, right=headers[1:]) if rows else []


def summary_lines(
    comparison: Comparison, *, width: int, verbosity: int = 0, accept: str | None = None
) -> list[Line]:
    """The summary of a session: causes of failures with their tests, other changes, one last line.

    With verbosity -1: failed and changed tests, by name, and the last line; below that only the last line.
    Above 0: a table of all tests.
    """
    last = Line(exact_totals(comparison), worst_style(comparison))
    if verbosity < -1:
        return [last]
    causes = common_causes(comparison)
    unheld = _uncompared(comparison, verbosity=verbosity)
    names = short_names([test.node_id for test in comparison.tests])
    if verbosity < 0:
        failed = [escaped(f"{cause_title(one)}: {names_of(one.tests, names)}") for one in causes]
        return [*(Line(text, Style.BAD) for text in failed), *_changed(comparison), *unheld, last]
    shown = [test for test in comparison.tests if test.verdict is not None or is_measured(test)]
    measured = [test for test in shown if test.verdict is None]
    in_table = shown if verbosity > 0 else measured[:_MOST_MEASURED]
    lines = table_of_tests(in_table, *overview(in_table), width=width) if in_table else []
    if (more := len(measured) - len(in_table)) > 0:
        lines.append(Line(f"... and {more} more measured (-v shows all)", Style.DIM))
    told = list(cause_lines(causes, names, width=width, accept=accept))
    if told:
        title = Line(escaped(_causes_title(causes, comparison)), Style.BOLD)
        told = [*([Line("")] if lines else []), title, Line(""), *told, Line("")]
    changed = [] if verbosity > 0 else _changed(comparison, but=_TOLD_WHOLE)
    return [*lines, *told, *changed, *_reasons(shown, width=width), *unheld, last]


def _causes_title(causes: Sequence[CommonCause], comparison: Comparison) -> str:
    """``2 causes, 3 tests regressed against main@1a2b3c4``."""
    verdicts = {test.verdict for cause in causes for test in cause.tests}
    words = " or ".join(VERDICT_WORDS.get(one, one.value) for one in Verdict if one in verdicts)
    tests = sum(len(cause.tests) for cause in causes)
    against = f" against {comparison.base.title}" if comparison.base is not None else ""
    return f"{counted(len(causes), 'cause')}, {counted(tests, 'test')} {words}{against}"


def _uncompared(comparison: Comparison, *, verbosity: int) -> list[Line]:
    lines = []
    for sentence, tests in uncompared(comparison):
        text = sentence if verbosity > 0 else escaped(naming(sentence, tests))
        lines.append(Line(text, Style.WARN))
        named = (f"{test.node_id}: {test.reason}" if test.reason else test.node_id for test in tests)
        lines += [Line(f"    {escaped(name)}", Style.WARN) for name in named if verbosity > 0]
    return lines


def _changed(comparison: Comparison, *, but: Container[Verdict] = frozenset()) -> Iterator[Line]:
    """``1 changed: test_loss (aten::mul -10)``: tests with a verdict but no cause."""
    names = short_names([test.node_id for test in comparison.tests])
    for verdict in Verdict:
        tests = [test for test in comparison.tests if test.verdict is verdict]
        if not tests or verdict in {*QUIET, *CAUSED} or verdict in but:
            continue
        told = [f"{names[test.node_id]} ({worst_change(test) or test.reason})" for test in tests]
        text = f"{len(tests)} {VERDICT_WORDS.get(verdict, verdict.value)}: {listed(told, most=_MOST_REASONS)}"
        yield Line(escaped(text), VERDICT_STYLES[verdict])


def table_of_tests(
    tests: Sequence[TestComparison | TestTimes],
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int,
    right: Sequence[str] = (),
) -> list[Line]:
    """A row for each test in the style of its verdict: its name first, a sentence last."""
    head, *body = table(headers, rows, width=width, names=0, sentences=len(headers) - 1, right=right)
    styles = [VERDICT_STYLES[test.verdict] for test in tests]
    return [Line(head, Style.BOLD), *(Line(text, style) for text, style in zip(body, styles, strict=True))]


def _reasons(tests: Iterable[TestComparison], *, width: int) -> Iterator[Line]:
    """The whole sentence if the reason matters, which a table's last column would cut."""
    telling = [test for test in tests if test.verdict in _TOLD_WHOLE or _is_beside_times(test)]
    for test in telling[:_MOST_REASONS]:
        if test.verdict is None:
            said = "; ".join(test.advisories or (test.reason,))
        else:
            said = f"{test.verdict.label}: {test.reason}"
        told = wrapped(f"{test.node_id}: {said}", width=width, cuts=True)
        yield from (Line(line, VERDICT_STYLES[test.verdict]) for line in told)


def _is_beside_times(test: TestComparison) -> bool:
    """Whether the baseline has only times of a test."""
    base = test.base
    return test.verdict is None and base is not None and not base.steps and is_measured(test)


def worst_style(judged: Judged) -> Style:
    """The last line's style under these verdicts."""
    styles = {VERDICT_STYLES[verdict] for verdict in judged.counts}
    styles |= {Style.WARN} if failed_alone(judged) else set()
    return next((style for style in (Style.BAD, Style.WARN) if style in styles), Style.GOOD)
