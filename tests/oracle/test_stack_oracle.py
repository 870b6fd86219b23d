"""Stacks against torch.profiler's, of the same run: torch's tracer continues under ours."""

import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof import EventList, FunctionEvent
from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.recording import Recording
from pytest_opprof.events.folded_stacks import METRICS, folded_lines
from pytest_opprof.events.recorded_event import RecordedEvent

torch = pytest.importorskip("torch")
from support.programs import stack_model as model  # noqa: E402  # it is a model of torch's

SOURCES = frozenset({"ranges", "ops", "python", "modules"})

pytestmark = [
    pytest.mark.usefixtures("torch"),
    pytest.mark.filterwarnings("ignore:with_modules:FutureWarning"),  # torch's, since 2.14
    pytest.mark.skipif(
        sys.version_info >= (3, 12), reason="what torch's tracer sees of a thread changed with Python 3.12"
    ),
]


@pytest.fixture
def both() -> tuple[Any, EventList]:
    """A step of the model, as torch and as we recorded it."""
    net, x = model.Net(), torch.ones(3, 2)
    model.train(net, x)
    theirs = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        with_stack=True,
        with_modules=True,
        experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),
    )
    collector = Collector.instance()
    collector.open(sources=SOURCES)
    theirs.start()
    collector.start()
    model.train(net, x)
    model.train(net, x)
    recording = collector.stop()
    theirs.stop()
    return theirs, EventList([recording])


def comparable(stack: Sequence[str] | None) -> list[str]:
    """Without addresses, and only up to the model's own entry: beyond it, each profiler started elsewhere."""
    entries = [re.sub(r" at 0x[0-9a-f]+", "", entry) for entry in stack or ()]
    end = next((i for i, entry in enumerate(entries, start=1) if entry.endswith("): train")), 0)
    return entries[:end]


def of_the_model(events: Sequence[FunctionEvent]) -> list[tuple[str, list[str]]]:
    """Each op with its stack."""
    return [(event.name or "", comparable(event.stack)) for event in events if not event.is_python_function]


def _skip_where_calls_are_not_told(theirs: Any) -> None:
    if not hasattr(theirs.events()[0], "is_python_function"):
        pytest.skip("the events of this torch do not say which of them are calls of Python")


def test_op_stacks_match_torchs(both: tuple[Any, EventList]) -> None:
    theirs, ours = both
    _skip_where_calls_are_not_told(theirs)
    expected = of_the_model(theirs.events())
    assert of_the_model(ours.as_torch()) == expected
    assert sum(bool(stack) for _, stack in expected) > 50


def test_our_stacks_differ_in_their_lines_alone(both: tuple[Any, EventList]) -> None:
    theirs, ours = both
    _skip_where_calls_are_not_told(theirs)

    def without_lines(found: list[tuple[str, list[str]]]) -> Counter[tuple[str, ...]]:
        return Counter(
            (name, *(re.sub(r"\(\d+\): ", ": ", entry) for entry in stack)) for name, stack in found if stack
        )

    # torch omits an op whose only child has its name, and backward ops without a forward
    shown = without_lines(of_the_model(theirs.events()))
    assert shown <= without_lines(of_the_model(ours))


def test_model_calls_match_torchs(both: tuple[Any, EventList]) -> None:
    """Names, order, and callers."""
    theirs, ours = both
    _skip_where_calls_are_not_told(theirs)

    def calls(events: Sequence[FunctionEvent]) -> list[tuple[str, list[str]]]:
        found = []
        for event in events:
            stack = comparable(event.stack)
            if event.is_python_function and stack:
                found.append((comparable([event.name or "", "): train"])[0], stack))
        return found

    assert calls(ours.as_torch()) == calls(theirs.events())


@pytest.mark.parametrize("depth", [1, 3, 20])
def test_rows_by_stack_match_torchs(both: tuple[Any, EventList], depth: int) -> None:
    theirs, ours = both

    def rows(averages: Any) -> Counter[tuple[Any, ...]]:
        found: Counter[tuple[Any, ...]] = Counter()
        for row in averages:
            stack = comparable(row.stack) or comparable([*row.stack, "): train"])[:-1]
            if row.key.startswith("aten::"):
                found[row.key, *(entry for entry in stack if "stack_model" in entry)] += row.count
        return found

    assert rows(ours.key_averages(group_by_stack_n=depth, compat="torch")) == rows(
        theirs.key_averages(group_by_stack_n=depth)
    )


@pytest.mark.parametrize("metric", METRICS[:2])
def test_stack_files_match_torchs(both: tuple[Any, EventList], tmp_path: Path, metric: str) -> None:
    """Of the same events: torch's own list, written by torch and by us."""
    theirs, _ = both
    theirs.events().export_stacks(str(tmp_path / "theirs"), metric)
    written = (tmp_path / "theirs").read_text()
    assert "".join(folded_lines(theirs.events(), metric, compat="torch")) == written
    assert bool(written) == (metric == "self_cpu_time_total")


# torch's stacks always include them
_OF_VERBOSE_TRACES = {"Call stack", "CallFrom", "Python thread"}  # CallFrom: since torch 2.14


def test_calls_in_a_trace_match_kinetos(both: tuple[Any, EventList], tmp_path: Path) -> None:
    """Each call of the model: name, members, module number, and its parent."""
    theirs, ours = both
    theirs.export_chrome_trace(str(tmp_path / "theirs.json"))
    first = ours[0]
    assert isinstance(first, RecordedEvent)
    recording = first.forest.recording
    assert isinstance(recording, Recording)
    recording.write_chrome_trace(tmp_path / "ours.json")

    def calls(path: Path) -> list[Any]:
        events = json.loads(path.read_bytes())["traceEvents"]
        found = sorted((e for e in events if e.get("cat") == "python_function"), key=lambda e: e["ts"])
        by_id = {event["args"]["Python id"]: event for event in found}
        inside: list[Any] = []
        for event in found:
            parent = by_id.get(event["args"].get("Python parent id"))
            if parent in inside or event["name"].endswith(": train"):
                inside.append(event)
        return [
            (
                re.sub(r" at 0x[0-9a-f]+", "", event["name"]),
                sorted(event["args"].keys() - _OF_VERBOSE_TRACES),
                event["args"].get("Python module id"),
                event["name"].endswith(": train") or by_id[event["args"]["Python parent id"]]["name"],
            )
            for event in inside
        ]

    def without_addresses(found: list[Any]) -> list[Any]:
        return [(*rest, re.sub(r" at 0x[0-9a-f]+", "", str(parent))) for *rest, parent in found]

    expected = without_addresses(calls(tmp_path / "theirs.json"))
    # older modules of torch make fewer calls in the same step
    assert len(expected) > (100 if hasattr(theirs.events()[0], "is_python_function") else 90)
    assert without_addresses(calls(tmp_path / "ours.json")) == expected
