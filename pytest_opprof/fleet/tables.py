"""The tables of jobs, as Parquet files in a folder or an object store.

``job=ID/window=K/{ranks,ops,collectives,steps}/*.parquet``; ``ranks`` is the manifest. It is written last and
names the parts that count, so a reader sees all of a window or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from pytest_opprof.errors import StoreError, UsageError
from pytest_opprof.extras import needed
from pytest_opprof.fleet.manifest import RankFile, Status
from pytest_opprof.fleet.rank_rows import COLUMNS
from pytest_opprof.parquet_files import arrow_table, checked_name, write_parquet

_MANIFEST: Final = "ranks/part-0.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One window of a job: a night, or a cycle of the profiler's schedule."""

    root: str  # the path or fsspec address of all jobs' tables
    job: str
    window: str

    @property
    def address(self) -> str:
        """The path or fsspec address of its tables."""
        return f"{self.root.rstrip('/')}/job={self.job}/window={self.window}"

    def write(self, table: str, part: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write a part atomically; the same rows make the same bytes."""
        write_parquet(f"{self.address}/{table}/{part}", arrow_table(COLUMNS[table], rows))

    def write_manifest(self, files: Sequence[RankFile]) -> None:
        """Make the written parts the window's content."""
        try:
            content = needed("pyarrow").Table.from_pylist([asdict(one) for one in files])
            write_parquet(f"{self.address}/{_MANIFEST}", content)
        except OSError as error:
            raise StoreError(f"{self.address} cannot be written: {error.strerror or error}") from error

    def manifest(self) -> list[RankFile]:
        """Read the manifest."""
        files, path = needed("fsspec.core").url_to_fs(f"{self.address}/{_MANIFEST}")
        known = {one.name for one in fields(RankFile)}
        try:
            with files.open(path, "rb") as opened:
                rows = needed("pyarrow.parquet").read_table(opened).to_pylist()
        except (OSError, ValueError) as error:
            raise StoreError(f"the manifest of {self.address} cannot be read: {error}") from error
        return [
            RankFile(
                **{key: value for key, value in row.items() if key in known}
                | {"status": Status(row["status"])}
            )
            for row in rows
        ]

    def parts(self, table: str, names: Iterable[str]) -> list[str]:
        """The paths of a table's parts."""
        folder = needed("fsspec.core").url_to_fs(self.address)[1]
        return [f"{folder}/{table}/{name}" for name in sorted(set(names))]

    def remove_others(self, names: Iterable[str]) -> None:
        """Remove all other parts, such as those of an earlier or interrupted ingest."""
        files, folder = needed("fsspec.core").url_to_fs(self.address)
        names = set(names)
        kept = {path for table in COLUMNS for path in self.parts(table, names)} | {f"{folder}/{_MANIFEST}"}
        for path in files.find(folder):
            if path not in kept:
                files.rm_file(path)


def windows_of(root: str, job: str) -> list[Window]:
    """The windows of a job, by name; UsageError if there is no such job."""
    files, path = needed("fsspec.core").url_to_fs(root)
    found = files.glob(f"{path.rstrip('/')}/job={checked_name(job, what='job')}/window=*/{_MANIFEST}")
    names = sorted(one.split("/window=")[-1].partition("/")[0] for one in found)
    if not names:
        known = jobs_of(root)
        others = f"; there are {', '.join(known[:10])}" if known else ""
        raise UsageError(f"{root} has no job {job}{others}. Make one: opprof fleet ingest SOURCE --job {job}")
    return [Window(root=root, job=job, window=name) for name in names]


def jobs_of(root: str) -> list[str]:
    """The jobs that have tables."""
    files, path = needed("fsspec.core").url_to_fs(root)
    found = files.glob(f"{path.rstrip('/')}/job=*/window=*/{_MANIFEST}")
    return sorted({one.split("/job=")[-1].partition("/")[0] for one in found})
