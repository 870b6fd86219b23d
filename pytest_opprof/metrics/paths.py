"""Metrics as users write them.

A metric is written ``<op name or pattern>.<metric>`` for one op (``aten::item.count``,
``aten::*.cpu_time_total``) or by its own name for a total of a whole test (``ops.count``). Op names may hold
dots, so a path is split at its last dot.
"""

from __future__ import annotations

import difflib
import fnmatch
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_opprof.errors import UsageError
from pytest_opprof.metrics.registry import OP_METRICS, TOTALS

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_opprof.metrics.metric import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPath:
    """A metric that a user names: of the ops that ``op`` names or matches, or a total if ``op`` is None."""

    op: str | None
    metric: Metric

    def __str__(self) -> str:
        return self.metric.name if self.op is None else f"{self.op}.{self.metric.name}"


def parse_path(text: str, *, where: str, known_ops: Collection[str] = ()) -> MetricPath:
    """Read ``ops.count`` or ``aten::item.count``; an error names the nearest path.

    If names of torch's ops are given, any other name in their namespaces (``aten::``, ``prim::``) is an
    error; outside of them it may be a range of the user's.
    """
    if text in TOTALS:
        return MetricPath(op=None, metric=TOTALS[text])
    op, _, name = text.rpartition(".")
    if not op or name not in OP_METRICS:
        raise _unknown(text, where=where, candidates=_paths_like(op, name))
    path = MetricPath(op=op, metric=OP_METRICS[name])
    if is_pattern(op):
        return path
    if "::" in op:
        namespaces = {known.partition("::")[0] for known in known_ops}
        if op not in known_ops and op.partition("::")[0] in namespaces:
            near = difflib.get_close_matches(op, known_ops, n=1, cutoff=0.5)
            raise _unknown(text, where=where, candidates=[f"{known}.{name}" for known in near])
        return path
    # A mistyped total would otherwise be a range that never runs, and its limit would always hold.
    if near_totals := difflib.get_close_matches(text, TOTALS, n=1, cutoff=0.85):
        hint = f"did you mean {near_totals[0]!r}? For a range of that name write '[{op[0]}]{text[1:]}'"
        raise UsageError(f"unknown metric {text!r} in {where} ({hint})")
    return path


def _paths_like(op: str, name: str) -> list[str]:
    metrics = difflib.get_close_matches(name, OP_METRICS, n=1, cutoff=0.5) if op else []
    totals = difflib.get_close_matches(f"{op}.{name}", TOTALS, n=1)
    return [*totals, *(f"{op}.{metric}" for metric in metrics)]


def _unknown(text: str, *, where: str, candidates: list[str]) -> UsageError:
    nearest = difflib.get_close_matches(text, candidates, n=1, cutoff=0.0)
    if nearest:
        return UsageError(f"unknown metric {text!r} in {where} (did you mean {nearest[0]!r}?)")
    known = ", ".join([*TOTALS, *(f"<op>.{name}" for name in OP_METRICS)])
    return UsageError(f"unknown metric {text!r} in {where} (there are: {known})")


def is_pattern(text: str) -> bool:
    """Whether a text is an `fnmatch` pattern rather than a single name."""
    return any(character in text for character in "*?[")


def matches(pattern: str, name: str) -> bool:
    """Whether a name equals the pattern or, respecting case, matches it."""
    return pattern == name or (is_pattern(pattern) and fnmatch.fnmatchcase(name, pattern))
