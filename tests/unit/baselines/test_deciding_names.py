"""The names that decide how often a line runs."""

import ast

import pytest

from pytest_opprof.baselines.deciding_names import deciding_names

SOURCE = """\
DEPTH = 2
def run(values, limits=DEPTH, *, is_deep=False):
    start = first(values)
    total = 0
    for limit in limits:
        if not is_deep:
            continue
        with locked(start):
            total += work(values, limit)
        match limit:
            case 1:
                other(total)
    rest = [work(value, total) for value in more if value]
    while total:
        total = work(total, DEPTH)
    def inner():
        return work(start)
    return work(rest)
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("total += work", {"limits": 0, "is_deep": 0, "DEPTH": 1, "start": 3, "values": 3, "total": None}),
        ("other(total)", {"limit": 0, "limits": 0, "total": 3}),
        ("rest =", {"more": 0, "value": 0, "total": 3, "rest": None}),
        ("total = work(total", {"total": 0, "DEPTH": 1, "values": 1, "limits": 2}),
        ("while total", {"total": 3, "rest": None}),
        ("return work(start)", {"start": 3, "is_deep": None}),
        ("start = first", {"values": 3, "limits": None}),
    ],
)
def test_names_are_as_far_as_what_they_decide(text: str, expected: dict[str, int | None]) -> None:
    line = next(number for number, one in enumerate(SOURCE.splitlines(), start=1) if text in one)
    found = deciding_names(ast.parse(SOURCE), line)
    assert {name: found.get(name) for name in expected} == expected
