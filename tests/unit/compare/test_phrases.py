"""The words for a difference: how much more of what."""

import pytest

from pytest_opprof.compare.comparison import Change
from pytest_opprof.compare.phrases import difference
from pytest_opprof.results.samples import Samples


@pytest.mark.parametrize(
    ("op", "metric", "before", "after", "words"),
    [
        (None, "ops.count", 3, 4, "1 more op"),
        (None, "launches.count", 0, 1, "1 more launch"),
        (None, "copies.count", 2, 1, "1 fewer copy"),
        (None, "copies_htod.count", 0, 2, "2 more HtoD copies"),
        (None, "flops.total", 0, 1_500, "1.50 KFLOPs more"),
        ("aten::mm", "count", 1, 3, "2 more calls of aten::mm"),
        ("aten::mm", "cpu_memory", 4096, 8192, "4.0 KiB more CPU memory in aten::mm"),
        ("aten::mm", "launches", 1, 2, "1 more launch in aten::mm"),
    ],
)
def test_difference_has_a_noun_and_a_unit(
    op: str | None, metric: str, before: int, after: int, words: str
) -> None:
    base, head = (Samples.constant(value, steps=1) for value in (before, after))
    change = Change(op=op, metric=metric, base=base, head=head, verdict=None)
    assert difference(change) == words
