"""A process that ends, is replaced, starts others or is interrupted while a window is open."""

from pathlib import Path

import pytest
from support.programs.children import answer_of, run_python

PRELUDE = """
    import json, os, signal, subprocess, sys, threading
    from pytest_opprof import record_function
    from pytest_opprof.capture.collector import Collector

    collector = Collector.instance()
    collector.open(sources=frozenset({"ranges"}))
    collector.start()

    def record(name):
        with record_function(name):
            pass
"""


@pytest.fixture(autouse=True)
def session_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "sessions"
    folder.mkdir()
    monkeypatch.setenv("OPPROF_DIR", str(folder))
    return folder


ENDS = {
    "with threads that record": """
    def spin():
        while True:
            record("daemon")
    for _ in range(3):
        threading.Thread(target=spin, daemon=True).start()
    """,
    "with a range that is open": """
    outermost = record_function("open")
    outermost.__enter__()
    """,
    "with a range that a finalizer ends": """
    class Late:
        def __init__(self):
            self.range = record_function("late")
            self.range.__enter__()
        def __del__(self):
            self.range.__exit__()
            record("later still")
    late = Late()
    late.itself = late
    """,
    "with a profiler that was never stopped": """
    collector.stop()
    from pytest_opprof import profile
    profiler = profile(with_stack=True, profile_memory=True)
    profiler.start()
    """,
    "by an exit function that records": """
    import atexit
    atexit.register(record, "at exit")
    """,
    "by sys.exit in a range": """
    with record_function("open"):
        sys.exit(0)
    """,
}


@pytest.mark.parametrize("ending", ENDS)
def test_a_process_may_end_in_a_window(session_folder: Path, ending: str) -> None:
    done = run_python(PRELUDE + ENDS[ending])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(session_folder.iterdir()) == []


def test_a_process_may_be_replaced_in_a_window(session_folder: Path) -> None:
    """The new program has its descriptors closed, and its files are those of a dead process."""
    program = """
    from pytest_opprof.recovery.sessions import left_sessions
    from pathlib import Path
    import os
    left = left_sessions([Path(os.environ["OPPROF_DIR"])])
    print(len(os.listdir("/proc/self/fd")), [file.was_recording for file in left])
    """
    bare = run_python(program)
    assert bare.stdout.endswith(" []\n")
    replaced = run_python(
        PRELUDE
        + f"""
    record("before")
    os.execv(sys.executable, [sys.executable, "-c", {"if True:" + program!r}])
    """
    )
    assert (replaced.returncode, replaced.stderr) == (0, "")
    assert replaced.stdout == bare.stdout.replace("[]", "[True]")


STARTS = {
    "subprocess": "subprocess.run(command, check=True)",
    "subprocess that forks": "subprocess.run(command, check=True, preexec_fn=lambda: None)",
    "subprocess that closes nothing": "subprocess.run(command, check=True, close_fds=False)",
    "posix_spawn": "os.waitpid(os.posix_spawn(command[0], command, os.environ), 0)",
    "spawnv": "os.spawnv(os.P_WAIT, command[0], command)",
    "a shell": "os.system(' '.join(command))",
}


@pytest.mark.parametrize(
    "start",
    [start if start == "subprocess" else pytest.param(start, marks=pytest.mark.slow) for start in STARTS],
)
def test_programs_started_in_a_window_leave_it_whole(session_folder: Path, start: str) -> None:
    """subprocess uses vfork if it can, and posix_spawn and the shell always do: no fork handler runs."""
    said = answer_of(
        PRELUDE
        + f"""
    command = ["/bin/ls", "/proc/self/fd"]
    sys.stdout.flush()
    before = set(os.listdir(os.environ["OPPROF_DIR"]))
    with record_function("around"):
        {STARTS[start]}
    record("after")
    recording = collector.stop()
    print(json.dumps({{
        "names": [recording.name(event) for event in range(len(recording))],
        "flags": list(recording.flags), "dropped": recording.stats.dropped,
        "files": set(os.listdir(os.environ["OPPROF_DIR"])) == before,
    }}))
    """
    )
    assert said == {"names": ["around", "after"], "flags": [0, 0], "dropped": 0, "files": True}
    assert list(session_folder.iterdir()) == []


def test_handlers_of_signals_may_record() -> None:
    said = answer_of(
        PRELUDE
        + """
    handled = 0

    def on_alarm(number, frame):
        global handled
        with record_function("handler"):
            handled += 1

    signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
    begun = 0
    while handled < 300:
        for _ in range(100):
            with record_function("outer"):
                record("inner")
        begun += 100
    signal.setitimer(signal.ITIMER_REAL, 0)
    recording = collector.stop()
    names = [recording.name(event) for event in range(len(recording))]
    print(json.dumps({
        "all": [names.count("handler") - handled, names.count("outer") - begun, names.count("inner") - begun],
        "flags": any(recording.flags), "dropped": recording.stats.dropped,
        "unmatched": recording.stats.unmatched_ends,
    }))
    """
    )
    assert said == {"all": [0, 0, 0], "flags": False, "dropped": 0, "unmatched": 0}


def test_closing_all_descriptors_spares_the_processs_own_files(tmp_path: Path) -> None:
    said = answer_of(
        PRELUDE
        + f"""
    record("before")
    os.closerange(3, 256)
    files = [open(os.path.join({str(tmp_path)!r}, f"mine-{{number}}"), "w+") for number in range(20)]
    for file in files:
        file.write("mine")
        file.flush()
    for number in range(900_000):
        with record_function("much"):
            pass
    recording = collector.stop()
    collector.start()
    record("once more")
    again = collector.stop()
    mine = set()
    for file in files:
        file.seek(0)
        mine.add(file.read())
        file.close()
    print(json.dumps({{
        "events": [len(recording), len(again)], "dropped": recording.stats.dropped,
        "spilled": recording.stats.spilled_bytes > 0, "mine": list(mine),
    }}))
    """
    )
    assert said == {"events": [900_001, 1], "dropped": 0, "spilled": True, "mine": ["mine"]}
