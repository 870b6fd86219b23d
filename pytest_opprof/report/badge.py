"""A comparison as a badge: the JSON of a shields.io endpoint.

https://shields.io/badges/endpoint-badge
"""

from __future__ import annotations

import json

from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.report.summary import FAILING, VERDICT_WORDS, Judged, Summary
from pytest_opprof.wording import counted


def badge(comparison: Judged) -> str:
    """One object: ``no regressions``, or how many tests fail, only in our words."""
    summary = Summary.of(comparison)
    counts = summary.counts
    failing = [verdict for verdict in Verdict if verdict in FAILING and counts[verdict]]
    if failing:
        message = ", ".join(_counted(verdict, counts[verdict]) for verdict in failing)
        color = "yellow" if failing == [Verdict.INCONCLUSIVE] else "red"
    elif set(counts) <= {Verdict.NEW}:  # nothing was compared, and that is not green
        message, color = "nothing compared", "lightgrey"
    else:
        message, color = "no regressions", "brightgreen"
    if summary.failed:  # they were not compared, and that is not green
        message += f", {counted(summary.failed, 'test')} failed"
        color = "yellow" if color == "brightgreen" else color
    content = {
        "schemaVersion": 1,
        "label": "opprof",
        "message": message,
        "color": color,
        "isError": bool(failing or summary.failed),
    }
    return f"{json.dumps(content)}\n"


def _counted(verdict: Verdict, many: int) -> str:
    if verdict is Verdict.REGRESSED:
        return counted(many, "regression")
    return f"{many} {VERDICT_WORDS.get(verdict, verdict.value)}"
