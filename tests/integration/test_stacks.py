"""Stacks of events, and files made of them, from recordings of a real model."""

import contextlib
import gzip
import json
import runpy
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.programs import call_programs

from pytest_opprof import FunctionEvent, profile, record_function, schedule
from pytest_opprof.events.folded_stacks import METRICS, folded_lines

torch = pytest.importorskip("torch")
from support.programs import stack_model as model  # noqa: E402  # it is a model of torch's

pytestmark = pytest.mark.usefixtures("torch")

FILE = "stack_model.py"


@pytest.fixture(scope="module")
def trained() -> profile:
    """A step of the model, forward and backward."""
    net, x = model.Net(), torch.ones(3, 2)
    model.train(net, x)
    with profile(with_stack=True, with_modules=True) as prof:
        model.train(net, x)
    return prof


def named(prof: profile, name: str) -> list[FunctionEvent]:
    return [event for event in prof.events() if event.name == name]


def frames(event: FunctionEvent) -> list[str]:
    """The entries of the model's own file, without their folder."""
    return [entry.rpartition("/")[2] for entry in event.stack or () if FILE in entry]


def outermost() -> str:
    """The name of this process's first frame: pytest's own program's, or runpy's."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_name


def test_an_op_has_the_lines_that_were_running(trained: profile) -> None:
    (relu,) = named(trained, "aten::relu")
    assert relu.stack is not None
    assert relu.stack[0].startswith("<built-in method relu of type object>")
    assert frames(relu) == [
        f"{FILE}({model.line_of('return torch.relu')}): inner",
        f"{FILE}({model.line_of('return inner')}): forward",
        f"{FILE}({model.line_of('net(x).sum()')}): train",
    ]
    assert relu.stack[-1].endswith(outermost())


def test_an_operator_has_its_line_too(trained: profile) -> None:
    """No call records the line of `x * 2`, so the frame is asked."""
    forward = next(event for event in named(trained, "aten::mul") if frames(event))
    assert frames(forward)[0] == f"{FILE}({model.line_of('x * 2')}): inner"


def test_an_op_inside_an_op_has_its_stack(trained: profile) -> None:
    (relu,) = named(trained, "aten::relu")
    (inside,) = named(trained, "aten::clamp_min")
    assert inside.stack == relu.stack


def test_backward_ops_have_the_stack_of_their_forward(trained: profile) -> None:
    (relu,) = named(trained, "aten::relu")
    (backward,) = named(trained, "ReluBackward0")
    (inside,) = named(trained, "aten::threshold_backward")
    assert backward.stack == inside.stack == relu.stack
    wrapper = named(trained, "autograd::engine::evaluate_function: ReluBackward0")[0]
    assert frames(wrapper) == [f"{FILE}({model.line_of('net(x).sum()')}): train"]


def test_backward_op_without_forward_has_the_stack_of_the_pass(trained: profile) -> None:
    accumulated = named(trained, "torch::autograd::AccumulateGrad")[0]
    assert frames(accumulated) == [f"{FILE}({model.line_of('net(x).sum()')}): train"]


def test_python_inside_a_backward_op_is_inside_it() -> None:
    with profile(with_stack=True) as prof:
        model.train_doubled(torch.ones(2, requires_grad=True))
    backward = next(
        event for event in prof.events() if event.name.endswith(": backward") and FILE in event.name
    )
    apply = backward.cpu_parent
    assert apply is not None
    assert apply.cpu_parent is not None
    assert apply.cpu_parent.name == "DoubledBackward"
    assert [child.name for child in backward.cpu_children] == ["aten::mul"]


def test_ops_are_the_same_without_calls() -> None:
    """Their names and order, and the op around each once calls are left out."""
    net, x = model.Net(), torch.ones(3, 2)

    def ops(*, with_stack: bool) -> list[tuple[str, str | None]]:
        with profile(with_stack=with_stack, with_modules=with_stack) as prof:
            model.train(net, x)
        found = []
        for event in prof.events():
            if event.is_python_function:
                continue
            around = event.cpu_parent
            while around is not None and around.is_python_function:
                around = around.cpu_parent
            found.append((event.name, None if around is None else around.name))
        return found

    ops(with_stack=False)
    assert ops(with_stack=True) == ops(with_stack=False)


def test_stacks_are_off_by_default() -> None:
    with profile() as prof, record_function("work"):
        pass
    assert [event.stack for event in prof.events()] == [[]]


# ---- modules ----


def test_modules_are_numbered_by_class(trained: profile) -> None:
    modules = [event for event in trained.events() if event.name.startswith("nn.Module: ")]
    assert [event.name.removeprefix("nn.Module: ") for event in modules] == ["Net_0", "Linear_0", "Linear_1"]


def test_a_module_keeps_its_number() -> None:
    net, x = model.Net(), torch.ones(3, 2)
    with profile(with_modules=True) as prof:
        net(x)
        net(x)
    assert [event.name for event in prof.events() if event.is_python_function] == [
        "nn.Module: Net_0",
        "nn.Module: Linear_0",
        "nn.Module: Linear_1",
    ] * 2


def test_modules_are_called_from_the_lines_of_generated_code() -> None:
    """Each code object may reuse the addresses of the one before."""
    called = {"module": torch.nn.Identity()}
    with profile(with_modules=True) as prof:
        for number in range(300):
            exec("\n" * (number % 3) + "module(1)", called)  # noqa: S102  # as templates do
    recording = prof.cycles[0].recording
    assert list(recording.line) == [1 + number % 3 for number in range(300)]


def test_modules_alone_are_without_other_calls() -> None:
    with profile(with_modules=True) as prof:
        model.train(model.Net(), torch.ones(3, 2))
    calls = [event.name for event in prof.events() if event.is_python_function]
    assert calls == ["nn.Module: Net_0", "nn.Module: Linear_0", "nn.Module: Linear_1"]


def test_stacks_name_the_calls_of_modules() -> None:
    with profile(with_stack=True) as prof:
        model.Net()(torch.ones(3, 2))
    names = [event.name for event in prof.events()]
    assert [name for name in names if name.startswith("nn.Module: ")] == [
        "nn.Module: Net_0",
        "nn.Module: Linear_0",
        "nn.Module: Linear_1",
    ]
    assert not any(name.endswith(": _wrapped_call_impl") for name in names)


# ---- grouping ----


def test_rows_are_parted_by_their_innermost_callers(trained: profile) -> None:
    by_name = [row for row in trained.key_averages() if row.key == "aten::linear"]
    by_stack = [row for row in trained.key_averages(group_by_stack_n=5) if row.key == "aten::linear"]
    assert (len(by_name), by_name[0].count) == (1, 2)
    assert [row.count for row in by_stack] == [1, 1]
    assert [[entry for entry in row.stack or () if "nn.Module" in entry] for row in by_stack] == [
        ["nn.Module: Linear_0"],
        ["nn.Module: Linear_1"],
    ]
    assert all(len(row.stack or ()) == 5 for row in by_stack)
    table = trained.key_averages(group_by_stack_n=5).table(row_limit=-1)
    assert "Source Location" in table
    assert "nn.Module: Linear_1" in table


# ---- files ----


def test_stacks_are_folded_with_their_nanoseconds(trained: profile, tmp_path: Path) -> None:
    path = tmp_path / "stacks.txt"
    trained.export_stacks(path)
    costs: dict[str, int] = {}
    for line in path.read_text().splitlines():
        stack, _, cost = line.rpartition(" ")
        assert stack not in costs
        assert " " not in stack
        costs[stack] = int(cost)
    # Nothing is lost or counted twice: every event of a thread with calls is in the sum.
    total = sum(round(event.self_cpu_time_total * 1000) for event in trained.events())
    assert sum(costs.values()) == total
    deepest = max(costs, key=lambda stack: stack.count(";"))
    assert deepest.split(";")[0].endswith(outermost())


def test_file_suffix_compresses_stacks(trained: profile, tmp_path: Path) -> None:
    plain, packed = tmp_path / "stacks.txt", tmp_path / "stacks.txt.gz"
    trained.export_stacks(plain)
    trained.export_stacks(packed)
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()


def test_host_stacks_have_no_device_time(trained: profile, tmp_path: Path) -> None:
    trained.export_stacks(tmp_path / "stacks.txt", "self_cuda_time_total")
    assert (tmp_path / "stacks.txt").read_text() == ""


def test_accumulated_events_export_stacks_of_all_cycles(tmp_path: Path) -> None:
    sizes = {}
    for acc_events in (False, True):
        plan = schedule(wait=0, warmup=1, active=1, repeat=2)
        with profile(schedule=plan, with_stack=True, acc_events=acc_events) as prof:
            for step in range(4):
                (call_programs.drain if step == 1 else call_programs.catch_here)()
                prof.step()
        prof.export_stacks(tmp_path / "stacks.txt")
        written = (tmp_path / "stacks.txt").read_text()
        sizes[acc_events] = ("drain" in written, "catch_here" in written)
    assert sizes == {False: (False, True), True: (True, True)}


def test_an_unknown_metric_is_refused(trained: profile, tmp_path: Path) -> None:
    path = tmp_path / "stacks.txt"
    path.write_text("as it was")
    with pytest.raises(ValueError, match=r"metric should be one of: \['self_cpu_time_total', "):
        trained.export_stacks(path, "cpu_time")
    assert path.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [path]


def test_stacks_that_were_not_recorded_cannot_be_exported(tmp_path: Path) -> None:
    with profile() as prof:
        pass
    with pytest.raises(AssertionError, match=r"export_stacks\(\) requires with_stack=True"):
        prof.export_stacks(tmp_path / "stacks.txt")


def test_a_place_that_cannot_be_written_is_an_error(trained: profile, tmp_path: Path) -> None:
    for export in (trained.export_stacks, trained.export_speedscope):
        with pytest.raises(OSError, match="nowhere"):
            export(tmp_path / "nowhere" / "file.json")


def spans(thread: Any, frame_names: list[str]) -> list[tuple[str, int]]:
    """Each span's name and length in a flame graph; the events must nest and be in order."""
    found, is_open, at = [], [], 0
    for event in thread["events"]:
        assert thread["startValue"] <= at <= event["at"] <= thread["endValue"]
        at = event["at"]
        if event["type"] == "O":
            is_open.append(event)
        else:
            begin = is_open.pop()
            assert begin["frame"] == event["frame"]
            found.append((frame_names[event["frame"]], event["at"] - begin["at"]))
    assert not is_open
    return found


def test_speedscope_nests_every_event(trained: profile, tmp_path: Path) -> None:
    trained.export_speedscope(tmp_path / "profile.speedscope.json")
    written = json.loads((tmp_path / "profile.speedscope.json").read_text())
    frame_names = [frame["name"] for frame in written["shared"]["frames"]]
    shown = [span for thread in written["profiles"] for span in spans(thread, frame_names)]
    recording = trained.cycles[-1].recording
    expected = [(recording.name(row), recording.duration_ns[row]) for row in range(len(recording))]
    # The window cuts off calls that were open at its ends: here, and in other tests' server threads.
    cut = {call.name for call in recording.open_calls} | {name for name, length in expected if length < 0}
    whole, told = ([span for span in spans if span[0] not in cut] for spans in (shown, expected))
    assert len(whole) > len(cut)
    assert sorted(whole) == sorted(told)
    assert {span[0] for span in shown} >= cut


def test_speedscope_keeps_order_where_a_range_outlives_its_call(tmp_path: Path) -> None:
    def begin(prof: profile) -> record_function:
        prof.start()
        outliving = record_function("outlives")
        outliving.__enter__()
        return outliving

    prof = profile(with_stack=True)
    begin(prof).__exit__()
    prof.stop()
    prof.export_speedscope(tmp_path / "profile.json.gz")
    written = json.loads(gzip.decompress((tmp_path / "profile.json.gz").read_bytes()))
    frame_names = [frame["name"] for frame in written["shared"]["frames"]]
    (thread,) = [thread for thread in written["profiles"] if thread["events"]]
    assert "outlives" in [name for name, _ in spans(thread, frame_names)]


# ---- traces ----


def test_slices_of_a_track_nest(tmp_path: Path) -> None:
    """Even if a range outlives the call that started it: that call is drawn on a separate track."""
    with profile(with_stack=True) as prof:
        call_programs.work_after_managed()
    prof.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_bytes())["traceEvents"]
    calls = [event for event in events if event.get("cat") == "python_function"]
    beside = {event["name"].rpartition(": ")[2] for event in calls if event["ph"] == "b"}
    assert beside >= {"__enter__", "__exit__"}
    ends: list[float] = []
    slices = [event for event in events if event["ph"] == "X" and isinstance(event["tid"], int)]
    for event in sorted(slices, key=lambda event: (event["ts"], -event["dur"])):
        begin, end = round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)
        while ends and ends[-1] <= begin:
            ends.pop()
        assert not ends or end <= ends[-1], event["name"]
        ends.append(end)


def test_ids_of_calls_are_numbers(trained: profile, tmp_path: Path) -> None:
    """Kineto's null for a root is refused by HolisticTraceAnalysis."""
    trained.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_bytes())
    assert (trace["with_stack"], trace["with_modules"]) == (1, 1)
    calls = [event["args"] for event in trace["traceEvents"] if event.get("cat") == "python_function"]
    ids = {args["Python id"] for args in calls}
    assert len(ids) == len(calls)
    assert {args["Python parent id"] for args in calls} <= ids | {0}


def test_stack_lines_exist_in_their_files(tmp_path: Path) -> None:
    """Our own functions are left out of stacks, as are their lines."""
    program = tmp_path / "short.py"
    program.write_text(
        "from pytest_opprof import profile, record_function, schedule\n"
        "with profile(schedule=schedule(wait=0, warmup=1, active=2, repeat=1), with_stack=True) as prof:\n"
        "    for _ in range(3):\n"
        "        with record_function('parse'):\n"
        "            sorted([2, 1])\n"
        "        prof.step()\n"
    )
    prof = runpy.run_path(str(program))["prof"]
    entries = {entry for event in prof.events() for entry in event.stack or () if "short.py" in entry}
    lines = {int(entry.partition("(")[2].partition(")")[0]) for entry in entries}
    assert lines
    assert lines <= set(range(1, 7))


def test_folding_deep_stacks_takes_little_memory() -> None:
    """Each of 1,200 calls has a stack of its own; as lists these would be a million entries."""

    def dive(depth: int) -> None:
        with record_function("inside"):
            pass
        if depth:
            dive(depth - 1)

    with deep_recursion(3_000), profile(with_stack=True) as prof:
        dive(1_200)
    tracemalloc.start()
    lines = sum(1 for _ in folded_lines(prof.events(), METRICS[0], compat=None))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert lines > 2_000
    assert peak < 4 << 20


@contextlib.contextmanager
def deep_recursion(limit: int) -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    yield
    sys.setrecursionlimit(before)
