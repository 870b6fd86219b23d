"""A reader's view of a log; it changes no file."""

import json
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from support.documents.histories import FIRST_DAY, log_of, record_on_day

from pytest_opprof.history import log as log_module
from pytest_opprof.history.log import HistoryLog
from pytest_opprof.history.reader import HistoryReader
from pytest_opprof.history.record import Definition

TEST = "t.py::test_0"
RUNS = 200


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HistoryLog:
    """200 runs of three tests, in several segments."""
    monkeypatch.setattr(log_module, "SEGMENT_BYTES", 20_000)
    log = log_of(tmp_path, [2 + day // 50 for day in range(RUNS)], tests=3)
    assert len(log.segments()) > 2
    return log


def muls(log: HistoryLog) -> list[int]:
    reader = HistoryReader(log)
    return [result.counts.ops["aten::mul"]["count"].low for result in reader.results(TEST)]


def notes(log: HistoryLog) -> tuple[str, ...]:
    reader = HistoryReader(log)
    reader.results(TEST)
    return reader.notes


EXPECTED = [2 + day // 50 for day in range(RUNS)]


def test_results_match_the_log(log: HistoryLog) -> None:
    assert muls(log) == EXPECTED
    reader = HistoryReader(log)
    assert reader.tests() == ["t.py::test_0", "t.py::test_1", "t.py::test_2"]
    assert len(reader.run_ids()) == RUNS
    result = reader.results(TEST)[7]
    assert result.run == next(iter([r.run for r in reader.results(TEST)][7:]))
    assert result.run.run_id == "run00007"
    assert result.run.commit is not None
    assert result.run.commit.branch == "main"
    assert result.environment.fingerprint["torch"] == "2.13.0"
    assert result.counts.measured == ("total.self_cpu_time_total",)
    assert result.measured == (3_000,)
    assert not reader.results("t.py::test_9")
    assert not reader.results(TEST, name="other")
    assert len(reader.results(TEST, name="main")) == RUNS
    assert reader.notes == ()


def test_a_reader_leaves_every_file_alone(log: HistoryLog) -> None:
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in log.folder.iterdir()}
    assert muls(log) == EXPECTED
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in log.folder.iterdir()} == before


def test_appended_runs_are_read(log: HistoryLog) -> None:
    assert muls(log) == EXPECTED
    log.append([record_on_day(RUNS, mul=90)])
    assert muls(log) == [*EXPECTED, 90]
    log.append([record_on_day(RUNS + 1, mul=90)])
    assert muls(log) == [*EXPECTED, 90, 90]


def test_segment_rewritten_at_equal_size_is_reread(log: HistoryLog) -> None:
    assert muls(log) == EXPECTED
    segment = next(one for one in log.segments() if b"run0000" in one.read_bytes())
    before = segment.stat()
    segment.write_bytes(segment.read_bytes().replace(b"run0000", b"run9000"))
    os.utime(segment, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert segment.stat().st_size == before.st_size
    reader = HistoryReader(log)
    ids = reader.run_ids()
    assert len(reader.results(TEST)) == RUNS
    assert len(ids) == RUNS
    assert any(name.startswith("run9000") for name in ids)
    assert not any(name.startswith("run0000") for name in ids)


def test_compacted_log_reads_the_same(log: HistoryLog) -> None:
    assert muls(log) == EXPECTED
    log.compact()
    assert muls(log) == EXPECTED


def test_lost_segment_loses_only_its_own_runs(log: HistoryLog) -> None:
    assert muls(log) == EXPECTED
    first = log.segments()[0]
    lost = first.read_bytes().count(b'{"run":')
    first.unlink()
    assert len(muls(log)) == RUNS - lost
    assert notes(log) == ()


def test_definitions_may_stand_behind_their_runs(log: HistoryLog) -> None:
    for segment in log.segments():
        lines = segment.read_bytes().splitlines(keepends=True)
        runs_first = sorted(lines, key=lambda line: line.startswith(b'{"define"'))
        segment.write_bytes(b"".join(runs_first))
    assert muls(log) == EXPECTED
    assert notes(log) == ()


def test_damaged_and_partial_lines_are_counted(log: HistoryLog) -> None:
    segments = log.segments()
    lines = segments[0].read_bytes().splitlines(keepends=True)
    at = next(place for place, line in enumerate(lines) if line.startswith(b'{"run"'))
    segments[0].write_bytes(b"".join([*lines[:at], b"{damaged}\n", *lines[at + 1 :]]))
    segments[1].write_bytes(segments[1].read_bytes()[:-9])
    assert len(muls(log)) == RUNS - 2
    told = notes(log)
    assert len(told) == 2
    for segment, note in zip(segments, told, strict=False):
        assert note == f"{segment}: damaged lines skipped: 1"


def test_results_without_a_definition_are_counted(log: HistoryLog) -> None:
    segment = log.segments()[0]
    lines = segment.read_bytes().splitlines(keepends=True)
    lost = [line for line in lines if line.startswith(b'{"define"') and b"test_0" in line]
    segment.write_bytes(b"".join(line for line in lines if line not in lost))
    # Other segments define the same counts, so only the first value is lost.
    for other in log.segments()[1:]:
        other.unlink()
    reader = HistoryReader(log)
    assert not reader.results(TEST)
    assert "results skipped, because the lines that define them are lost: " in reader.notes[0]
    assert reader.results("t.py::test_1")


@pytest.mark.parametrize("damaged", ["a", "b"])
@pytest.mark.parametrize("lost", ["mul", "fingerprint"])
def test_a_run_is_whole_if_any_segment_has_its_definitions(tmp_path: Path, damaged: str, lost: str) -> None:
    log = log_of(tmp_path, [1, 1])
    (segment,) = log.segments()
    lines = segment.read_bytes().splitlines(keepends=True)
    for name in "ab":
        kept = [
            line for line in lines if name != damaged or b"define" not in line or lost.encode() not in line
        ]
        (log.folder / f"{name * 8}.jsonl").write_bytes(b"".join(kept))
    segment.unlink()
    assert len({len(one.read_bytes()) for one in log.segments()}) == 2
    assert muls(log) == [1, 1]
    assert notes(log) == ()


def test_definitions_of_the_wrong_kind_define_nothing(tmp_path: Path) -> None:
    log = log_of(tmp_path, [1, 1])
    (segment,) = log.segments()
    *definitions, first, second = segment.read_text().splitlines()
    environment, test = (line[11:27] for line in definitions)
    swapped = first.replace(environment, "x").replace(test, environment).replace('"x"', f'"{test}"')
    segment.write_text("\n".join([*definitions, swapped, second, ""]))
    assert len(muls(log)) == 1
    assert notes(log) == ("results skipped, because the lines that define them are lost: 1",)


def test_runs_stand_in_the_order_of_their_commits(tmp_path: Path) -> None:
    """A clock set back measured the later commit "earlier"; for one commit the clock decides."""
    log = HistoryLog(tmp_path / "history")
    day = timedelta(days=1)
    log.append(
        [
            record_on_day(9, mul=1, committed=FIRST_DAY),
            record_on_day(3, mul=3, committed=FIRST_DAY + 2 * day),
            record_on_day(2, mul=2, committed=FIRST_DAY + 2 * day),
            record_on_day(4, mul=4),  # its commit's time is unknown, so its measuring time counts
        ]
    )
    assert muls(log) == [1, 2, 3, 4]


def test_empty_history_leaves_no_folder(tmp_path: Path) -> None:
    reader = HistoryReader(HistoryLog(tmp_path / "history"))
    assert reader.tests() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("member", ["steps", "ops.count"])
def test_definition_with_a_number_too_large_for_a_float_is_skipped(tmp_path: Path, member: str) -> None:
    log = HistoryLog(tmp_path / "history")
    record = record_on_day(1)
    ((definition, values),) = record.tests
    document = json.loads(definition.text)
    place = document if member == "steps" else document["totals"]
    place[member] = 10**400
    log.append([replace(record, tests=((Definition.of(document), values),))])
    assert HistoryReader(log).tests() == []
    assert any("damaged lines skipped: 1" in note for note in notes(log))


def test_a_run_that_is_saved_later_gets_its_names(tmp_path: Path) -> None:
    log = HistoryLog(tmp_path / "history")
    log.append(record_on_day(1, name=name) for name in (None, "main", "v1"))
    reader = HistoryReader(log)
    for name in ("main", "v1"):
        assert len(reader.results(TEST, name=name)) == 1
    (result,) = reader.results(TEST)
    assert result.run.name == "main"
