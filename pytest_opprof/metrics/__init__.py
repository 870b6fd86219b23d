"""Every metric there is, and how users write them."""

from pytest_opprof.metrics.fingerprint import FINGERPRINT_FIELDS
from pytest_opprof.metrics.host import (
    COUNT,
    CPU_MEMORY,
    CPU_MEMORY_ALLOCATED,
    CPU_MEMORY_ALLOCATIONS,
    CPU_MEMORY_PEAK,
    CPU_TIME_TOTAL,
    FLOPS,
    FLOPS_TOTAL,
    OPS_COUNT,
    RANGES_COUNT,
    SELF_CPU_TIME_TOTAL,
    TOTAL_SELF_CPU_TIME,
    VIEWS_COUNT,
    WALL_TIME,
)
from pytest_opprof.metrics.instructions import LIBRARY_INSTRUCTIONS, PYTHON_INSTRUCTIONS
from pytest_opprof.metrics.metric import (
    ANSWERS,
    BOUNDED_PERCENT,
    Family,
    Metric,
    Scope,
    Slack,
    Source,
    Worse,
)
from pytest_opprof.metrics.paths import MetricPath, parse_path
from pytest_opprof.metrics.patterns import is_pattern, matches
from pytest_opprof.metrics.registry import OP_FAMILIES, OP_METRICS, PRESETS, TOTALS, WATCHED_OPS, OpFamily

__all__ = [
    "ANSWERS",
    "BOUNDED_PERCENT",
    "COUNT",
    "CPU_MEMORY",
    "CPU_MEMORY_ALLOCATED",
    "CPU_MEMORY_ALLOCATIONS",
    "CPU_MEMORY_PEAK",
    "CPU_TIME_TOTAL",
    "FINGERPRINT_FIELDS",
    "FLOPS",
    "FLOPS_TOTAL",
    "LIBRARY_INSTRUCTIONS",
    "OPS_COUNT",
    "OP_FAMILIES",
    "OP_METRICS",
    "PRESETS",
    "PYTHON_INSTRUCTIONS",
    "RANGES_COUNT",
    "SELF_CPU_TIME_TOTAL",
    "TOTALS",
    "TOTAL_SELF_CPU_TIME",
    "VIEWS_COUNT",
    "WALL_TIME",
    "WATCHED_OPS",
    "Family",
    "Metric",
    "MetricPath",
    "OpFamily",
    "Scope",
    "Slack",
    "Source",
    "Worse",
    "is_pattern",
    "matches",
    "parse_path",
]
