"""The log: appended runs are there, whatever happened to earlier ones."""

import os
import shutil
from pathlib import Path

import pytest
from support.documents.histories import log_of, record_on_day

from pytest_opprof.errors import StoreError
from pytest_opprof.history import log as log_module
from pytest_opprof.history.entries import RunEntry, read_entries
from pytest_opprof.history.log import Compacted, HistoryLog
from pytest_opprof.history.reader import HistoryReader


def runs_in(log: HistoryLog) -> list[str]:
    return [
        entry.head.run_id
        for segment in log.segments()
        for entry in read_entries(segment).entries
        if isinstance(entry, RunEntry)
    ]


def test_a_definition_is_written_once_a_segment(tmp_path: Path) -> None:
    log = log_of(tmp_path, [2, 2, 2])
    log.append([record_on_day(7)])
    (segment,) = log.segments()
    lines = segment.read_text(encoding="ascii").splitlines()
    assert sum(line.startswith('{"define"') for line in lines) == 2, "an environment and a test"
    assert runs_in(log) == ["run00000", "run00001", "run00002", "run00007"]


@pytest.mark.parametrize("name", [".current", ".lock", "pipe.jsonl"])
def test_pipe_in_the_log_blocks_nobody(tmp_path: Path, name: str) -> None:
    log = log_of(tmp_path, [1])
    (log.folder / name).unlink(missing_ok=True)
    os.mkfifo(log.folder / name)
    log.append([record_on_day(2)])
    with log.shared():
        segments = log.segments()
    whole = [segment for segment in segments if segment.name != name]
    assert sum(len(read_entries(segment).entries) for segment in whole) >= 4
    for segment in segments:
        if segment not in whole:
            with pytest.raises(StoreError, match="cannot be read: this is not a regular file"):
                read_entries(segment)


def test_full_segments_are_not_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "SEGMENT_BYTES", 2_000)
    log = log_of(tmp_path, [1, 2, 3, 4, 5, 6, 7, 8])
    assert len(log.segments()) > 1
    assert sorted(runs_in(log)) == [f"run{day:05}" for day in range(8)]
    for segment in log.segments():
        defined: set[str] = set()
        for entry in read_entries(segment).entries:
            if isinstance(entry, RunEntry):
                assert {entry.environment, *entry.tests} <= defined, "a segment stands alone"
            else:
                defined.add(entry.definition.digest)


def test_run_without_a_test_is_not_added(tmp_path: Path) -> None:
    log = HistoryLog(tmp_path / "history")
    assert log.append([record_on_day(1, tests=0)]) == 0
    assert log.segments() == ()


def test_half_a_line_is_never_continued(tmp_path: Path) -> None:
    log = log_of(tmp_path, [1, 2])
    (damaged,) = log.segments()
    damaged.write_bytes(damaged.read_bytes()[:-20])
    log.append([record_on_day(9)])
    assert sorted(runs_in(log)) == ["run00000", "run00009"]
    assert len(log.segments()) == 2


def test_copied_folders_never_continue_one_segment(tmp_path: Path) -> None:
    log = log_of(tmp_path, [1])
    copies = [
        HistoryLog(shutil.copytree(log.folder, tmp_path / name, copy_function=shutil.copy2)) for name in "ab"
    ]
    for day, each in enumerate([log, *copies], start=5):
        each.append([record_on_day(day)])
        each.append([record_on_day(day + 10)])
    for copy in copies:
        assert len(copy.segments()) == 2, "the copied one, and one of its own"
        for segment in copy.segments():
            shutil.copy(segment, tmp_path)
    for segment in log.segments():
        shutil.copy(segment, tmp_path)
    days = (0, 5, 6, 7, 15, 16, 17)
    assert sorted(runs_in(HistoryLog(tmp_path))) == [f"run{day:05}" for day in days]


def test_compaction_keeps_each_run_once(tmp_path: Path) -> None:
    log = log_of(tmp_path, [1, 2])
    (log.folder / ".current").unlink()
    log.append([record_on_day(1, mul=2), record_on_day(5)])
    assert log.compact() == Compacted(runs=3)
    assert len(log.segments()) == 1
    assert sorted(runs_in(log)) == ["run00000", "run00001", "run00005"]
    log.append([record_on_day(6)])
    assert len(log.segments()) == 1


def test_compaction_reads_damaged_definitions_where_else_they_stand(tmp_path: Path) -> None:
    log = log_of(tmp_path, [1, 2])
    (whole,) = log.segments()
    (log.folder / ".current").unlink()
    log.append([record_on_day(7, mul=2)])
    (other,) = set(log.segments()) - {whole}
    lines = other.read_bytes().splitlines(keepends=True)
    other.write_bytes(b"".join(line for line in lines if line.startswith(b'{"run"')))
    assert log.compact() == Compacted(runs=3)
    assert sorted(runs_in(log)) == ["run00000", "run00001", "run00007"]


@pytest.mark.parametrize("start", [b'{"define"', b'{"run"'])
def test_compaction_keeps_what_it_cannot_read(tmp_path: Path, start: bytes) -> None:
    log = log_of(tmp_path, [1, 1, 1])
    (damaged,) = log.segments()
    lines = damaged.read_bytes().splitlines(keepends=True)
    at = max(at for at, line in enumerate(lines) if line.startswith(start))
    damaged.write_bytes(b"".join([*lines[:at], lines[at].replace(b":", b";", 1), *lines[at + 1 :]]))
    before = damaged.read_bytes()
    (log.folder / ".current").unlink()
    log.append([record_on_day(8, mul=2)])
    assert log.compact() == Compacted(runs=1, kept=(damaged,))
    assert damaged.read_bytes() == before
    damaged.write_bytes(b"".join(lines))
    assert log.compact() == Compacted(runs=4)
    assert sorted(runs_in(log)) == ["run00000", "run00001", "run00002", "run00008"]


def test_compaction_keeps_each_name_of_a_run(tmp_path: Path) -> None:
    log = HistoryLog(tmp_path / "history")
    names = [None, "main", "v1", None, "main"]
    log.append([record_on_day(1, name=name) for name in names])
    assert log.compact() == Compacted(runs=1)
    assert runs_in(log) == ["run00001"] * 2
    assert [record.head.name for record in log.records()] == ["main"]
    for name in ("main", "v1"):
        assert len(HistoryReader(log).results("t.py::test_0", name=name)) == 1


def test_compaction_keeps_a_run_whose_named_record_is_left_alone(tmp_path: Path) -> None:
    log = log_of(tmp_path, [1], name=None)
    (log.folder / ".current").unlink()
    log.append([record_on_day(0, mul=1), record_on_day(3)])
    (named,) = (each for each in log.segments() if b'"name":"main"' in each.read_bytes())
    named.write_bytes(named.read_bytes().replace(b'"run":"run00003"', b'"run";"run00003"'))
    assert log.compact() == Compacted(runs=1, kept=(named,))


def test_compacting_an_empty_log_does_nothing(tmp_path: Path) -> None:
    assert HistoryLog(tmp_path / "history").compact() == Compacted(runs=0)


def test_history_ignores_itself_in_git(tmp_path: Path) -> None:
    log = log_of(tmp_path, [1])
    assert (log.folder / ".gitignore").read_text() == "*\n"


def test_unwritable_path_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "history").write_text("a file")
    with pytest.raises(StoreError, match=r"history cannot be written: a part of its path is a file"):
        HistoryLog(tmp_path / "history").append([record_on_day(1)])
