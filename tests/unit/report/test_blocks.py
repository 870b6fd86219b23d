"""The blocks of a failure: a line with its ops, and the advice on it."""

import pytest
from support.documents.strategies import calling, simple_run

from pytest_opprof.compare.sessions import compare_test
from pytest_opprof.report.blocks import advice_on, blocks_of


@pytest.mark.parametrize(
    ("around", "code"),
    [("my::layer", "(OP101)"), ("Optimizer.step#Adam.step", "")],
    ids=["of the user", "of an optimizer"],
)
def test_values_that_an_optimizer_reads_are_not_advised_on(around: str, code: str) -> None:
    """Adam keeps the step of each parameter in a tensor of the host."""
    base, head = (calling((around, 1, ("aten::item", many))) for many in (2, 4))
    found = compare_test(head, base, base=simple_run(base, name="main"), head=simple_run(head))
    (told,) = {advice_on(block, found) for block in blocks_of(found)}
    assert told[-len("(OP101)") :] == code
