"""One program under torch.profiler and under ours, in turn: the checks of torch's own profile tests."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.kineto.torch_releases import tells_inputs

import pytest_opprof

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.usefixtures("torch"),
    pytest.mark.filterwarnings("ignore:with_modules:FutureWarning"),  # torch's, since 2.14
]
BOTH = pytest.mark.parametrize("api", [torch.profiler, pytest_opprof], ids=["torch", "ours"])


def profiled(api: Any, program: Callable[[], object], **settings: object) -> Any:
    with api.profile(activities=[torch.profiler.ProfilerActivity.CPU], **settings) as prof:
        program()
    return prof


def slices_of(prof: Any, path: Path) -> list[Any]:
    prof.export_chrome_trace(str(path))
    return [event for event in json.loads(path.read_bytes())["traceEvents"] if event["ph"] == "X"]


@BOTH
def test_ids_do_not_repeat_in_a_process(api: Any, tmp_path: Path) -> None:
    flat: set[int] = set()
    written: set[int] = set()
    for _ in range(3):
        prof = profiled(api, lambda: torch.ones(2).add(1).sum())
        ids = [event.id for event in prof.events()]
        # torch's list omits an op whose only child has its name
        told = [event.correlation_id() for event in prof.profiler.kineto_results.events()]
        assert set(ids) <= set(told)
        assert len(told) == len(set(told))
        traced = [
            event["args"]["External id"]
            for event in slices_of(prof, tmp_path / "trace.json")
            if event.get("cat") == "cpu_op"
        ]
        assert len(traced) == len(set(traced)) >= 5
        assert flat.isdisjoint(told)
        assert written.isdisjoint(traced)
        assert max(*told, *traced) < 2**32
        flat.update(told)
        written.update(traced)


@pytest.mark.parametrize("record_shapes", [True, False], ids=["shapes", "plain"])
@pytest.mark.parametrize("args", ["a text", "", None])
def test_a_ranges_text_is_an_input(tmp_path: Path, args: str | None, *, record_shapes: bool) -> None:
    if not tells_inputs(torch):
        pytest.skip(f"the events of torch {torch.__version__} have no structured inputs")

    def told(api: Any) -> Any:
        def program() -> None:
            with api.record_function("load", args):
                torch.ones(2)
            with api.record_function("load"):
                torch.ones(2)

        prof = profiled(api, program, record_shapes=record_shapes)
        events = [event for event in prof.events() if event.name == "load"]
        rows = prof.key_averages(group_by_input_shape=True)
        slices = [event for event in slices_of(prof, tmp_path / "trace.json") if event["name"] == "load"]
        inputs = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
        return (
            [(event.input_shapes, event.structured_input_shapes) for event in events],
            sorted((str(row.input_shapes), row.count) for row in rows if row.key == "load"),
            [{key: event["args"].get(key) for key in inputs} for event in slices],
        )

    expected = told(torch.profiler)
    assert told(pytest_opprof) == expected
    assert expected[0][0][0] == ([[]] if record_shapes and args is not None else [])


def test_the_text_stays_in_the_trace_beside_the_inputs(tmp_path: Path) -> None:
    def program() -> None:
        with pytest_opprof.record_function("load", "batch=8"):
            pass

    (event,) = (
        event
        for event in slices_of(profiled(pytest_opprof, program, record_shapes=True), tmp_path / "trace.json")
        if event["name"] == "load"
    )
    assert event["args"]["args"] == "batch=8"


@pytest.mark.parametrize("with_modules", [True, False], ids=["modules", "stack"])
def test_module_calls_match_torchs(tmp_path: Path, *, with_modules: bool) -> None:
    """With stacks they are recorded whether requested or not."""
    net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3), torch.nn.ReLU())
    x = torch.ones(2, 3)
    net(x)

    def modules(api: Any) -> list[Any]:
        prof = profiled(api, lambda: net(x), with_stack=True, with_modules=with_modules)
        calls = [
            event
            for event in slices_of(prof, tmp_path / "trace.json")
            if event.get("cat") == "python_function"
        ]
        by_id = {event["args"]["Python id"]: event for event in calls}

        def around(event: Any) -> list[str]:
            found = []
            while (event := by_id.get(event["args"].get("Python parent id"))) is not None:
                found.append(event["name"])
            return [name for name in found if name.startswith("nn.Module: ")]

        return [
            (event["name"], event["args"]["Python module id"], around(event))
            for event in sorted(calls, key=lambda event: event["ts"])
            if event["name"].startswith("nn.Module: ")
        ]

    expected = modules(torch.profiler)
    assert modules(pytest_opprof) == expected
    assert [name for name, _, _ in expected] == [
        "nn.Module: Sequential_0",
        "nn.Module: Linear_0",
        "nn.Module: Linear_1",
        "nn.Module: ReLU_0",
    ]
    assert expected[2] == ("nn.Module: Linear_1", 1, ["nn.Module: Sequential_0"])
