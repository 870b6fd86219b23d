"""An artifact is checked before it is unpacked, and none of it is written anywhere."""

import contextlib
import gzip
import io
import stat
import struct
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.forges.artifacts import DOCUMENT, member, zip_of

from pytest_opprof.errors import DocumentError
from pytest_opprof.forge.artifact import MAX_ARTIFACT_BYTES, MAX_UNPACKED_BYTES, unpack_artifact

PLAIN = b'{"kind": "opprof-run"}'
GOOD = zip_of((DOCUMENT, PLAIN))
BOMB = zip_of((DOCUMENT, bytes(MAX_UNPACKED_BYTES + 1)))
RATIO = zip_of((DOCUMENT, bytes(4 * 1024 * 1024)))


def unpacked(data: bytes) -> bytes:
    return unpack_artifact(data, name=DOCUMENT, where="artifact 1")


def with_flag(bit: int) -> bytes:
    """The valid zip with a flag set in both of its records of the file."""
    data = bytearray(GOOD)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.index(signature) + offset
        (flags,) = struct.unpack_from("<H", data, at)
        struct.pack_into("<H", data, at, flags | bit)
    return bytes(data)


def claiming(size: int) -> bytes:
    """The valid zip, whose list claims another size of the file."""
    data = bytearray(GOOD)
    struct.pack_into("<I", data, data.index(b"PK\x01\x02") + 24, size)
    return bytes(data)


def with_damage() -> bytes:
    data = bytearray(GOOD)
    data[data.index(DOCUMENT.encode()) + len(DOCUMENT)] ^= 0xFF
    return bytes(data)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def test_the_one_document_is_unpacked(method: int) -> None:
    assert unpacked(zip_of((DOCUMENT, PLAIN), method=method)) == PLAIN


def test_zip_that_was_written_as_a_stream_is_unpacked() -> None:
    """As upload-artifact writes it: the sizes follow the data."""

    class Stream(io.RawIOBase):
        def __init__(self) -> None:
            self.data = b""

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            self.data += bytes(data)
            return len(data)

    stream = Stream()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(DOCUMENT, PLAIN)
    assert stream.data[6] & 0x8, "it says that sizes come later"
    assert unpacked(stream.data) == PLAIN


@pytest.mark.parametrize("mode", [0o100644, 0o100600, 0], ids=oct)
def test_plain_files_of_any_mode_are_unpacked(mode: int) -> None:
    assert unpacked(zip_of((member(mode=mode), PLAIN))) == PLAIN


HOSTILE = {
    "nothing": (b"", "it is not a zip"),
    "no zip": (b"PK" * 40, "it is not a zip from GitHub's upload-artifact"),
    "cut off": (GOOD[:-4], "it is not a zip from"),
    "empty": (zip_of(), "it holds 0 files, but only opprof-run.json"),
    "two files": (zip_of((DOCUMENT, PLAIN), ("evil.sh", b"")), "it holds 2 files"),
    "other name": (zip_of(("run.json", PLAIN)), "it holds 'run.json', but opprof-run.json is expected"),
    "parent": (zip_of((f"../{DOCUMENT}", PLAIN)), r"it holds '\.\./opprof-run\.json'"),
    "absolute": (zip_of((f"/etc/{DOCUMENT}", PLAIN)), r"it holds '/etc/opprof-run\.json'"),
    "backslashes": (zip_of((f"..\\{DOCUMENT}", PLAIN)), "it holds "),
    "NUL in the name": (GOOD.replace(b"run.json", b"run\0json"), "it holds "),
    "NUL behind the name": (
        zip_of((f"{DOCUMENT}Zx", PLAIN)).replace(f"{DOCUMENT}Zx".encode(), f"{DOCUMENT}\0x".encode()),
        r"it holds 'opprof-run\.json\\x00x', but",
    ),
    "folder": (zip_of((f"{DOCUMENT}/", b"")), "it holds "),
    "symbolic link": (
        zip_of((member(mode=stat.S_IFLNK | 0o777), b"/etc/passwd")),
        "is a link, a folder or a device",
    ),
    "device": (zip_of((member(mode=stat.S_IFCHR | 0o666), b"")), "is a link, a folder or a device"),
    "FIFO": (zip_of((member(mode=stat.S_IFIFO | 0o666), b"")), "is a link, a folder or a device"),
    "encrypted": (with_flag(0x1), "is encrypted"),
    "strongly encrypted": (with_flag(0x41), "is encrypted"),
    "bzip2": (zip_of((DOCUMENT, PLAIN), method=zipfile.ZIP_BZIP2), "unsupported compression method"),
    "lzma": (zip_of((DOCUMENT, PLAIN), method=zipfile.ZIP_LZMA), "unsupported compression method"),
    "bomb": (BOMB, f"has more than {MAX_UNPACKED_BYTES} bytes unpacked"),
    "a thousand times": (RATIO, "unpacks to more than 250 times its size"),
    "larger than it says": (claiming(5), "the zip is damaged|does not have its declared size"),
    "smaller than it says": (claiming(500), "the zip is damaged|does not have its declared size"),
    "damaged": (with_damage(), "the zip is damaged"),
    "gzip within": (zip_of((DOCUMENT, gzip.compress(PLAIN))), "its file is compressed twice"),
    "comment": (GOOD[:-2] + b"\x05\0hello", "it is not a zip from"),
    "many names": (
        zip_of(*((f"{number}.json", b"") for number in range(2000))),
        "it holds too many files: one is expected",
    ),
    "too large": (bytes(MAX_ARTIFACT_BYTES + 1), f"it has more than {MAX_ARTIFACT_BYTES} bytes"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_anything_else_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, why = HOSTILE[name]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DocumentError, match=why) as refused:
        unpacked(data)
    assert str(refused.value).startswith("artifact 1: ")
    assert str(refused.value).endswith("It was not used")
    assert str(refused.value).isprintable()
    assert list(tmp_path.iterdir()) == []


def test_bomb_is_refused_before_it_is_unpacked() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(DocumentError):
            unpacked(BOMB)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 * 1024 * 1024


def test_second_list_of_files_is_refused() -> None:
    """A zip64 locator points to another list, for readers that know it."""
    locator = struct.pack("<4sIQI", b"PK\x06\x07", 0, 0, 1)
    at = GOOD.rindex(b"PK\x05\x06")
    with pytest.raises(DocumentError, match="it is not a zip from"):
        unpacked(GOOD[:at] + locator + GOOD[at:])


@given(
    st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=6),
    st.none() | st.integers(0, len(GOOD) - 1),
)
def test_damaged_zip_is_refused_or_harmless(changes: list[tuple[int, int]], end: int | None) -> None:
    data = bytearray(GOOD[:end])
    for at, value in changes:
        if at < len(data):
            data[at] = value
    plain = PLAIN
    with contextlib.suppress(DocumentError):
        plain = unpacked(bytes(data))
    assert plain == PLAIN, "the checksum holds"
