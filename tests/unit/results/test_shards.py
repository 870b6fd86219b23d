"""Joined shards and ranks: nothing counted twice, nothing silently missing."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.documents.histories import FIRST_DAY
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.errors import UsageError
from pytest_opprof.report.terminal import rank_lines
from pytest_opprof.results import shards
from pytest_opprof.results.document import run_from_document, run_to_document
from pytest_opprof.results.files import read_run, write_run
from pytest_opprof.results.run import Commit, Environment, MeasurementStatus, Outcome, Run, TestResult
from pytest_opprof.results.samples import Samples
from pytest_opprof.results.schema import Contract, validate
from pytest_opprof.results.shards import Joined, Part, gaps_of, join

FINGERPRINT = {"python": "3.11", "torch": "2.13.0", "cpu_model": "one"}
COMMIT = Commit(id="1" * 40, dirty=False)


def part(number: int, *tests: TestResult, fingerprint: dict[str, str] | None = None, **others: Any) -> Part:
    details = {name: str(others.pop(name)) for name in ("rank", "world_size", "shard") if name in others}
    defaults: dict[str, Any] = {
        "run_id": f"run{number}",
        "created": FIRST_DAY + timedelta(hours=number),
        "commit": COMMIT,
        "environment": Environment(
            fingerprint=FINGERPRINT if fingerprint is None else fingerprint,
            details={"python": "3.11.2"} | details,
        ),
    }
    return Part(run=simple_run(*tests, **(defaults | others)), where=f"{number}.json")


def result_of(name: str, mul: int = 2, **others: Any) -> TestResult:
    return simple_test({"aten::mul": mul}, node_id=f"t.py::{name}", **others)


def names(joined: Joined) -> list[str]:
    return [test.node_id for test in joined.run.tests]


def test_joined_run_has_all_shards_tests() -> None:
    joined = join([part(1, result_of("a"), notes=("one",)), part(2, result_of("b"), notes=("two",))])
    assert names(joined) == ["t.py::a", "t.py::b"]
    assert (joined.notes, joined.gaps) == ((), ())
    assert joined.run.notes == ("one", "two")
    assert joined.run.created == FIRST_DAY + timedelta(hours=1)
    assert joined.run.commit == COMMIT
    details = {"python": "3.11.2", "parts": "run1,run2"}
    assert joined.run.environment == Environment(fingerprint=FINGERPRINT, details=details)


def test_joined_run_is_a_document() -> None:
    joined = join(
        [part(n, result_of(f"t{n}", mul=n), result_of("twice", mul=n)) for n in range(1, 300)], expected=400
    )
    document = run_to_document(joined.run)
    validate(document, Contract.RUN, where="joined")
    assert run_from_document(document, where="joined") == joined.run
    assert joined.run.notes[0] == "missing: 101 of 400 shards"
    assert len(joined.run.notes) == 200


@given(order=st.permutations(range(4)))
def test_order_of_shards_does_not_matter(order: list[int]) -> None:
    parts = [part(n, result_of(f"t{n}")) for n in range(4)]
    first, other = join(parts).run, join([parts[n] for n in order]).run
    assert (first.run_id, first.created) == (other.run_id, other.created)
    assert sorted(test.node_id for test in other.tests) == [test.node_id for test in first.tests]


def test_agreeing_duplicates_are_certified_by_each_other() -> None:
    joined = join([part(1, result_of("a", processes=1)), part(2, result_of("a", processes=1))])
    (test,) = joined.run.tests
    assert (test.processes, test.unstable) == (2, ())
    assert joined.notes == ("t.py::a is in 1.json and 2.json: they agree",)


def test_disagreeing_duplicates_are_not_judged() -> None:
    joined = join([part(1, result_of("a", mul=2)), part(2, result_of("a", mul=3))])
    (test,) = joined.run.tests
    assert test.unstable == ("ops.count", "aten::mul.count")
    (note,) = joined.notes
    assert note == (
        "t.py::a is in 1.json and 2.json: they disagree in ops.count, aten::mul.count, so these are not judged"
    )


def test_duplicate_that_failed_in_one_is_inconclusive() -> None:
    failed = result_of("a", outcome=Outcome.FAILED)
    for parts in ([part(1, result_of("a")), part(2, failed)], [part(1, failed), part(2, result_of("a"))]):
        (test,) = join(parts).run.tests
        assert test.measurement.status is MeasurementStatus.INCONCLUSIVE
        assert "failed in the" in test.measurement.reason


def test_duplicate_that_was_skipped_gives_way() -> None:
    skipped = result_of("a", outcome=Outcome.SKIPPED)
    for parts in ([part(1, result_of("a")), part(2, skipped)], [part(1, skipped), part(2, result_of("a"))]):
        (test,) = join(parts).run.tests
        assert test.outcome is Outcome.PASSED
        assert test.is_usable


def test_same_run_counts_once() -> None:
    one = part(1, result_of("a", processes=1))
    joined = join([one, replace(one, where="copy.json")])
    assert joined.run.tests[0].processes == 1
    assert joined.notes == ("copy.json is the same run as 1.json: it is counted once",)


@pytest.mark.parametrize(
    ("shards", "expected", "gaps"),
    [
        (["1 of 3", "3 of 3"], None, ("shard 2 of 3",)),
        (["1 of 3", "2 of 3", "3 of 3"], None, ()),
        (["1 of 3", "3 of 3"], 4, ("shard 2 of 4", "shard 4 of 4")),
        (["1 of 3", "3 of 3"], 2, ("shard 2 of 2",)),
        (["", ""], 2, ()),
        (["", ""], 5, ("3 of 5 shards",)),
        (["junk", "9999999999999 of 9999999999999"], None, ()),
    ],
)
def test_missing_shards_are_named(shards: list[str], expected: int | None, gaps: tuple[str, ...]) -> None:
    parts = [part(n, result_of(f"t{n}"), shard=shard) for n, shard in enumerate(shards)]
    joined = join(parts, expected=expected)
    assert joined.gaps == gaps
    assert joined.run.notes == tuple(f"missing: {gap}" for gap in gaps)


@pytest.mark.parametrize(
    "places", [("1 of 3", "2 of 3", "3 of 3"), ("", "", "")], ids=["numbered", "expected"]
)
def test_a_joined_run_joins_again(places: tuple[str, ...]) -> None:
    expected = None if places[0] else 3
    one, two, three = (
        part(n, result_of(f"t{n}", processes=1), shard=place) for n, place in enumerate(places)
    )
    pair = Part(run=join([one, two], expected=expected).run, where="pair.json")
    assert len(gaps_of(pair.run)) == 1
    joined = join([three, one, pair], expected=expected)
    assert joined.gaps == gaps_of(joined.run) == ()
    assert joined.notes == ("0.json is a part of pair.json: it is counted once",)
    assert [test.processes for test in joined.run.tests] == [1, 1, 1]
    other = Part(run=join([two, three]).run, where="other.json")
    with pytest.raises(UsageError, match=r"pair\.json and other\.json have runs in common"):
        join([pair, other])


def test_missing_tests_are_named() -> None:
    joined = join([part(1, result_of("a"))], collected=["t.py::a", "t.py::b", "t.py::c"])
    assert joined.gaps == ("2 of 3 collected tests: t.py::b, t.py::c",)


def ranks(*muls: int, **others: Any) -> list[Part]:
    return [
        part(n, result_of("a", mul=mul), rank=n, world_size=len(muls), **others) for n, mul in enumerate(muls)
    ]


def with_instructions(test: TestResult, more: int) -> TestResult:
    counted = Samples.constant(1_000 + more, steps=test.steps)
    return replace(test, totals={**test.totals, "python.instructions": counted})


def test_ranks_that_agree_are_one_test() -> None:
    joined = join(ranks(2, 2, 2))
    (test,) = joined.run.tests
    assert (test.unstable, test.processes) == ((), 2)
    assert (joined.notes, joined.gaps) == ((), ())


def test_rank_that_disagrees_makes_the_metric_unstable() -> None:
    joined = join(ranks(2, 2, 3))
    (test,) = joined.run.tests
    assert test.unstable == ("ops.count", "aten::mul.count")
    assert test.totals["ops.count"].high == 3
    (note,) = joined.notes
    assert note.startswith("t.py::a on rank 0 and rank 2: they disagree")


def test_each_rank_keeps_its_figures() -> None:
    joined = join(ranks(2, 2, 3))
    (test,) = joined.run.tests
    assert {rank: totals["ops.count"] for rank, totals in test.ranks.items()} == {"0": 2, "1": 2, "2": 3}
    assert {"total.self_cpu_time_total"} <= test.ranks["1"].keys()
    document = run_to_document(joined.run)
    validate(document, Contract.RUN, where="joined")
    assert run_from_document(document, where="joined") == joined.run
    told = [line.split() for line in rank_lines(test, width=100)]
    assert told[0] == ["of", "3", "ranks", "median", "lowest", "rank", "highest", "rank"]
    assert ["ops", "2", "2", "0", "3", "2"] in told
    (alone,) = join([part(1, result_of("a"))]).run.tests
    assert alone.ranks == {}
    assert rank_lines(alone, width=100) == []


def test_ranks_are_read_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks past the first are read again in their turn, and released."""
    files = []
    for number, one in enumerate(ranks(2, 2, 3)):
        files.append(tmp_path / f"{number}.json")
        write_run(files[-1], one.run)
    parts = [Part.of_file(path) for path in reversed(files)]
    assert [len(one.run.tests) for one in parts] == [0, 0, 1]
    read: list[str] = []

    def reading(path: Path) -> Run:
        read.append(path.name)
        return read_run(path)

    monkeypatch.setattr(shards, "read_run", reading)
    (test,) = join(parts).run.tests
    assert test.ranks.keys() == {"0", "1", "2"}
    assert read == ["1.json", "2.json"]


def test_ranks_may_differ_in_instructions() -> None:
    parts = [
        replace(part, run=replace(part.run, tests=(with_instructions(part.run.tests[0], more),)))
        for part, more in zip(ranks(2, 2), (300, 0), strict=True)
    ]
    joined = join(parts)
    (test,) = joined.run.tests
    assert (test.unstable, joined.notes) == ((), ())
    assert test.totals["python.instructions"].low == 1_300


def test_missing_ranks_and_tests_of_ranks_are_named() -> None:
    zero, _, two = ranks(2, 2, 2)
    assert join([zero, two]).gaps == ("rank 1 of 3",)
    other = replace(two, run=replace(two.run, tests=(result_of("b"),)))
    failed = replace(two, run=replace(two.run, tests=(result_of("a", outcome=Outcome.FAILED),)))
    one = ranks(2, 2, 2)[1]
    assert join([zero, one, other]).gaps == (
        "t.py::a on rank 2: it was not measured",
        "t.py::b on rank 0: rank 2 has it",
    )
    assert join([zero, one, failed]).gaps == ("t.py::a on rank 2: it failed",)
    assert join([one]).gaps == ("rank 0 of 3", "rank 2 of 3", "t.py::a on rank 0: rank 1 has it")


def test_shards_of_ranks_join_both_ways() -> None:
    parts = [
        part(10 * shard + rank, result_of(f"t{shard}"), rank=rank, world_size=2, shard=f"{shard} of 2")
        for shard in (1, 2)
        for rank in (0, 1)
    ]
    joined = join(parts)
    assert names(joined) == ["t.py::t1", "t.py::t2"]
    assert (joined.notes, joined.gaps) == ((), ())


def test_other_commits_do_not_join() -> None:
    with pytest.raises(UsageError, match=r"1\.json is of 1111111 and 2\.json of 1111111\+dirty: join only"):
        join([part(1), part(2, commit=replace(COMMIT, dirty=True))])
    with pytest.raises(UsageError, match=r"2\.json of no commit"):
        join([part(1), part(2, commit=None)])


def test_environments_that_counts_depend_on_do_not_join() -> None:
    with pytest.raises(
        UsageError, match=r"in different environments \(torch 2.13.0 -> 2.12.0\): their counts"
    ):
        join([part(1), part(2, fingerprint=FINGERPRINT | {"torch": "2.12.0"})])


def test_fields_of_times_alone_are_left_out_where_they_differ() -> None:
    joined = join(
        [part(1, result_of("a")), part(2, result_of("b"), fingerprint=FINGERPRINT | {"cpu_model": "two"})]
    )
    assert joined.run.environment.fingerprint == {"python": "3.11", "torch": "2.13.0"}
    assert joined.notes == (
        "times cannot be compared: the environments differ (CPU model one -> two) (2.json)",
    )


def test_fields_of_times_stay_left_out() -> None:
    models = [FINGERPRINT | {"cpu_model": model} for model in ("one", "two", "three")]
    first, second, third = (
        part(n, result_of(f"t{n}"), fingerprint=fields) for n, fields in enumerate(models)
    )
    pair = Part(run=join([first, second]).run, where="pair.json")
    for parts in ([first, second, third], [pair, third], [third, pair]):
        assert join(parts).run.environment.fingerprint == {"python": "3.11", "torch": "2.13.0"}


def test_settings_of_tests_do_not_block_joining() -> None:
    parts = [part(n, result_of(f"t{n}"), fingerprint=FINGERPRINT | {"threads": f"{n}"}) for n in (1, 2)]
    joined = join(parts)
    assert (joined.notes, joined.run.environment.fingerprint) == ((), FINGERPRINT)


def test_gaps_survive_the_file() -> None:
    joined = join([part(1, result_of("a"), notes=("one",))], expected=2)
    assert gaps_of(joined.run) == joined.gaps == ("1 of 2 shards",)


def test_field_of_any_shard_is_known() -> None:
    without = {"python": "3.11", "cpu_model": "one"}
    for parts in ([part(1, fingerprint=without), part(2)], [part(1), part(2, fingerprint=without)]):
        assert join(parts).run.environment.fingerprint == FINGERPRINT


def test_common_name_is_kept() -> None:
    assert join([part(1, name="main"), part(2, name="main")]).run.name == "main"
    assert join([part(1, name="main"), part(2)]).run.name is None
