"""A dead process's recording: the report on each thread."""

import gzip
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from pytest_opprof.recovery.deaths import Death, death_of, keep_trace, told, write_trace
from pytest_opprof.recovery.sessions import left_sessions

PROGRAM = """
import os, signal, sys, threading
from pytest_opprof.capture.collector import Collector
from pytest_opprof import record_function

def nest(depth):
    if depth:
        with record_function(f"r{depth}"):
            nest(depth - 1)
    else:
        inside.release()
        threading.Event().wait()

collector = Collector.instance()
collector.note(b"p\\n\\ntest_a")
%s
inside = threading.Semaphore(0)
depths = [int(depth) for depth in sys.argv[1:]]
for depth in depths:
    threading.Thread(target=nest, args=(depth,), daemon=True).start()
for _ in depths:
    inside.acquire()
with record_function("done"):
    pass
os.kill(os.getpid(), signal.SIGKILL)
"""


def dead(folder: Path, *depths: int, start: str = "collector.start()") -> Death:
    command = [sys.executable, "-c", PROGRAM % start, *map(str, depths)]
    done = subprocess.run(command, env={**os.environ, "OPPROF_DIR": str(folder)}, check=False)
    assert done.returncode == -signal.SIGKILL
    (file,) = left_sessions([folder])
    return death_of(file)


def test_open_ranges_stand_innermost_first(tmp_path: Path) -> None:
    death = dead(tmp_path, 3)
    other, main = death.threads
    assert (other.stack, other.last) == (("r1", "r2", "r3"), "r1")
    assert (main.thread, main.stack, main.last) == ("main thread", (), "done")
    assert list(told(death, trace=Path("x.json.gz")))[1:] == [
        f"    {other.thread}: r1 < r2 < r3",
        "    main thread: in nothing; last: done",
        "    4 events; trace: x.json.gz",
    ]
    trace = write_trace(death, tmp_path)
    assert trace is not None
    processes = {row["pid"] for row in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]}
    assert death.file.pid in processes
    assert os.getpid() not in processes


def test_many_threads_and_deep_stacks_are_counted(tmp_path: Path) -> None:
    death = dead(tmp_path, *range(1, 10), 20)
    assert len(death.threads) == 11
    lines = list(told(death, trace=None))
    assert "    and 3 more threads" in lines
    assert sum("r12 < 8 more" in line for line in lines) <= 1
    deepest = max(death.threads, key=lambda thread: len(thread.stack))
    assert deepest.stack == tuple(f"r{depth}" for depth in range(1, 21))


def test_process_without_events_is_reported(tmp_path: Path) -> None:
    death = dead(tmp_path, start="")
    assert death.recording is None
    assert death.test == "test_a"
    assert list(told(death, trace=None))[1:] == ["    nothing was being recorded"]


def test_forgotten_events_are_counted(tmp_path: Path) -> None:
    much = "collector.watch()\nfor _ in range(600_000):\n with record_function('x'): pass"
    death = dead(tmp_path, 1, start=much)
    assert death.recording is not None
    lacks = 600_000 + 2 - len(death.recording)
    assert 0 < lacks < 600_000
    assert f"events, at least {lacks:,} older ones were forgotten" in list(told(death, trace=None))[-1]


def test_events_without_room_are_counted(tmp_path: Path) -> None:
    deep = "collector.start()\nopened = [record_function('x').__enter__() for _ in range(65_545)]"
    death = dead(tmp_path, start=deep)
    # stacks are at most 65,535 deep; the last range that did not fit is "done"
    assert list(told(death, trace=None))[-1] == "    65,535 events, at least 11 more had no room"


def test_damaged_recording_is_reported(tmp_path: Path) -> None:
    death = dead(tmp_path, 1)
    death.file.names_path.unlink()
    again = death_of(death.file)
    assert again.recording is None
    assert again.problem.startswith("the recording cannot be read: ")
    assert again.test == "test_a"


def test_git_ignores_traces_in_the_projects_folder(tmp_path: Path) -> None:
    death = dead(tmp_path)
    trace = keep_trace(death, tmp_path / ".opprof")
    assert trace is not None
    assert trace.parent == tmp_path / ".opprof" / "crashes"
    assert (trace.parent / ".gitignore").read_text() == "*\n"
    assert keep_trace(replace(death, recording=None), tmp_path / "other") is None
    assert not (tmp_path / "other").exists()
