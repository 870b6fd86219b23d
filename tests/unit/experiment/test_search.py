"""The search: as few commits as possible, and honest about unmeasurable ones."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_opprof.experiment.bisect import first_change
from pytest_opprof.experiment.one_commit import Measured

SKIPPED = Measured(value=None, reason="does not build")


def search(values: str) -> tuple[str, list[str], list[str]]:
    """Search commits named after their values: ``aaxbb``, x for one that cannot be measured."""
    commits = [f"{at}{value}" for at, value in enumerate(values)]
    asked: list[str] = []

    def measure(commit: str) -> Measured:
        asked.append(commit)
        return SKIPPED if commit[-1] == "x" else Measured(value=ord(commit[-1]))

    before, *suspects = first_change(commits, measure, good=ord(values[0]))
    return before, suspects, asked


@pytest.mark.parametrize(
    ("values", "before", "suspects"),
    [
        ("ab", "0a", ["1b"]),
        ("abbbb", "0a", ["1b"]),
        ("aaaab", "3a", ["4b"]),
        ("aaabbbb", "2a", ["3b"]),
        ("aaaxbbb", "2a", ["3x", "4b"]),
        ("axxxb", "0a", ["1x", "2x", "3x", "4b"]),
        ("aaxabbxb", "3a", ["4b"]),
        ("aaaccbb", "2a", ["3c"]),
    ],
)
def test_change_is_found(values: str, before: str, suspects: list[str]) -> None:
    assert search(values)[:2] == (before, suspects)


@given(length=st.integers(2, 500), data=st.data())
def test_search_asks_no_more_than_binary_search(length: int, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, length - 1))
    _, suspects, asked = search("a" * at + "b" * (length - at))
    assert suspects == [f"{at}b"]
    assert len(asked) == len(set(asked)) <= math.ceil(math.log2(length))


@given(inner=st.text(alphabet="abcx", max_size=40))
def test_suspects_lie_between_good_and_changed(inner: str) -> None:
    before, suspects, asked = search(f"a{inner}b")
    *between, last = suspects
    assert before[-1] == "a"
    assert last[-1] not in "ax"
    assert all(commit[-1] == "x" for commit in between)
    assert int(last[:-1]) - int(before[:-1]) == len(suspects)
    assert len(asked) == len(set(asked))
