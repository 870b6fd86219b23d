"""The garbage collector stands aside, and comes back as it was."""

import gc
from collections.abc import Iterator

import pytest

from pytest_opprof.results.acyclic import acyclic


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    was_on = gc.isenabled()
    yield
    (gc.enable if was_on else gc.disable)()


@pytest.mark.parametrize("is_on", [True, False], ids=["on", "off"])
def test_collector_is_off_inside_and_as_before_after(is_on: bool) -> None:
    (gc.enable if is_on else gc.disable)()
    with acyclic():
        assert not gc.isenabled()
        with acyclic():
            pass
        assert not gc.isenabled()
    assert gc.isenabled() is is_on


def test_error_inside_brings_it_back() -> None:
    gc.enable()
    with pytest.raises(ValueError, match="damaged"), acyclic():
        raise ValueError("damaged")
    assert gc.isenabled()
