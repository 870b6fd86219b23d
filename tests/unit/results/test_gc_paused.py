"""The garbage collector pauses, and is restored afterwards."""

import gc
from collections.abc import Iterator

import pytest

from pytest_opprof.results.members import gc_paused


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    was_on = gc.isenabled()
    yield
    (gc.enable if was_on else gc.disable)()


@pytest.mark.parametrize("is_on", [True, False], ids=["on", "off"])
def test_collector_is_off_inside_and_as_before_after(is_on: bool) -> None:
    (gc.enable if is_on else gc.disable)()
    with gc_paused():
        assert not gc.isenabled()
        with gc_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled() is is_on


def test_collector_is_restored_after_an_error() -> None:
    gc.enable()
    with pytest.raises(ValueError, match="damaged"), gc_paused():
        raise ValueError("damaged")
    assert gc.isenabled()
