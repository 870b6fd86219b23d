"""The tables of jobs, as Parquet files of a folder or an object store.

``job=ID/window=K/{ranks,ops,collectives,steps}/*.parquet``; ``ranks`` is the manifest. It is written last and
names the parts that count, so a reader sees a job whole or not at all.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from pytest_opprof.errors import StoreError, UsageError
from pytest_opprof.extras import needed
from pytest_opprof.fleet.manifest import RankFile, Status
from pytest_opprof.fleet.rank_rows import COLUMNS

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MANIFEST: Final = "ranks/part-0.parquet"


def checked_name(name: str, *, what: str) -> str:
    """A name of a job or window, as it stands in a path.

    Raises:
        UsageError: It may not stand there.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot name a {what}: use letters, digits, '.', '_' and '-'")
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One window of a job: a night, or a cycle of the profiler's schedule.

    Attributes:
        root: Where the tables of all jobs are: a path, or an address of fsspec.
    """

    root: str
    job: str
    window: str

    @property
    def address(self) -> str:
        """Where its tables are."""
        return f"{self.root.rstrip('/')}/job={self.job}/window={self.window}"

    def write(self, table: str, part: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Write a part whole or not at all; the same rows make the same bytes.

        Raises:
            OSError: It cannot be written.
        """
        pa = needed("pyarrow")
        columns = COLUMNS[table]
        schema = pa.schema(
            [(name, getattr(pa, kind.replace("bool", "bool_"))()) for name, kind in columns.items()]
        )
        values = list(zip(*rows, strict=True)) or [()] * len(columns)
        arrays = [pa.array(value, field.type) for value, field in zip(values, schema, strict=True)]
        self._put(f"{table}/{part}", pa.Table.from_arrays(arrays, schema=schema))

    def write_manifest(self, files: Sequence[RankFile]) -> None:
        """Make what was written the window's content.

        Raises:
            StoreError: It cannot be written.
        """
        pa = needed("pyarrow")
        try:
            self._put(_MANIFEST, pa.Table.from_pylist([asdict(one) for one in files]))
        except OSError as error:
            raise StoreError(f"{self.address} cannot be written: {error.strerror or error}") from error

    def manifest(self) -> list[RankFile]:
        """What became of each file.

        Raises:
            StoreError: It cannot be read.
        """
        files, path = needed("fsspec.core").url_to_fs(f"{self.address}/{_MANIFEST}")
        known = {one.name for one in fields(RankFile)}
        try:
            with files.open(path, "rb") as opened:
                rows = needed("pyarrow.parquet").read_table(opened).to_pylist()
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.address} has no manifest that can be read: {error}") from error
        return [
            RankFile(
                **{key: value for key, value in row.items() if key in known}
                | {"status": Status(row["status"])}
            )
            for row in rows
        ]

    def parts(self, table: str, names: Iterable[str]) -> list[str]:
        """The files of a table that these parts are."""
        folder = needed("fsspec.core").url_to_fs(self.address)[1]
        return [f"{folder}/{table}/{name}" for name in sorted(set(names))]

    def remove_others(self, names: Iterable[str]) -> None:
        """Remove parts that no manifest names: of an earlier ingest, or of one that was interrupted."""
        files, folder = needed("fsspec.core").url_to_fs(self.address)
        names = set(names)
        kept = {path for table in COLUMNS for path in self.parts(table, names)} | {f"{folder}/{_MANIFEST}"}
        for path in files.find(folder):
            if path not in kept:
                files.rm_file(path)

    def _put(self, name: str, content: Any) -> None:
        """An object store takes a file whole; on a disk it gets its name when it is whole."""
        files, path = needed("fsspec.core").url_to_fs(f"{self.address}/{name}")
        sink = needed("pyarrow").BufferOutputStream()
        needed("pyarrow.parquet").write_table(content, sink, compression="zstd")
        data = memoryview(sink.getvalue())
        if "file" not in files.protocol:
            files.pipe_file(path, bytes(data))
            return
        files.makedirs(path.rpartition("/")[0], exist_ok=True)
        partial = f"{path}.{secrets.token_hex(8)}.partial"
        try:
            with files.open(partial, "wb") as opened:
                opened.write(data)
            files.mv(partial, path)
        except BaseException:
            if files.exists(partial):
                files.rm_file(partial)
            raise


def windows_of(root: str, job: str) -> list[Window]:
    """The windows of a job, in the order of their names.

    Raises:
        UsageError: There is no such job.
    """
    files, path = needed("fsspec.core").url_to_fs(root)
    found = files.glob(f"{path.rstrip('/')}/job={checked_name(job, what='job')}/window=*/{_MANIFEST}")
    names = sorted(one.split("/window=")[-1].partition("/")[0] for one in found)
    if not names:
        known = jobs_of(root)
        others = f"; there are {', '.join(known[:10])}" if known else ""
        raise UsageError(f"{root} has no job {job}{others}. Make one: opprof fleet ingest SOURCE --job {job}")
    return [Window(root=root, job=job, window=name) for name in names]


def jobs_of(root: str) -> list[str]:
    """The jobs of which there are tables."""
    files, path = needed("fsspec.core").url_to_fs(root)
    found = files.glob(f"{path.rstrip('/')}/job=*/window=*/{_MANIFEST}")
    return sorted({one.split("/job=")[-1].partition("/")[0] for one in found})
