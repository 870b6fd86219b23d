"""What each marked test asks for, checked when it is collected."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pytest

from pytest_opprof.capture.torch_ops import imported_torch
from pytest_opprof.compare.gates import parse_gates
from pytest_opprof.compare.limits import parse_limits
from pytest_opprof.plugin.marker import ProfileRequest, request_of
from pytest_opprof.results.merge import Collected
from pytest_opprof.results.names import canonical_node_id


@dataclass(frozen=True, slots=True, kw_only=True)
class TestPlan:
    """A marked test's request, with its limits and gates read and checked."""

    __test__ = False  # not a test class for pytest to collect

    request: ProfileRequest
    limits: Mapping[str, int | str]
    gates: Mapping[str, str]


def plan_of(item: pytest.Item, *, known_ops: Collection[str]) -> TestPlan | None:
    """A test's plan; None for a test without the marker.

    Raises:
        UsageError: An argument, a limit or a gate cannot be meant.
    """
    request = request_of(item)
    if request is None:
        return None
    limits = parse_limits(request.limits, where=f"limits of {item.nodeid}", known_ops=known_ops)
    parse_gates(request.gates, where=f"gates of {item.nodeid}", known_ops=known_ops)
    return TestPlan(request=request, limits=limits, gates=request.gates)


def known_ops() -> frozenset[str]:
    """The names of all ops of the torch that was imported; empty without one."""
    torch = imported_torch()
    if torch is None:
        return frozenset()
    names = torch._C._dispatch_get_all_op_names()  # noqa: SLF001  # what torch.ops itself is made from
    return frozenset(name.partition(".")[0] for name in names)


def collected_by(config: pytest.Config, marked: Sequence[pytest.Item]) -> Collected:
    """What this session collected, and of which files and folders all of it.

    With ``--lf`` pytest leaves files out while it collects, and an argument with ``::`` takes a part of a
    file: what is not among the items there may well exist.
    """
    whole: set[str] = set()
    if not config.getoption("lf", default=False):
        for argument in config.args:
            path, separator, _ = str(argument).partition("::")
            if separator:
                continue
            absolute = config.invocation_params.dir / path
            if absolute.is_relative_to(config.rootpath):
                whole.add(absolute.relative_to(config.rootpath).as_posix())
    return Collected(
        node_ids=frozenset(canonical_node_id(item.nodeid) for item in marked), whole_paths=frozenset(whole)
    )
