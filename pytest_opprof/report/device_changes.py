"""Which of the changes of devices' metrics say what another one says better.

One kernel more is one launch more, and one copy to the host is a copy, a host copy and one by its direction:
a table has a row for the most telling of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_opprof.metrics.device import DIRECTIONS, TOTAL_OF_COUNT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_opprof.compare.comparison import Change

_BY_DIRECTION = tuple(f"copies_{key}" for key in DIRECTIONS)
# What says it better, by the names of an op's metrics.
_BETTER = {
    "launches": ("kernels",),
    "copies": _BY_DIRECTION,
    "host_copies": _BY_DIRECTION,
    "copied_bytes": tuple(f"copied_bytes_{key}" for key in DIRECTIONS),
}
_BETTER_OF = _BETTER | {
    TOTAL_OF_COUNT[name].name: tuple(TOTAL_OF_COUNT[other].name for other in better)
    for name, better in _BETTER.items()
}


def is_told_by_another(change: Change, changes: Iterable[Change]) -> bool:
    """Whether another change of the same op, or total, rises as much, has the same verdict and says more."""
    better = _BETTER_OF.get(change.metric)
    if better is None or not change.rise:
        return False
    return any(
        other.metric in better
        and (other.op, other.kind, other.background) == (change.op, change.kind, change.background)
        and (other.rise, other.verdict) == (change.rise, change.verdict)
        for other in changes
    )
