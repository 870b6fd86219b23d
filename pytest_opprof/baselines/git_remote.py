"""Baselines in git refs, to another repository and back, by ``git fetch`` and ``git push``.

Diverged refs are joined by content, never overwritten: the other side's are fetched into separate refs,
joined there, and pushed on the condition that the other side is unchanged.
"""

from __future__ import annotations

import contextlib
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_opprof.addresses import said_of, shown
from pytest_opprof.baselines.archive import Archive
from pytest_opprof.baselines.git import run_git
from pytest_opprof.baselines.git_ref import REFS, GitRefStore
from pytest_opprof.baselines.resolve import known_names
from pytest_opprof.errors import StoreError, UsageError

# Not below refs/opprof/, which users fetch and push entirely.
_FETCHED = "refs/opprof-fetched/"
_MOST_TRIES = 20
_NETWORK_TIMEOUT_S = 600
# Git's words for a ref that another push has moved, or is moving; its lock may also be a dead process's.
_MOVED = ("stale info", "fetch first", "remote ref updated since checkout")
_LOCKED = ("failed to update ref", "cannot lock ref")
# A lock that cannot be made is no other push's.
_LASTING = ("Permission denied", "No space left on device", "Disk quota exceeded", "Read-only file system")


def push_refs(archive: Archive, names: Sequence[str], *, remote: str) -> tuple[str, ...]:
    """Push these names' runs to a remote, beside its own, and give sentences on what was joined.

    A remote has a name or an address. If it cannot be reached or written, this raises `StoreError`.
    """
    store = _git_store(archive)
    for _ in range(_MOST_TRIES):
        with _fetched(store, remote) as theirs:
            tips = theirs.tips()
            both = replace(archive, store=theirs)
            notes = both.take(archive, names)
            # A name without readable runs has no ref, and with a missing ref git would push nothing at all.
            made = theirs.tips()
            refs = [
                (ref, REFS + ref.removeprefix(theirs.refs))
                for ref in (theirs.ref(archive.kept_as(name)) for name in names)
                if ref in made
            ]
            if not refs:
                return notes
            leases = [f"--force-with-lease={ref}:{tips.get(local, '')}" for local, ref in refs]
            specs = [f"{local}:{ref}" for local, ref in refs]
            alone = _alone(store, remote)
            done = _network(store, "push", "--quiet", *leases, "--", remote, *specs, options=alone)
        if done.returncode == 0:
            return notes
        said = done.stderr.decode("utf-8", "replace")
        is_lasting = any(mark in said for mark in _LASTING)
        if is_lasting or not any(mark in said for mark in _MOVED + _LOCKED):
            raise _refused("push", remote, done.stderr)
    if any(mark in said for mark in _LOCKED):
        raise _refused("push", remote, done.stderr)
    raise StoreError(f"{shown(remote)}: others keep pushing baselines. Run again")


def pull_refs(archive: Archive, names: Sequence[str], *, remote: str) -> tuple[str, ...]:
    """Fetch a remote's runs of these names, or of all, and give sentences on copied and joined runs.

    It raises `MissingBaselineError` for a name that the remote lacks.
    """
    store = _git_store(archive)
    with _fetched(store, remote) as theirs:
        other = replace(archive, store=theirs)
        return archive.take(other, known_names(names, store=other))


@contextlib.contextmanager
def _fetched(store: GitRefStore, remote: str) -> Iterator[GitRefStore]:
    """A remote's runs, in temporary refs."""
    refs = f"{_FETCHED}{secrets.token_hex(8)}/"
    theirs = GitRefStore(store.folder, uri=shown(remote), refs=refs)
    # Without --refmap= git also fetches as the remote is configured, perhaps over the refs here.
    only = ("--no-tags", "--no-write-fetch-head", "--refmap=")
    done = _network(store, "fetch", "--quiet", *only, "--", remote, f"+{REFS}*:{refs}*")
    if done.returncode:
        raise _refused("fetch", remote, done.stderr)
    try:
        yield theirs
    finally:
        gone = "".join(f"delete {ref}\n" for ref in theirs.tips())
        store.ask("update-ref", "--stdin", given=gone.encode("utf-8", "surrogateescape"))


def _git_store(archive: Archive) -> GitRefStore:
    if not isinstance(archive.store, GitRefStore):
        raise UsageError(
            f"{archive.uri} has no remotes: name a store with --to or --from, or use --store=git:"
        )
    return archive.store


def _alone(store: GitRefStore, remote: str) -> tuple[str, ...]:
    """Options for a push that moves no ref here and does not mirror, whatever the remote's settings."""
    if remote not in store.ask("remote").decode("utf-8", "surrogateescape").split("\n"):
        return ()
    # After a push git moves the remote's refs here, and would lose a run saved meanwhile.
    return ("-c", f"remote.{remote}.fetch=^{REFS}*", "-c", f"remote.{remote}.mirror=false")


def _network(
    store: GitRefStore, *arguments: str, options: Sequence[str] = ()
) -> subprocess.CompletedProcess[bytes]:
    try:
        return run_git(store.folder, *options, *arguments, timeout_s=_NETWORK_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StoreError(f"git {arguments[0]} does not answer ({type(error).__name__}). Run again") from error


def _refused(command: str, remote: str, said: bytes) -> StoreError:
    text = " ".join(said.decode("utf-8", "replace").split()).rstrip(".")
    return StoreError(f"git {command} {shown(remote)} failed: {said_of(remote, text)}. Nothing was changed")
