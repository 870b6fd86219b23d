"""Read traces into tables: each batch of files is a task, and unreadable files are named."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pytest_opprof.errors import StoreError, UsageError
from pytest_opprof.fleet.manifest import RankFile, SourceFile, Status, settled
from pytest_opprof.fleet.rank_rows import TABLES, rank_rows, run_rows, with_run
from pytest_opprof.fleet.sources import list_files, read_file
from pytest_opprof.fleet.tables import Window
from pytest_opprof.parquet_files import as_utf8, checked_name
from pytest_opprof.release import version
from pytest_opprof.results.run import Run

if TYPE_CHECKING:
    from pytest_opprof.traces.kineto import TraceFile

# A task costs milliseconds, a part costs its writer and readers some more, and a trace of hundreds of
# megabytes costs seconds.
_MOST_IN_BATCH: Final = 16
_LEAST_BYTES: Final = 32 << 20  # of a batch
_BATCHES: Final = 256
_LONGEST_ERROR: Final = 500
_POLL_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The files that one task reads into a part of each table."""

    window: Window
    files: tuple[tuple[int, SourceFile], ...]


def ingest(
    source: str,
    tables: str,
    *,
    job: str,
    window: str = "0",
    executor: Executor,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    is_alive: Callable[[], bool] = lambda: True,
) -> list[RankFile]:
    """Read a trace per rank into the tables of a job, replacing an earlier window of the same name.

    Source and tables are paths or addresses. `progress` gets the number of files done and of all files, and
    `is_alive` says whether the executor can still answer. The answer is the manifest: each file by rank, with
    its status.
    """
    if any(letter in tables for letter in "*?["):
        raise UsageError(f"{tables}: tables cannot be read there: choose a path without *, ? and [")
    to = Window(root=tables, job=checked_name(job, what="job"), window=checked_name(window, what="window"))
    numbered = list(enumerate(list_files(source)))
    size = _batch_size([file.nbytes for _, file in numbered])
    batches = [
        Batch(window=to, files=tuple(numbered[at : at + size])) for at in range(0, len(numbered), size)
    ]
    total = len(numbered)
    read, lost = _together(batches, executor, is_alive=is_alive, progress=lambda done: progress(done, total))
    # A lost worker fails all of its tasks. So each of their files is read again, one at a time: the file that
    # loses its worker again is named.
    for batch, problem in lost:
        for single in (replace(batch, files=(file,)) for file in batch.files):
            if not is_alive():
                read += _failed(single, problem)
                continue
            again, lost_again = _together([single], executor, is_alive=is_alive, progress=lambda _done: None)
            read += again
            for one, reason in lost_again:
                read += _failed(one, reason)
            progress(len(read), total)
    files = settled(read, opprof=version())
    to.write_manifest(files)
    to.remove_others(one.part for one in files if one.part)
    return files


def _batch_size(nbytes: Sequence[int]) -> int:
    """How many files a task reads: few enough to keep many workers busy, but enough to be worth a task."""
    files = len(nbytes)
    small = files * _LEAST_BYTES // max(sum(nbytes), 1)
    return max(1, min(_MOST_IN_BATCH, max(-(-files // _BATCHES), small), files // 16))


def _together(
    batches: Sequence[Batch],
    executor: Executor,
    *,
    progress: Callable[[int], None],
    is_alive: Callable[[], bool],
) -> tuple[list[RankFile], list[tuple[Batch, str]]]:
    """Read batches; returns their files, and the batches whose worker was lost, with the reason."""
    read: list[RankFile] = []
    lost: list[tuple[Batch, str]] = []
    waiting: dict[Future[list[RankFile]], Batch] = {}
    for batch in batches:
        try:
            waiting[executor.submit(map_batch, batch)] = batch
        except Exception as error:  # noqa: BLE001 - each engine has its own for a pool that is broken or closed
            read += _failed(batch, f"no worker takes it: {_told(error)}")
    while waiting:
        progress(len(read))
        done, _ = wait(waiting, timeout=_POLL_S, return_when=FIRST_COMPLETED)
        for future in done:
            batch = waiting.pop(future)
            problem = _problem(future)
            if problem is None:
                read += future.result()
            else:
                lost.append((batch, problem))
        if not done and not is_alive():
            for batch in waiting.values():
                read += _failed(batch, "the scheduler is gone. Start it, and ingest again")
            break
    progress(len(read))
    return read, lost


def _problem(future: Future[list[RankFile]]) -> str | None:
    try:
        error = future.exception()
    except CancelledError:
        return "the engine cancelled it: its scheduler or all of its workers are gone"
    if error is None:
        return None
    return f"reading it killed its worker, or the worker was lost: {_told(error)}"


def _failed(batch: Batch, problem: str) -> list[RankFile]:
    return [replace(_unread(*file), status=Status.FAILED, error=problem) for file in batch.files]


def _unread(number: int, file: SourceFile) -> RankFile:
    return RankFile(
        file=number,
        path=as_utf8(file.path),
        etag=file.etag,
        nbytes=file.nbytes,
        rank=file.named_rank,
        opprof=version(),
    )


def _told(error: BaseException) -> str:
    return as_utf8(f"{type(error).__name__}: {error}"[:_LONGEST_ERROR])


def map_batch(batch: Batch) -> list[RankFile]:
    """Read a batch's files and write their rows as one part; runs in a worker."""
    read: list[RankFile] = []
    rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in TABLES}
    for number, file in batch.files:
        try:
            read.append(_read(number, file, rows))
        # Whatever is wrong with one file, the others count. The error is kept as text, because not every
        # error can be sent to another process.
        except Exception as error:  # noqa: BLE001
            read.append(replace(_unread(number, file), status=Status.FAILED, error=_told(error)))
    rows["ops"].sort()
    # Other rows have another name, so they replace those of an earlier ingest only with its manifest.
    content = hashlib.blake2b(repr(rows).encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()
    part = f"part-{batch.files[0][0]:07d}-{content}.parquet"
    try:
        for table in TABLES:
            batch.window.write(table, part, rows[table])
    except OSError as error:
        raise StoreError(f"{batch.window.address} cannot be written: {error.strerror or error}") from error
    return [one if one.status is Status.FAILED else replace(one, part=part) for one in read]


def _read(number: int, file: SourceFile, rows: dict[str, list[tuple[Any, ...]]]) -> RankFile:
    read = read_file(file)
    one = _unread(number, file)
    if isinstance(read, Run):
        one = with_run(one, read)
        found = run_rows(read, rank=one.rank, file=number)
    else:
        one = _with_trace(one, read)
        found = rank_rows(read, rank=one.rank, file=number)
    for table in TABLES:
        rows[table] += found[table]
    return replace(
        one,
        peak_bytes=max((row[-1] for row in found["steps"]), default=0),
        ops=len(found["ops"]),
        collectives=len(found["collectives"]),
        steps=len(found["steps"]),
    )


def _with_trace(one: RankFile, trace: TraceFile) -> RankFile:
    info = trace.metadata.get("distributedInfo")
    told = info if isinstance(info, dict) else {}
    return replace(
        one,
        rank=one.rank if trace.rank is None else trace.rank,
        world_size=trace.world_size or 0,
        job_key=json.dumps([told.get("backend"), told.get("world_size"), told.get("nccl_version")]),
        host=as_utf8(str(trace.metadata.get("hostname", ""))),
        trace_start_ns=trace.recording.trace_start_ns,
        duration_ns=trace.recording.trace_end_ns,
        events=len(trace.recording),
    )
