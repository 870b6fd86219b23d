"""The value at a path in a result."""

import pytest
from support.documents.strategies import cuda_test, simple_test

from pytest_opprof.metrics import parse_path
from pytest_opprof.results.run import TestResult, value_in

TEST = simple_test({"aten::mul": 2, "aten::add": 3, "work": 1})


@pytest.mark.parametrize(
    ("test", "path", "value"),
    [
        (TEST, "aten::mul.count", 2),
        (TEST, "aten::*.count", 5),
        (TEST, "[aw]*.count", 6),
        (TEST, "aten::clone.count", 0),
        (TEST, "ops.count", 5),
        (TEST, "flops.total", None),
        (TEST, "aten::mul.flops", None),
        (simple_test({}, sources=("ranges",)), "aten::mul.flops", None),
        (simple_test({}, ops_omitted=1), "aten::mul.count", None),
        (cuda_test({"aten::mm": {"kernels": 2}}), "aten::*.kernels", 2),
    ],
)
def test_path_gives_its_value(test: TestResult, path: str, value: int | None) -> None:
    found = value_in(test, parse_path(path, where="PATTERN"))
    assert (found and found.low) == value
