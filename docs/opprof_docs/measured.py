"""What is measured, what it depends on, and what is said of it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from opprof_docs.tables import code, table
from pytest_opprof.compare.verdicts import DEFAULT_FAIL_ON, Verdict, parse_fail_on
from pytest_opprof.errors import UsageError
from pytest_opprof.metrics import FINGERPRINT_FIELDS, OP_METRICS, PRESETS, TOTALS, WATCHED_OPS, Family, Worse
from pytest_opprof.units import Unit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_opprof.metrics import Metric

_UNITS: Mapping[Unit, str] = MappingProxyType(
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
_HEAD = ("metric", "what it is", "unit in documents", "compared", "worse", "needs", "a gate")


def total_lines() -> Iterator[str]:
    """A row for each total of a test."""
    return table(_HEAD, (_row(metric, metric.name) for metric in TOTALS.values()))


def op_lines() -> Iterator[str]:
    """A row for each metric of an op."""
    return table(_HEAD, (_row(metric, f"<op>.{metric.name}") for metric in OP_METRICS.values()))


def watched_lines() -> Iterator[str]:
    """A row for each op whose calls are a gate by themselves."""
    return table(("op", "why a rise of it fails"), ((code(op), why) for op, why in WATCHED_OPS.items()))


def preset_lines() -> Iterator[str]:
    """A row for each ready-made limit."""
    return table(
        ("name", "the same as"),
        (
            (code(name), ", ".join(code(f"{metric}: {limit}") for metric, limit in limits.items()))
            for name, limits in PRESETS.items()
        ),
    )


def fingerprint_lines() -> Iterator[str]:
    """A row for each field of the environment that values depend on."""
    return table(
        ("field", "in words", "what depends on it"),
        ((code(field), words, ", ".join(_depending(field))) for field, words in FINGERPRINT_FIELDS.items()),
    )


def verdict_lines() -> Iterator[str]:
    """A row for each verdict from the worst, and whether it fails a session."""
    rows = ((verdict.label, *_failing(verdict)) for verdict in Verdict)
    return table(("verdict", "in `--opprof-fail-on`", "fails"), rows)


def _row(metric: Metric, name: str) -> tuple[str, ...]:
    return (
        code(name),
        metric.label,
        _UNITS[metric.unit],
        _COMPARED[metric.family],
        "less" if metric.worse is Worse.LOWER else "more",
        code(metric.source.value) if metric.source else "",
        "yes" if metric.watched else "on request",
    )


def _depending(field: str) -> list[str]:
    """The kinds of metrics that a field matters to."""
    metrics = (*TOTALS.values(), *OP_METRICS.values())
    return sorted({_kind(metric) for metric in metrics if field in metric.depends_on})


def _kind(metric: Metric) -> str:
    """What a table of fields calls metrics of a kind."""
    if metric.family is Family.TIME:
        return "times"
    kinds = {"ranges": "ranges", "memory": "memory"}
    return kinds.get(metric.source.value if metric.source else "", "counts")


def _failing(verdict: Verdict) -> tuple[str, str]:
    try:
        parse_fail_on(verdict.value)
    except UsageError:
        return "", "never"
    return code(verdict.value), "by default" if verdict.value in DEFAULT_FAIL_ON.split(",") else "on request"
