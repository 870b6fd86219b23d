"""Chrome traces on disk: written by the collector, whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from pytest_opprof.capture.native import lib
from pytest_opprof.capture.native_calls import last_error
from pytest_opprof.regular_files import is_device

_GZIP_LEVEL: Final = 1  # 8.7 times smaller already; level 6 gains little for three times the time


def json_members(metadata: Mapping[str, str]) -> str:
    """The members of a trace's object, from their JSON texts; a `ValueError` if one is not JSON."""
    return ", ".join(f"{json.dumps(key)}: {_checked(key, value)}" for key, value in metadata.items())


def write_natively(path: str | os.PathLike[str], write: Callable[[int], int]) -> None:
    """Have the collector write a file, whole or not at all; compressed if the name ends in ``.gz``.

    `write` takes a file descriptor, and returns the collector's code.
    """
    with _replacing(Path(path)) as descriptor:
        if write(descriptor) != lib.OP_OK:
            raise OSError(f"{Path(path)}: {last_error()}")


def write_text(path: str | os.PathLike[str], pieces: Iterable[str]) -> None:
    """Write text as UTF-8, whole or not at all; compressed if the name ends in ``.gz``."""
    with (
        _replacing(Path(path)) as descriptor,
        open(descriptor, "w", encoding="utf-8", errors="surrogatepass", closefd=False) as file,
    ):
        file.writelines(pieces)


def _checked(key: str, value: str) -> str:
    try:
        # A browser's JSON.parse refuses NaN and infinities: they become texts.
        return json.dumps(json.loads(value, parse_constant=str))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"metadata {key!r}: {value!r:.80} is not JSON: {error}") from error


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[int]:
    """A temporary file that takes the place of `path` if the block succeeds; a device stays itself."""
    if is_device(path):
        with path.open("wb", buffering=0) as device:
            yield device.fileno()
        return
    try:
        # A link stays a link: the user wants its target written.
        with _temporary(Path(os.path.realpath(path)), packed=path.suffix == ".gz") as descriptor:
            yield descriptor
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextlib.contextmanager
def _temporary(target: Path, *, packed: bool) -> Iterator[int]:
    descriptor, name = tempfile.mkstemp(prefix=".opprof-", dir=target.parent)
    temporary = Path(name)
    try:
        try:
            yield descriptor
            if packed:
                _compress(temporary)
        finally:
            os.close(descriptor)
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _compress(plain: Path) -> None:
    packed = plain.with_name(f"{plain.name}.gz")
    try:
        with plain.open("rb") as source, gzip.open(packed, "wb", compresslevel=_GZIP_LEVEL) as sink:
            shutil.copyfileobj(source, sink, length=1 << 20)
        packed.replace(plain)
    except BaseException:
        packed.unlink(missing_ok=True)
        raise
