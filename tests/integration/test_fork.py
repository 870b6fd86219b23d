"""Processes that are forked or started while a window is open."""

import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest
from support.programs.children import answer_of


@pytest.fixture(autouse=True)
def session_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all session files: a child that leaves by os._exit leaves its file there."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    monkeypatch.setenv("OPPROF_DIR", str(folder))
    return folder


# A child answers through a pipe, because it shares its parent's standard output.
PRELUDE = """
    import gc, json, os, sys, threading
    from pytest_opprof import range_pop, range_push, record_function
    from pytest_opprof.capture.collector import Collector
    from pytest_opprof.errors import CollectorError

    collector = Collector.instance()
    collector.open(sources=frozenset({"ranges"}))

    def names(recording):
        return [recording.name(event) for event in range(len(recording))]

    def record(*spans):
        for name in spans:
            with record_function(name):
                pass

    def in_child(body):
        mine, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.write(theirs, json.dumps(body()).encode())
                code = 0
            finally:
                os._exit(code)
        os.close(theirs)
        with open(mine, "rb") as pipe:
            said = pipe.read()
        assert os.waitpid(child, 0)[1] == 0, said
        return json.loads(said)
"""


def test_child_of_an_open_window_records_nothing_of_it() -> None:
    said = answer_of(
        PRELUDE
        + """
    def child():
        with record_function("in the child"):
            pass
        range_push("pushed in the child")
        range_pop()
        range_pop()
        outer.__exit__()
        try:
            collector.stop()
        except CollectorError as error:
            return [collector.recording, str(error), str(collector.session_path)]

    collector.start()
    outer = record_function("around the fork")
    outer.__enter__()
    range_push("pushed around the fork")
    told = in_child(child)
    record("after the fork")
    range_pop()
    outer.__exit__()
    recording = collector.stop()
    print(json.dumps({
        "child": told, "names": names(recording), "parents": list(recording.parent),
        "flags": list(recording.flags), "unmatched": recording.stats.unmatched_ends,
    }))
    """
    )
    assert said["child"] == [False, "no window is open", "None"]
    assert said["names"] == ["around the fork", "pushed around the fork", "after the fork"]
    assert said["parents"] == [-1, 0, 1]
    assert said["flags"] == [0, 0, 0]
    assert said["unmatched"] == 0


def test_child_may_record_in_a_session_of_its_own() -> None:
    said = answer_of(
        PRELUDE
        + """
    def child():
        collector.start()
        record("in the child", "again")
        recording = collector.stop()
        path = collector.session_path
        grandchild = in_child(lambda: [collector.recording, str(collector.session_path)])
        return [names(recording), str(path), path.exists(), grandchild]

    collector.start()
    record("before")
    told = in_child(child)
    record("after")
    recording = collector.stop()
    print(json.dumps({
        "child": told, "names": names(recording), "path": str(collector.session_path),
        "exists": collector.session_path.exists(), "threads": len(recording.threads),
    }))
    """,
    )
    child_names, child_path, child_file_was_there, grandchild = said["child"]
    assert child_names == ["in the child", "again"]
    assert said["names"] == ["before", "after"]
    assert said["exists"] is True
    assert said["threads"] == 1
    assert child_path != said["path"]
    assert child_file_was_there is True
    assert grandchild == [False, "None"]


def test_fork_beside_recording_threads_leaves_the_parent_whole() -> None:
    """Threads record into spilled chunks while the main thread forks, so that every lock is in use."""
    said = answer_of(
        PRELUDE
        + """
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns of the threads, which are ours here
    stop = threading.Event()
    counts = [0, 0]

    def work(number):
        while not stop.is_set():
            with record_function(f"thread {number} {counts[number] % 1000}"):
                counts[number] += 1

    collector.start()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    told = []
    for number in range(8):
        record("main")
        told.append(in_child(lambda: [collector.recording, record("child"), collector.start(),
                                      record("child"), len(collector.stop())]))
    stop.set()
    for thread in threads:
        thread.join()
    recording = collector.stop()
    kept = len(recording) + recording.stats.dropped
    print(json.dumps({
        "children": told, "main": names(recording).count("main"), "kept": kept == sum(counts) + 8,
        "unfinished": sum(flags != 0 for flags in recording.flags),
    }))
    """
    )
    assert said == {
        "children": [[False, None, None, None, 1]] * 8,
        "main": 8,
        "kept": True,
        "unfinished": 0,
    }


def test_our_threads_are_gone_before_a_fork() -> None:
    """From 3.12 on, os.fork() warns if other threads run; warnings are errors in this program."""
    said = answer_of(
        PRELUDE
        + """
    collector.start()
    for number in range(900_000):
        with record_function("many"):
            pass
    spilled = collector.peek().stats.spilled_bytes
    native = lambda: len(os.listdir("/proc/self/task"))
    before = native()
    told = in_child(native)
    record("after")
    recording = collector.stop()
    print(json.dumps({
        "spilled": spilled > 0, "threads": [before, told, native()],
        "events": len(recording), "dropped": recording.stats.dropped,
    }))
    """
    )
    assert said["spilled"] is True
    assert said["threads"][1:] == [1, 1]
    assert (said["events"], said["dropped"]) == (900_001, 0)


def test_range_around_a_fork_ends_in_both() -> None:
    said = answer_of(
        PRELUDE
        + """
    collector.start()
    mine, theirs = os.pipe()
    with record_function("around"):
        child = os.fork()
    if child == 0:
        collector.start()
        record("child")
        os.write(theirs, json.dumps(names(collector.stop())).encode())
        os._exit(0)
    said = json.loads(os.read(mine, 1000))
    os.waitpid(child, 0)
    recording = collector.stop()
    print(json.dumps([said, names(recording), list(recording.flags)]))
    """
    )
    assert said == [["child"], ["around"], [0]]


def test_files_of_a_child_that_leaves_abruptly_are_its_own(session_folder: Path) -> None:
    """A forked child that calls os._exit leaves its session file, as one that was killed does."""
    said = answer_of(
        PRELUDE
        + """
    def child():
        collector.start()
        record("child")
        return str(collector.session_path)

    told = in_child(child)
    collector.start()
    record("parent")
    print(json.dumps({"child": told, "names": names(collector.stop())}))
    """,
    )
    left = {str(path) for path in session_folder.iterdir()}
    assert left == {said["child"], f"{said['child']}.names"}
    assert said["names"] == ["parent"]


# multiprocessing imports the program in its children, so it must be a file.
POOL_PROGRAM = """
import json, multiprocessing, sys, warnings
from pytest_opprof import record_function
from pytest_opprof.capture.collector import Collector

RANGES = frozenset({"ranges"})

@record_function("work")
def work(number):
    return [number * 2, Collector.instance().recording]

def measured(number):
    collector = Collector.instance()
    collector.open(sources=RANGES)
    collector.start()
    work(number)
    recording = collector.stop()
    return [recording.name(event) for event in range(len(recording))]

if __name__ == "__main__":
    collector = Collector.instance()
    collector.open(sources=RANGES)
    collector.start()
    with record_function("pool"):
        # As a test starts it, before it has threads of its own.
        with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
            worked, recorded = pool.map(work, range(3)), pool.map(measured, range(3))
    recording = collector.stop()
    names = [recording.name(event) for event in range(len(recording))]
    print(json.dumps({"worked": worked, "recorded": recorded, "names": names}))
"""


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_pools_of_processes_work_in_a_window(tmp_path: Path, method: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(POOL_PROGRAM)
    done = subprocess.run(
        [sys.executable, program, method], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == (
        '{"worked": [[0, false], [2, false], [4, false]], '
        '"recorded": [["work"], ["work"], ["work"]], "names": ["pool"]}'
    )


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_worker_that_ends_leaves_no_file(tmp_path: Path, session_folder: Path, method: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(WORKER_PROGRAM)
    done = subprocess.run(
        [sys.executable, program, method], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
    assert list(session_folder.iterdir()) == []


WORKER_PROGRAM = """
import multiprocessing, sys
from pytest_opprof import record_function
from pytest_opprof.capture.collector import Collector

def measured():
    collector = Collector.instance()
    collector.open(sources=frozenset({"ranges"}))
    collector.start()
    with record_function("work"):
        pass
    assert len(collector.stop()) == 1

if __name__ == "__main__":
    worker = multiprocessing.get_context(sys.argv[1]).Process(target=measured)
    worker.start()
    worker.join()
    print(worker.exitcode)
"""
