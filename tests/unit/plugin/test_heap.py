"""The frozen heap: the cost of a full collection, and when one is due."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from pytest_opprof.plugin.heap import RestingHeap


class Circle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def heap() -> Iterator[RestingHeap]:
    gc.unfreeze()  # a heap that other code froze would stay unchanged
    heap = RestingHeap()
    yield heap
    heap.thaw()


def test_later_objects_freeze_without_a_full_collection(heap: RestingHeap) -> None:
    circle = Circle()
    is_alive = weakref.ref(circle)
    before = [[] for _ in range(200_000)]  # type: ignore[var-annotated]  # empty on purpose
    heap.freeze()
    del circle
    since = [[] for _ in range(25_000)]  # type: ignore[var-annotated]  # as above
    heap.freeze()
    assert len(gc.get_objects()) < 5_000
    assert is_alive()
    assert (len(before), len(since)) == (200_000, 25_000)


def test_doubled_heap_is_fully_collected(heap: RestingHeap) -> None:
    circle = Circle()
    is_alive = weakref.ref(circle)
    heap.freeze()
    del circle
    since = [[] for _ in range(gc.get_freeze_count())]  # type: ignore[var-annotated]  # as above
    heap.freeze()
    assert len(gc.get_objects()) < 5_000
    assert not is_alive()
    assert since
