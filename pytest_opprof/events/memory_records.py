"""Records of allocated and freed memory, found by time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, MutableSequence, Sequence
from typing import Any


class MemRecordsAcc:
    """Memory records in the order of their times, as torch's class of that name.

    Args:
        mem_records: Pairs of a record and whether some event was given it yet.
    """

    def __init__(self, mem_records: Sequence[MutableSequence[Any]]) -> None:
        # The sort is stable: records of one time stay in the order given.
        self._records = sorted(mem_records, key=lambda pair: int(pair[0].start_ns()))
        self._start_ns = [int(pair[0].start_ns()) for pair in self._records]

    def in_interval(self, start_ns: int, end_ns: int) -> Iterator[MutableSequence[Any]]:
        """The pairs whose time lies between two times, both included, in order of time.

        Args:
            start_ns: On the records' own clock, nanoseconds.
            end_ns: The same.
        """
        first = bisect_left(self._start_ns, start_ns)
        last = bisect_right(self._start_ns, end_ns)
        for place in range(first, last):
            yield self._records[place]
