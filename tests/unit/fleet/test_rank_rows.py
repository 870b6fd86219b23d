"""A run's ops become rows of single steps, also where the run keeps only the sum and range of its steps."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.fleet.rank_rows import run_rows
from pytest_opprof.results.samples import Samples


def counts(samples: Samples) -> list[int]:
    test = simple_test({"aten::mul": 2}, steps=samples.steps)
    (op,) = test.ops
    row = replace(op, metrics={**op.metrics, "count": samples})
    rows = run_rows(simple_run(replace(test, ops=(row,))), rank=0, file=0)["ops"]
    return [count for *_, count, _ in rows]


@given(values=st.lists(st.integers(1, 10**6), min_size=1, max_size=20))
def test_rows_keep_the_sum_and_range_of_steps(values: list[int]) -> None:
    made_up = counts(Samples.of(values).summarized())
    assert (sum(made_up), min(made_up), max(made_up)) == (sum(values), min(values), max(values))
    assert len(made_up) == len(values)


@pytest.mark.parametrize(
    ("total", "expected"), [(15, [5, 9, 5]), (27, [5, 9, 9]), (20, [5, 9, 6])], ids=["low", "high", "between"]
)
def test_rows_stay_in_the_range_of_measurements_that_disagree(total: int, expected: list[int]) -> None:
    assert counts(Samples(steps=3, total=total, low=5, high=9)) == expected
