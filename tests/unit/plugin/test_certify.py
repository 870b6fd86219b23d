"""What each fresh process of a save measures."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_opprof.plugin.certify import _shares
from pytest_opprof.results.run import TestResult

TESTS = [TestResult(node_id=f"test_{file}.py::test_{number}") for file in "abcd" for number in range(16)]


def sizes(**option: Any) -> list[int]:
    config = cast("pytest.Config", SimpleNamespace(option=SimpleNamespace(**option)))
    return [len(share) for share in _shares(config, TESTS)]


def test_without_xdist_one_process_measures_all() -> None:
    assert sizes() == [64]
    assert sizes(numprocesses=None, dist="no") == [64]


def test_there_are_as_many_processes_as_workers() -> None:
    assert sizes(numprocesses=2, dist="load") == [32, 32]


def test_serial_groups_share_one_process() -> None:
    assert sizes(numprocesses=2, dist="loadgroup") == [64]
