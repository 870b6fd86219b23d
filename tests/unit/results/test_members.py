"""Values as JSON objects and back."""

from dataclasses import dataclass
from datetime import UTC, datetime

from pytest_opprof.results.members import from_members, to_members
from pytest_opprof.results.run import CarriedFrom, Outcome
from pytest_opprof.results.samples import Samples


@dataclass(frozen=True, kw_only=True)
class Held:
    outcome: Outcome | None
    samples: Samples
    names: tuple[str, ...]
    counts: dict[str, int]
    origin: CarriedFrom | None = None


NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def test_members_are_plain_json() -> None:
    held = Held(
        outcome=Outcome.PASSED,
        samples=Samples.of([1, 2]),
        names=("a",),
        counts={"b": 3},
        origin=CarriedFrom(run_id="x", created=NOON),
    )
    found = to_members(held)
    assert found == {
        "outcome": "passed",
        "samples": [1, 2],
        "names": ["a"],
        "counts": {"b": 3},
        "origin": {"run_id": "x", "created": "2026-01-02T12:00:00+00:00", "commit": None},
    }
    assert type(found["outcome"]) is str


def test_given_members_stand_in_their_place() -> None:
    found = to_members(CarriedFrom(run_id="x", created=NOON), created="noon")
    assert list(found.items()) == [("run_id", "x"), ("created", "noon"), ("commit", None)]


def test_unknown_members_are_dropped_and_missing_ones_defaulted() -> None:
    found = from_members(CarriedFrom, {"run_id": "x", "later": 1}, created=NOON)
    assert found == CarriedFrom(run_id="x", created=NOON)


def test_lists_become_tuples() -> None:
    held = from_members(Held, {"names": ["a"], "counts": {}}, outcome=None, samples=Samples.of([1]))
    assert held.names == ("a",)
