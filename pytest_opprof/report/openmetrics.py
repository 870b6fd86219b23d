"""The exact totals of a run as OpenMetrics, for GitLab's metrics report, which compares values as text.

So values that vary without a change of code are left out: times, rounded values, totals that differ between
steps. Lines are sorted by name.
"""

from __future__ import annotations

import re

from pytest_opprof.metrics import TOTALS, Family
from pytest_opprof.report.summary import Judged, Summary
from pytest_opprof.report.text import escaped

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]")
_END = "# EOF"


def openmetrics(comparison: Judged) -> str:
    """One line for each exact total of each test of the head."""
    heads = {
        test.node_id: test.exact.head.totals
        for test in Summary.of(comparison).tests
        if test.exact is not None and test.exact.head is not None and test.did_run
    }
    lines: list[str] = []
    for metric in TOTALS.values():
        if metric.family is not Family.EXACT:
            continue
        values = {
            node_id: totals[metric.name].low
            for node_id, totals in heads.items()
            if metric.name in totals and totals[metric.name].is_constant
        }
        if values:
            name = f"opprof_{_NOT_IN_NAMES.sub('_', metric.name)}"
            lines += [f"# HELP {name} {metric.label} in each step", f"# TYPE {name} gauge"]
            lines += (
                f'{name}{{test="{_label(node_id)}"}} {each}' for node_id, each in sorted(values.items())
            )
    return "\n".join([*lines, _END, ""])


def _label(text: str) -> str:
    """A label's value that two tests never share.

    GitLab takes everything after a number sign for a comment, so it is written as an escape.
    """
    plain = escaped(text.replace("\\", "\\\\")).replace("#", "\\x23")
    return plain.replace("\\", "\\\\").replace('"', '\\"')
