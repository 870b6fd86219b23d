"""Sentences on what a recording or a test's numbers lack, for each table that shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_opprof.metrics import COUNT, MetricPath
from pytest_opprof.units import EVERY_PPM, format_share

if TYPE_CHECKING:
    from pytest_opprof.results.run import TestResult


def losses_of_recording(
    *, dropped: int, truncated: bool, names_overflowed: int, sampling: float
) -> Iterator[str]:
    """Give a sentence for each way in which a recording's ops are incomplete."""
    if dropped:
        yield f"Events not recorded: {dropped} (they are missing from this table)"
    if truncated:
        yield "The recording was cut off when its byte budget was used up"
    if names_overflowed:
        yield f"Too many names: {names_overflowed} events share the name (overflow)"
    if sampling < 1:
        share = format_share(sampling)
        yield f"Sampled: {share} of torch's ops were recorded; counts and sums cover only these"


def losses_of_test(test: TestResult) -> Iterator[str]:
    """Give a sentence for each way in which a test's rows are incomplete."""
    capture = test.capture
    yield from losses_of_recording(
        dropped=capture.dropped,
        truncated=capture.truncated,
        names_overflowed=capture.names_overflowed,
        sampling=capture.sampled_ppm / EVERY_PPM,
    )
    if test.ops_omitted:
        yield f"Rows not kept: {test.ops_omitted}"
    if capture.device_gap:
        yield f"CUDA is incomplete: {capture.device_gap}"


def calls_outside_tree(test: TestResult) -> int:
    """Count the calls for which the call tree has no room, without those of uncertain ops."""
    unstable = set(test.unstable)
    called, in_tree = Counter[str](), Counter[str]()
    for row in test.ops:
        is_certain = str(MetricPath(op=row.name, metric=COUNT)) not in unstable
        if is_certain and not row.background and not row.kind.is_on_device:
            called[row.name] += row.count.total
    for node in test.tree:
        in_tree[node.name] += node.count
    return (called - in_tree).total() if test.tree else 0
