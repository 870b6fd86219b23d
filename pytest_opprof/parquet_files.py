"""Parquet files at a path or an address of fsspec, each there whole or not at all."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pytest_opprof.errors import UsageError
from pytest_opprof.extras import needed

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def checked_name(name: str, *, what: str) -> str:
    """A name of a partition, as it stands in a path.

    Raises:
        UsageError: It may not stand there.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot name a {what}: use letters, digits, '.', '_' and '-'")
    return name


def write_parquet(address: str, content: Any, *, group: int | None = None) -> None:
    """Write a table of pyarrow's; the same rows make the same bytes.

    An object store takes a file whole; on a disk it gets its name when it is whole.

    Args:
        address: A path or an address of fsspec.
        content: The table.
        group: How many rows a reader of some of them has to read at once; as pyarrow has it, unless given.

    Raises:
        OSError: It cannot be written.
    """
    files, path = needed("fsspec.core").url_to_fs(address)
    sink = needed("pyarrow").BufferOutputStream()
    needed("pyarrow.parquet").write_table(content, sink, compression="zstd", row_group_size=group)
    data = memoryview(sink.getvalue())
    if "file" not in files.protocol:
        files.pipe_file(path, bytes(data))
        return
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    partial = place.with_name(f"{place.name}.{secrets.token_hex(8)}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(place)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def arrow_table(columns: dict[str, str], rows: Sequence[tuple[Any, ...]]) -> Any:
    """Rows as a table of pyarrow's.

    Args:
        columns: The type of each column, by its name, as `pyarrow` calls what makes it.
        rows: A tuple of values each, in the order of the columns.
    """
    pa = needed("pyarrow")
    schema = pa.schema([(name, _type(pa, kind)) for name, kind in columns.items()])
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = [pa.array(value, field.type) for value, field in zip(values, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _type(pa: Any, kind: str) -> Any:
    base = kind.removesuffix("[]")
    found = getattr(pa, base.replace("bool", "bool_"))()
    return pa.list_(found) if base != kind else found
