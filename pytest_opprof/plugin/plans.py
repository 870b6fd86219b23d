"""Each marked test's request, checked at collection."""

from __future__ import annotations

import os.path
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest.main import search_pypath

from pytest_opprof.capture.torch_ops import imported_torch
from pytest_opprof.compare.gates import parse_gates
from pytest_opprof.compare.limits import parse_limits
from pytest_opprof.plugin.marker import ProfileRequest, refusal_of, request_of
from pytest_opprof.plugin.stash import UNREAD
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.names import canonical_node_id


@dataclass(frozen=True, slots=True, kw_only=True)
class TestPlan:
    """A marked test's request, with its limits and gates read and checked."""

    __test__ = False  # not a test class for pytest to collect

    request: ProfileRequest
    limits: Mapping[str, int | str]
    refusal: str = ""  # why the test cannot be profiled, an error of only this test; "" if it can


PLAN: Final = pytest.StashKey[TestPlan]()


def plan_of(item: pytest.Item, *, known_ops: Collection[str], suite: Mapping[str, Any]) -> TestPlan:
    """The plan of a test that has the marker, see `request_of`; raises `UsageError` if it is invalid."""
    request = request_of(item, suite=suite)
    limits = parse_limits(request.limits, where=f"limits of {item.nodeid}", known_ops=known_ops)
    parse_gates(request.gates, where=f"gates of {item.nodeid}", known_ops=known_ops)
    return TestPlan(request=request, limits=limits, refusal=refusal_of(item))


def known_ops() -> frozenset[str]:
    """The names of all ops of the imported torch; empty without one."""
    torch = imported_torch()
    if torch is None:
        return frozenset()
    names = torch._C._dispatch_get_all_op_names()  # noqa: SLF001  # what torch.ops itself is made from
    return frozenset(name.partition(".")[0] for name in names)


def collected_by(config: pytest.Config, marked: Iterable[pytest.Item]) -> Collected:
    """Collected tests, and files and folders that were collected entirely.

    With ``--lf`` pytest skips files during collection, and an argument with ``::`` takes a part of a file:
    tests that are not among the items there may exist.
    """
    whole: list[Path] = []
    if not config.getoption("lf", default=False):
        parts = [str(argument).partition("::") for argument in config.args]
        given = [path for path, separator, _ in parts if not separator]
        if config.option.pyargs:
            given = [search_pypath(path) or path for path in given]
        whole = [config.invocation_params.dir / path for path in given]
    unread = config.stash[UNREAD]
    return Collected(
        node_ids=frozenset(canonical_node_id(item.nodeid) for item in marked),
        whole_paths=_as_in_node_ids(config, whole),
        unread_paths=_as_in_node_ids(config, unread),
    )


def _as_in_node_ids(config: pytest.Config, paths: Iterable[Path]) -> frozenset[str]:
    """Paths as in node ids, without those outside the root folder."""
    absolute = (Path(os.path.normpath(path)) for path in paths)
    return frozenset(
        path.relative_to(config.rootpath).as_posix()
        for path in absolute
        if path.is_relative_to(config.rootpath)
    )
