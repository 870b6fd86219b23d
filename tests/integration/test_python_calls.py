"""Python and C calls as the interpreter makes them, on every supported version."""

import asyncio
import functools
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.programs import call_programs as program
from support.programs.call_recordings import CALLS, assert_balanced, recorded, rows, short, this_thread, tree
from support.programs.children import answer_of

from pytest_opprof.capture.collector import Collector
from pytest_opprof.events.event_list import EventList
from pytest_opprof.kinds import EventKind
from pytest_opprof.traces.kineto import load_trace


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (functools.partial(program.recurse, 2), ["recurse", ".recurse", "..recurse"]),
        (program.measure_length, ["measure_length", ".len"]),
        (program.catch_here, ["catch_here", ".fail", ".leaf"]),
        (program.catch_from_c, ["catch_from_c", ".fail_in_c", "..divmod", ".leaf"]),
        # Each resumption of a generator is a call, as for every Python profiler.
        (program.drain, ["drain", ".count_to", "..leaf", ".count_to", "..leaf", ".count_to"]),
        (
            program.throw_into_generator,
            ["throw_into_generator", ".next", "..count_to", "...leaf", ".throw", "..count_to", ".leaf"],
        ),
        (program.sort_by_key, ["sort_by_key", ".sorted", "..<lambda>", "..<lambda>"]),
    ],
    ids=["recursion", "builtin", "exception", "exception in C", "generator", "throw", "called from C"],
)
def test_calls_nest_as_they_ran(run: Callable[[], object], expected: list[str]) -> None:
    recording = recorded(run)
    assert tree(recording) == expected
    assert_balanced(recording)


def test_calls_say_whether_they_are_python_or_c() -> None:
    recording = recorded(program.measure_length)
    python, builtin = rows(recording)
    assert (recording.kind[python], recording.kind[builtin]) == (EventKind.PYTHON_CALL, EventKind.C_CALL)
    assert recording.name(builtin) == "<built-in function len>"
    line = program.measure_length.__code__.co_firstlineno
    assert recording.name(python).endswith(f"call_programs.py({line}): measure_length")


def test_rows_of_calls_have_no_line(tmp_path: Path) -> None:
    """Events keep torch's name; their rows have the file and the qualified name, also in a trace of them."""

    def run() -> None:
        functions: list[Callable[[], object]] = [lambda: 1, lambda: 2]
        for function in functions:
            function()
        program.Nested.run()
        program.run()

    recording = recorded(run)
    here, there = Path(__file__).name, Path(program.__file__).name
    around = f"{test_rows_of_calls_have_no_line.__name__}.<locals>.run"
    rows_of = {group.name.rpartition("/")[2]: group.count for group in recording.groups()}
    assert rows_of == {
        f"{here}: {around}": 1,
        f"{here}: {around}.<locals>.<lambda>": 2,
        f"{there}: Nested.run": 1,
        f"{there}: run": 1,
    }
    assert len({recording.name(event) for event in rows(recording)}) == 4, "the lambdas are on one line"
    assert recording.call_tree()[0].name.endswith(f"{here}: {around}")
    events = EventList([recording])
    assert events.table(row_limit=-1) == EventList(list(events)).table(row_limit=-1), (
        "its columns are as wide"
    )
    recording.write_chrome_trace(tmp_path / "trace.json")
    read = load_trace(tmp_path / "trace.json").recording
    assert {event.name for event in EventList([read])} == {event.name for event in events}
    in_trace = {group.name.rpartition("/")[2]: group.count for group in read.groups()}
    assert in_trace == {f"{here}: run": 1, f"{here}: <lambda>": 2, f"{there}: run": 2}


def test_builtin_methods_are_named_by_type_not_by_object() -> None:
    first: list[int] = []
    second: list[int] = []

    def append() -> None:
        first.append(1)
        second.append(2)

    recording = recorded(append)
    assert {recording.name(event) for event in rows(recording)[1:]} == {
        "<built-in method append of list object>"
    }


def test_calls_have_the_running_line() -> None:
    start = program.catch_here.__code__.co_firstlineno
    recording = recorded(program.catch_here)
    assert [recording.line[event] for event in rows(recording)[1:]] == [start + 2, start + 4]


def test_coroutines_and_async_generators_are_balanced() -> None:
    recording = recorded(lambda: asyncio.run(program.add_up()))
    assert_balanced(recording)
    names = [short(recording.name(event)) for event in rows(recording)]
    # It pauses once for each of the two items, and the last resumption finds no more.
    assert (names.count("add_up"), names.count("pause")) == (3, 4)


def test_a_range_that_outlives_its_call_keeps_what_runs_in_it() -> None:
    recording = recorded(program.work_in_managed)
    lines = tree(recording)
    assert lines[lines.index(".managed") :][:3] == [".managed", "..inside", "...leaf"]
    assert_balanced(recording)


@pytest.mark.parametrize("run", [program.work_in_managed, program.work_after_managed])
def test_ranges_are_the_same_without_calls(run: Callable[[], object]) -> None:
    """Their names, order, parents and kinds, without the calls between them."""

    def ranges(sources: frozenset[str]) -> list[tuple[str, str | None, int]]:
        recording = recorded(run, sources=sources)
        found = []
        for event in rows(recording):
            if recording.kind[event] != EventKind.RANGE:
                continue
            parent = recording.parent[event]
            while parent >= 0 and recording.kind[parent] != EventKind.RANGE:
                parent = recording.parent[parent]
            around = recording.name(parent) if parent >= 0 else None
            found.append((recording.name(event), around, recording.flags[event]))
        return found

    assert ranges(CALLS) == ranges(frozenset({"ranges"}))


def test_earlier_calls_are_not_events() -> None:
    recording = recorded(program.leaf)
    assert tree(recording) == ["leaf"]
    here = [call for call in recording.open_calls if call.thread == this_thread(recording)]
    assert [(short(call.name), call.end_ns) for call in here[-2:]] == [
        ("test_earlier_calls_are_not_events", -1),
        ("recorded", -1),
    ]


def test_earlier_call_may_end_in_the_window() -> None:
    collector = Collector.instance()

    def begin() -> None:
        collector.open(sources=CALLS)
        collector.start()

    begin()
    program.leaf()
    recording = collector.stop()
    assert tree(recording) == ["leaf"]
    ended = {short(call.name): call.end_ns for call in recording.open_calls}
    assert 0 <= ended["begin"] <= recording.start_ns[rows(recording)[0]]
    assert ended["test_earlier_call_may_end_in_the_window"] == -1


def test_our_own_functions_are_not_shown() -> None:
    recording = recorded(lambda: Collector.instance().dropped)
    assert tree(recording) == ["<lambda>"]


def test_threads_are_seen_whenever_they_began() -> None:
    go, gone = threading.Event(), threading.Event()

    def wait_then_work() -> None:
        go.wait()
        program.recurse(1)
        gone.set()

    early = threading.Thread(target=wait_then_work)
    early.start()

    def run_both() -> None:
        late = threading.Thread(target=program.recurse, args=(2,))
        late.start()
        late.join()
        go.set()
        gone.wait()
        early.join()

    recording = recorded(run_both)
    assert_balanced(recording)
    deepest = {}
    for thread in range(len(recording.threads)):
        names = [line.lstrip(".") for line in tree(recording, thread=thread)]
        deepest[thread] = names.count("recurse")
    assert sorted(count for count in deepest.values() if count) == [2, 3]
    assert "run_both" not in [short(call.name) for call in recording.open_calls]


def test_recursion_to_the_limit_is_balanced() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        recording = recorded(functools.partial(program.recurse, 10_000))
    finally:
        sys.setrecursionlimit(limit)
    assert_balanced(recording)
    mine = rows(recording)
    assert len(mine) == 10_001
    assert recording.parent[mine[-1]] == mine[-2]


def test_a_window_without_calls_records_none() -> None:
    recording = recorded(functools.partial(program.recurse, 3), sources=frozenset({"ranges"}))
    assert len(recording) == 0
    assert recording.open_calls == ()


def test_windows_one_after_another_start_afresh() -> None:
    for _ in range(3):
        assert tree(recorded(program.drain))[0] == "drain"


def test_short_lived_functions_keep_their_names() -> None:
    """A code object may reuse the address of an earlier one."""

    def run() -> None:
        for number in range(300):
            space: dict[str, Any] = {}
            exec(f"def made_{number}(): pass", space)  # noqa: S102  # a code object of its own
            space[f"made_{number}"]()

    recording = recorded(run)
    made = [line for line in tree(recording) if line.startswith(".made_")]
    assert made == [f".made_{number}" for number in range(300)]


def test_non_utf8_path_keeps_its_name() -> None:
    space: dict[str, Any] = {}
    exec(compile("def made(): pass", "folder/\udcff é.py", "exec"), space)  # noqa: S102  # a path of its own
    recording = recorded(space["made"])
    assert [recording.name(event) for event in rows(recording)] == ["folder/\udcff é.py(1): made"]


# Another library's threads, such as OpenBLAS's, which Python 3.15 counts before the library ends them.
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_forked_child_records_nothing_and_goes_on() -> None:
    def run() -> None:
        child = os.fork()
        if child == 0:
            program.recurse(3)
            os._exit(0 if not Collector.instance().recording else 1)
        assert os.waitpid(child, 0)[1] == 0
        program.leaf()

    recording = recorded(run)
    assert [line.lstrip(".") for line in tree(recording)][-1] == "leaf"
    assert "recurse" not in [line.lstrip(".") for line in tree(recording)]


# ---- pauses ----


def test_calls_in_a_pause_are_not_recorded() -> None:
    collector = Collector.instance()

    def run() -> None:
        program.leaf()
        collector.pause(paused=True)
        program.recurse(2)
        collector.pause(paused=False)
        program.leaf()

    assert tree(recorded(run)) == ["run", ".leaf", ".leaf"]


def test_a_call_that_outlasts_a_pause_keeps_the_tree() -> None:
    collector = Collector.instance()

    def pause_inside() -> None:
        collector.pause(paused=True)

    def resume_inside() -> None:
        collector.pause(paused=False)
        program.measure_length()
        len(())

    def run() -> None:
        pause_inside()
        resume_inside()
        program.leaf()

    recording = recorded(run)
    assert tree(recording) == ["run", ".pause_inside", ".measure_length", "..len", ".len", ".leaf"]
    assert_balanced(recording)


# ---- threads and windows ----


@pytest.mark.slow
def test_windows_come_and_go_while_threads_call() -> None:
    """Nothing of a window may remain on a thread's stack."""
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            program.drain()
            program.catch_here()

    threads = [threading.Thread(target=spin) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(30):
            recording = recorded(functools.partial(program.recurse, 20))
            assert tree(recording)[-1] == "." * 20 + "recurse"
            spinning = {thread.native_id for thread in threads}
            theirs = {thread.index for thread in recording.threads if thread.os_tid in spinning}
            for event in range(len(recording)):
                if recording.thread[event] in theirs and recording.parent[event] < 0:
                    assert short(recording.name(event)) in {
                        "drain",
                        "catch_here",
                        "is_set",
                        "count_to",
                        "fail",
                        "leaf",
                    }
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_process_may_end_while_it_records() -> None:
    program_text = """
        import json, threading
        from pytest_opprof.capture.collector import Collector
        def spin(stop):
            while not stop.is_set():
                len(())
        stop = threading.Event()
        thread = threading.Thread(target=spin, args=(stop,), daemon=True)
        thread.start()
        collector = Collector.instance()
        collector.open(sources=frozenset({"ranges", "python"}))
        collector.start()
        print(json.dumps("recording"))
    """
    assert answer_of(program_text) == "recording"
