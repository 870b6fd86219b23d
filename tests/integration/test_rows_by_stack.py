"""Rows by stack and by overload: the collector's own sums equal those of the single events."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.programs import call_programs
from support.programs.call_recordings import recorded

from pytest_opprof import _ExperimentalConfig, profile, record_function
from pytest_opprof.capture.recording import Recording
from pytest_opprof.events.forest import EventForest
from pytest_opprof.events.function_event_avg import FunctionEventAvg
from pytest_opprof.events.key_averages import Grouping, average

DEPTHS: Final = (1, 2, 3, 7, 1 << 16)


class OneByOne:
    """A recording whose rows by stack and overload are computed from its events."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def __getattr__(self, name: str) -> Any:
        return getattr(self._recording, name)

    def __len__(self) -> int:
        return len(self._recording)

    def parted_groups(self, **_: object) -> None:
        return None


def told(rows: Sequence[FunctionEventAvg]) -> list[object]:
    """All values of a row, and those that it takes from its first event."""
    return [
        (
            *(row.key, row.name, row.count, row.stack, row.overload_name, row.input_shapes, row.scope),
            *(row.is_async, row.is_background, row.is_user_annotation, row.device_type, row.flops),
            *(row.cpu_time_total_ns, row.self_cpu_time_total_ns),
            *(row.cpu_memory_usage, row.self_cpu_memory_usage),
            getattr(row.first, "index", None),
        )
        for row in rows
    ]


def assert_rows_are_those_of_events(recording: Recording, **options: Any) -> None:
    grouping = Grouping(**options)
    ours: Any = recording
    theirs: Any = OneByOne(recording)
    assert told(average([EventForest(ours)], grouping)) == told(average([EventForest(theirs)], grouping))


# ---- random programs ----


def run_all(inside: Sequence["Program"]) -> None:
    for program in inside:
        program()


def one(inside: Sequence["Program"]) -> None:
    run_all(inside)


def other(inside: Sequence["Program"]) -> None:
    with record_function("in other"):
        run_all(inside[:1])
    run_all(inside[1:])


def named(inside: Sequence["Program"]) -> None:
    with record_function("op"):
        run_all(inside)


def suspended(inside: Sequence["Program"]) -> None:
    def generate() -> Iterator[int]:
        with record_function("op"):
            yield len(inside)
            run_all(inside)

    for _ in generate():
        run_all(inside[:1])


def elsewhere(inside: Sequence["Program"]) -> None:
    thread = threading.Thread(target=run_all, args=(inside,))
    thread.start()
    thread.join()


class Program:
    """A call with others inside."""

    def __init__(self, call: Callable[[Sequence["Program"]], None], inside: Sequence["Program"]) -> None:
        self.call = call
        self.inside = inside

    def __call__(self) -> None:
        self.call(self.inside)

    def __repr__(self) -> str:
        return f"{self.call.__name__}({self.inside})"


def programs() -> st.SearchStrategy[Program]:
    calls = st.sampled_from([one, other, named, suspended, elsewhere])
    leaf = st.builds(Program, calls, st.just([]))
    return st.recursive(
        leaf, lambda inner: st.builds(Program, calls, st.lists(inner, max_size=3)), max_leaves=8
    )


@settings(deadline=None)
@given(program=programs(), depth=st.sampled_from(DEPTHS), shapes=st.booleans())
def test_rows_of_random_programs_match_the_events(program: Program, depth: int, shapes: bool) -> None:
    recording = recorded(program)
    assert any(name.endswith(program.call.__name__) for name in map(recording.name, range(len(recording))))
    assert_rows_are_those_of_events(recording, stack_depth=depth, shapes=shapes)


@pytest.mark.parametrize("depth", DEPTHS)
def test_rows_of_abnormal_calls_match_the_events(depth: int) -> None:
    def run() -> None:
        for program in (call_programs.drain, call_programs.throw_into_generator, call_programs.fail_in_c):
            with contextlib.suppress(Exception):  # it is meant to fail
                program()
        call_programs.work_in_managed()
        call_programs.recurse(30)

    assert_rows_are_those_of_events(recorded(run), stack_depth=depth)


# ---- torch's ops ----


@pytest.fixture(scope="module")
def trained(torch: Any) -> Recording:
    """Two steps of a model, forward and backward, with every recording option of ops."""
    from support.programs import stack_model as model  # it is a model of torch's

    net, x = model.Net(), torch.ones(3, 2)
    model.train(net, x)
    config = _ExperimentalConfig(capture_overload_names=True)
    with profile(
        with_stack=True, with_modules=True, profile_memory=True, with_flops=True, experimental_config=config
    ) as prof:
        model.train(net, x)
        model.train(net, x * 2)
    event: Any = prof.events()[0]
    recording: Recording = event.forest.recording
    return recording


@pytest.mark.parametrize("shapes", [False, True])
@pytest.mark.parametrize("overloads", [False, True])
@pytest.mark.parametrize("depth", [0, *DEPTHS])
def test_rows_of_a_model_step_match_the_events(
    trained: Recording, depth: int, overloads: bool, shapes: bool
) -> None:
    assert_rows_are_those_of_events(trained, stack_depth=depth, overloads=overloads, shapes=shapes)


def test_backward_ops_are_parted_by_their_forward(trained: Recording) -> None:
    rows = average([EventForest(trained)], Grouping(stack_depth=1 << 16))
    relu = [row.stack for row in rows if row.key == "aten::relu"]
    assert relu
    assert relu == [row.stack for row in rows if row.key == "aten::threshold_backward"]


def test_rows_are_made_without_an_object_for_each_event(trained: Recording) -> None:
    made: list[int] = []

    class Counting(EventForest):
        def event(self, index: int) -> Any:
            made.append(index)
            return super().event(index)

    rows = average([Counting(trained)], Grouping(stack_depth=3, overloads=True))
    assert sum(row.count for row in rows) > len(set(made)) >= len(rows)
