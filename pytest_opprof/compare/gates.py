"""Which metrics block, how strictly, and which of them vary: users' rules over the defaults of `metrics`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from pytest_opprof.errors import UsageError
from pytest_opprof.metrics import COUNT, TOTALS, WATCHED_OPS, Family, Metric, MetricPath, matches, parse_path
from pytest_opprof.metrics.host import OPS_COUNT, RANGES_COUNT
from pytest_opprof.metrics.metric import BOUNDED_PERCENT
from pytest_opprof.results.run import TestResult
from pytest_opprof.results.samples import Samples, range_text
from pytest_opprof.units import parse_percent
from pytest_opprof.wording import counted, listed


class RuleKind(StrEnum):
    """How a metric is judged."""

    EXACT = "exact"  # any step for the worse blocks
    TOLERANCE = "tolerance"  # more than a share of the base blocks
    ADVISORY = "advisory"  # shown, never judged
    OFF = "off"  # neither


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one metric is judged, and who asked."""

    kind: RuleKind
    tolerance: Fraction = Fraction(0)
    least: int = 0
    is_asked_for: bool = False

    def allows(self, rise: int, *, base: int) -> bool:
        """Whether a ``rise`` over ``base`` is within the rule."""
        return rise <= self.least or rise <= self.tolerance * abs(base)

    def __str__(self) -> str:
        if self.kind is RuleKind.TOLERANCE:
            return f"{float(self.tolerance * 100):g}%"
        return self.kind.value


_EXACT = Rule(kind=RuleKind.EXACT)
_ADVISORY = Rule(kind=RuleKind.ADVISORY)
_BOUNDED = Rule(kind=RuleKind.TOLERANCE, tolerance=Fraction(BOUNDED_PERCENT, 100))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Rules by path; if several match, the last one counts."""

    rules: tuple[tuple[MetricPath, Rule], ...] = ()

    def under(self, stronger: Gates) -> Gates:
        """These rules, overruled by ``stronger`` ones."""
        return Gates(rules=(*self.rules, *stronger.rules))

    def rule(self, op: str | None, metric: Metric) -> Rule | None:
        """How to judge a metric of an op, or a total if ``op`` is None.

        None: it is not a gate by itself, but a change of it is shown.
        """
        for path, rule in reversed(self.rules):
            if path.metric is metric and _is_meant(path, op):
                return rule
        if metric.family is Family.TIME:
            return _ADVISORY
        if metric.watched:
            if metric.slack is not None:
                percent, least = metric.slack.percent, metric.slack.least
                return Rule(kind=RuleKind.TOLERANCE, tolerance=Fraction(percent, 100), least=least)
            return _BOUNDED if metric.family is Family.BOUNDED else _EXACT
        return _EXACT if metric is COUNT and op in WATCHED_OPS else None


def _is_meant(path: MetricPath, op: str | None) -> bool:
    if path.op is None or op is None:
        return path.op is op
    return matches(path.op, op)


def parse_gates(rules: Mapping[str, str], *, where: str, known_ops: Collection[str] = ()) -> Gates:
    """Read the marker's ``gates={"aten::mul.count": "exact", "aten::*.self_cpu_time_total": "2%"}``."""
    return Gates(
        rules=tuple(
            (parse_path(path, where=where, known_ops=known_ops), _parse_rule(rule, path=path, where=where))
            for path, rule in rules.items()
        )
    )


def parse_gate_options(
    options: Iterable[str], *, where: str = "--opprof-gate", known_ops: Collection[str] = ()
) -> Gates:
    """Read ``PATTERN=RULE`` as the command line and the ini file give it."""
    gates = Gates()
    for option in options:
        path, equals, rule = option.rpartition("=")
        if not equals:
            raise UsageError(f"{where}: {option!r} has no rule: write it like 'aten::mul.count=exact'")
        gates = gates.under(parse_gates({path.strip(): rule}, where=where, known_ops=known_ops))
    return gates


def _parse_rule(rule: str, *, path: str, where: str) -> Rule:
    text = rule.strip().lower()
    if text in {RuleKind.EXACT, RuleKind.ADVISORY, RuleKind.OFF}:
        return Rule(kind=RuleKind(text), is_asked_for=True)
    if not text.endswith("%"):
        raise UsageError(f"{where}: {path}: {rule!r} is not a rule: it is exact, off, advisory, or like '2%'")
    return Rule(
        kind=RuleKind.TOLERANCE, tolerance=parse_percent(text, where=f"{where}: {path}"), is_asked_for=True
    )


_MOST_TOLD = 3
_JUDGED = frozenset({RuleKind.EXACT, RuleKind.TOLERANCE})


def varying_note(tests: Iterable[TestResult], gates_of: Callable[[TestResult], Gates]) -> str:
    """A sentence that names the tests with a gate on a varying value, for a save; empty if none has one."""
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
        if varies(test, path, samples, rule):
            yield f"{path} {range_text(samples, unit=path.metric.unit)}"


def varies(test: TestResult, path: MetricPath, samples: Samples, rule: Rule | None) -> bool:
    """Whether the steps or measurements of a metric differ by more than its rule allows.

    Instructions of a test whose ops or ranges vary vary with them, even if they happen to differ by little.
    """
    if samples.is_constant or rule is None:
        return not samples.is_constant or disagrees(test, path)
    if path.metric.is_moved_by_edits and not rule.is_asked_for and not _is_steady(test):
        return True
    return not rule.allows(samples.high - samples.low, base=samples.low)


def _is_steady(test: TestResult) -> bool:
    """Whether all measurements of a test ran as many ops and ranges in each step."""
    counts = [
        (name, test.totals[name]) for name in (OPS_COUNT.name, RANGES_COUNT.name) if name in test.totals
    ]
    return all(samples.is_constant and name not in test.unstable for name, samples in counts)


def disagrees(test: TestResult, path: MetricPath) -> bool:
    """Whether the measurements of a metric disagreed, in another process or in the same one."""
    return bool(test.unstable) and str(path) in test.unstable
