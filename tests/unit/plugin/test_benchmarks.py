"""Benchmark fixtures: which of them show what they time."""

from types import SimpleNamespace

import pytest

from pytest_opprof.plugin.benchmarks import can_be_followed


class _Closed:
    __slots__ = ("_raw", "_raw_pedantic")

    def __init__(self) -> None:
        self._raw = self._raw_pedantic = print


@pytest.mark.parametrize(
    ("fixture", "can"),
    [
        (SimpleNamespace(_raw=print, _raw_pedantic=print), True),
        (SimpleNamespace(_raw=print), False),
        (SimpleNamespace(_raw=print, _raw_pedantic=None), False),
        (_Closed(), False),
    ],
    ids=["both", "one", "one that is nothing", "cannot be changed"],
)
def test_fixture_is_followed_if_both_methods_are_replaceable(fixture: object, *, can: bool) -> None:
    assert can_be_followed(fixture) is can
