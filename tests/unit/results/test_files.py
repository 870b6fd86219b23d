"""Files are read with suspicion, and written whole or not at all."""

import gzip
import os
import stat
import threading
from pathlib import Path

import pytest
from support.documents.strategies import simple_run, simple_test

from pytest_opprof.errors import DocumentError, StoreError
from pytest_opprof.results import files
from pytest_opprof.results.files import check_writable, parse, read_run, write_bytes, write_run
from pytest_opprof.results.names import MAX_TESTS

RUN = simple_run(simple_test({"aten::mul": 2}))


@pytest.mark.parametrize("name", ["run.json", "run.json.gz"])
def test_run_survives_its_file(tmp_path: Path, name: str) -> None:
    write_run(tmp_path / "new" / name, RUN)
    assert read_run(tmp_path / "new" / name) == RUN


def test_suffix_decides_on_gzip(tmp_path: Path) -> None:
    write_run(tmp_path / "run.json.gz", RUN)
    write_run(tmp_path / "run.json", RUN)
    assert gzip.decompress((tmp_path / "run.json.gz").read_bytes()) == (tmp_path / "run.json").read_bytes()


def test_same_run_is_the_same_file(tmp_path: Path) -> None:
    write_run(tmp_path / "one.json.gz", RUN)
    write_run(tmp_path / "two.json.gz", RUN)
    assert (tmp_path / "one.json.gz").read_bytes() == (tmp_path / "two.json.gz").read_bytes()


def test_invalid_run_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"run_id: '\*' does not fit"):
        write_run(tmp_path / "run.json", simple_run(run_id="*"))
    assert list(tmp_path.iterdir()) == []


HUGE = "9" * 5000


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "this is not JSON: Expecting value at line 1, column 1"),
        (b'{"kind": ', "this is not JSON: Expecting value at line 1, column 10"),
        (b"\xff\xfe", "this is not UTF-8 text (byte 0)"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"a": 1, "a": 2}', "the key 'a' occurs twice in one object"),
        (b"[" * 100_000, "objects are nested too deep"),
        (b'{"a":' * 100_000, "objects are nested too deep"),
        (f'{{"a": {HUGE}}}'.encode(), "a number has too many digits"),
        (b"\x1f\x8b\x08\x00broken", "the gzip data is damaged or cut off"),
        (gzip.compress(b'{"kind": "opprof-run"}')[:-4], "the gzip data is damaged or cut off"),
        (b'{"kind": "opprof-run", "schema_version": 1}', "'created' is missing (run.schema.json)"),
        (b"[1, 2]", "this is not a file of pytest-opprof ('kind' is null)"),
        (b'{"kind": "\\u001b]0;evil\\u0007"}', "this is not a file of pytest-opprof"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value[:30],
)
def test_damage_is_one_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(DocumentError) as caught:
        read_run(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: {sentence}")
    assert message.endswith("The file was not used")
    assert message.isprintable()


def test_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    write_run(tmp_path / "run.json", RUN)
    (tmp_path / "run.json").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "run.json").read_bytes())
    assert read_run(tmp_path / "run.json") == RUN


def test_an_integer_with_a_point_is_an_integer() -> None:
    """JSON Schema says so, and sums must be exact."""
    document = parse(b'{"a": 5.0, "b": 1e3, "c": 5.5, "d": -0.0}', where="run.json")
    assert [(type(value), value) for value in document.values()] == [
        (int, 5),
        (int, 1000),
        (float, 5.5),
        (int, 0),
    ]


def test_bomb_is_refused_at_the_cap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_DOCUMENT_BYTES", 2**20)
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b" " * 2**24))
    with pytest.raises(DocumentError, match="larger than 1 MiB unpacked"):
        read_run(tmp_path / "bomb.json.gz")
    (tmp_path / "big.json").write_bytes(b" " * 2**21)
    with pytest.raises(DocumentError, match="larger than 1 MiB unpacked"):
        read_run(tmp_path / "big.json")
    with pytest.raises(DocumentError, match="larger than 1 MiB unpacked"):
        parse(b" " * 2**21, where="big.json")


@pytest.mark.slow
def test_run_of_too_many_tests_is_not_written(tmp_path: Path) -> None:
    tests = (simple_test({}, node_id=f"t.py::test[{number}]") for number in range(MAX_TESTS + 1))
    with pytest.raises(
        StoreError, match=r"run\.json: not written: 20001 tests are more than 20000\. Profile"
    ):
        write_run(tmp_path / "run.json", simple_run(*tests))
    assert list(tmp_path.iterdir()) == []


def test_too_large_a_run_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_DOCUMENT_BYTES", 100)
    with pytest.raises(StoreError, match="not written"):
        write_run(tmp_path / "run.json", RUN)
    assert list(tmp_path.iterdir()) == []


def test_non_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path, sentence in (
        (tmp_path / "none.json", "there is no such file"),
        (tmp_path, "it is a folder"),
        (tmp_path / "fifo", "this is not a regular file"),
        (Path("/dev/zero"), "this is not a regular file"),
    ):
        with pytest.raises(StoreError, match=sentence):
            read_run(path)


def test_earlier_file_survives_a_failed_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    write_bytes(path, b"before")

    def fail(*_: object) -> None:
        raise PermissionError(1, "no")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(
        StoreError, match=r"cannot be written: permission denied.*an existing file is unchanged"
    ):
        write_bytes(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_folder_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="a part of its path is a file, not a folder"):
        write_bytes(tmp_path / "file" / "run.json", b"x")
    with pytest.raises(StoreError, match="it is a folder"):
        write_bytes(tmp_path, b"x")
    with pytest.raises(StoreError, match="its name is too long"):
        write_bytes(tmp_path / ("x" * 300), b"x")


def test_what_cannot_be_written_is_known_before(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("earlier")
    check_writable(tmp_path / "file")
    check_writable(tmp_path / "new" / "file")
    check_writable(Path(os.devnull))
    for path in (tmp_path, tmp_path / "file" / "below", tmp_path / ("x" * 300)):
        with pytest.raises(StoreError, match="cannot be written: "):
            check_writable(path)
    assert (tmp_path / "file").read_text() == "earlier"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["file"]
    assert list((tmp_path / "new").iterdir()) == []


def test_new_file_obeys_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_bytes(tmp_path / "new", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_replaced_file_keeps_mode_and_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"before")
    target.chmod(0o600)
    link.symlink_to(target)
    write_bytes(link, b"after")
    assert link.is_symlink()
    assert target.read_bytes() == b"after"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_pipe_is_written_into(tmp_path: Path) -> None:
    """A device or pipe is not replaced: as root, a file could replace /dev/null."""
    pipe, more_than_a_pipe_holds = tmp_path / "pipe", b"x" * 2**21
    os.mkfifo(pipe)
    with pytest.raises(StoreError, match="cannot be written: it is a socket, or a pipe that nobody reads"):
        write_bytes(pipe, b"x")
    read: list[bytes] = []
    descriptor = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    with os.fdopen(descriptor, "rb") as file:
        reader = threading.Thread(target=lambda: read.append(file.read()))
        # It is opened for writing before the reader starts, which else would find the end at once.
        with pipe.open("wb"):
            reader.start()
            write_bytes(pipe, more_than_a_pipe_holds)
        reader.join()
    assert read == [more_than_a_pipe_holds]
    assert [(path, stat.S_ISFIFO(path.stat().st_mode)) for path in tmp_path.iterdir()] == [(pipe, True)]


def test_messages_show_paths_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "main").mkdir()
    (tmp_path / "main" / "bad.json").write_text("{")
    with pytest.raises(DocumentError, match=r"^main/bad\.json: this is not JSON"):
        read_run(tmp_path / "main" / "bad.json")
