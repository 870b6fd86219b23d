"""Windows that record ops, and one more source."""

import contextlib
from collections.abc import Callable, Iterator

from pytest_opprof.capture.collector import Collector
from pytest_opprof.capture.recording import Recording


@contextlib.contextmanager
def noting(source: str) -> Iterator[Collector]:
    collector = Collector.instance()
    collector.open(sources=frozenset({"ranges", "ops", source}))
    yield collector
    if collector.recording:
        collector.stop()
    collector.open(sources=frozenset({"ranges"}))


def recorded(collector: Collector, work: Callable[[], object], *, most_events: int = 0) -> Recording:
    collector.start()
    collector.step_begin(0)
    work()
    collector.step_end()
    return collector.stop(most_events=most_events)
