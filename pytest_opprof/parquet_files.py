"""Write Parquet files atomically, at a path or an fsspec address."""

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
    """Check that a partition's name is safe in a path, and return it; else UsageError."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot name a {what}: use letters, digits, '.', '_' and '-'")
    return name


def as_utf8(text: str) -> str:
    """Text that Parquet can hold: a trace's JSON and a file's name may have lone surrogates."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def write_parquet(address: str, content: Any, *, group: int | None = None) -> None:
    """Write a pyarrow table to a path or an fsspec address; the same rows make the same bytes.

    An object store writes a file atomically; on a disk the file gets its name when it is complete. Readers
    read each `group` of rows whole.
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
    """Rows as a pyarrow table; columns have their types in pyarrow's words, with ``int64[]`` for a list."""
    pa = needed("pyarrow")
    schema = pa.schema([(name, _type(pa, kind)) for name, kind in columns.items()])
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = [_array(pa, value, field.type) for value, field in zip(values, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(pa: Any, values: Sequence[Any], kind: Any) -> Any:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([value and as_utf8(value) for value in values], kind)


def _type(pa: Any, kind: str) -> Any:
    base = kind.removesuffix("[]")
    found = getattr(pa, base.replace("bool", "bool_"))()
    return pa.list_(found) if base != kind else found
