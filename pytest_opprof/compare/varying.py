"""Which gates of a measured test have a varying value: a save says so while it can be fixed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pytest_opprof.compare.gates import Gates, RuleKind
from pytest_opprof.metrics import COUNT, TOTALS, Family, MetricPath
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import range_text
from pytest_opprof.wording import counted, listed

_MOST_TOLD = 3
_JUDGED = frozenset({RuleKind.EXACT, RuleKind.TOLERANCE})


def varying_note(tests: Iterable[TestResult], gates_of: Callable[[TestResult], Gates]) -> str:
    """A sentence that names the tests with a gate on a varying value; empty if none has one."""
    found = {test.node_id: next(_varying(test, gates_of(test)), "") for test in tests if test.is_usable}
    told = [f"{node_id} ({what})" for node_id, what in found.items() if what]
    if not told:
        return ""
    who = counted(len(told), "test has counts", "tests have counts")
    held = "it to its" if len(told) == 1 else "them to their"
    which = listed(told, most=_MOST_TOLD, last=", and ")
    return f"{who} that vary, so gates only hold {held} range: {which}"


def _varying(test: TestResult, gates: Gates) -> Iterator[str]:
    """The gates, totals first: ``ops.count 1 to 3``."""
    known = (metric for name, metric in TOTALS.items() if name in test.totals)
    totals = ((MetricPath(op=None, metric=metric), test.totals[metric.name]) for metric in known)
    ops = ((MetricPath(op=row.name, metric=COUNT), row.count) for row in test.ops if not row.background)
    for path, samples in (*totals, *ops):
        rule = gates.rule(path.op, path.metric)
        # A metric with slack is not gated by its range.
        is_held = path.metric.slack is None and path.metric.family is not Family.TIME
        if rule is None or rule.kind not in _JUDGED or not is_held:
            continue
        is_within = rule.allows(samples.high - samples.low, base=samples.low)
        if not is_within or (samples.is_constant and str(path) in test.unstable):
            yield f"{path} {range_text(samples, unit=path.metric.unit)}"
