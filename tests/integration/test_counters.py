"""Counters of the processor and the kernel, by real system calls; if refused, the reason is reported."""

from __future__ import annotations

import errno
import json
import mmap
import resource
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_opprof import (
    _ExperimentalConfig,
    _KinetoProfile,
    autograd,
    profile,
    range_pop,
    range_push,
    record_function,
)
from pytest_opprof.capture import counters
from pytest_opprof.capture.collector import Collector
from pytest_opprof.cli.main import main
from pytest_opprof.errors import UsageError

SOFTWARE = ["task-clock", "pagefaults"]
HARDWARE = ["cycles", "instructions"]


def is_refused(*names: str) -> bool:
    return any(counters.refusal(name) is not None for name in names)


counts = pytest.mark.skipif(is_refused(*SOFTWARE), reason="the kernel counts nothing here")


def counting(*names: str, **arguments: Any) -> profile:
    return profile(experimental_config=_ExperimentalConfig(performance_events=names), **arguments)


def touch_pages(count: int) -> None:
    """Cause one page fault per page of fresh memory."""
    with mmap.mmap(-1, count * mmap.PAGESIZE) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(count):
            memory[page * mmap.PAGESIZE] = 1


@counts
def test_ranges_have_the_requested_counters() -> None:
    with counting(*SOFTWARE) as prof, record_function("outer"):
        with record_function("many"):
            touch_pages(300)
        with record_function("few"):
            touch_pages(20)
    outer, many, few = prof.events()
    assert [event.name for event in (outer, many, few)] == ["outer", "many", "few"]
    assert many.counters["pagefaults"] >= 300
    assert 20 <= few.counters["pagefaults"] < 300
    assert outer.counters["pagefaults"] >= many.counters["pagefaults"] + few.counters["pagefaults"]
    assert 0 < many.counters["task-clock"] < outer.counters["task-clock"]


@counts
def test_pushed_and_decorated_ranges_are_counted() -> None:
    @record_function("decorated")
    def decorated() -> None:
        touch_pages(10)

    with counting("pagefaults") as prof:
        range_push("pushed")
        touch_pages(10)
        range_pop()
        decorated()
    assert {event.name: event.counters["pagefaults"] >= 10 for event in prof.events()} == {
        "pushed": True,
        "decorated": True,
    }


@counts
def test_averages_are_sums() -> None:
    with counting(*SOFTWARE) as prof:
        for pages in (10, 20, 30):
            with record_function("touch"):
                touch_pages(pages)
            with record_function("other"):
                pass
    touched = [event for event in prof.events() if event.name == "touch"]
    row = next(row for row in prof.key_averages() if row.key == "touch")
    assert row.counters == {name: sum(event.counters[name] for event in touched) for name in SOFTWARE}
    with_stacks = prof.events().key_averages(group_by_stack_n=1)
    assert next(row for row in with_stacks if row.key == "touch").counters == row.counters
    assert not any(row.counters for row in prof.events().key_averages(compat="torch"))  # torch's have none


@counts
def test_trace_names_counters_as_kineto_does(tmp_path: Path) -> None:
    with counting(*SOFTWARE) as prof, record_function("touch"):
        touch_pages(10)
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    (written,) = [e for e in json.loads(path.read_text())["traceEvents"] if e.get("name") == "touch"]
    (event,) = prof.events()
    assert event.counters.items() <= written["args"].items()


@counts
def test_each_window_counts_its_own_counters() -> None:
    with counting("pagefaults") as first, record_function("range"):
        pass
    with profile() as second, record_function("range"):
        pass
    with counting("task-clock") as third, record_function("range"):
        pass
    assert [list(prof.events()[0].counters) for prof in (first, second, third)] == [
        ["pagefaults"],
        [],
        ["task-clock"],
    ]
    assert not second.key_averages()[0].counters


@counts
def test_threads_count_for_themselves() -> None:
    def work() -> None:
        with record_function("in a thread"):
            touch_pages(100)

    with counting("pagefaults") as prof, record_function("main"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    faults = {event.name: event.counters["pagefaults"] for event in prof.events()}
    assert faults["in a thread"] >= 100 > faults["main"]


@counts
@pytest.mark.parametrize("record_shapes", [False, True])
def test_every_torch_op_is_counted(record_shapes: bool) -> None:
    torch = pytest.importorskip("torch")
    a = torch.ones(64, 64, requires_grad=True)
    with counting(*SOFTWARE, record_shapes=record_shapes) as prof:
        (a @ a).sum().backward()
    ops = [event for event in prof.events() if event.name.startswith(("aten::", "autograd::"))]
    assert len(ops) > 5
    assert all(set(event.counters) == set(SOFTWARE) for event in ops if not event.is_async)
    product = next(event for event in ops if event.name == "aten::matmul")
    assert product.counters["task-clock"] >= sum(e.counters["task-clock"] for e in product.cpu_children)


# ---- what is refused ----


@pytest.fixture
def kernel_without_processor_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a virtual machine, which only has the kernel's own counters."""
    real = counters.refusal
    reason = counters._reason(errno.ENOENT)  # the sentence of a real refusal
    monkeypatch.setattr(counters, "refusal", lambda name: reason if name in HARDWARE else real(name))


@counts
@pytest.mark.usefixtures("kernel_without_processor_counters")
def test_missing_counter_has_a_substitute() -> None:
    with (
        pytest.warns(
            UserWarning, match="cycles: this machine has no such counter.*task-clock is counted instead"
        ),
        counting(*HARDWARE, "pagefaults") as prof,
        record_function("range"),
    ):
        pass
    assert list(prof.events()[0].counters) == ["pagefaults", "task-clock"]


def test_missing_counters_lose_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "refusal", lambda _name: counters._reason(errno.EACCES))
    with (
        pytest.warns(UserWarning, match="instructions: not allowed: .*perf_event_paranoid"),
        counting("instructions") as prof,
        record_function("range"),
    ):
        pass
    assert [(event.name, event.counters) for event in prof.events()] == [("range", {})]


@counts
def test_threads_without_descriptors_are_reported() -> None:
    """The system's limit of open files is reached after the window was opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    prof = counting("task-clock")
    prof.start()
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    with record_function("range"):
        pass
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with pytest.warns(UserWarning, match="1 threads could not open their counters"):
        prof.stop()
    assert [(event.name, event.counters) for event in prof.events()] == [("range", {})]


@counts
def test_a_warning_that_is_an_error_loses_no_recording() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ready: list[int] = []
    prof = counting("task-clock", on_trace_ready=lambda prof: ready.append(len(prof.events())))
    prof.start()
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    with record_function("range"):
        pass
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with pytest.raises(UserWarning, match="could not open their counters"):
        prof.stop()
    assert (ready, len(prof.cycles), prof.events()[0].name) == ([1], 1, "range")


@pytest.mark.parametrize("make", [profile, _KinetoProfile, autograd.profile])
def test_a_warning_that_is_an_error_leaves_no_window_open(
    make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counters, "refusal", lambda _name: "refused by the test")
    prof = make(experimental_config=_ExperimentalConfig(performance_events=["task-clock"]))
    with pytest.raises(UserWarning, match="counters: task-clock: refused by the test"):
        prof.__enter__()
    assert not Collector.instance().recording
    assert not autograd._is_profiler_enabled
    with profile() as later, record_function("range"):
        pass
    assert len(later.events()) == 1


@pytest.mark.parametrize("name", HARDWARE)
def test_processor_counters_work_or_are_explained(name: str) -> None:
    if is_refused(name):
        with pytest.warns(UserWarning, match=f"counters: .*{name}: "), counting(name) as prof:
            pass
        return
    with counting(name) as prof, record_function("range"):
        touch_pages(10)
    assert prof.events()[0].counters[name] > 1000


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["cycle"], "unknown counter 'cycle': there are cycles, instructions, .*task-clock"),
        (counters.COUNTERS[:5], "5 counters were asked for; at most 4"),
        ("cycles", r"performance_events is 'cycles'; give a list of names, such as \['cycles'\]"),
    ],
)
def test_unknown_counter_is_an_error(names: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        profile(experimental_config=_ExperimentalConfig(performance_events=names))


def test_doctor_lists_the_available_counters(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor"])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("counters ")]
    for name in counters.COUNTERS:
        assert name in line
    assert ("not " in line) == is_refused(*counters.COUNTERS)


def test_refused_counter_does_not_affect_later_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "refusal", lambda _name: "refused by the test")
    collector = Collector.instance()
    collector.open()
    collector.start(counters=["task-clock"])
    collector.stop()
    assert collector.problems["counters"] == "task-clock: refused by the test"
    collector.open()
    assert "counters" not in collector.problems
