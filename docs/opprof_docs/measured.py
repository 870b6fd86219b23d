"""Tables of metrics, gated ops, limits and environment fields."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from opprof_docs.tables import code, table
from pytest_opprof.metrics import (
    FINGERPRINT_FIELDS,
    OP_FAMILIES,
    OP_METRICS,
    PRESETS,
    TOTALS,
    Family,
    Source,
    Worse,
)
from pytest_opprof.units import Unit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_opprof.metrics import Metric

UNITS: Mapping[Unit, str] = MappingProxyType(
    {
        Unit.COUNT: "calls",
        Unit.NS: "nanoseconds",
        Unit.BYTES: "bytes",
        Unit.FLOPS: "operations",
        Unit.PPM: "parts in a million",
        Unit.THOUSANDTHS: "thousandths",
    }
)
_COMPARED: Mapping[Family, str] = MappingProxyType(
    {Family.EXACT: "exactly", Family.BOUNDED: "with a tolerance", Family.TIME: "in an A/B"}
)
# Metrics of all other sources are listed as counts.
_KINDS: Mapping[Source | None, str] = MappingProxyType(
    {Source.RANGES: "ranges", Source.MEMORY: "memory", Source.MEMORY_CUDA: "memory of devices"}
)
_HEAD = ("metric", "what it is", "unit in JSON", "compared", "needs", "a gate")


def total_lines() -> Iterator[str]:
    """A row for each total of a test."""
    return table(_HEAD, (_row(metric, metric.name) for metric in TOTALS.values()))


def op_lines() -> Iterator[str]:
    """A row for each metric of an op."""
    return table(_HEAD, (_row(metric, f"<op>.{metric.name}") for metric in OP_METRICS.values()))


def watched_lines() -> Iterator[str]:
    """A row for each op with gated calls: the reason, and its family."""
    rows = ((code(op), why, family.name) for family in OP_FAMILIES for op, why in family.ops.items())
    return table(("op", "why a rise fails", "family"), rows)


def preset_lines() -> Iterator[str]:
    """A row for each preset of limits."""
    return table(
        ("name", "the same as"),
        (
            (code(name), ", ".join(code(f"{metric}: {limit}") for metric, limit in limits.items()))
            for name, limits in PRESETS.items()
        ),
    )


def fingerprint_lines() -> Iterator[str]:
    """A row for each environment field that metrics depend on."""
    return table(
        ("field", "in words", "what depends on it"),
        ((code(field), words, ", ".join(_depending(field))) for field, words in FINGERPRINT_FIELDS.items()),
    )


def _row(metric: Metric, name: str) -> tuple[str, ...]:
    return (
        code(name),
        f"{metric.label}{' (less is worse)' if metric.worse is Worse.LOWER else ''}",
        UNITS[metric.unit],
        _COMPARED[Family.BOUNDED if metric.slack else metric.family],
        code(metric.source.value) if metric.source else "",
        _gate(metric),
    )


def _gate(metric: Metric) -> str:
    """Whether an increase over a stored baseline fails a test."""
    if metric.family is Family.TIME:
        return "no"
    return "yes" if metric.watched else "on request"


def _depending(field: str) -> list[str]:
    """The kinds of metrics that depend on a field."""
    metrics = (*TOTALS.values(), *OP_METRICS.values())
    return sorted({_kind(metric) for metric in metrics if field in metric.depends_on})


def _kind(metric: Metric) -> str:
    """The name of a metric's kind in the table of fields."""
    if metric.family is Family.TIME:
        return "times"
    return _KINDS.get(metric.source, "counts")
