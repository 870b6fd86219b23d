"""What a run of untrusted code uploaded: a zip that may hold one document, looked at before it is unpacked.

Nothing of it is written to disk, so that no name in it can be a path. A bomb is refused by what the zip says
of itself before a byte is unpacked, and by what comes out, where it lies.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from typing import Final

from pytest_opprof.errors import DocumentError

# The zip itself. A run of 500 tests with a call tree each is some 2 MB.
MAX_ARTIFACT_BYTES: Final = 32 * 1024 * 1024
# What is in it. Parsed, the worst JSON takes some twenty times as much memory.
MAX_UNPACKED_BYTES: Final = 64 * 1024 * 1024
# Runs come out ten to a hundred times as large; nothing that was measured a thousand times.
_MOST_RATIO = 250
_RATIO_FROM_BYTES = 1024 * 1024
# The list of what is in the zip: one name takes less than a hundred bytes, ten thousand names a megabyte.
_LONGEST_DIRECTORY = 64 * 1024

# The last record of a zip: its signature, then the size of the list and of the comment.
_END = struct.Struct("<4s8xI4xH")
_END_SIGNATURE = b"PK\x05\x06"
_ZIP64_SIGNATURE = b"PK\x06\x07"
_ZIP64_BYTES = 20
_ENCRYPTED = 0x1 | 0x40
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_GZIP = b"\x1f\x8b"
# What zipfile raises for one that is not as it should be.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError, ValueError, struct.error)


def unpack_artifact(data: bytes, *, name: str, where: str) -> bytes:
    """The one file that an artifact has.

    Args:
        name: The file that must be in it, alone.
        where: What an error calls the artifact.

    Raises:
        DocumentError: It is not such a zip; the message says why.
    """
    _refuse_directory(data, where=where)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            info = _only_member(archive, name=name, where=where)
            _refuse_member(info, where=where)
            with archive.open(info) as file:
                # As much as it says it is, and not a byte more: more would be a lie.
                plain = file.read(info.file_size + 1)
    except _DAMAGED as error:
        raise _refusal(where, "the zip is damaged") from error
    if len(plain) != info.file_size:
        raise _refusal(where, "a file in it does not have its declared size")
    if plain.startswith(_GZIP):
        raise _refusal(where, "its file is compressed twice")
    return plain


def _refuse_directory(data: bytes, *, where: str) -> None:
    """Refuse a list of files that is too long, before anybody reads it."""
    if len(data) > MAX_ARTIFACT_BYTES:
        raise _refusal(where, f"it has more than {MAX_ARTIFACT_BYTES} bytes")
    if len(data) < _END.size:
        raise _refusal(where, "it is not a zip")
    signature, size, comment = _END.unpack(data[-_END.size :])
    # With a comment, or a second record for more than 4 GiB, two readers may see two lists.
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
    # `filename` is what Python makes of the name, `orig_filename` what stands there.
    if info.filename != name or info.orig_filename != name:
        raise _refusal(where, f"it holds {info.orig_filename[:80]!a}, but {name} is expected")
    return info


def _refuse_member(info: zipfile.ZipInfo, *, where: str) -> None:
    """Refuse what is not a plain file, or what would be too large."""
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
