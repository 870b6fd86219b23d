"""Ranks named as stragglers, in simulated jobs of the demo's model."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pytest_opprof.fleet.stragglers import late_ranks


@pytest.fixture(scope="module")
def model() -> ModuleType:
    """The model from which `make demo-fleet` generates its jobs."""
    path = Path(__file__).parents[3] / "examples" / "fleet_job.py"
    spec = importlib.util.spec_from_file_location("fleet_job", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fleet_job"] = module  # its dataclasses look it up
    spec.loader.exec_module(module)
    return module


def named(model: ModuleType, *, slower: float, seed: int) -> list[int]:
    """The ranks named when rank 13 computes slower."""
    late = model.lateness(model.Plan(slower={13: 1 + slower}, seed=seed))
    return [one.rank for one in late_ranks(late)]


def test_no_straggler_is_named_without_a_slow_rank(model: ModuleType) -> None:
    assert [named(model, slower=0, seed=seed) for seed in range(200)] == [[]] * 200


def test_only_the_straggler_is_named(model: ModuleType) -> None:
    assert [named(model, slower=0.08, seed=seed) for seed in range(40)].count([13]) >= 39


def test_too_few_ranks_name_no_straggler() -> None:
    assert late_ranks({rank: [0.0 if rank else 9e9] * 3 for rank in range(7)}) == []


def test_negligible_delay_is_not_named() -> None:
    assert late_ranks({rank: [499_000.0 if rank == 3 else 0.0] * 3 for rank in range(64)}) == []
    (late,) = late_ranks({rank: [501_000.0 if rank == 3 else 0.0] * 3 for rank in range(64)})
    assert (late.rank, late.lateness_ns) == (3, 501_000)


def test_a_rank_that_is_early_once_is_not_named() -> None:
    assert late_ranks({rank: [9e6, 9e6, -1e3] if rank == 3 else [0.0] * 3 for rank in range(64)}) == []
