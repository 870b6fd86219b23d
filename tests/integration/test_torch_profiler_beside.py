"""Our windows and torch's profiler in one process: each records its own events, unharmed."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.programs.windows import RANGES, RANGES_AND_OPS, Window, names, ops_window

from pytest_opprof.capture.collector import Collector

pytestmark = pytest.mark.usefixtures("torch_collector")


def torch_profiler(torch: Any) -> Any:
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])


def theirs(profiler: Any) -> list[str]:
    return [event.name() for event in profiler.profiler.kineto_results.events()]


@pytest.fixture(params=["main-thread", "other-thread"])
def on_thread(request: pytest.FixtureRequest) -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """Call something on this thread, or on an older one."""
    if request.param == "main-thread":
        yield lambda function: function()
        return
    with ThreadPoolExecutor(1) as pool:
        yield lambda function: pool.submit(function).result()


@pytest.mark.usefixtures("torch_profiler_allowed")
def test_torch_profiler_inside_our_window_sees_all(
    torch: Any, on_thread: Callable[[Callable[[], Any]], Any]
) -> None:
    ones = torch.ones(2)
    profiler = torch_profiler(torch)

    def work() -> None:
        ones + ones
        with profiler:
            ones * ones
        with torch._C._profiler._RecordFunctionFast("after"):
            ones - ones

    on_thread(lambda: ones / ones)
    with ops_window() as window:
        on_thread(work)
        assert torch.autograd.profiler._is_profiler_enabled
    assert theirs(profiler) == ["aten::mul"]
    expected = ["aten::add", "aten::mul", "after", "aten::sub"]
    assert [name for name in names(window.recording) if name in expected] == expected
    assert not torch.autograd.profiler._is_profiler_enabled


@pytest.mark.usefixtures("torch_profiler_allowed")
def test_our_window_inside_torch_profiler_sees_all(torch: Any) -> None:
    ones = torch.ones(2)
    with torch_profiler(torch) as profiler:
        ones + ones
        with ops_window() as window:
            ones * ones
        assert torch.autograd.profiler._is_profiler_enabled
        ones - ones
    assert theirs(profiler) == ["aten::add", "aten::mul", "aten::sub"]
    assert names(window.recording) == ["aten::mul"]
    assert not torch.autograd.profiler._is_profiler_enabled


@pytest.mark.usefixtures("torch_profiler_allowed")
def test_overlapping_windows_keep_torch_profilers_flag(torch: Any) -> None:
    profiler = torch_profiler(torch)
    flags = []
    profiler.start()
    with ops_window() as window:
        profiler.stop()
        flags.append(torch.autograd.profiler._is_profiler_enabled)  # ours continues
        torch.ones(2)
    flags.append(torch.autograd.profiler._is_profiler_enabled)
    assert "aten::ones" in names(window.recording)
    other = torch_profiler(torch)
    with ops_window():
        other.start()
    flags.append(torch.autograd.profiler._is_profiler_enabled)  # theirs continues
    other.stop()
    flags.append(torch.autograd.profiler._is_profiler_enabled)
    assert flags == [True, False, True, False]


@pytest.mark.usefixtures("torch_profiler_allowed")
def test_torch_profiler_may_start_wherever_our_window_was(torch: Any) -> None:
    """Our state stays on each thread that ran an op, until it runs one in a later window."""
    profiler = torch_profiler(torch)

    def profiled() -> list[str]:
        with profiler:
            torch.ones(2)
        return theirs(profiler)

    with ThreadPoolExecutor(1) as pool:
        with ops_window():
            pool.submit(torch.ones, 2).result()
        assert "aten::ones" in pool.submit(profiled).result()


@pytest.mark.usefixtures("torch_profiler_allowed")
def test_itt_ranges_inside_our_window_harm_nothing(torch: Any) -> None:
    if not torch.profiler.itt.is_available():
        pytest.skip("this torch was built without ITT")
    ones = torch.ones(2)
    with ops_window() as window:
        with torch.autograd.profiler.emit_itt():
            ones + ones
        with torch._C._profiler._RecordFunctionFast("after"):
            ones * ones
    assert names(window.recording) == ["aten::add", "after", "aten::mul"]


def test_torch_sees_a_profiler_on(torch: Any) -> None:
    flags = [torch.autograd.profiler._is_profiler_enabled]
    with ops_window():
        flags.append(torch.autograd.profiler._is_profiler_enabled)
    flags.append(torch.autograd.profiler._is_profiler_enabled)
    assert flags == [False, True, False]


def test_changing_sources_keeps_the_observer(torch: Any) -> None:
    ones = torch.ones(2)
    for _ in range(3):
        with Window(sources=RANGES) as without:
            ones + ones
        with ops_window() as window:
            ones + ones
        assert names(without.recording) == []
        assert names(window.recording) == ["aten::add"]
    collector = Collector.instance()
    collector.open(sources=frozenset({"ranges", "ops-itt"}))
    assert "torch was imported before the collector was armed" in collector.problems["ops"]
    collector.open(sources=RANGES_AND_OPS)
    assert collector.problems == {}
