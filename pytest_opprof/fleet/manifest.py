"""The manifest of a job: each file's rank and status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median_low
from typing import Final

from pytest_opprof.units import NS_IN_S

# The ranks of one job profile the same steps, and their clocks differ by less than this.
_SAME_TIME_NS: Final = 600 * NS_IN_S
_MOST_RANKS: Final = 1_000_000


class Status(StrEnum):
    """The status of a file."""

    OK = "ok"
    FAILED = "failed"  # it cannot be read or used, or killed its worker
    DUPLICATE = "duplicate"  # another file has the same rank
    FOREIGN = "foreign"  # it belongs to another job
    LOST = "lost"  # the tables lack some of its rows


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file that may be a rank's trace."""

    path: str  # its fsspec address
    etag: str = ""  # changes with its content, if the store says; else empty
    nbytes: int = 0
    named_rank: int = -1  # the rank in its name; -1 without one


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFile:
    """One file of a job, read or not: a row of the table ``ranks``."""

    file: int  # its number in the manifest, and in its rows of the other tables
    path: str
    etag: str
    nbytes: int
    part: str = ""  # the file of each table that has its rows
    rank: int = -1  # from the trace, else from the file's name; -1 if unknown
    world_size: int = 0  # ranks of the program that wrote it; 0 if unknown
    job_key: str = ""  # equal for all ranks of one program
    host: str = ""
    status: Status = Status.OK
    error: str = ""
    opprof: str = ""  # the version that read it
    trace_start_ns: int = 0
    duration_ns: int = 0
    events: int = 0
    peak_bytes: int = 0
    ops: int = 0  # the number of its rows in the table ``ops``; the next two likewise
    collectives: int = 0
    steps: int = 0

    @property
    def title(self) -> str:
        """Its name in messages."""
        return f"rank {self.rank}" if self.rank >= 0 else self.path


def settled(files: Iterable[RankFile], *, opprof: str) -> list[RankFile]:
    """Sort files by rank, and mark those that must not count, such as those read by another release."""
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
    """The properties of most files."""

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
        return f"it says {one.job_key}, not {job.key}"  # of a trace or of a run
    if abs(one.trace_start_ns - job.start_ns) > job.longest_ns + _SAME_TIME_NS:
        return "recorded at another time"
    return ""


def missing_ranks(files: Sequence[RankFile], *, expected: int | None) -> list[int]:
    """The ranks without a file, readable or not, of `expected` ranks or of as many as the traces say."""
    good = [one for one in files if one.status is Status.OK]
    size = expected if expected is not None else max((one.world_size for one in good), default=0)
    told = {one.rank for one in files if one.status not in {Status.DUPLICATE, Status.FOREIGN}}
    return [rank for rank in range(min(size, _MOST_RANKS)) if rank not in told]
