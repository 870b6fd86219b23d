"""Recording Python calls with other profilers and monitoring tools: they continue, unchanged."""

import cProfile
import functools
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from support.programs import call_programs as program
from support.programs.call_recordings import recorded, rows, short, tree

from pytest_opprof.capture.collector import Collector

MONITORING: Any = getattr(sys, "monitoring", None)
needs_monitoring = pytest.mark.skipif(MONITORING is None, reason="sys.monitoring came with Python 3.12")
needs_profile_function = pytest.mark.skipif(
    MONITORING is not None, reason="3.12 and later use sys.monitoring"
)


def test_other_python_profiler_keeps_running() -> None:
    seen: list[str] = []

    def profiler(frame: FrameType, event: str, _arg: object) -> None:
        if event == "call":
            seen.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        recording = recorded(program.drain)
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(before)
    assert seen.count("count_to") == 3
    assert tree(recording)[:2] == ["drain", ".count_to"]


def test_cprofile_beside_us_counts_the_same() -> None:
    other = cProfile.Profile()
    other.enable()
    recording = recorded(functools.partial(program.recurse, 4))
    other.disable()
    counts = {
        entry.code.co_name: entry.callcount for entry in other.getstats() if hasattr(entry.code, "co_name")
    }
    assert counts["recurse"] == 5
    assert len(rows(recording)) == 5


@needs_profile_function
def test_new_threads_keep_the_profiler_that_they_were_given() -> None:
    seen: list[str] = []

    def profiler(frame: FrameType, event: str, _arg: object) -> None:
        seen.append(frame.f_code.co_name)

    threading.setprofile(profiler)
    try:

        def run() -> None:
            thread = threading.Thread(target=program.recurse, args=(1,))
            thread.start()
            thread.join()

        recording = recorded(run)
        assert threading.getprofile() is profiler
    finally:
        threading.setprofile(None)
    assert "recurse" in seen
    everywhere = [short(recording.name(event)) for event in range(len(recording))]
    assert everywhere.count("recurse") == 2


@needs_profile_function
def test_a_profile_function_that_a_test_sets_again_works() -> None:
    seen: list[str] = []

    def profiler(frame: FrameType, event: str, _arg: object) -> None:
        if event == "call":
            seen.append(frame.f_code.co_name)

    def run() -> None:
        earlier = sys.getprofile()
        assert earlier is profiler
        sys.setprofile(None)
        sys.setprofile(earlier)
        program.leaf()

    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        recorded(run)
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(before)
    assert "leaf" in seen
    assert "python" in Collector.instance().lapses


def use_cprofile() -> None:
    with cProfile.Profile():
        program.leaf()


@needs_profile_function
@pytest.mark.parametrize("in_thread", [use_cprofile, program.leaf])
@pytest.mark.parametrize("ends", [True, False])
def test_calls_lost_to_a_profiler_in_a_thread_are_reported(
    in_thread: Callable[[], object], *, ends: bool
) -> None:
    called, end = threading.Event(), threading.Event()

    def work() -> None:
        in_thread()
        called.set()
        assert ends or end.wait(60)

    thread = threading.Thread(target=work)

    def run() -> None:
        thread.start()
        called.wait()
        if ends:
            thread.join()

    recorded(run)
    end.set()
    thread.join()
    assert ("python" in Collector.instance().lapses) == (in_thread is use_cprofile)


@needs_monitoring
def test_other_tools_of_monitoring_are_left_alone() -> None:
    MONITORING.use_tool_id(3, "another tool")
    try:
        assert tree(recorded(program.leaf)) == ["leaf"]
        assert MONITORING.get_tool(3) == "another tool"
        assert MONITORING.get_tool(4) is None
    finally:
        MONITORING.free_tool_id(3)


@needs_monitoring
def test_missing_free_tool_number_is_reported() -> None:
    for number in (3, 4):
        MONITORING.use_tool_id(number, f"tool {number}")
    try:
        recording = recorded(program.leaf)
        problem = Collector.instance().problems["python"]
    finally:
        for number in (3, 4):
            MONITORING.free_tool_id(number)
    assert "'tool 3' and 'tool 4' hold the tool numbers 3 and 4 of sys.monitoring" in problem
    assert len(recording) == 0
    assert "python" not in recording.sources
