"""Watched ops are judged as families: another allocator in place of one is not a regression."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from pytest_opprof.compare.comparison import Change
from pytest_opprof.compare.gates import Gates
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import COUNT, OP_FAMILIES, OpFamily
from pytest_opprof.results.run import TestResult


def within_families(
    changes: Iterable[Change], base: TestResult, head: TestResult, *, gates: Gates
) -> list[Change]:
    """Changes of ops where not more ops run: a watched op that rose while its family did not is CHANGED."""
    families = {op: family for family in OP_FAMILIES for op in family.ops}
    steady = {family.name: _steady(family, base, head) for family in OP_FAMILIES}
    found = []
    for change in changes:
        family = families.get(change.op or "") if change.metric == COUNT.name else None
        rule = gates.rule(change.op, COUNT)
        is_own = change.verdict is Verdict.REGRESSED and rule is not None and not rule.is_asked_for
        if family is not None and is_own and steady[family.name]:
            found.append(replace(change, verdict=Verdict.CHANGED, reason=steady[family.name]))
        else:
            found.append(change)
    return found


def _steady(family: OpFamily, base: TestResult, head: TestResult) -> str:
    """Says that neither all ops of a family rose nor its core; "" if they may have."""
    sides = [(_calls(test, family.core), _calls(test, family.ops)) for test in (base, head)]
    (core_before, before), (core_now, now) = sides
    if core_before is None or core_now is None or before is None or now is None:
        return ""
    if core_now > core_before or now > before:
        return ""
    return f"{family.name} did not rise: {core_before} before, {core_now} now"


def _calls(test: TestResult, names: Collection[str]) -> int | None:
    """How often these ops ran in each step; None if that varies or rows may be missing."""
    if test.ops_omitted:
        return None
    rows = [row for row in test.ops if row.kind is OpKind.OP and row.name in names and not row.background]
    if not all(row.not_views.is_constant for row in rows):
        return None
    return sum(row.not_views.low for row in rows)
