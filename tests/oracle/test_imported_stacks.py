"""Traces of torch's profiler, read back: ops of the backward pass have the stack of their forward op."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.kineto.torch_releases import experimental

from pytest_opprof import EventList, load_trace


def one_loss(torch: Any, found: list[Any]) -> None:
    found.append(torch.ones(3, requires_grad=True).exp().sum())


def another_loss(torch: Any, found: list[Any]) -> None:
    weight = torch.ones(3, requires_grad=True)
    for _ in range(3):  # so that the two threads' sequence numbers differ
        weight = weight.sin()
    found.append(weight.sum())


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def traced(torch: Any, path: Path, program: Callable[[], object]) -> EventList:
    config = experimental(torch, profile_all_threads=True)
    with torch.profiler.profile(with_stack=True, experimental_config=config) as theirs:
        program()
    theirs.export_chrome_trace(str(path))
    return load_trace(path).events()


def stacks_of(events: EventList, name: str) -> list[list[str]]:
    return [event.stack or [] for event in events if event.name == name]


def test_a_backward_op_has_the_stack_of_its_forward_op(torch: Any, tmp_path: Path) -> None:
    def program() -> None:
        losses: list[Any] = []
        one_loss(torch, losses)
        losses[0].backward()

    events = traced(torch, tmp_path / "trace.json", program)
    (forward,) = stacks_of(events, "aten::exp")
    assert any("one_loss" in entry for entry in forward)
    assert stacks_of(events, "ExpBackward0") == [forward]


def test_forward_ops_of_two_threads_are_distinguished(torch: Any, tmp_path: Path) -> None:
    # torch records calls only of threads that exist when it starts
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as another:
        one.submit(int).result()
        another.submit(int).result()

        def program() -> None:
            losses: list[Any] = []
            one.submit(one_loss, torch, losses).result()
            another.submit(another_loss, torch, losses).result()
            for loss in losses:
                loss.backward()

        events = traced(torch, tmp_path / "trace.json", program)
    (forward,) = stacks_of(events, "aten::exp")
    assert any("one_loss" in entry for entry in forward)
    assert stacks_of(events, "ExpBackward0") == [forward]
    forwards = stacks_of(events, "aten::sin")
    assert all(any("another_loss" in entry for entry in stack) for stack in forwards)
    # the backward pass runs in reverse order
    assert stacks_of(events, "SinBackward0") == forwards[::-1]
