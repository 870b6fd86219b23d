"""Lines of a segment: hostile and damaged ones are counted, and harmless."""

from pathlib import Path

import pytest
from support.documents.histories import log_of, record_on_day

from pytest_opprof.errors import StoreError
from pytest_opprof.history.entries import RunEntry, definitions_of, read_entries, records_of

RUN = (
    '{"run":"a","created":"2026-01-01T00:00:00+00:00","committed":null,"commit":null,"name":null,'
    '"environment":"0123456789abcdef","tests":{"0123456789abcdef":[1]}}'
)


def test_records_survive_the_round_trip(tmp_path: Path) -> None:
    (segment,) = log_of(tmp_path, [3, 4]).segments()
    entries = read_entries(segment).entries
    assert list(records_of(entries, dict(definitions_of(entries)))) == [
        record_on_day(0, mul=3),
        record_on_day(1, mul=4),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "null",
        '{"run":"a"}',
        '{"define":"0123456789abcdef","as":{"fingerprint":{}}}',
        RUN.replace("[1]", '["1"]'),
        RUN.replace("[1]", "[1.5]"),
        RUN.replace("[1]", "7"),
        RUN.replace("[1]", f"[{2**63}]"),
        RUN.replace("2026-01-01", "2026-13-01"),
        RUN.replace('"commit":null', '"commit":{"id":"a"}'),
        "[" * 100_000,
        "\x00\xff",
    ],
)
def test_invalid_line_is_skipped(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f"{line}\n{RUN}\n", encoding="latin-1")
    chunk = read_entries(path)
    assert chunk.damaged == 1
    assert [entry.head.run_id for entry in chunk.entries if isinstance(entry, RunEntry)] == ["a"]


def test_partial_line_waits_for_its_rest(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f"{RUN}\n{RUN[:40]}")
    chunk = read_entries(path)
    assert (chunk.damaged, len(chunk.entries), chunk.is_torn) == (0, 1, True)
    path.write_text(f"{RUN}\n{RUN}\n")
    chunk = read_entries(path)
    assert (len(chunk.entries), chunk.is_torn) == (2, False)


def test_unreadable_segment_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        read_entries(tmp_path)
