"""Work of threads from before the steps, which belongs to no step and is not a gate.

A test that moves work to a pool of threads has less in its steps. That is not an improvement if the
background does more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pytest_opprof.compare.comparison import Change
from pytest_opprof.compare.verdicts import Verdict
from pytest_opprof.kinds import OpKind
from pytest_opprof.metrics import COUNT

_WHY = "the background does more"


def with_moved_work(changes: Sequence[Change]) -> list[Change]:
    """The judged changes of a test, in their order; if the background does more, it and falls are CHANGED."""
    rises: Counter[OpKind | None] = Counter()
    for change in changes:
        is_work = change.kind is not OpKind.CALL and not change.is_free
        if change.background and change.metric == COUNT.name and is_work:
            rises[change.kind] += change.rise
    has_fallen = any(change.verdict is Verdict.IMPROVED for change in changes)
    if not has_fallen or all(rise <= 0 for rise in rises.values()):
        return list(changes)
    return [_moved(change, grown={kind for kind, rise in rises.items() if rise > 0}) for change in changes]


def _moved(change: Change, *, grown: set[OpKind | None]) -> Change:
    if change.op is None and change.verdict is Verdict.IMPROVED:
        return replace(change, verdict=Verdict.CHANGED, reason=_WHY)
    is_rise = change.metric == COUNT.name and change.rise > 0 and not change.is_free
    if change.background and is_rise and change.kind in grown:
        return replace(change, verdict=Verdict.CHANGED)
    return change
