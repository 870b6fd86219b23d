"""Documents in files: untrusted when read, written atomically.

Reading raises a StoreError if the file cannot be read, and a DocumentError if it holds no document of that
kind that this release can use. Writing raises a StoreError, and leaves an existing file unchanged; a document
that its schema refuses is a DocumentError.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import json
import os
import secrets
import stat
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Never, TypeVar

from pytest_opprof.errors import StoreError
from pytest_opprof.regular_files import NotRegularError, is_device, open_regular, write_into_device
from pytest_opprof.results.document import refusal, run_from_document, run_to_document
from pytest_opprof.results.members import Document, gc_paused
from pytest_opprof.results.names import MAX_TESTS
from pytest_opprof.results.run import Run
from pytest_opprof.results.schema import Contract, validate

_Item = TypeVar("_Item")

# The most bytes of an unpacked document. A bomb is refused here, wherever it would end.
MAX_DOCUMENT_BYTES = 128 * 1024 * 1024
IN_PARTS = "Profile fewer tests, or a part at a time, each with its own --opprof-json and --opprof-save"
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_SUFFIX = ".gz"

_REASONS = {
    errno.ENOSPC: "the disk is full. Free some space and run again",
    errno.EDQUOT: "your disk quota is used up. Free some space and run again",
    errno.EACCES: "permission denied. Make it writable, or choose another place",
    errno.EPERM: "permission denied. Make it writable, or choose another place",
    errno.EROFS: "the file system is read-only. Choose another place",
    errno.ENOTDIR: "a part of its path is a file, not a folder. Choose another place",
    errno.EEXIST: "a part of its path is a file, not a folder. Choose another place",
    errno.EISDIR: "it is a folder. Choose another name",
    errno.ENXIO: "it is a socket, or a pipe that nobody reads. Choose another place",
    errno.ENAMETOOLONG: "its name is too long. Choose a shorter one",
}


def shown(path: Path) -> str:
    """A path in messages: relative, if it is below the current folder."""
    with contextlib.suppress(OSError, ValueError):
        return str(path.relative_to(Path.cwd()))
    return str(path)


def write_run(path: Path, run: Run) -> None:
    """Write a run; ``.gz`` at the end of the name packs it."""
    write_document(path, run_to_document(run), Contract.RUN)


def run_to_bytes(run: Run, *, where: str) -> bytes:
    """The document of a run, not packed."""
    return document_to_bytes(run_to_document(run), Contract.RUN, where=where)


@gc_paused()
def run_from_bytes(data: bytes, *, where: str) -> Run:
    """The run that a document holds, packed or not."""
    document = validate(parse(data, where=where), Contract.RUN, where=where)
    # Each test of the document is let go once it is read, as both at once are twice the memory.
    return run_from_document({**document, "tests": _taken(document["tests"])}, where=where)


def read_run(path: Path) -> Run:
    """Read a run."""
    return run_from_bytes(read_bytes(path), where=shown(path))


def _taken(items: list[_Item]) -> Iterator[_Item]:
    items.reverse()
    while items:
        yield items.pop()


def write_document(path: Path, document: Document, contract: Contract) -> None:
    """Check a document against its schema and write it."""
    data = document_to_bytes(document, contract, where=shown(path))
    write_bytes(path, gzip.compress(data, mtime=0) if path.suffix == _GZIP_SUFFIX else data)


def document_to_bytes(document: Document, contract: Contract, *, where: str) -> bytes:
    """Check a document against its schema; give its file's content."""
    if contract is Contract.RUN and (tests := len(document["tests"])) > MAX_TESTS:
        raise StoreError(f"{where}: not written: {tests} tests are more than {MAX_TESTS}. {IN_PARTS}")
    validate(document, contract, where=where)
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    data = text.encode("ascii") + b"\n"
    if len(data) > MAX_DOCUMENT_BYTES:
        raise StoreError(f"{where}: not written: {len(data)} bytes are too many. {IN_PARTS}")
    return data


def read_document(path: Path, contract: Contract) -> Document:
    """Read a file and check it against a schema."""
    return validate(parse(read_bytes(path), where=shown(path)), contract, where=shown(path))


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` to a file atomically: temporary file, fsync, rename, fsync of the folder.

    A pipe or a device, such as /dev/null, is written to and not replaced.
    """
    # A link stays a link: the user wants its target written.
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".opprof-{secrets.token_hex(8)}.tmp")
    with store_errors(path, "cannot be written", after="; an existing file is unchanged"):
        if is_device(path):
            write_into_device(path, data)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                with contextlib.suppress(FileNotFoundError):
                    temporary.chmod(stat.S_IMODE(target.stat().st_mode))
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(target.parent)


def check_writable(path: Path) -> None:
    """Raise an error now if `write_bytes` would, before work that takes long.

    Raises:
        StoreError: It cannot be written.
    """
    target = Path(os.path.realpath(path))
    with store_errors(path, "cannot be written"):
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISDIR(target.stat().st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not is_device(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=target.parent).close()


def read_bytes(path: Path) -> bytes:
    """All of a regular file that is no larger than any document."""
    try:
        with open_regular(path) as file:
            data = file.read(MAX_DOCUMENT_BYTES + 1)
    except FileNotFoundError as error:
        raise StoreError(f"{shown(path)}: there is no such file") from error
    except NotRegularError as error:
        raise StoreError(f"{shown(path)}: {error.strerror}") from error
    except OSError as error:
        raise store_error(path, "cannot be read", error) from error
    check_size(len(data), where=shown(path))
    return data


def read_head(path: Path, *, size: int) -> bytes:
    """The first ``size`` bytes of a document, unpacked; an OSError if it is damaged."""
    with open_regular(path) as file:
        try:
            return (gzip.GzipFile(fileobj=file) if path.suffix == _GZIP_SUFFIX else file).read(size)
        except (EOFError, zlib.error) as error:
            raise OSError(errno.EIO, "damaged gzip data") from error


def parse(data: bytes, *, where: str) -> Any:
    """The parsed JSON of ``data``, unpacked if it is gzip; ambiguous JSON is refused."""
    data = unpacked(data, where=where)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
            raise refusal(where, f"the key {ascii(twice)[:80]} occurs twice in one object")
        return found

    def number(text: str) -> float:
        """JSON Schema takes 5.0 for an integer; as one, arithmetic on it is exact."""
        value = float(text)
        return int(value) if value.is_integer() else value

    def refuse(constant: str) -> Never:
        raise refusal(where, f"{constant} is not a JSON number")

    try:
        return json.loads(
            data.decode("utf-8-sig"), object_pairs_hook=unique, parse_float=number, parse_constant=refuse
        )
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, column {error.colno}"
        raise refusal(where, f"this is not JSON: {error.msg} at {at}") from error
    except UnicodeDecodeError as error:
        raise refusal(where, f"this is not UTF-8 text (byte {error.start})") from error
    except RecursionError as error:
        raise refusal(where, "objects are nested too deep") from error
    except ValueError as error:
        # The only ValueError left is Python's refusal to convert thousands of digits.
        raise refusal(where, "a number has too many digits") from error


def unpacked(data: bytes, *, where: str) -> bytes:
    """Unpacked gzip; other data unchanged."""
    if not data.startswith(_GZIP_MAGIC):
        check_size(len(data), where=where)
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            plain = file.read(MAX_DOCUMENT_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise refusal(where, "the gzip data is damaged or cut off") from error
    check_size(len(plain), where=where)
    return plain


def check_size(size: int, *, where: str) -> None:
    """Refuse more bytes than any document has."""
    if size > MAX_DOCUMENT_BYTES:
        raise refusal(where, f"this is larger than {MAX_DOCUMENT_BYTES // (1024 * 1024)} MiB unpacked")


def _sync_folder(folder: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):
        return  # Windows opens no folder
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a folder; the rename itself has happened.
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def store_errors(path: Path, what: str, *, after: str = "") -> Iterator[None]:
    """Turn a failed system call into a `store_error`."""
    try:
        yield
    except OSError as error:
        raise store_error(path, what, error, after=after) from error


def store_error(path: Path, what: str, error: OSError, *, after: str = "") -> StoreError:
    """The error for a failed system call, such as ``cannot be read``: which file, why, and what to do."""
    reason = _REASONS.get(error.errno or 0, (error.strerror or str(error)).lower())
    return StoreError(f"{shown(path)} {what}: {reason}{after}")
