"""What a test's numbers are known to lack, in sentences: no report shows them as if they were whole."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_opprof.losses import losses
from pytest_opprof.metrics import COUNT, MetricPath
from pytest_opprof.units import EVERY_PPM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_opprof.results.run import TestResult


def lacking(test: TestResult) -> Iterator[str]:
    """A sentence for each way in which a test's rows are not all that it did."""
    capture = test.capture
    yield from losses(
        dropped=capture.dropped,
        truncated=capture.truncated,
        names_overflowed=capture.names_overflowed,
        sampling=capture.sampled_ppm / EVERY_PPM,
    )
    if test.ops_omitted:
        yield f"Rows not kept: {test.ops_omitted}"
    if capture.device_gap:
        yield f"CUDA, not whole: {capture.device_gap}"


def calls_outside_tree(test: TestResult) -> int:
    """How many calls of the steps the call tree has no room for; of what is uncertain nobody knows."""
    unstable = set(test.unstable)
    called, in_tree = Counter[str](), Counter[str]()
    for row in test.ops:
        is_certain = str(MetricPath(op=row.name, metric=COUNT)) not in unstable
        if is_certain and not row.background and not row.kind.is_on_device:
            called[row.name] += row.count.total
    for node in test.tree:
        in_tree[node.name] += node.count
    return (called - in_tree).total() if test.tree else 0
