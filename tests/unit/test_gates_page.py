"""The page on gates says what the metrics say."""

from pathlib import Path

import pytest

from pytest_opprof.compare.verdicts import DEFAULT_FAIL_ON, Verdict
from pytest_opprof.metrics import (
    CPU_MEMORY_ALLOCATED,
    FINGERPRINT_FIELDS,
    OPS_COUNT,
    RANGES_COUNT,
    TOTAL_SELF_CPU_TIME,
    TOTALS,
    WATCHED_OPS,
    Family,
)
from pytest_opprof.metrics.device import DEVICE_MEMORY_ALLOCATED

OF_EACH = {
    "ranges": RANGES_COUNT,
    "counts": OPS_COUNT,
    "memory": CPU_MEMORY_ALLOCATED,
    "memory of devices": DEVICE_MEMORY_ALLOCATED,
    "times": TOTAL_SELF_CPU_TIME,
}
MARK = "<!-- {}: held to metrics by tests/unit/test_gates_page.py -->"


@pytest.fixture(scope="module")
def text(repository: Path) -> str:
    """The page."""
    return (repository / "docs" / "gates.md").read_text(encoding="utf-8")


def rows(text: str, name: str) -> list[tuple[str, ...]]:
    """The table behind a mark, without its head."""
    _, _, after = text.partition(MARK.format(name))
    lines = after.lstrip("\n").split("\n\n")[0].splitlines()[2:]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]


def test_every_watched_op_stands_there_with_its_reason(text: str) -> None:
    assert rows(text, "watched") == [(f"`{op}`", reason) for op, reason in WATCHED_OPS.items()]


def test_every_gated_total_stands_there_with_its_rule(text: str) -> None:
    assert rows(text, "totals") == [
        (
            f"`{metric.name}`",
            metric.label,
            "exactly" if metric.family is Family.EXACT else "1 % is tolerated",
        )
        for metric in TOTALS.values()
        if metric.watched
    ]


def test_every_fingerprint_field_stands_there_with_what_depends_on_it(text: str) -> None:
    assert rows(text, "fingerprint") == [
        (
            f"`{field}`",
            words,
            ", ".join(family for family, metric in OF_EACH.items() if field in metric.depends_on),
        )
        for field, words in FINGERPRINT_FIELDS.items()
    ]


def test_every_verdict_is_explained_from_the_worst(text: str) -> None:
    _, _, after = text.partition("## Verdicts")
    table = after.split("\n\n")[2].splitlines()[2:]
    told = [line.split("|")[1].strip() for line in table]
    order = [verdict.label for verdict in Verdict]
    assert told == order
    fails = {line.split("|")[1].strip() for line in table if line.split("|")[3].strip() == "by default"}
    assert fails == {verdict.label for verdict in Verdict if verdict.value in DEFAULT_FAIL_ON.split(",")}
