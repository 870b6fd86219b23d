"""Memory that steps leave in use, if no other memory is recorded."""

import ctypes
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.recording import Recording
from pytest_opprof.capture.torch_ops import WORK

torch = pytest.importorskip("torch")

FLOAT = 4  # bytes
KEPT: list[object] = []


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector.instance()
    collector.open(sources=frozenset({"ranges", "ops", WORK}))
    yield collector
    KEPT.clear()
    if collector.recording:
        collector.stop()
    collector.open(sources=frozenset({"ranges"}))


def recorded(
    collector: Collector, step: Callable[[], object], *, memory: bool = False, most_events: int = 0
) -> Recording:
    """A window of two steps, after one unrecorded step, so that both replace something."""
    step()
    collector.start(profile_memory=memory)
    for number in range(2):
        collector.step_begin(number)
        step()
        collector.step_end()
    return collector.stop(most_events=most_events)


def retained(recording: Recording) -> dict[str, tuple[int, ...]]:
    """Retained memory by op and step."""
    return {
        group.name: tuple(group.steps["retained"])
        for group in recording.groups()
        if any(group.steps["retained"])
    }


def total(recording: Recording) -> list[int]:
    return [sum(group.steps["counted_retained"][step] for group in recording.groups()) for step in range(2)]


def training() -> Callable[[], None]:
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    data = torch.ones(4, 8)

    def step() -> None:
        optimizer.zero_grad()
        net(data).sum().backward()
        optimizer.step()

    return step


def keeping() -> None:
    x = torch.ones(64, 64, requires_grad=True)
    with torch.no_grad():
        KEPT.append((x @ x).relu())
    KEPT[:-1] = []


def given_elsewhere(run: Callable[[Callable[[], None]], object]) -> Callable[[], None]:
    def step() -> None:
        made = [torch.ones(256)]
        KEPT[:] = [torch.zeros(3)]

        def give() -> None:
            torch.zeros(1)  # torch reports memory only on threads that ran an op
            made.clear()

        run(give)

    return step


def on_new_thread(call: Callable[[], None]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def on_older_thread() -> Callable[[Callable[[], None]], None]:
    worker = ThreadPoolExecutor(max_workers=1)
    return lambda call: worker.submit(call).result()


STEPS: dict[str, Callable[[], Callable[[], object]]] = {
    "training": training,
    "keeping": lambda: keeping,
    "on-another-thread": lambda: given_elsewhere(on_new_thread),
    "on-an-older-thread": lambda: given_elsewhere(on_older_thread()),
    "nothing": lambda: lambda: torch.ones(8).sum().item(),
}


@pytest.mark.parametrize("kind", STEPS)
def test_retained_memory_matches_all_records(collector: Collector, kind: str) -> None:
    step = STEPS[kind]()
    whole, alone = recorded(collector, step, memory=True), recorded(collector, step)
    assert "memory" in whole.sources
    assert "memory" not in alone.sources
    assert {"retained"} <= {*whole.sources} & {*alone.sources}
    assert retained(alone) == retained(whole)
    assert total(alone) == total(whole)
    assert not any(alone.memory(event) for event in range(len(alone)))


def test_retained_tensor_belongs_to_its_op(collector: Collector) -> None:
    found = recorded(collector, keeping)
    assert retained(found)["aten::relu"] == (64 * 64 * FLOAT,) * 2
    assert total(found) == [64 * 64 * FLOAT] * 2


def test_long_window_has_retained_memory(collector: Collector) -> None:
    def step() -> None:
        for _ in range(50):
            keeping()

    whole, folded = recorded(collector, step), recorded(collector, step, most_events=100)
    assert folded.is_summed
    assert retained(folded) == retained(whole)
    assert total(folded) == total(whole) == [64 * 64 * FLOAT] * 2


def test_torch_logs_nothing_about_older_tensors(
    collector: Collector, capfd: pytest.CaptureFixture[str]
) -> None:
    level = ctypes.c_int.in_dll(ctypes.CDLL("libc10.so"), "FLAGS_caffe2_log_level")
    before = level.value
    collector.start()
    old = [torch.ones(8) for _ in range(3000)]
    collector.stop()
    collector.start()
    assert level.value == 2
    del old
    collector.stop()
    assert level.value == before
    assert "Memory block" not in capfd.readouterr().err
