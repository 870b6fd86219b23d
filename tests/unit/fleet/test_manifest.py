"""The status of each file of a job."""

from dataclasses import replace

import pytest

from pytest_opprof.fleet.manifest import RankFile, Status, missing_ranks, settled


def a_file(number: int, **told: object) -> RankFile:
    one = RankFile(
        file=number, path=f"rank{number}.json", etag="", nbytes=1, rank=number, world_size=4, opprof="1",
        job_key="nccl", duration_ns=1000,
    )  # fmt: skip
    return replace(one, **told)  # type: ignore[arg-type] # each test knows its fields


def statuses(*files: RankFile) -> list[tuple[int, Status]]:
    return [(one.file, one.status) for one in settled(files, opprof="1")]


def test_healthy_files_are_in_the_order_of_ranks() -> None:
    files = settled([a_file(0, rank=2), a_file(1, rank=0), a_file(2, rank=1)], opprof="1")
    assert [one.rank for one in files] == [0, 1, 2]
    assert {one.status for one in files} == {Status.OK}


@pytest.mark.parametrize(
    ("told", "status", "words"),
    [
        ({"rank": 1}, Status.DUPLICATE, "rank1.json is this rank's trace too"),
        ({"world_size": 8}, Status.FOREIGN, "of another job: 8 ranks, not 4"),
        ({"job_key": "gloo"}, Status.FOREIGN, "of another job: it says gloo, not nccl"),
        ({"trace_start_ns": 10**15}, Status.FOREIGN, "of another job: recorded at another time"),
        ({"rank": -1}, Status.FAILED, "name it rank7.json"),
        ({"opprof": "0"}, Status.FAILED, "read by pytest-opprof 0, this is 1"),
    ],
    ids=["duplicate", "other size", "other back end", "other time", "no rank", "other version"],
)
def test_a_file_that_must_not_count_is_named(told: dict[str, object], status: Status, words: str) -> None:
    files = settled([a_file(0), a_file(1), a_file(2), a_file(3, **told)], opprof="1")
    (bad,) = [one for one in files if one.file == 3]
    assert bad.status is status
    assert words in bad.error
    assert [one.status for one in files if one.file != 3] == [Status.OK] * 3


def test_ranks_without_a_file_are_missing() -> None:
    files = settled([a_file(0), a_file(2)], opprof="1")
    assert missing_ranks(files, expected=None) == [1, 3]
    assert missing_ranks(files, expected=6) == [1, 3, 4, 5]


def test_a_failed_file_is_not_missing_as_well() -> None:
    failed = a_file(1, status=Status.FAILED, error="cut")
    assert missing_ranks(settled([a_file(0), failed, a_file(2), a_file(3)], opprof="1"), expected=None) == []
