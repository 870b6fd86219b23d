"""Find and read the traces of a job, in a folder, by a pattern or in an object store."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pytest_opprof.errors import StoreError, UsageError
from pytest_opprof.extras import needed
from pytest_opprof.fleet.manifest import SourceFile
from pytest_opprof.results.document import RUN_KIND
from pytest_opprof.results.files import run_from_bytes
from pytest_opprof.results.run import Run
from pytest_opprof.traces.kineto import TraceFile, pieces_of_file, read_trace

_SUFFIXES: Final = (".json", ".json.gz")
_RANK: Final = re.compile(r"(?:rank|worker)[-_.]?(\d{1,7})", re.IGNORECASE)
_KIND_WITHIN: Final = 256  # a run names its kind in these first bytes
_NUMBER: Final = re.compile(r"(\d{1,7})")


def list_files(source: str) -> list[SourceFile]:
    """The traces below a folder or an address such as ``s3://bucket``, or that match a pattern, by rank."""
    files, path = needed("fsspec.core").url_to_fs(source)
    try:
        if any(letter in path for letter in "*?["):
            infos = list(files.glob(path, detail=True).values())
        else:
            under = files.find(path, detail=True).values()
            infos = [one for one in under if str(one["name"]).endswith(_SUFFIXES) or one["name"] == path]
        found = [_file(files, info) for info in infos]
    except (OSError, ValueError) as error:
        raise StoreError(f"{source} cannot be listed: {error}") from error
    if not found:
        raise UsageError(f"{source} has no traces: files that end in .json or .json.gz")
    return sorted(found, key=lambda one: (one.named_rank < 0, one.named_rank, one.path))


def _file(files: Any, info: dict[str, Any]) -> SourceFile:
    path = str(info["name"])
    # ``rank7.json`` and ``worker-7.pt.trace.json.gz`` are of rank 7; else the first number counts.
    name = path.rpartition("/")[2]
    told = _RANK.search(name) or _NUMBER.search(name)
    etag = info.get("ETag") or info.get("etag") or info.get("mtime") or ""
    return SourceFile(
        path=files.unstrip_protocol(path),
        etag=str(etag).strip('"'),
        nbytes=int(info.get("size") or 0),
        named_rank=int(told[1]) if told else -1,
    )


def read_file(file: SourceFile) -> TraceFile | Run:
    """Read a trace, streamed from wherever it is, or a run; DocumentError if it is neither."""
    where = file.path.removeprefix("file://")
    pieces = _pieces(file.path)
    first = list(itertools.islice(pieces, 2))  # without gzip the first piece is two bytes
    if RUN_KIND.encode() in b"".join(piece[:_KIND_WITHIN] for piece in first):
        return run_from_bytes(b"".join(itertools.chain(first, pieces)), where=where)
    # Popped, so that each piece's memory is free for the next one.
    popped = (first.pop(0) for _ in range(len(first)))
    return read_trace(itertools.chain(popped, pieces), where=Path(where))


def _pieces(path: str) -> Iterator[bytes]:
    with needed("fsspec").open(path, "rb").open() as opened:
        yield from pieces_of_file(opened, where=path)
