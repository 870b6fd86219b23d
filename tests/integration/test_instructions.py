"""Bytecodes as the native counter counts them, on the Python that runs the tests."""

import contextlib
import functools
import sys
import textwrap
import threading
import types
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from pytest_opprof.capture.instructions import Counted, InstructionCounter
from pytest_opprof.errors import CaptureUnavailableError

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 12) and sys.gettrace() is not None, reason="coverage holds the trace function"
)

MONITORING: Any = getattr(sys, "monitoring", None)


def counted(function: Callable[[], object]) -> Counted:
    counter = InstructionCounter()
    counter.start()
    function()
    return counter.stop()


def loop(times: int) -> int:
    total = 0
    for number in range(times):
        total += number
    return total


def of(found: Counted, function: str) -> int:
    return sum(count for name, count in found.rows[0].items() if name.partition(", ")[0] == function)


def test_the_same_call_has_the_same_count() -> None:
    first, second = (counted(lambda: loop(1_000)) for _ in range(2))
    assert first.rows[0] == second.rows[0]
    assert first.doubt == second.doubt == ""


def test_each_turn_of_a_loop_costs_the_same() -> None:
    none, once, often = (of(counted(functools.partial(loop, times)), "loop") for times in (0, 1, 101))
    assert often - once == 100 * (once - none)


def test_a_function_is_named_without_its_line() -> None:
    found = counted(lambda: loop(3))
    (name,) = [name for name in found.rows[0] if name.startswith("loop, ")]
    assert name.endswith("test_instructions.py")


def test_each_resumption_of_a_generator_counts() -> None:
    def numbers(many: int) -> object:
        return sum(number for number in range(many))

    few, more = (
        of(counted(functools.partial(numbers, many)), f"{numbers.__qualname__}.<locals>.<genexpr>")
        for many in (10, 20)
    )
    assert 0 < few < more


def test_many_functions_have_a_row_each() -> None:
    names = [f"function_{number}" for number in range(3_000)]
    module = types.ModuleType("made")
    text = "\n".join(f"def {name}(): return {at}" for at, name in enumerate(names))
    exec(compile(text, "/nowhere/made.py", "exec"), vars(module))  # noqa: S102  # the text is ours
    found = counted(lambda: [vars(module)[name]() for name in names])
    rows = [count for name, count in found.rows[0].items() if name.endswith("/nowhere/made.py")]
    assert len(rows) == len(names)
    assert len(set(rows)) == 1


def test_library_instructions_are_separate() -> None:
    import textwrap

    found = counted(lambda: textwrap.wrap("some words " * 9, width=20))
    assert any(name.endswith(", textwrap.py") for name in found.rows[1])
    assert not any("textwrap" in name for name in found.rows[0])


def test_other_threads_are_reported() -> None:
    def work() -> None:
        thread = threading.Thread(target=loop, args=(9,))
        thread.start()
        thread.join()

    assert "other threads" in counted(work).doubt


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring lets tools run side by side")
def test_a_debugger_keeps_the_trace_function() -> None:
    def trace(*_: object) -> None:
        return None

    sys.settrace(trace)
    try:
        with pytest.raises(CaptureUnavailableError, match="holds the only trace function"):
            InstructionCounter()
        assert sys.gettrace() is trace
    finally:
        sys.settrace(None)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there is no sys.monitoring")
def test_counting_works_beside_a_trace_function() -> None:
    sys.settrace(lambda *_: None)
    try:
        assert of(counted(lambda: loop(5)), "loop") > 0
    finally:
        sys.settrace(None)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there is one trace function in 3.11 alone")
def test_trace_function_set_in_the_call_is_reported() -> None:
    try:
        found = counted(lambda: sys.settrace(lambda *_: None))
        assert "trace function" in found.doubt
    finally:
        sys.settrace(None)


def test_calls_are_noted_with_the_line_of_the_callers_own_code() -> None:
    def caller() -> object:
        loop(1)
        names = sorted("ab", key=lambda name: loop(2))  # called by C code
        return [*names, *map(textwrap.dedent, names)]  # a library's function, which calls others

    found = counted(caller)
    first = caller.__code__.co_firstlineno
    calls = {
        (call.function.partition(", ")[0].rpartition(".")[2], call.line - first): call.calls
        for call in found.calls
        if call.caller.startswith(caller.__qualname__)
    }
    assert calls == {("loop", 1): 1, ("<lambda>", 2): 2, ("loop", 2): 2, ("dedent", 3): 2}
    assert {call.file for call in found.calls} == {__file__}


@pytest.mark.skipif(MONITORING is None, reason="there is no sys.monitoring")
def test_calls_are_noted_beside_a_tool_that_wants_each_line_once() -> None:
    """Coverage asks for the lines of a function when it starts."""
    events, started = MONITORING.events, []

    def watch(code: types.CodeType, _offset: int) -> object:
        started.append(code)
        MONITORING.set_local_events(5, code, events.LINE)
        return MONITORING.DISABLE

    def fresh() -> int:
        return loop(1)

    def caller() -> int:
        return fresh() + fresh()

    MONITORING.use_tool_id(5, "lines")
    MONITORING.register_callback(5, events.PY_START, watch)
    MONITORING.register_callback(5, events.LINE, lambda *_: MONITORING.DISABLE)
    MONITORING.set_events(5, events.PY_START)
    try:
        found = counted(caller)
    finally:
        MONITORING.set_events(5, 0)
        for code in started:
            MONITORING.set_local_events(5, code, 0)
        for event in (events.PY_START, events.LINE):
            MONITORING.register_callback(5, event, None)
        MONITORING.free_tool_id(5)
    calls = Counter[str]()
    for call in found.calls:
        calls[call.function.partition(", ")[0].rpartition(".")[2]] += call.calls
    assert (calls["fresh"], calls["loop"]) == (2, 2)


def ends(turns: list[int]) -> None:
    while True:
        turns.pop(), len(turns)


def again(number: int) -> None:
    if number:
        again(number - 1)


def test_a_loop_to_the_beginning_of_a_function_is_no_call() -> None:
    def caller() -> None:
        with contextlib.suppress(IndexError):
            ends([1, 2, 3])
        list(map(again, range(3)))

    calls = Counter[tuple[str, str]]()
    for call in counted(caller).calls:
        calls[call.caller.rpartition(".")[2], call.function.partition(", ")[0]] += call.calls
    assert calls["caller", "ends"] == 1
    assert (calls["caller", "again"], calls["again", "again"]) == (3, 3)


def test_a_generator_is_called_once_by_the_loop_that_starts_it() -> None:
    def caller() -> int:
        total = 0
        for number in (number for number in range(3)):
            total += number
        return total

    (calls,) = (
        call for call in counted(caller).calls if call.function.partition(", ")[0].endswith("<genexpr>")
    )
    assert (calls.line - caller.__code__.co_firstlineno, calls.calls) == (2, 1)
