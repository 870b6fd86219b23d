"""Records of memory by time."""

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_opprof import MemRecordsAcc


@dataclass(frozen=True, slots=True)
class Record:
    at: int

    def start_ns(self) -> int:
        return self.at


@given(st.lists(st.integers(0, 9)), st.integers(-1, 10), st.integers(-1, 10))
def test_interval_holds_both_its_ends(times: list[int], start: int, end: int) -> None:
    pairs: list[list[Any]] = [[Record(at), False] for at in times]
    found = list(MemRecordsAcc(pairs).in_interval(start, end))
    brute = [
        pair
        for pair in sorted(pairs, key=lambda pair: pair[0].start_ns())
        if start <= pair[0].start_ns() <= end
    ]
    assert [id(pair) for pair in found] == [id(pair) for pair in brute]
