"""Recordings of processes killed at random moments, against those processes' own logs."""

import random
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
from support.programs.native_programs import build

LARGEST_LOG = 3_000_000  # bytes of the four logs: about 150,000 events; the pool has room for 30,000
OPEN_FOREVER = 0  # the number of the range that each thread leaves open


@dataclass(slots=True, kw_only=True)
class Log:
    """What a thread announced before it started, and the last number of what had all ended."""

    tid: int = 0
    begun: list[str] = field(default_factory=list)  # "NUMBER NAME PARENT TEXT", the numbers from 0
    ended: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """An event read back; `end` is -1 where it has none."""

    start: int
    end: int
    event: str  # as in the log

    @property
    def parent(self) -> int:
        return int(self.event.rsplit(" ", 2)[1])


@pytest.fixture(scope="session")
def programs(repository: Path) -> Path:
    """The folder of kill_writer and recover_dump, as `make ctest` builds them."""
    return build(repository, "kill_writer", "recover_dump")


def log_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.log"))


def record_until_killed(
    programs: Path, folder: Path, *, signal_number: int, seed: int, log_size: int
) -> Path:
    """The session file of a process that was killed when its logs reached that size together."""
    command = [str(programs / "kill_writer"), str(folder), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        session = Path(process.stdout.readline().rstrip("\n"))
        while log_bytes(folder) < log_size and process.poll() is None:
            pass
        process.send_signal(signal_number)
    assert process.returncode == -signal_number
    return session


def read_log(path: Path) -> Log:
    """The log's complete lines: the kill may have torn the last one."""
    log = Log()
    for line in path.read_text(errors="replace").split("\n")[:-1]:
        kind, _, rest = line.partition(" ")
        match kind:
            case "t":
                log.tid = int(rest)
            case "b":
                log.begun.append(rest)
            case "d":
                log.ended = int(rest)
    return log


def recover(programs: Path, session: Path) -> tuple[dict[int, list[Recovered]], int]:
    """The events of each thread, in the order in which they are read back, and the bytes spilled."""
    command = [str(programs / "recover_dump"), str(session)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    _, truncated, _, spilled, _, count = lines[0].split(" ")
    assert truncated == "0"
    assert int(count) == len(lines) - 1
    threads: dict[int, list[Recovered]] = {}
    for line in lines[1:]:
        tid, start, end, event = line.split(" ", 3)
        threads.setdefault(int(tid), []).append(Recovered(start=int(start), end=int(end), event=event))
    return threads, int(spilled)


def check_thread(recovered: list[Recovered], log: Log) -> None:
    """All recovered events were announced, in order and without a gap; all ended events are there."""
    assert [one.event for one in recovered] == log.begun[: len(recovered)]
    assert len(recovered) > log.ended
    for one, following in pairwise(recovered):
        assert one.start <= following.start
    for number, one in enumerate(recovered):
        assert one.end == -1 or one.start <= one.end
        assert one.end != -1 or number > log.ended or number == OPEN_FOREVER
        if one.end != -1 and one.parent > OPEN_FOREVER:
            assert recovered[one.parent].start <= one.start
            assert recovered[one.parent].end == -1 or recovered[one.parent].end >= one.end


def kill_and_check(programs: Path, folder: Path, *, signal_number: int, choice: random.Random) -> int:
    """Kill one process and return how much it had spilled."""
    seed, log_size = choice.randrange(2**32), choice.randrange(LARGEST_LOG)
    print(f"seed {seed}, killed at {log_size} bytes of log")
    session = record_until_killed(programs, folder, signal_number=signal_number, seed=seed, log_size=log_size)
    threads, spilled = recover(programs, session)
    logs = [read_log(path) for path in sorted(folder.glob("*.log"))]
    assert set(threads) <= {log.tid for log in logs}
    for log in logs:
        check_thread(threads.get(log.tid, []), log)
    return spilled


@pytest.mark.slow
@pytest.mark.parametrize(
    "signal_number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT], ids=["killed", "crashed", "aborted"]
)
def test_recorded_events_survive_a_kill(
    programs: Path, tmp_path: Path, signal_number: int, *, large_counts: bool
) -> None:
    choice = random.Random()  # noqa: S311  # moments, not secrets
    spilled = 0
    for kill in range(67 if large_counts else 5):
        folder = tmp_path / str(kill)
        folder.mkdir()
        spilled += kill_and_check(programs, folder, signal_number=signal_number, choice=choice)
        shutil.rmtree(folder)
    assert spilled > 0  # otherwise the pool never wrapped, and the test shows nothing
