"""Overloads against torch.profiler's, of the same run."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.kineto.torch_releases import experimental

from pytest_opprof import EventList
from pytest_opprof.capture.collector import Collector

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def tensors() -> None:
    x = torch.arange(6.0).view(2, 3)
    y = (x + 1) * x - x.transpose(0, 1).reshape(2, 3)
    torch.sum(y, 0, out=torch.empty(3))
    y.sum().item()
    y.max(dim=1)
    y[0] = 3


def model_step() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.nn.functional.cross_entropy(model(torch.randn(5, 4)), torch.tensor([0, 1, 1, 0, 1])).backward()
    optimizer.step()


@pytest.mark.parametrize("with_shapes", [False, True])
@pytest.mark.parametrize("program", [tensors, model_step])
def test_overloads_match_torchs(program: Callable[[], None], with_shapes: bool, tmp_path: Path) -> None:
    config = experimental(torch, capture_overload_names=True)
    theirs = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        record_shapes=with_shapes,
        experimental_config=config,
    )
    program()
    collector = Collector.instance()
    collector.open(sources=frozenset({"ranges", "ops"}))
    collector.start(record_shapes=with_shapes, record_overloads=True)
    theirs.start()
    program()
    theirs.stop()
    recording = collector.stop()
    ours = EventList([recording])
    assert known(ours.as_torch()) == known(theirs.events())
    assert summed(ours.as_torch()) == summed(theirs)
    assert {overload for _, overload in known(ours)} > {"", "Tensor"}

    recording.write_chrome_trace(tmp_path / "ours.json")
    theirs.export_chrome_trace(str(tmp_path / "theirs.json"))
    assert slices(tmp_path / "ours.json") == slices(tmp_path / "theirs.json")


def known(events: Any) -> list[tuple[str, str]]:
    return [(event.name, event.overload_name) for event in events]


def summed(events: Any) -> dict[tuple[str, str], int]:
    rows = events.key_averages(group_by_overload_name=True)
    return {(row.key, row.overload_name): row.count for row in rows}


def slices(path: Path) -> list[str]:
    events = json.loads(path.read_text())["traceEvents"]
    ops = [event for event in events if event.get("cat") == "cpu_op"]
    return [event["name"] for event in sorted(ops, key=lambda event: (event["ts"], -event["dur"]))]
