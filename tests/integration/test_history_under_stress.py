"""A history with many writers, a killed writer, a full disk, a read-only disk, and a repository."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.documents.histories import log_of, record_on_day, run_on_day

from pytest_opprof.errors import StoreError
from pytest_opprof.history.entries import RunEntry, read_entries
from pytest_opprof.history.log import HistoryLog
from pytest_opprof.history.reader import HistoryReader
from pytest_opprof.history.store import history_of, remember
from pytest_opprof.results.run import Commit

_WRITER = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from support.documents.histories import record_on_day
from pytest_opprof.history.log import HistoryLog
if len(sys.argv) > 4:
    write = os.write
    def write_half(descriptor, data):
        write(descriptor, data[: int(sys.argv[4])])
        os.kill(os.getpid(), signal.SIGKILL)
    os.write = write_half
for day in range(10):
    HistoryLog(Path(sys.argv[1])).append([record_on_day(int(sys.argv[3]) + day, mul=day + 1)])
"""


def writer(log: HistoryLog, *arguments: int) -> subprocess.Popen[bytes]:
    tests = str(Path(__file__).parents[1])
    return subprocess.Popen([sys.executable, "-c", _WRITER, str(log.folder), tests, *map(str, arguments)])


def asked(log: HistoryLog) -> tuple[list[int], tuple[str, ...]]:
    reader = HistoryReader(log)
    results = reader.results("t.py::test_0")
    return [result.counts.ops["aten::mul"]["count"].low for result in results], reader.notes


def test_writers_take_turns(tmp_path: Path) -> None:
    log = HistoryLog(tmp_path / "history")
    writers = [writer(log, first) for first in (0, 100, 200)]
    assert [each.wait() for each in writers] == [0, 0, 0]
    assert asked(log) == ([*range(1, 11)] * 3, ())
    assert len(log.segments()) == 1


@pytest.mark.parametrize("written", [1, 300, 500])
def test_killed_writer_loses_only_its_own_run(tmp_path: Path, written: int) -> None:
    log = log_of(tmp_path, [7, 8])
    (tmp_path / "history" / ".current").unlink()
    killed = writer(log, 50, written)
    assert killed.wait() == -signal.SIGKILL
    muls, notes = asked(log)
    assert muls == [7, 8]
    assert len(notes) == 1
    assert notes[0].endswith(".jsonl: damaged lines skipped: 1")
    log.append([record_on_day(99, mul=9)])
    assert asked(log)[0] == [7, 8, 9]
    assert log.compact().runs == 3
    assert asked(log) == ([7, 8, 9], ())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 128 KiB, which can be made read-only for root too."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(tmp_path)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_full_disk_leaves_the_log_unchanged(small_disk: Path) -> None:
    log = log_of(small_disk, [1, 2])
    (segment,) = log.segments()
    before = segment.read_bytes()
    with pytest.raises(StoreError, match=r"the disk is full.*; the history is unchanged"):
        log.append(record_on_day(day, tests=50, mul=day) for day in range(10, 30))
    assert segment.read_bytes() == before
    assert asked(log) == ([1, 2], ())


def test_read_only_store_can_be_queried(small_disk: Path) -> None:
    log = log_of(small_disk, [1, 2, 3])
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert asked(log) == ([1, 2, 3], ())
    with pytest.raises(StoreError, match="the file system is read-only"):
        log.append([record_on_day(4)])


def test_run_is_remembered_with_its_commits_time(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    when = {"GIT_COMMITTER_DATE": "2020-02-02T02:02:02Z", "PATH": "/usr/bin:/bin:/usr/local/bin"}
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "a"], check=True, env=when)
    head = subprocess.run(
        [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    log = history_of("dir:.opprof", root=tmp_path)
    assert remember(log, run_on_day(1, commit=Commit(id=head, dirty=False)), repository=tmp_path)
    assert not remember(log, run_on_day(2, tests=0), repository=tmp_path)
    (segment,) = log.segments()
    (entry,) = (entry for entry in read_entries(segment).entries if isinstance(entry, RunEntry))
    assert entry.head.committed is not None
    assert entry.head.committed.isoformat() == "2020-02-02T02:02:02+00:00"
