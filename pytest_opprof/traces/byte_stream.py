"""The bytes of a file in pieces, decompressed if it is gzip."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from pytest_opprof.errors import DocumentError, StoreError
from pytest_opprof.regular_files import open_regular

_PIECE: Final = 1 << 20
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS


def pieces_of(path: Path) -> Iterator[bytes]:
    """Pieces of at most 1 MiB. The file's first bytes, not its name, tell whether it is gzip."""
    try:
        with open_regular(path) as file:
            yield from pieces_of_file(file, where=path)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error


def pieces_of_file(file: BinaryIO, *, where: Path | str) -> Iterator[bytes]:
    """As `pieces_of`, for an open file, but with an `OSError` if it cannot be read."""
    head = file.read(len(_GZIP_MAGIC))
    if head == _GZIP_MAGIC:
        yield from _inflated(file, head, where=where)
        return
    yield head
    while piece := file.read(_PIECE):
        yield piece


def _inflated(file: BinaryIO, head: bytes, *, where: Path | str) -> Iterator[bytes]:
    packed = head + file.read(_PIECE)
    while packed:  # concatenated gzip files are one file
        inflater = zlib.decompressobj(_GZIP_WINDOW)
        while not inflater.eof:
            try:
                # Bound the output, because a small file may unpack to any size.
                piece = inflater.decompress(packed, _PIECE)
            except zlib.error as error:
                raise DocumentError(
                    f"{where}: the gzip data is damaged: {error}. Get the file again"
                ) from error
            yield piece
            packed = inflater.unconsumed_tail
            # After a whole piece, these bytes may still have more output.
            if not packed and len(piece) < _PIECE and not inflater.eof:
                packed = file.read(_PIECE)
                if not packed:
                    raise DocumentError(f"{where}: the gzip data is cut off. Get the file again")
        packed = (inflater.unused_data or file.read(_PIECE)).lstrip(b"\0")
