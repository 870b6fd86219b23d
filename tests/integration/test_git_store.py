"""Baselines in git refs: between repositories, without an identity, and after diverging."""

import os
import shlex
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.documents.stores import NOBODY, A, B, git, key, place_of, run_of
from support.documents.strategies import simple_test

from pytest_opprof.baselines import git_remote
from pytest_opprof.baselines.archive import Archive, open_store
from pytest_opprof.baselines.git_ref import GitRefStore
from pytest_opprof.baselines.git_remote import pull_refs, push_refs
from pytest_opprof.baselines.resolve import resolve_baseline
from pytest_opprof.cli.main import main
from pytest_opprof.errors import DocumentError, MissingBaselineError, StoreError, UsageError
from pytest_opprof.results import files
from pytest_opprof.results.run import Environment

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bare repository with one commit, without user configuration."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    folder = tmp_path / "bare"
    folder.mkdir()
    git(folder, "init", "-q", "--bare", "-b", "main")
    first = tmp_path / "first"
    git(tmp_path, "clone", "-q", str(folder), str(first))
    git(first, "switch", "-q", "-c", "main")
    git(first, "commit", "-q", "--allow-empty", "-m", "one")
    git(first, "push", "-q", "origin", "main")
    return folder


def clone(tmp_path: Path, name: str, *options: str) -> Archive:
    git(tmp_path, "clone", "-q", *options, f"file://{tmp_path / 'bare'}", name)
    return open_store("git:", root=tmp_path / name)


def keys(store: Archive) -> list[str]:
    return [entry.key for entry in store.entries("main")]


def test_work_tree_and_branches_stay_as_they_are(tmp_path: Path) -> None:
    store = clone(tmp_path, "a")
    store.save("main", run_of(1), collected=NOBODY)
    folder = tmp_path / "a"
    assert git(folder, "status", "--porcelain") == ""
    assert git(folder, "branch", "--format=%(refname)") == "refs/heads/main"
    assert git(folder, "ls-tree", "--name-only", "refs/opprof/main") == f"{key(1)}.json"
    # pruned runs are not reachable through the history
    store.save("main", run_of(2), collected=NOBODY)
    assert git(folder, "rev-list", "--count", "refs/opprof/main") == "1"


def test_ref_with_a_non_text_name_is_skipped(tmp_path: Path) -> None:
    store = clone(tmp_path, "a")
    store.save("main", run_of(1), collected=NOBODY)
    for ref in (b"refs/opprof/\xff", "refs/opprof/a\u2028b".encode()):
        command: list[str | bytes] = ["git", "update-ref", ref, "refs/opprof/main"]
        subprocess.run(command, cwd=tmp_path / "a", check=True)
    assert store.names() == ("main",)
    assert keys(store) == [key(1)]


STRANGE = {
    "blob": ("update-ref", "refs/opprof/{0}", "HEAD:file"),
    "tree": ("update-ref", "refs/opprof/{0}", "HEAD^{{tree}}"),
    "symbolic": ("symbolic-ref", "refs/opprof/{0}", "refs/heads/main"),
}


@pytest.mark.parametrize("kind", [*STRANGE, "missing"])
def test_strange_ref_is_skipped_and_never_written(tmp_path: Path, kind: str) -> None:
    store = clone(tmp_path, "a")
    folder = tmp_path / "a"
    store.save("main", run_of(1), collected=NOBODY)
    (folder / "file").write_text("x")
    git(folder, "add", "file")
    git(folder, "commit", "-q", "-m", "x")
    git(folder, "update-ref", "refs/heads/main", "HEAD")
    if kind == "missing":
        (folder / ".git/refs/opprof/missing").write_text(f"{'1' * 40}\n")
    else:
        git(folder, *(word.format(kind) for word in STRANGE[kind]))
    tip = git(folder, "rev-parse", "main")
    assert store.names() == ("main",)
    assert keys(store) == [key(1)]
    assert store.entries(kind) == ()
    with pytest.raises(
        StoreError, match=rf"refs/opprof/{kind} is a symbolic ref or does not point to a commit"
    ):
        store.save(kind, run_of(2), collected=NOBODY)
    assert git(folder, "rev-parse", "main") == tip


def test_ref_without_a_run_is_no_baseline(tmp_path: Path) -> None:
    """Somebody pushed a branch there: git push origin HEAD:refs/opprof/main."""
    store = clone(tmp_path, "a")
    git(tmp_path / "a", "commit", "-q", "--allow-empty", "-m", "x")
    git(tmp_path / "a", "update-ref", "refs/opprof/main", "HEAD")
    with pytest.raises(MissingBaselineError, match=r"no baseline 'main' in git: \(it is empty\)"):
        resolve_baseline(store, "main", repository=tmp_path / "a", now=NOW, here=run_of(1).environment)
    assert store.names() == ()
    store.save("main", run_of(1), collected=NOBODY)
    assert store.names() == ("main",)


def test_run_times_are_known_without_reading_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = clone(tmp_path, "a")
    for number in (1, 2):
        store.save("main", run_of(number, hours=number), collected=NOBODY)
    times = [entry.created for entry in store.entries("main")]
    asked: list[tuple[str, ...]] = []
    whole = GitRefStore.ask

    def noted(self: GitRefStore, *arguments: str, given: bytes = b"") -> bytes:
        asked.append(arguments)
        return whole(self, *arguments, given=given)

    monkeypatch.setattr(GitRefStore, "ask", noted)
    assert [entry.created for entry in store.entries("main")] == times == sorted(times, reverse=True)
    assert "blob" not in {word for words in asked for word in words}
    # A commit of an older release has no notes.
    tree = git(tmp_path / "a", "rev-parse", "refs/opprof/main^{tree}")
    commit = git(tmp_path / "a", "commit-tree", tree, "-m", "pytest-opprof: baselines of main")
    git(tmp_path / "a", "update-ref", "refs/opprof/main", commit)
    assert [entry.created for entry in store.entries("main")] == times
    assert "blob" in {word for words in asked for word in words}


def test_too_large_a_blob_is_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = clone(tmp_path, "a")
    store.save("main", run_of(1), collected=NOBODY)
    tree = git(tmp_path / "a", "rev-parse", "refs/opprof/main^{tree}")
    git(tmp_path / "a", "update-ref", "refs/opprof/main", git(tmp_path / "a", "commit-tree", tree, "-m", "x"))
    (whole,) = store.entries("main")
    monkeypatch.setattr(files, "MAX_DOCUMENT_BYTES", 100)
    asked: list[str] = []
    ask = GitRefStore.ask

    def noted(self: GitRefStore, *arguments: str, given: bytes = b"") -> bytes:
        asked.extend(arguments)
        return ask(self, *arguments, given=given)

    monkeypatch.setattr(GitRefStore, "ask", noted)
    (entry,) = store.entries("main")
    assert (entry.key, entry.created.year) == (whole.key, 1970)
    with pytest.raises(DocumentError, match=rf"{key(1)}\.json: this is larger than"):
        store.load(entry)
    assert "blob" not in asked


@pytest.mark.slow
def test_a_lock_that_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    store = clone(tmp_path, "a")
    store.save("main", run_of(1), collected=NOBODY)
    lock = tmp_path / "a" / ".git" / "refs" / "opprof" / "main.lock"
    lock.touch()
    os.utime(lock, (0, 0))
    store.save("main", run_of(2), collected=NOBODY)
    assert {key(1), key(2)} == set(keys(store))
    assert [path.name for path in lock.parent.iterdir()] == ["main"]


def test_a_folder_of_the_work_tree_has_the_same_baselines(tmp_path: Path) -> None:
    store = clone(tmp_path, "a")
    store.save("main", run_of(1), collected=NOBODY)
    folder = tmp_path / "a" / "package"
    folder.mkdir()
    inner = open_store("git:", root=folder, project=tmp_path / "a")
    assert keys(inner) == keys(store)
    inner.save("main", run_of(2), collected=NOBODY)
    assert len(keys(store)) == 2


def test_plain_git_can_push_and_fetch(tmp_path: Path) -> None:
    ours, theirs = clone(tmp_path, "a"), clone(tmp_path, "b")
    ours.save("main", run_of(1), collected=NOBODY)
    git(tmp_path / "a", "push", "-q", "origin", "refs/opprof/*:refs/opprof/*")
    with pytest.raises(MissingBaselineError) as caught:
        resolve_baseline(theirs, "main", repository=tmp_path / "b", now=NOW, here=Environment())
    assert "Fetch what others have recorded: opprof baseline pull --store=git:; or " in str(caught.value)
    git(tmp_path / "b", "fetch", "-q", "origin", "refs/opprof/*:refs/opprof/*")
    assert theirs.load(theirs.entries("main")[0]).tests == (A,)


def test_the_hint_works_each_time_and_keeps_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = clone(tmp_path, "a"), clone(tmp_path, "b")
    git(tmp_path / "b", "remote", "rename", "origin", "upstream")
    monkeypatch.chdir(tmp_path / "b")
    for number in (1, 2):
        ours.save("main", run_of(number), collected=NOBODY)
        push_refs(ours, ["main"], remote="origin")
        program, *arguments = shlex.split(theirs.store.hint)
        assert (program, main(arguments)) == ("opprof", 0)
        theirs.save("main", run_of(number + 10), collected=NOBODY)
    assert keys(theirs) == [key(number) for number in (12, 11, 2, 1)]
    assert capsys.readouterr().out == "main: 1 run copied\n" * 2


def test_diverged_refs_are_merged(tmp_path: Path, bare: Path) -> None:
    ours, theirs = clone(tmp_path, "a"), clone(tmp_path, "b")
    later = simple_test({"aten::mul": 7}, node_id=A.node_id)
    ours.save("main", run_of(1), collected=NOBODY)
    ours.save("main", run_of(3, A), collected=NOBODY)
    theirs.save("main", run_of(2), collected=NOBODY)
    theirs.save("main", run_of(3, later, B, hours=1), collected=NOBODY)
    theirs.save("topic", run_of(2), collected=NOBODY)
    assert push_refs(ours, ["main"], remote="origin") == ("main: 2 runs copied",)
    notes = push_refs(theirs, ["main", "topic"], remote="origin")
    assert "main@0000000 was in both stores: they are joined, and the later run wins" in notes
    remote = open_store("git:", root=bare)
    assert remote.names() == ("main", "topic")
    assert keys(remote) == [key(n) for n in (3, 2, 1)]
    assert remote.load(remote.entries("main")[0]).test(A.node_id) == later
    assert keys(theirs) == [key(n) for n in (3, 2)], "a push changes nothing here"

    pull_refs(ours, [], remote="origin")
    assert ours.names() == ("main", "topic")
    assert keys(ours) == keys(remote)
    for folder in ("a", "b", "bare"):
        assert "opprof-fetched" not in git(tmp_path / folder, "for-each-ref")


@pytest.mark.parametrize("options", [(), ("--mirror",)], ids=["refspec", "mirror"])
def test_configured_fetch_keeps_local_runs(tmp_path: Path, bare: Path, options: tuple[str, ...]) -> None:
    ours, theirs = clone(tmp_path, "a", *options), clone(tmp_path, "b")
    if not options:
        git(tmp_path / "a", "config", "--add", "remote.origin.fetch", "+refs/opprof/*:refs/opprof/*")
    theirs.save("main", run_of(2), collected=NOBODY)
    push_refs(theirs, ["main"], remote="origin")
    ours.save("main", run_of(1), collected=NOBODY)
    push_refs(ours, ["main"], remote="origin")
    assert keys(ours) == [key(1)], "a push changes nothing here"
    assert keys(open_store("git:", root=bare)) == [key(n) for n in (2, 1)]
    theirs.save("main", run_of(3), collected=NOBODY)
    push_refs(theirs, ["main"], remote="origin")
    ours.save("main", run_of(4), collected=NOBODY)
    pull_refs(ours, ["main"], remote="origin")
    assert keys(ours) == [key(n) for n in (4, 3, 2, 1)]


def test_remote_ref_with_a_non_text_name_is_skipped(tmp_path: Path, bare: Path) -> None:
    ours, theirs = clone(tmp_path, "a"), clone(tmp_path, "b")
    ours.save("main", run_of(1), collected=NOBODY)
    push_refs(ours, ["main"], remote="origin")
    command: list[str | bytes] = ["git", "update-ref", b"refs/opprof/\xff", "refs/opprof/main"]
    subprocess.run(command, cwd=bare, check=True)
    ours.save("main", run_of(2), collected=NOBODY)
    push_refs(ours, ["main"], remote="origin")
    assert pull_refs(theirs, [], remote="origin") == ("main: 2 runs copied",)
    for folder in ("a", "b"):
        # Git prints such a name as raw bytes: decoding it as text would fail here.
        told = subprocess.run(
            ["git", "for-each-ref"], cwd=tmp_path / folder, check=True, capture_output=True
        ).stdout
        assert b"opprof-fetched" not in told


def test_unreadable_names_do_not_block_a_push(
    tmp_path: Path, bare: Path, request: pytest.FixtureRequest
) -> None:
    place = place_of("git", tmp_path, request)
    store = place.archive()
    store.save("damaged", run_of(1), collected=NOBODY)
    git(tmp_path, "update-ref", "refs/opprof/team/main", "refs/opprof/damaged")
    place.damage("damaged", key(1))
    nothing = push_refs(store, store.names(), remote=str(bare))
    assert [note for note in nothing if "not copied" not in note] == [
        "damaged: 0 runs copied",
        "team/main: 0 runs copied",
    ]
    assert open_store("git:", root=bare).names() == ()
    store.save("main", run_of(2), collected=NOBODY)
    notes = push_refs(store, store.names(), remote=str(bare))
    assert "main: 1 run copied" in notes
    (left_out,) = (note for note in notes if note.startswith("not copied: "))
    assert f"refs/opprof/damaged:{key(1)}.json: " in left_out
    assert open_store("git:", root=bare).names() == ("main",)


def test_concurrent_push_is_merged(tmp_path: Path, bare: Path) -> None:
    ours, theirs = clone(tmp_path, "a"), clone(tmp_path, "b")
    ours.save("main", run_of(1), collected=NOBODY)
    theirs.save("main", run_of(2), collected=NOBODY)
    # Once, when the first push has fetched and is about to push, a git hook lets the other push go first.
    hook = tmp_path / "a" / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    other = f"GIT_DIR={tmp_path}/b/.git git push -q {bare} refs/opprof/main:refs/opprof/main"
    hook.write_text(f"#!/bin/sh\nrm {hook}\n{other}\n")
    hook.chmod(0o755)
    push_refs(ours, ["main"], remote="origin")
    assert keys(open_store("git:", root=bare)) == [key(n) for n in (2, 1)]


def test_a_pull_of_an_unknown_name_is_an_error(tmp_path: Path) -> None:
    ours, theirs = clone(tmp_path, "a"), clone(tmp_path, "b")
    ours.save("main", run_of(1), collected=NOBODY)
    push_refs(ours, ["main"], remote="origin")
    with pytest.raises(MissingBaselineError, match=r"^no baseline 'mian' in origin \(it has: main\)$"):
        pull_refs(theirs, ["mian"], remote="origin")


@pytest.mark.parametrize(("is_lasting", "pushes"), [(False, 2), (True, 1)], ids=["a lock", "no permission"])
def test_a_remote_that_cannot_be_written_is_reported(
    tmp_path: Path, bare: Path, monkeypatch: pytest.MonkeyPatch, is_lasting: bool, pushes: int
) -> None:
    monkeypatch.setattr(git_remote, "_MOST_TRIES", 2)
    store = clone(tmp_path, "a")
    store.save("main", run_of(1), collected=NOBODY)
    lock = bare / "refs" / "opprof" / "main.lock"
    lock.parent.mkdir()
    lock.touch()
    log, reason = tmp_path / "log", "Permission denied" if is_lasting else "tried"
    hook = bare / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho {reason} | tee -a {log}\n")
    hook.chmod(0o755)
    with pytest.raises(
        StoreError, match=rf"^git push origin failed: .*{reason}.*main\.lock.*Nothing was cha"
    ):
        push_refs(store, ["main"], remote="origin")
    assert log.read_text().count(reason) == pushes


def test_unreachable_remote_is_reported(tmp_path: Path) -> None:
    store = clone(tmp_path, "a")
    store.save("main", run_of(1), collected=NOBODY)
    for move in (push_refs, pull_refs):
        with pytest.raises(StoreError, match=r"^git fetch nowhere failed: .*\. Nothing was changed$"):
            move(store, ["main"], remote="nowhere")
    with pytest.raises(UsageError, match="has no remotes: name a store with --to or --from"):
        push_refs(open_store("dir:.opprof", root=tmp_path), ["main"], remote="origin")


@pytest.mark.parametrize("address", ["https://me:s3cret@127.0.0.1:9/x", "https://s3cret@127.0.0.1:9/x"])
@pytest.mark.parametrize("is_named", [False, True])
def test_git_errors_hide_passwords(tmp_path: Path, address: str, is_named: bool) -> None:
    ours = clone(tmp_path, "a")
    ours.save("main", run_of(1), collected=NOBODY)
    git(tmp_path / "a", "remote", "add", "other", address)
    for takes in (push_refs, pull_refs):
        with pytest.raises(StoreError) as caught:
            takes(ours, ["main"], remote="other" if is_named else address)
        assert "127.0.0.1:9" in str(caught.value)
        assert "s3cret" not in str(caught.value)


def test_shallow_clone_keeps_and_pushes(tmp_path: Path, bare: Path) -> None:
    git(tmp_path / "first", "commit", "-q", "--allow-empty", "-m", "two")
    git(tmp_path / "first", "push", "-q", "origin", "main")
    store = clone(tmp_path, "a", "--depth=1")
    store.save("main", run_of(1), collected=NOBODY)
    push_refs(store, ["main"], remote="origin")
    assert keys(open_store("git:", root=bare)) == [key(1)]


def test_unusable_git_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreError, match="git: cannot be used: this is not a git repository"):
        open_store("git:", root=tmp_path).names()
    with pytest.raises(StoreError, match="/none is not a folder"):
        open_store("git:none", root=tmp_path).names()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreError, match="git: cannot be used: git is not installed"):
        open_store("git:", root=tmp_path).names()


def test_foreign_files_in_the_ref_are_ignored(tmp_path: Path) -> None:
    store = clone(tmp_path, "a")
    store.save("main", run_of(1), collected=NOBODY)
    folder = tmp_path / "a"
    (folder / "README").write_text("x")
    blob = git(folder, "hash-object", "-w", "README")
    tree = git(folder, "ls-tree", "refs/opprof/main") + f"\n100644 blob {blob}\tREADME\n"
    (folder / "tree").write_text(tree + f"100644 blob {blob}\t.x y.json\n")
    with (folder / "tree").open() as lines:
        made = subprocess.run(["git", "mktree"], cwd=folder, stdin=lines, check=True, capture_output=True)
    git(
        folder,
        "update-ref",
        "refs/opprof/main",
        git(folder, "commit-tree", "-m", "x", made.stdout.decode().strip()),
    )
    assert keys(store) == [key(1)]
