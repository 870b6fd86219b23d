"""Who is named as a straggler, in simulated jobs of the demo's model."""

import importlib.util
import random
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from types import ModuleType

import pytest

from pytest_opprof.fleet.stragglers import late_ranks

RANKS = 64
STEPS = 3
COLLECTIVES = 5  # of a step
STEP_US = 220_000.0


@pytest.fixture(scope="module")
def model() -> ModuleType:
    """The model that `make demo-fleet` makes its jobs with."""
    path = Path(__file__).parents[3] / "examples" / "fleet_job.py"
    spec = importlib.util.spec_from_file_location("fleet_job", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fleet_job"] = module  # its dataclasses look for it
    spec.loader.exec_module(module)
    return module


def lateness(model: ModuleType, *, slower: float, seed: int) -> dict[int, list[float]]:
    """How late each rank comes in each step, nanoseconds; rank 13 computes slower."""
    part = STEP_US / COLLECTIVES
    starts = [part * (at + 0.9) for at in range(STEPS * COLLECTIVES)]
    of = [model._Stretch(start, start + 0.1 * part) for start in starts]
    plan = model.Plan(ranks=RANKS, slower={13: 1 + slower}, seed=seed)
    came = model.arrivals(of, plan, random.Random(seed), origin=0.0)  # noqa: S311 - it only varies
    late: defaultdict[int, list[float]] = defaultdict(lambda: [0.0] * STEPS)
    for at in range(len(of)):
        middle = median(begins[at] for begins, _ in came)
        for rank, (begins, _) in enumerate(came):
            late[rank][at // COLLECTIVES] += (begins[at] - middle) * 1000
    return dict(late)


def test_nobody_is_named_where_nobody_is_slow(model: ModuleType) -> None:
    assert [late_ranks(lateness(model, slower=0, seed=seed)) for seed in range(200)] == [[]] * 200


def test_a_straggler_is_named_and_nobody_else(model: ModuleType) -> None:
    named = [[one.rank for one in late_ranks(lateness(model, slower=0.08, seed=seed))] for seed in range(40)]
    assert named.count([13]) >= 39


def test_few_ranks_tell_nothing() -> None:
    assert late_ranks({rank: [0.0 if rank else 9e9] * 3 for rank in range(7)}) == []


def test_what_does_not_matter_is_not_named() -> None:
    assert late_ranks({rank: [499_000.0 if rank == 3 else 0.0] * 3 for rank in range(64)}) == []
    (late,) = late_ranks({rank: [501_000.0 if rank == 3 else 0.0] * 3 for rank in range(64)})
    assert (late.rank, late.lateness_ns) == (3, 501_000)


def test_a_rank_that_is_early_once_is_not_named() -> None:
    assert late_ranks({rank: [9e6, 9e6, -1e3] if rank == 3 else [0.0] * 3 for rank in range(64)}) == []
