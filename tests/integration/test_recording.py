"""Recordings of real programs: columns, forests, rows and call paths."""

import gc
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from support.programs.range_programs import Turn, programs, run
from support.programs.windows import Window, asynchronous, callers, names, unfinished

from pytest_opprof import record_function
from pytest_opprof.capture.recording import Recording
from pytest_opprof.kinds import FLAG_ASYNC, FLAG_UNFINISHED


def record(*spans: str) -> None:
    for name in spans:
        with record_function(name):
            pass


COLUMNS = (
    "start_ns",
    "duration_ns",
    "self_ns",
    "sequence_nr",
    "name_id",
    "thread",
    "forward_thread",
    "parent",
    "step",
    "kind",
    "flags",
    "scope",
)


def test_empty_window_has_empty_columns() -> None:
    with Window() as window:
        pass
    recording = window.recording
    assert len(recording) == 0
    assert [len(getattr(recording, column)) for column in COLUMNS] == [0] * len(COLUMNS)
    assert recording.groups() == []
    assert recording.call_tree() == []
    assert recording.threads == ()
    assert recording.steps == ()


@pytest.mark.parametrize("column", COLUMNS)
def test_columns_outlive_their_recording(column: str) -> None:
    def made() -> tuple[memoryview, list[int]]:
        with Window() as window:
            record(*(f"range {number}" for number in range(1000)))
        view = getattr(window.recording, column)
        return view, list(view)

    view, expected = made()
    gc.collect()
    with Window():
        record(*(f"other {number}" for number in range(5000)))
    assert list(view) == expected
    assert len(view) == 1000


def test_columns_are_read_only() -> None:
    with Window() as window:
        record("x")
    with pytest.raises(TypeError, match="read-only"):
        window.recording.start_ns[0] = 3


def test_times_are_in_the_window() -> None:
    before = time.time_ns()
    with Window() as window:
        record("a", "b")
    after = time.time_ns()
    recording = window.recording
    slack = 50_000_000  # the wall clock may be corrected while we look
    assert before - slack <= recording.trace_start_ns <= after + slack
    assert 0 <= recording.start_ns[0] < recording.start_ns[1] <= recording.trace_end_ns
    assert recording.trace_end_ns <= after - before + slack


def intervals(recording: Recording) -> list[tuple[int, int]]:
    return [
        (start, start + duration if duration >= 0 else recording.trace_end_ns)
        for start, duration in zip(recording.start_ns, recording.duration_ns, strict=True)
    ]


@given(programs)
def test_recordings_match_the_program(program: list[Turn]) -> None:
    with Window() as window:
        expected = run(program)
    recording = window.recording
    found: dict[int, list[tuple[str, str | None, bool, bool]]] = defaultdict(list)
    rows = zip(
        recording.thread,
        names(recording),
        callers(recording),
        asynchronous(recording),
        unfinished(recording),
        strict=True,
    )
    for thread, *row in rows:
        found[recording.threads[thread].os_tid].append(tuple(row))  # type: ignore[arg-type]  # four of them
    assert found == {
        thread: [
            (entered.name, entered.caller and entered.caller.name, entered.is_async, entered.is_unfinished)
            for entered in entries
        ]
        for thread, entries in expected.threads.items()
    }


@given(programs)
def test_columns_are_a_forest_in_time(program: list[Turn]) -> None:
    with Window() as window:
        run(program)
    recording = window.recording
    when = intervals(recording)
    for event, parent in enumerate(recording.parent):
        same_thread = event and recording.thread[event] == recording.thread[event - 1]
        assert not same_thread or when[event - 1][0] <= when[event][0]
        if parent >= 0:
            assert parent < event
            assert recording.thread[parent] == recording.thread[event]
            if not recording.flags[event] & FLAG_ASYNC:
                assert when[parent][0] <= when[event][0] <= when[event][1] <= when[parent][1]


@given(programs)
def test_self_times_add_up_to_the_roots(program: list[Turn]) -> None:
    with Window() as window:
        run(program)
    recording = window.recording
    own: Counter[int] = Counter()
    roots: Counter[int] = Counter()
    counts = [flags & (FLAG_ASYNC | FLAG_UNFINISHED) == 0 for flags in recording.flags]
    for event, thread in enumerate(recording.thread):
        own[thread] += recording.self_ns[event]
        parent = recording.parent[event]
        if counts[event] and (parent < 0 or not counts[parent]):
            roots[thread] += recording.duration_ns[event]
        assert recording.self_ns[event] >= 0
    assert own == roots


@given(programs)
def test_groups_add_up_to_the_events(program: list[Turn]) -> None:
    with Window(begins_step=True) as window:
        run([turn for turn in program for _ in range(2)])
    recording = window.recording
    rows = {(group.name, group.background): group for group in recording.groups()}
    assert sum(group.count for group in rows.values()) == len(recording)
    assert sum(group.self_ns for group in rows.values()) == sum(recording.self_ns)
    assert sum(group.total_ns for group in rows.values()) == sum(
        duration for duration in recording.duration_ns if duration >= 0
    )
    for group in rows.values():
        assert sum(group.steps["count"]) == (0 if group.background else group.count)
        assert sum(group.steps["self_ns"]) == (0 if group.background else group.self_ns)
        assert sum(group.steps["total_ns"]) == (0 if group.background else group.total_ns)
        assert group.min_ns <= group.max_ns
    tree = recording.call_tree()
    assert all(node.parent < place for place, node in enumerate(tree))
    assert sum(node.count for node in tree) == sum(step >= 0 for step in recording.step)


def test_groups_stand_in_the_order_of_their_first_start() -> None:
    with Window() as window:
        record("b", "a", "b", "c", "a")
    rows = window.recording.groups()
    assert [(row.name, row.count) for row in rows] == [("b", 2), ("a", 2), ("c", 1)]
    assert [row.first_event for row in rows] == [0, 1, 3]


def test_steps_of_the_profiler_are_one_row() -> None:
    with Window() as window:
        record("ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#30")
    assert [(row.name, row.count) for row in window.recording.groups()] == [("ProfilerStep*", 3)]
    assert names(window.recording) == ["ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#30"]


def test_kept_tree_nodes_keep_their_callers() -> None:
    with Window() as window:
        for number in range(20):
            with record_function(f"outer {number}"), record_function("middle"), record_function("inner"):
                pass
    tree = window.recording.call_tree()
    assert len(tree) == 60
    assert [(node.name, tree[node.parent].name) for node in tree if node.parent >= 0][:2] == [
        ("middle", "outer 0"),
        ("inner", "middle"),
    ]
    few = window.recording.call_tree(limit=7)
    assert 1 <= len(few) <= 7
    assert all(-1 <= node.parent < place for place, node in enumerate(few))


def test_groups_can_be_asked_for_by_many_threads_at_once() -> None:
    with Window() as window:
        for number in range(20_000):
            record(f"range {number % 100}")
    expected = window.recording.groups()
    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(window.recording.groups) for _ in range(20)]
        trees = [pool.submit(window.recording.call_tree) for _ in range(20)]
    assert all(answer.result() == expected for answer in answers)
    assert all(len(tree.result()) == 100 for tree in trees)
