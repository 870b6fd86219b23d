"""A store of objects that are never overwritten."""

import re
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.documents.stores import NOBODY, A, B, key, run_of

from pytest_opprof.baselines.archive import Archive, open_store
from pytest_opprof.baselines.environment_match import nearest_like
from pytest_opprof.baselines.remote import RemoteStore
from pytest_opprof.baselines.store import Entry
from pytest_opprof.errors import StoreError, UsageError

registry = pytest.importorskip("fsspec.registry")
MakeStore = Callable[[], Archive]


@pytest.fixture
def opened(tmp_path_factory: pytest.TempPathFactory) -> MakeStore:
    """Opens the same place repeatedly."""
    uri = f"memory://{secrets.token_hex(8)}/folder"
    return lambda: open_store(uri, root=tmp_path_factory.getbasetemp())


def remote(archive: Archive) -> RemoteStore:
    assert isinstance(archive.store, RemoteStore)
    return archive.store


def parts(archive: Archive) -> tuple[str, ...]:
    (entry,) = archive.entries("main")
    return entry.parts


def left_behind(opened: MakeStore, monkeypatch: pytest.MonkeyPatch) -> Archive:
    """A store in which a save was killed before it removed the objects that it had merged."""
    store = opened()
    store.save("main", run_of(1, A), collected=NOBODY)
    with monkeypatch.context() as killed:
        killed.setattr(RemoteStore, "_remove", lambda self, name, parts, is_saved: ())
        store.save("main", run_of(1, B, hours=1), collected=NOBODY)
    assert len(parts(store)) == 2
    return store


def test_objects_of_one_commit_are_one_run(opened: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store = left_behind(opened, monkeypatch)
    (entry,) = store.entries("main")
    assert {test.node_id for test in store.load(entry).tests} == {A.node_id, B.node_id}
    assert entry.created == run_of(1, hours=1).created
    store.save("main", run_of(1, A), collected=NOBODY)
    assert len(parts(store)) == 1, "the next save joins them"
    assert {test.node_id for test in store.load(store.entries("main")[0]).tests} == {A.node_id, B.node_id}


def test_same_run_saved_twice_is_one_object(opened: MakeStore) -> None:
    store = opened()
    first = store.save("main", run_of(1), collected=NOBODY)
    assert store.save("main", run_of(1), collected=NOBODY).place == first.place
    assert len(parts(store)) == 1


def test_reader_finds_objects_merged_meanwhile(opened: MakeStore) -> None:
    store = opened()
    store.save("main", run_of(1, A), collected=NOBODY)
    (stale,) = store.entries("main")
    opened().save("main", run_of(1, B), collected=NOBODY)
    assert {test.node_id for test in store.load(stale).tests} == {A.node_id, B.node_id}


def test_vanished_object_is_one_sentence(opened: MakeStore) -> None:
    store = opened()
    store.save("main", run_of(1), collected=NOBODY)
    (stale,) = store.entries("main")
    opened().remove("main", is_meant=lambda entry: True)
    with pytest.raises(StoreError, match="cannot be read: it is no longer there"):
        store.load(stale)


def test_foreign_objects_are_ignored(opened: MakeStore) -> None:
    store = opened()
    store.save("main", run_of(1), collected=NOBODY)
    filesystem, folder = remote(store)._filesystem, remote(store)._folder("main")
    for name in ("README", ".opprof-1.tmp", "x.json", "a b.20260101T000000000000Z.0123456789abcdef.json.gz"):
        filesystem.pipe_file(f"{folder}/{name}", b"x")
    filesystem.pipe_file(f"{remote(store)._root}/loose", b"x")
    assert store.names() == ("main",)
    assert len(store.entries("main")) == 1


def test_impossible_time_in_a_name_is_long_ago(opened: MakeStore) -> None:
    store = opened()
    store.save("main", run_of(1), collected=NOBODY)
    folder = remote(store)._folder("main")
    remote(store)._filesystem.pipe_file(f"{folder}/x.20269999T000000000000Z.0123456789abcdef.json.gz", b"x")
    keys: list[str] = [entry.key for entry in store.entries("main")]
    assert keys == [key(1), "x"]


def test_damaged_object_is_skipped_in_the_search(opened: MakeStore) -> None:
    store = opened()
    for number in (1, 2):
        store.save("main", run_of(number), collected=NOBODY)
    damaged, whole = store.entries("main")
    remote(store)._filesystem.pipe_file(f"{remote(store)._folder('main')}/{damaged.parts[0]}", b"x")
    assert nearest_like(run_of(1).environment, (damaged, whole), store=store) == whole


def test_fsspec_that_is_missing_is_named(opened: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(UsageError, match=r"needs fsspec: pip install 'pytest-opprof\[remote\]'"):
        opened()


def test_library_of_a_scheme_that_is_missing_is_named(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in ("gcsfs", "gcsfs.core"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UsageError, match=r"--opprof-store=gs://bucket/x: .*gcsfs"):
        open_store("gs://bucket/x", root=tmp_path_factory.getbasetemp())


def test_missing_s3_library_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("s3fs", "s3fs.core"):
        monkeypatch.setitem(sys.modules, library, None)
    # fsspec caches the class if another test of this process loaded it
    monkeypatch.delitem(registry._registry, "s3", raising=False)
    with pytest.raises(
        UsageError, match=r"s3://b/x: a store in S3 needs s3fs: pip install 'pytest-opprof\[r"
    ):
        open_store("s3://b/x", root=tmp_path)


@pytest.mark.parametrize(
    ("port", "said"),
    [("0", r"\[Errno \d+\] [^.]+"), ("none", r"Port could not be cast to integer value as 'none'")],
    ids=["refused", "no_port"],
)
def test_store_that_cannot_be_opened_is_one_sentence(port: str, said: str, tmp_path: Path) -> None:
    """An FTP store connects when it is opened; no server listens on port 0."""
    with pytest.raises(StoreError) as caught:
        open_store(f"ftp://me:s3cret@127.0.0.1:{port}/x", root=tmp_path)
    address = re.escape(f"ftp://me:***@127.0.0.1:{port}/x")
    advice = "Check the address and its credentials"
    assert re.fullmatch(rf"{address} cannot be opened: {said}\. {advice}", str(caught.value))


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("nowhere://me:s3cret@host/x", "nowhere://me:***@host/x"),
        ("nowhere://:s3%20cret@host/x", "nowhere://:***@host/x"),
        ("nowhere://a:s3cret@b@host:22/x", "nowhere://a:***@host:22/x"),
        ("nowhere://me@host:22/a:b@c", "nowhere://me@host:22/a:b@c"),
    ],
    ids=["whole", "quoted", "at_sign", "none"],
)
def test_messages_hide_passwords(uri: str, shown: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        open_store(uri, root=tmp_path)
    assert str(caught.value).startswith(f"--opprof-store={shown}: unknown kind of store (")


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("gti:", "did you mean 'git'?"),
        ("dri:.opprof", "did you mean 'dir'?"),
        ("s3:bucket/x", "it has no ://, and is none of: dir, counts, git"),
    ],
)
def test_mistyped_kind_is_no_folder(uri: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        open_store(uri, root=tmp_path)
    assert str(caught.value) == (
        f"--opprof-store={uri}: unknown kind of store ({why}); use dir:PATH, counts:PATH, git: or an address "
        "of fsspec, such as s3://bucket/folder"
    )


def test_places_and_faults_hide_passwords(opened: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = remote(opened())
    store = Archive(RemoteStore(inner._filesystem, inner._root, uri="ftp://me:s3%20cret@host/folder/"))
    saved = store.save("main", run_of(1), collected=NOBODY)
    (entry,) = store.entries("main")
    assert store.uri == "ftp://me:***@host/folder/"
    assert saved.place == entry.place
    assert entry.place.startswith(f"ftp://me:***@host/folder/main/{key(1)}.")

    def fail(*arguments: object, **options: object) -> None:
        raise RuntimeError("530 me may not log in with 's3 cret'")

    monkeypatch.setattr(inner._filesystem, "ls", fail)
    with pytest.raises(
        StoreError, match=r"^ftp://me:\*{3}@host/folder/ cannot be read: .* with '\*{3}'\. The store"
    ):
        store.names()


def test_library_s_own_errors_are_one_sentence(opened: MakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened()
    store.save("main", run_of(1), collected=NOBODY)
    (entry,) = store.entries("main")

    def fail(*arguments: object, **options: object) -> None:
        raise RuntimeError("403\nForbidden")

    acts: dict[str, Callable[[], object]] = {
        "pipe_file": lambda: store.save("main", run_of(2), collected=NOBODY),
        "cat_file": lambda: store.load(entry),
        "ls": store.names,
        "rm_file": lambda: store.remove("main", is_meant=lambda one: isinstance(one, Entry)),
    }
    for method, act in acts.items():
        with monkeypatch.context() as broken:
            broken.setattr(remote(store)._filesystem, method, fail)
            with pytest.raises(StoreError, match=r"^memory://.*: 403 Forbidden\. The store is unchanged$"):
                act()
    assert store.entries("main") == (entry,)


def test_run_is_saved_though_the_replaced_object_stays(
    opened: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Credentials that may write, and not remove."""
    store = opened()
    store.save("main", run_of(1, A), collected=NOBODY)

    def fail(*arguments: object, **options: object) -> None:
        raise PermissionError("AccessDenied")

    monkeypatch.setattr(remote(store)._filesystem, "rm_file", fail)
    saved = store.save("main", run_of(1, B, hours=1), collected=NOBODY)
    assert saved.place is not None
    assert re.fullmatch(
        r"the run is saved, but memory://.* has objects that cannot be removed: AccessDenied\. The next save .*",
        saved.notes[-1],
    )
    assert len(parts(store)) == 2
    assert {test.node_id for test in store.load(store.entries("main")[0]).tests} == {A.node_id, B.node_id}


@pytest.mark.parametrize("method", ["rm_file", "pipe_file"])
def test_message_says_that_a_part_is_done(
    opened: MakeStore, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    store, other = opened(), open_store(f"memory://{secrets.token_hex(8)}", root=Path())
    for number in (1, 2):
        store.save("main", run_of(number), collected=NOBODY)
    whole, calls = getattr(remote(store)._filesystem, method), []

    def fail_later(*arguments: object, **options: object) -> object:
        calls.append(arguments)
        if len(calls) > 1:
            raise PermissionError("AccessDenied")
        return whole(*arguments, **options)

    monkeypatch.setattr(remote(store)._filesystem, method, fail_later)
    acts: dict[str, Callable[[], object]] = {
        "rm_file": lambda: store.remove("main", is_meant=lambda entry: True),
        "pipe_file": lambda: other.take(store, ["main"]),
    }
    with pytest.raises(StoreError, match=r"AccessDenied\. Some (of them are removed|runs are written)$"):
        acts[method]()
