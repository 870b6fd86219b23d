"""Unpack the artifact of an untrusted pull request: a zip that must hold one expected file.

Nothing is written to disk, so no name in the zip can act as a path. A zip bomb is refused by its declared
sizes before anything is unpacked, or by its real size if it lies.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from typing import Final

from pytest_opprof.errors import DocumentError

# The zip itself. A run of 500 tests with call trees takes about 2 MB.
MAX_ARTIFACT_BYTES: Final = 32 * 1024 * 1024
# The unpacked file. The worst JSON takes about twenty times as much memory when parsed.
MAX_UNPACKED_BYTES: Final = 64 * 1024 * 1024
# Runs unpack to 10 to 100 times their size, and no real measurement to 1,000 times.
_MOST_RATIO = 250
_RATIO_FROM_BYTES = 1024 * 1024
# The zip's directory: one name takes less than 100 bytes, 10,000 names take a megabyte.
_LONGEST_DIRECTORY = 64 * 1024

# The last record of a zip: its signature, then the sizes of the directory and of the comment.
_END = struct.Struct("<4s8xI4xH")
_END_SIGNATURE = b"PK\x05\x06"
_ZIP64_SIGNATURE = b"PK\x06\x07"
_ZIP64_BYTES = 20
_ENCRYPTED = 0x1 | 0x40
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_GZIP = b"\x1f\x8b"
# What zipfile raises for a damaged zip.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError, ValueError, struct.error)


def unpack_artifact(data: bytes, *, name: str, where: str) -> bytes:
    """Unpack an artifact's only file, which must have this name; else DocumentError says `where`."""
    _refuse_directory(data, where=where)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            info = _only_member(archive, name=name, where=where)
            _refuse_member(info, where=where)
            with archive.open(info) as file:
                # One byte more would show that the declared size is a lie.
                plain = file.read(info.file_size + 1)
    except _DAMAGED as error:
        raise _refusal(where, "the zip is damaged") from error
    if len(plain) != info.file_size:
        raise _refusal(where, "a file in it does not have its declared size")
    if plain.startswith(_GZIP):
        raise _refusal(where, "its file is compressed twice")
    return plain


def _refuse_directory(data: bytes, *, where: str) -> None:
    """Refuse a zip whose directory is too large or ambiguous, before zipfile reads it."""
    if len(data) > MAX_ARTIFACT_BYTES:
        raise _refusal(where, f"it has more than {MAX_ARTIFACT_BYTES} bytes")
    if len(data) < _END.size:
        raise _refusal(where, "it is not a zip")
    signature, size, comment = _END.unpack(data[-_END.size :])
    # With a comment or a ZIP64 record, two readers may find two different directories.
    before = data[-_END.size - _ZIP64_BYTES : -_END.size]
    if signature != _END_SIGNATURE or comment or before.startswith(_ZIP64_SIGNATURE):
        raise _refusal(where, "it is not a zip from GitHub's upload-artifact")
    if size > _LONGEST_DIRECTORY:
        raise _refusal(where, "it holds too many files: one is expected")


def _only_member(archive: zipfile.ZipFile, *, name: str, where: str) -> zipfile.ZipInfo:
    members = archive.infolist()
    if len(members) != 1:
        raise _refusal(where, f"it holds {len(members)} files, but only {name} is expected")
    (info,) = members
    # `filename` is the name after Python's changes, `orig_filename` the name in the zip.
    if info.filename != name or info.orig_filename != name:
        raise _refusal(where, f"it holds {info.orig_filename[:80]!a}, but {name} is expected")
    return info


def _refuse_member(info: zipfile.ZipInfo, *, where: str) -> None:
    """Refuse anything but a plain file, or a file that would be too large."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in {0, stat.S_IFREG} or info.is_dir():
        raise _refusal(where, f"{info.filename} is a link, a folder or a device")
    if info.flag_bits & _ENCRYPTED:
        raise _refusal(where, f"{info.filename} is encrypted")
    if info.compress_type not in _METHODS:
        raise _refusal(where, f"{info.filename} uses an unsupported compression method")
    if info.file_size > MAX_UNPACKED_BYTES:
        raise _refusal(where, f"{info.filename} has more than {MAX_UNPACKED_BYTES} bytes unpacked")
    if info.file_size > max(_RATIO_FROM_BYTES, info.compress_size * _MOST_RATIO):
        raise _refusal(where, f"{info.filename} unpacks to more than {_MOST_RATIO} times its size")


def _refusal(where: str, what: str) -> DocumentError:
    return DocumentError(f"{where}: {what}. It was not used")
