"""The rise of a step."""

import pytest

from pytest_opprof.compare.comparison import Change
from pytest_opprof.results.samples import Samples


@pytest.mark.parametrize(
    ("base", "head", "rise"),
    [
        ((4, 4), (6, 6), 2),
        ((4, 4), (3, 3), -1),
        ((4, 6), (5, 9), 0),
        ((4, 6), (7, 9), 1),
        ((4, 6), (1, 3), -1),
        ((), (1, 1), 1),
        ((), (0, 2), 0),
        ((1, 1), (), -1),
        ((0, 2), (), 0),
        ((0, 0), (), 0),
    ],
)
def test_ranges_that_overlap_did_not_rise(base: tuple[int, ...], head: tuple[int, ...], rise: int) -> None:
    before, after = (Samples.of(values) if values else None for values in (base, head))
    change = Change(op="aten::mul", metric="count", base=before, head=after, verdict=None)
    assert change.rise == rise
