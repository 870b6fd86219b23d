"""Ranges across generators and threads: each ends its own record, in whatever order."""

import gc
import threading
from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.programs.windows import Window, asynchronous, callers, names, unfinished

from pytest_opprof import range_pop, range_push, record_function
from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.recording import Recording


def of_name(recording: Recording, name: str) -> list[int]:
    return [event for event in range(len(recording)) if recording.name(event) == name]


# ---- generators ----


def test_generators_may_be_interleaved() -> None:
    def numbers(name: str) -> Iterator[int]:
        with record_function(name):
            yield 1
            with record_function(f"inside {name}"):
                pass
            yield 2

    with Window() as window:
        assert list(zip(numbers("a"), numbers("b"), strict=True)) == [(1, 1), (2, 2)]
    ended_early = dict(zip(names(window.recording), asynchronous(window.recording), strict=True))
    assert ended_early == {"a": True, "b": False, "inside a": False, "inside b": False}
    # `a` ended before `b`, which started inside it, so it is not its parent.
    assert dict(zip(names(window.recording), callers(window.recording), strict=True)) == {
        "a": None,
        "b": None,
        "inside a": "b",
        "inside b": "b",
    }


def test_abandoned_generator_ends_its_range() -> None:
    def numbers() -> Iterator[int]:
        with record_function("abandoned"):
            yield 1
            yield 2

    with Window() as window:
        with record_function("user"):
            generator = numbers()
            assert next(generator) == 1
        del generator
        gc.collect()
    assert names(window.recording) == ["user", "abandoned"]
    assert unfinished(window.recording) == [False, False]
    # `user` ended while the later `abandoned` was open.
    assert asynchronous(window.recording) == [True, False]


def test_generator_kept_past_the_window_is_unfinished() -> None:
    @record_function("kept")
    def numbers() -> Iterator[int]:
        yield 1
        yield 2

    with Window() as window:
        generator = numbers()
        next(generator)
    with Window() as later:
        assert list(generator) == [2]
    assert unfinished(window.recording) == [True]
    assert names(later.recording) == []


def test_decorated_generator_passes_everything_on() -> None:
    @record_function("echo")
    def echo() -> Generator[object, object, str]:
        said: object = "first"
        while said != "stop":
            try:
                said = yield said
            except KeyError as error:
                said = f"caught {error}"
        return "returned"

    with Window() as window:
        generator = echo()
        assert [next(generator), generator.send(1), generator.throw(KeyError("k"))] == [
            "first",
            1,
            "caught 'k'",
        ]
        with pytest.raises(StopIteration) as stopped:
            generator.send("stop")
        assert stopped.value.value == "returned"
    assert names(window.recording) == ["echo"]
    assert not any(unfinished(window.recording))


def test_runs_of_a_decorated_generator_are_separate() -> None:
    @record_function("numbers")
    def numbers(count: int) -> Iterator[int]:
        yield from range(count)

    with Window() as window:
        first, second = numbers(1), numbers(3)
        next(first), next(second)
        assert list(first) == []
        with record_function("between"):
            pass
        assert list(second) == [1, 2]
    assert names(window.recording) == ["numbers", "numbers", "between"]
    assert asynchronous(window.recording) == [True, False, False]
    ends = [
        start + duration
        for start, duration in zip(window.recording.start_ns, window.recording.duration_ns, strict=True)
    ]
    assert ends[0] < window.recording.start_ns[2] < ends[1]


# ---- threads ----


def test_each_thread_has_its_own_tree() -> None:
    def work(number: int) -> None:
        with record_function(f"outer {number}"), record_function(f"inner {number}"):
            pass

    with Window() as window, ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(100)))
    expected: dict[str, str | None] = {f"inner {number}": f"outer {number}" for number in range(100)}
    expected |= dict.fromkeys((f"outer {number}" for number in range(100)), None)
    assert dict(zip(names(window.recording), callers(window.recording), strict=True)) == expected
    assert window.recording.stats.unmatched_ends == 0
    assert not any(asynchronous(window.recording))


def test_one_range_serves_many_threads_at_once() -> None:
    shared = record_function("shared")
    together = threading.Barrier(4)

    def work(own: str) -> None:
        for turn in range(50):
            with shared:
                together.wait()
                with record_function(own):
                    if turn % 2:
                        together.wait()

    with Window() as window:
        threads = [threading.Thread(target=work, args=(f"own {n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    recording = window.recording
    assert not any(asynchronous(recording))
    assert not any(unfinished(recording))
    expected: Counter[tuple[str, str | None]] = Counter({("shared", None): 200})
    expected |= Counter({(f"own {n}", "shared"): 50 for n in range(4)})
    assert Counter(zip(names(recording), callers(recording), strict=True)) == expected
    assert len(recording.threads) == 4


def test_range_may_end_on_another_thread() -> None:
    handed_over = record_function("handed over")
    with Window() as window, record_function("around"):
        handed_over.__enter__()
        thread = threading.Thread(target=handed_over.__exit__)
        thread.start()
        thread.join()
        with record_function("after"):
            pass
    assert names(window.recording) == ["around", "handed over", "after"]
    assert asynchronous(window.recording) == [False, True, False]
    assert callers(window.recording) == [None, "around", "around"]
    assert window.recording.duration_ns[1] > 0
    assert window.recording.self_ns[1] == 0


def test_range_may_end_after_its_thread() -> None:
    outlives = record_function("outlives")

    def work() -> None:
        outlives.__enter__()

    with Window() as window:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        outlives.__exit__()
    assert asynchronous(window.recording) == [True]
    assert unfinished(window.recording) == [False]


def test_a_thread_never_ends_the_range_of_another() -> None:
    """It entered the shared range before the window, so it has no record of its own to end."""
    shared = record_function("shared")
    entered, recorded = threading.Event(), threading.Event()

    def early() -> None:
        shared.__enter__()
        entered.set()
        recorded.wait()
        with record_function("early thread"):
            pass
        shared.__exit__()

    thread = threading.Thread(target=early)
    thread.start()
    entered.wait()
    with Window() as window, shared:
        recorded.set()
        thread.join()
        with record_function("inside"):
            pass
    found = list(zip(names(window.recording), asynchronous(window.recording), strict=True))
    assert sorted(found) == [("early thread", False), ("inside", False), ("shared", False)]
    assert callers(window.recording)[of_name(window.recording, "inside")[0]] == "shared"


def test_thread_that_lives_on_leaves_its_range_unfinished() -> None:
    entered, leave = threading.Event(), threading.Event()

    def work() -> None:
        with record_function("lives on"):
            entered.set()
            leave.wait()

    thread = threading.Thread(target=work)
    with Window() as window:
        thread.start()
        entered.wait()
    with Window() as later:
        leave.set()
        thread.join()
    assert unfinished(window.recording) == [True]
    assert names(later.recording) == []
    assert later.recording.stats.unmatched_ends == 0  # the thread recorded nothing in that window


def test_pushes_are_per_thread() -> None:
    depths: list[int] = []

    def work() -> None:
        depths.append(range_push("other thread"))
        depths.append(range_pop())
        with pytest.raises(RuntimeError, match="on this thread"):
            range_pop()

    with Window() as window:
        assert range_push("main thread") == 0
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert range_pop() == 0
    assert depths == [0, 0]
    assert sorted(zip(names(window.recording), callers(window.recording), strict=True)) == [
        ("main thread", None),
        ("other thread", None),
    ]


def test_threads_keep_their_names() -> None:
    def work() -> None:
        with record_function("work"):
            pass

    ended = threading.Thread(target=work, name="ended")
    with Window() as window:
        ended.start()
        ended.join()
        with ThreadPoolExecutor(1, thread_name_prefix="living") as pool, record_function("main"):
            pool.submit(work).result()
            peeked = {thread.name for thread in Collector.instance().peek().threads}
    assert "living_0" in peeked
    assert "MainThread" in {thread.name for thread in window.recording.threads}
    assert len({thread.os_tid for thread in window.recording.threads}) == 3


def test_long_thread_names_are_cut_at_a_character(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.current_thread(), "name", "fourteen bytesé")
    with Window() as window, record_function("x"):
        pass
    assert [thread.name for thread in window.recording.threads] == ["fourteen bytes"]
