"""In which order changes are told: the worst first, and of those what the others come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.metrics import TOTALS
from pytest_opprof.metrics.device import TOTAL_OF_COUNT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_opprof.compare.cause import Causes
    from pytest_opprof.compare.comparison import Change

# Autograd's engine runs each node in a range of its own: true, and the least telling of all rows.
_ENGINE = "autograd::engine::"


def ranked(changes: Sequence[Change], causes: Causes) -> list[Change]:
    """The totals, then the ops; the worst first in both, and the beginning of a rise before what follows."""
    ops = [change for change in changes if change.op is not None]
    # What devices did rises in all ops around too: that says nothing of where it begins.
    risen = {
        change.op
        for change in ops
        if change.op and change.rise > 0 and not change.background and change.metric not in TOTAL_OF_COUNT
    }
    outermost = causes.outermost(risen)
    return [
        *sorted((change for change in changes if change.op is None), key=_order_of_total),
        *sorted(ops, key=lambda change: (_rank(change, outermost), _order(change))),
    ]


def _rank(change: Change, outermost: frozenset[str]) -> tuple[int, bool, bool]:
    """The worst verdict first; then what user code calls more often, before what that calls in turn."""
    return (_severity(change), (change.op or "").startswith(_ENGINE), change.op not in outermost)


def _order_of_total(change: Change) -> tuple[int, bool, int]:
    """The worst verdict first, then as the metrics are listed: ops, kernels, copies, bytes."""
    severity, has_no_rule, *_ = _order(change)
    return (severity, has_no_rule, list(TOTALS).index(change.metric))


def _order(change: Change) -> tuple[int, bool, int, str]:
    """The worst verdict first, gates of their own before the rest, then the largest difference."""
    return (_severity(change), not change.rule, -abs(change.rise), change.op or change.metric)


def _severity(change: Change) -> int:
    return len(Verdict) if change.verdict is None else change.verdict.severity
