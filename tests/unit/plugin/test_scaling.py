"""Growth with a size: which test is judged, and by which exponent."""

import pytest
from support.documents.strategies import simple_test

from pytest_opprof.plugin.plans import PLAN, plan_of
from pytest_opprof.plugin.scaling import Scaling, leave_limit_to_the_last, limits_growth
from pytest_opprof.results.samples import Samples

SIZES = """\
    import pytest

    @pytest.mark.profile(size="n", limits={"python.scaling": "<= 1.2"})
    @pytest.mark.parametrize("n", [100, 200, pytest.param(400, marks=[MARK])])
    def test_it(n):
        pass
"""


def sizes(lone: pytest.Pytester, mark: str = "") -> list[pytest.Item]:
    """The tests of three sizes, the largest with a mark, planned as at collection."""
    items = lone.getitems(SIZES.replace("MARK", mark))
    for item in items:
        item.stash[PLAN] = plan_of(item, known_ops=frozenset(), suite={})
    leave_limit_to_the_last(items)
    return items


@pytest.mark.parametrize(
    ("mark", "judged"),
    [
        ("", "test_it[400]"),
        ("pytest.mark.skip", "test_it[200]"),
        ("pytest.mark.skipif('True')", "test_it[200]"),
        ("pytest.mark.skipif('False')", "test_it[400]"),
        ("pytest.mark.skipif('no_such_name')", "test_it[400]"),
    ],
)
def test_the_last_size_that_runs_is_judged(lone: pytest.Pytester, mark: str, judged: str) -> None:
    assert [item.name for item in sizes(lone, mark) if limits_growth(item.stash[PLAN].limits)] == [judged]


def test_work_that_falls_does_not_grow(lone: pytest.Pytester) -> None:
    scaling, found = Scaling(), simple_test({})
    for item, count in zip(sizes(lone), (1_000, 998, 996), strict=True):
        each = {"python.instructions": count, "python.library_instructions": 0}
        totals = {name: Samples.constant(value, steps=3) for name, value in each.items()}
        found = scaling.with_exponent(item, simple_test({}, totals=totals, limits=item.stash[PLAN].limits))
    assert found.totals["python.scaling"] == Samples.constant(0, steps=3)
