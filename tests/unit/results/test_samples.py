"""One number per step."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.documents.strategies import samples

from pytest_opprof.results.samples import Samples, range_text
from pytest_opprof.units import Unit

STEPS = 3


@given(samples(STEPS))
def test_samples_survive_the_document(value: Samples) -> None:
    assert Samples.from_document(value.to_document(), steps=STEPS) == value


def test_equal_samples_are_one_integer() -> None:
    assert Samples.of([7, 7, 7]).to_document() == 7


def test_differing_samples_are_a_list() -> None:
    assert Samples.of([7, 8]).to_document() == [7, 8]


def test_summary_keeps_sum_and_range() -> None:
    assert Samples.of([7, 9, 8]).summarized().to_document() == {"sum": 24, "min": 7, "max": 9}


def test_no_steps_sum_to_zero() -> None:
    assert Samples.of([]) == Samples.constant(0, steps=0)


def test_constant_of_many_steps_takes_no_space() -> None:
    assert Samples.constant(5, steps=10**9).values is None


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1))
def test_sum_is_stepwise(pairs: list[tuple[int, int]]) -> None:
    one, other = Samples.of(a for a, _ in pairs), Samples.of(b for _, b in pairs)
    assert one.plus(other) == Samples.of(a + b for a, b in pairs)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1))
def test_difference_is_stepwise(pairs: list[tuple[int, int]]) -> None:
    whole, part = Samples.of(a + b for a, b in pairs), Samples.of(b for _, b in pairs)
    assert whole.minus(part) == Samples.of(a for a, _ in pairs)
    assert whole.minus(whole) == whole.zeros()


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1))
def test_rest_of_summaries_bounds_the_truth(pairs: list[tuple[int, int]]) -> None:
    whole, part = Samples.of(a + b for a, b in pairs), Samples.of(b for _, b in pairs)
    rest, true = whole.summarized().minus(part.summarized()), whole.minus(part)
    assert rest.total in {true.total, 0}
    assert 0 <= rest.low <= rest.high


@given(samples(STEPS), samples(STEPS))
def test_sum_of_summaries_bounds_the_truth(one: Samples, other: Samples) -> None:
    total = one.plus(other)
    assert total.total == one.total + other.total
    assert total.low * STEPS <= total.total <= total.high * STEPS


@given(samples(STEPS), samples(STEPS))
def test_widening_holds_both_ranges(one: Samples, other: Samples) -> None:
    both = one.widened(other)
    assert both.low == min(one.low, other.low)
    assert both.high == max(one.high, other.high)
    assert both.total == one.total


def test_widening_by_itself_changes_nothing() -> None:
    value = Samples.of([1, 2])
    assert value.widened(value) is value


@pytest.mark.parametrize(
    ("document", "reason"),
    [([1, 2], "2 values for 3 steps"), ({"sum": 99, "min": 0, "max": 2}, "a sum of 99 is not made of 3")],
)
def test_contradictions_are_refused(document: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Samples.from_document(document, steps=3)  # type: ignore[arg-type]  # a schema would have let it through


def test_range_reads_as_a_range() -> None:
    assert range_text(Samples.of([3, 5]), unit=Unit.COUNT) == "3 to 5"
    assert range_text(Samples.of([3, 3]), unit=Unit.COUNT) == "3"
