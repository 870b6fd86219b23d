"""Random programs are recorded as they ran: they predict what a recording should have."""

import contextlib
import functools
from collections.abc import Generator
from dataclasses import dataclass
from typing import Final

from hypothesis import given
from hypothesis import strategies as st
from support.programs.call_recordings import assert_balanced, recorded, rows, short

from pytest_opprof import record_function


@dataclass(frozen=True)
class Call:
    """A generated function: it calls others, and then ends in one of many ways."""

    kind: str
    inner: tuple["Call", ...] = ()


def call_trees() -> st.SearchStrategy[Call]:
    kinds = st.sampled_from(
        ["function", "raises", "generator", "thrown into", "closed early", "range", "C", "sorts"]
    )
    return st.recursive(
        st.builds(Call, kinds),
        lambda inner: st.builds(Call, kinds, st.lists(inner, max_size=3).map(tuple)),
        max_leaves=12,
    )


def perform(call: Call, begun: list[str], around: str) -> None:
    """Execute a call, and log each call that a recording should have, after its caller."""
    match call.kind:
        case "C":
            begun.append(f"{around}/divmod")
            divmod(7, 3)
        case "range":
            begun.append(f"{around}/range")
            with record_function("range"):
                for inner in call.inner:
                    perform_noted(inner, begun, f"{around}/range")
        case "raises":
            with contextlib.suppress(KeyError):
                raising(call, begun, around)
        case "sorts":
            begun.append(f"{around}/sorted")
            key = functools.partial(key_function, call, begun, f"{around}/sorted")
            sorted([2, 1], key=key)
        case "function":
            plain(call, begun, around)
        case _:
            perform_in_pieces(call, begun, around)


def perform_in_pieces(call: Call, begun: list[str], around: str) -> None:
    begun.append(f"{around}/perform_in_pieces")
    around = f"{around}/perform_in_pieces"
    running = generating(call, begun, around)
    if call.kind == "generator":
        for _ in running:
            begun.append(f"{around}/generating")  # noqa: PERF401  # noted before it goes on
        return
    begun.append(f"{around}/next")
    next(running)
    if call.kind == "thrown into":
        begun += [f"{around}/throw", f"{around}/throw/generating"]
        with contextlib.suppress(KeyError):
            running.throw(KeyError)
    else:
        begun.append(f"{around}/close")
        running.close()


def perform_noted(call: Call, begun: list[str], around: str) -> None:
    begun.append(f"{around}/perform_noted")
    begun.append(f"{around}/perform_noted/perform")
    perform(call, begun, f"{around}/perform_noted/perform")


def plain(call: Call, begun: list[str], around: str) -> None:
    begun.append(f"{around}/plain")
    for inner in call.inner:
        perform_noted(inner, begun, f"{around}/plain")


def raising(call: Call, begun: list[str], around: str) -> None:
    begun.append(f"{around}/raising")
    for inner in call.inner:
        perform_noted(inner, begun, f"{around}/raising")
    raise KeyError


def key_function(call: Call, begun: list[str], around: str, value: int) -> int:
    begun.append(f"{around}/key_function")
    for inner in call.inner:
        perform_noted(inner, begun, f"{around}/key_function")
    return value


def generating(call: Call, begun: list[str], around: str) -> Generator[None]:
    here = f"{around}/generating" if call.kind == "generator" else f"{around}/next/generating"
    begun.append(here)
    for inner in call.inner:
        perform_noted(inner, begun, here)
    yield


_NOTED: Final = {
    *("perform_noted", "perform", "perform_in_pieces", "plain", "raising", "key_function", "generating"),
    *("divmod", "sorted", "range", "next", "throw", "close"),
}


@given(call=call_trees())
def test_any_program_is_recorded_as_it_ran(call: Call) -> None:
    begun: list[str] = []
    recording = recorded(functools.partial(perform_noted, call, begun, ""))
    paths: dict[int, str] = {-1: ""}
    found = []
    for event in rows(recording):
        name = short(recording.name(event))
        around = paths[recording.parent[event]]
        paths[event] = f"{around}/{name}" if name in _NOTED else around
        if name in _NOTED:
            found.append(paths[event])
    # From Python 3.13 on, a generator without a handler is closed without being resumed.
    assert [path for path in found if not path.endswith("/close/generating")] == begun
    assert_balanced(recording)
