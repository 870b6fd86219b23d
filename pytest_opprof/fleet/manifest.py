"""The manifest of a job: which file is which rank's, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median_low
from typing import Final

from pytest_opprof.units import NS_IN_S

# Clocks of one job differ by less than this, and its ranks profile the same steps.
_SAME_TIME_NS: Final = 600 * NS_IN_S
_MOST_RANKS: Final = 1_000_000


class Status(StrEnum):
    """What became of a file."""

    OK = "ok"
    FAILED = "failed"  # it cannot be read, or killed whoever read it
    DUPLICATE = "duplicate"  # another file is this rank's
    FOREIGN = "foreign"  # it is of another job
    LOST = "lost"  # its rows are not all in the tables


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file that may be a rank's trace.

    Attributes:
        path: Its address, as fsspec takes it.
        etag: What changes with its content, as its store tells; "" where it does not.
        named_rank: The rank that its name tells; -1 for none.
    """

    path: str
    etag: str = ""
    nbytes: int = 0
    named_rank: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFile:
    """One file of a job, read or not: a row of the table ``ranks``.

    Attributes:
        file: Its number in the manifest, which its rows in the other tables have too.
        part: The file of the tables that has its rows.
        rank: Of the trace; of the file's name where the trace does not say; -1 for unknown.
        world_size: Ranks of the program that wrote it; 0 for unknown.
        job_key: What all ranks of one program share.
        opprof: The version that read it.
        ops: How many rows the table ``ops`` has of it; so for the next two.
    """

    file: int
    path: str
    etag: str
    nbytes: int
    part: str = ""
    rank: int = -1
    world_size: int = 0
    job_key: str = ""
    host: str = ""
    status: Status = Status.OK
    error: str = ""
    opprof: str = ""
    trace_start_ns: int = 0
    duration_ns: int = 0
    events: int = 0
    peak_bytes: int = 0
    ops: int = 0
    collectives: int = 0
    steps: int = 0

    @property
    def title(self) -> str:
        """How a sentence calls it."""
        return f"rank {self.rank}" if self.rank >= 0 else self.path


def settled(files: Iterable[RankFile], *, opprof: str) -> list[RankFile]:
    """The same files in the order of ranks, with those told apart that must not count.

    Args:
        opprof: This release: what another one read may mean something else.
    """
    files = sorted(files, key=lambda one: one.file)
    good = [one for one in files if one.status is Status.OK]
    if not good:
        return files
    ((job, _),) = Counter((one.job_key, one.world_size) for one in good).most_common(1)
    of = _Job(
        *job,
        start_ns=median_low(one.trace_start_ns for one in good),
        longest_ns=max(one.duration_ns for one in good),
        opprof=opprof,
    )
    seen: dict[int, str] = {}
    return sorted((_settled(one, of, seen) for one in files), key=lambda one: (one.rank, one.file))


@dataclass(frozen=True, slots=True)
class _Job:
    """What most files say."""

    key: str
    world_size: int
    start_ns: int
    longest_ns: int
    opprof: str


def _settled(one: RankFile, job: _Job, seen: dict[int, str]) -> RankFile:
    if one.status is not Status.OK:
        return one
    if foreign := _foreign(one, job):
        return replace(one, status=Status.FOREIGN, error=f"of another job: {foreign}")
    problem = ""
    if one.opprof != job.opprof:
        problem = f"read by pytest-opprof {one.opprof}, this is {job.opprof}: install one version everywhere"
    elif one.rank < 0:
        problem = "neither the trace nor the file's name says its rank: name it rank7.json"
    if problem:
        return replace(one, status=Status.FAILED, error=problem)
    if one.rank in seen:
        return replace(one, status=Status.DUPLICATE, error=f"{seen[one.rank]} is this rank's trace too")
    seen[one.rank] = one.path
    return one


def _foreign(one: RankFile, job: _Job) -> str:
    if one.world_size != job.world_size:
        return f"{one.world_size or 'unknown'} ranks, not {job.world_size}"
    if one.job_key != job.key:
        return "its process groups differ"
    if abs(one.trace_start_ns - job.start_ns) > job.longest_ns + _SAME_TIME_NS:
        return "recorded at another time"
    return ""


def missing_ranks(files: Sequence[RankFile], *, expected: int | None) -> list[int]:
    """Ranks without a file that could be read; of `expected` ranks, or of as many as the traces say."""
    good = [one for one in files if one.status is Status.OK]
    size = expected if expected is not None else max((one.world_size for one in good), default=0)
    told = {one.rank for one in files if one.status not in {Status.DUPLICATE, Status.FOREIGN}}
    return [rank for rank in range(min(size, _MOST_RANKS)) if rank not in told]
