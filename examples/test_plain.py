"""Plain Python: ranges around important parts, and a test that calls `opprof.step` itself."""

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from pytest_opprof import record_function

if TYPE_CHECKING:
    from pytest_opprof.plugin.fixtures import Opprof

LINES = [json.dumps({"user": number % 7, "bytes": number * 10}) for number in range(200)]


@record_function("report: parse")
def parsed(line: str) -> dict[str, int]:
    entry: dict[str, int] = json.loads(line)
    return entry


def bytes_by_user(lines: list[str]) -> Counter[int]:
    totals: Counter[int] = Counter()
    with record_function("report: total"):
        for line in lines:
            entry = parsed(line)
            totals[entry["user"]] += entry["bytes"]
    return totals


@pytest.mark.profile(warmup=1, active=3)
def test_report() -> None:
    assert bytes_by_user(LINES).total() == sum(range(200)) * 10


@pytest.mark.profile(wait=0, warmup=1, active=2)
def test_report_in_batches(opprof: "Opprof") -> None:
    for start in range(0, 150, 50):
        bytes_by_user(LINES[start : start + 50])
        opprof.step()
    assert opprof.counts["report: parse"] == 100


def test_an_empty_report_is_empty() -> None:
    assert not bytes_by_user([])
