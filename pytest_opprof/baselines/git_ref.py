"""Baselines in refs of a git repository: ``refs/opprof/<name>`` is a commit whose tree has ``<key>.json``.

No branch or work tree has them. Each change is a new commit without a parent, so that history does not keep
pruned runs. The ref moves only from the value that the change was made from (git's own compare-and-swap),
else the change is made again. So two writers lose nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote as quoted
from urllib.parse import quote, unquote

from pytest_opprof.addresses import shown
from pytest_opprof.baselines.git import Git, run_git
from pytest_opprof.baselines.keys import LONG_AGO, created_in, entry_of, is_key
from pytest_opprof.baselines.store import Change, Changed, Entry
from pytest_opprof.errors import DocumentError, StoreError
from pytest_opprof.results.files import check_size

REFS = "refs/opprof/"
_SUFFIX = ".json"
# A change is made again whenever another writer was faster: never this often.
_MOST_TRIES = 100
# How long git waits for another process that moves a ref, milliseconds; its default of 100 is short.
_PATIENT = ("-c", "core.filesRefLockTimeout=10000", "-c", "core.packedRefsTimeout=10000")
# git holds the lock of a ref for milliseconds; the owner of a lock this old is dead.
_STALE_S = 600
_REFUSED = re.compile(r"Unable to create '([^'\n]+\.lock)': File exists")
# Storing baselines needs no git identity, which CI lacks.
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "pytest-opprof"), ("EMAIL", "pytest-opprof@localhost"))
}
# A line of a commit's message: a blob, and its run's time.
_NOTE = re.compile(r"^([0-9a-f]{40}|[0-9a-f]{64}) ([0-9T:.+-]{19,40})$", re.MULTILINE)
# Not allowed in a ref's name: two dots, a dot or .lock at its end.
_DOTS = re.compile(r"\.(?=\.|$|lock$)")
_REASONS = {
    "No space left on device": "the disk is full. Free some space and run again",
    "Disk quota exceeded": "your disk quota is used up. Free some space and run again",
    "Permission denied": "permission denied. Make it writable, or choose another store",
    "insufficient permission": "permission denied. Make it writable, or choose another store",
    "Read-only file system": "the file system is read-only. Choose another store",
    "not a git repository": "this is not a git repository. Run `git init`, or choose another store",
    "dubious ownership": "the repository belongs to another user (git config safe.directory)",
}


class GitRefStore:
    """Runs in the git repository of a folder, in the refs with a prefix."""

    def __init__(self, folder: Path, *, uri: str = "git:", refs: str = REFS) -> None:
        self.folder = folder
        self.uri = uri
        self.refs = refs

    @property
    def hint(self) -> str:
        """How to get baselines that others pushed: a clone has only branches and tags."""
        remote = Git(self.folder).remote
        pull = f"opprof baseline pull --store={quoted(self.uri)}"
        return pull if remote == "origin" else f"{pull} --remote={quoted(remote)}" if remote else ""

    def names(self) -> tuple[str, ...]:
        """The refs that have a run, as names: somebody may have pushed a branch there."""
        return tuple(
            unquote(ref.removeprefix(self.refs)) for ref, tip in self.tips().items() if self._files(tip)
        )

    def tips(self) -> dict[str, str]:
        """The commit of each ref, except symbolic refs and refs without a commit, which are not ours."""
        return self._commits(self.refs)

    def _commits(self, pattern: str) -> dict[str, str]:
        # Somebody may have pushed a ref whose name is not UTF-8.
        told = self.ask("for-each-ref", "--format=%(refname) %(objectname) %(symref)", pattern)
        lines = told.decode("utf-8", "surrogateescape").rstrip("\n").split("\n")
        found = {
            ref: tip for ref, tip, symbolic in (line.split(" ") for line in lines if line) if not symbolic
        }
        asked = "".join(f"{tip}\n" for tip in found.values()).encode()
        kinds = self.ask("cat-file", "--batch-check=%(objecttype)", given=asked).decode().splitlines()
        return {ref: tip for (ref, tip), kind in zip(found.items(), kinds, strict=True) if kind == "commit"}

    def ref(self, name: str) -> str:
        """The ref of a name."""
        return self.refs + part_of_ref(name)

    def entries(self, name: str) -> tuple[Entry, ...]:
        """The documents in the tree of a name's ref."""
        tip = self._tip(name)
        return self._entries(name, tip, self._files(tip))

    def read(self, entry: Entry) -> tuple[bytes, ...]:
        """The blob of an entry."""
        for size in self._sizes(entry.parts).values():
            check_size(size, where=entry.place)
        return tuple(self.ask("cat-file", "blob", part) for part in entry.parts)

    def change(self, name: str, plan: Callable[[tuple[Entry, ...]], Change]) -> Changed:
        """Apply ``plan``, from the ref's present value to a new one in one step."""
        for _ in range(_MOST_TRIES):
            old = self._tip(name)
            files = self._files(old)
            entries = self._entries(name, old, files)
            created = {entry.parts[0]: entry.created for entry in entries}
            change = plan(entries)
            for entry in change.drops:
                files.pop(entry.key + _SUFFIX, None)
            for put in change.puts:
                blob = files[put.key + _SUFFIX] = self._printed(
                    "hash-object", "-w", "--stdin", given=put.data
                )
                created[blob] = created_in(put.data) or LONG_AGO
            if self._moved(name, old, files, created):
                return Changed(places=tuple(self._place(name, put.key) for put in change.puts))
        raise StoreError(f"{self.uri}: other processes kept changing {self.ref(name)}. Run again")

    def ask(self, *arguments: str, given: bytes = b"") -> bytes:
        """Git's output; raises `StoreError` if it fails."""
        done = self._run(*arguments, given=given)
        if done.returncode:
            raise self._failed(arguments[0], done.stderr)
        return done.stdout

    def _run(self, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        try:
            return run_git(self.folder, *arguments, given=given, variables=_IDENTITY)
        except (OSError, subprocess.TimeoutExpired) as error:
            what = "git is not installed" if self.folder.is_dir() else f"{self.folder} is not a folder"
            if not isinstance(error, FileNotFoundError | NotADirectoryError):
                what = "git does not answer"
            raise StoreError(f"{self.uri} cannot be used: {what}. Choose another store") from error

    def _failed(self, command: str, said: bytes) -> StoreError:
        text = said.decode("utf-8", "replace").strip()
        for mark, reason in _REASONS.items():
            if mark in text:
                return StoreError(f"{self.uri} cannot be used: {reason}")
        return StoreError(f"{self.uri} cannot be used: git {command} says: {shown(' '.join(text.split()))}")

    def _tip(self, name: str) -> str:
        """The commit of a name's ref; empty without one."""
        ref = self.ref(name)
        return self._commits(ref).get(ref, "")

    def _files(self, commit: str) -> dict[str, str]:
        """The blob of each document in a commit."""
        if not commit:
            return {}
        files = {}
        for line in self.ask("ls-tree", "--full-tree", "-z", commit).decode("utf-8", "replace").split("\0"):
            about, _, file = line.partition("\t")
            if file.endswith(_SUFFIX) and is_key(file.removesuffix(_SUFFIX)) and " blob " in about:
                files[file] = about.split(" ")[2]
        return files

    def _entries(self, name: str, commit: str, files: dict[str, str]) -> tuple[Entry, ...]:
        created = self._noted(commit)
        created |= self._created(blob for blob in files.values() if blob not in created)
        keys = {file.removesuffix(_SUFFIX): blob for file, blob in files.items()}
        return tuple(
            entry_of(name, key, created=created[blob], place=self._place(name, key), parts=(blob,))
            for key, blob in keys.items()
        )

    def _noted(self, commit: str) -> dict[str, datetime]:
        """When each blob's run was measured, by the commit's message; older releases wrote none."""
        if not commit:
            return {}
        message = self.ask("cat-file", "commit", commit).decode("utf-8", "replace")
        found = {}
        for blob, moment in _NOTE.findall(message):
            with contextlib.suppress(ValueError, OverflowError):
                found[blob] = datetime.fromisoformat(moment).astimezone(UTC)
        return found

    def _created(self, blobs: Iterable[str]) -> dict[str, datetime]:
        """When each blob's run was measured, by the blobs themselves."""
        created: dict[str, datetime] = {}
        # One at a time, because all together may be more than the memory.
        for blob, size in self._sizes(blobs).items():
            created[blob] = LONG_AGO
            with contextlib.suppress(DocumentError):
                check_size(size, where=blob)
                created[blob] = created_in(self.ask("cat-file", "blob", blob)) or LONG_AGO
        return created

    def _sizes(self, blobs: Iterable[str]) -> dict[str, int]:
        asked = "".join(f"{blob}\n" for blob in blobs).encode()
        printed = self.ask("cat-file", "--batch-check", given=asked) if asked else b""
        sizes = {}
        for line in printed.decode().splitlines():
            blob, kind, *size = line.split(" ")
            if not size:
                raise StoreError(
                    f"{self.uri}: the object {blob} is {kind}: the repository is damaged. Run git fsck"
                )
            sizes[blob] = int(size[0])
        return sizes

    def _printed(self, *arguments: str, given: bytes) -> str:
        return self.ask(*arguments, given=given).decode().strip()

    def _moved(self, name: str, old: str, files: dict[str, str], created: dict[str, datetime]) -> bool:
        """Point the ref to these files, of these times; says whether it still was at ``old``."""
        ref = self.ref(name)
        if files == self._files(old):
            return True
        if not files:
            return self._swapped(name, old, "-d", ref, old)
        listed = "".join(f"100644 blob {blob}\t{file}\0" for file, blob in files.items())
        tree = self._printed("mktree", "-z", given=listed.encode())
        notes = "".join(f"\n{blob} {created[blob].isoformat()}" for blob in files.values())
        message = f"pytest-opprof: baselines of {name}\n{notes}\n".encode("utf-8", "backslashreplace")
        commit = self._printed("commit-tree", tree, given=message)
        return self._swapped(name, old, ref, commit, old)

    def _swapped(self, name: str, old: str, *arguments: str) -> bool:
        done = self._run(*_PATIENT, "update-ref", "--no-deref", *arguments)
        if done.returncode == 0:
            return True
        ref = self.ref(name)
        if not old and not self._tip(name) and self.ask("for-each-ref", "--format=%(refname)", ref):
            raise StoreError(
                f"{ref} is a symbolic ref or does not point to a commit, so nothing was written. Remove it: "
                f"git update-ref --no-deref -d {ref}"
            )
        # If a killed process left its lock, the change is made again without it.
        if self._tip(name) != old or remove_stale_lock(done.stderr, ref=ref):
            return False
        raise self._failed("update-ref", done.stderr)

    def _place(self, name: str, key: str) -> str:
        return f"{self.ref(name)}:{key}{_SUFFIX}"


def part_of_ref(name: str) -> str:
    """A name, quoted, as the last part of a ref: never a folder of another, nor refused by git."""
    return _DOTS.sub("%2E", quote(name, safe="").replace("~", "%7E"))


def remove_stale_lock(said: bytes, *, ref: str) -> bool:
    """Remove this ref's lock that git met, if its owner must be dead, and say whether git may retry."""
    found = _REFUSED.search(said.decode("utf-8", "replace"))
    if found is None:
        return False
    lock = Path(found[1])
    aside = lock.with_name(f"{lock.name}.{os.getpid()}")
    try:
        if not lock.as_posix().endswith(f"/{ref}.lock") or not _is_stale(lock):
            return False
        # Another process may have replaced it by its own meanwhile: that one is restored.
        lock.rename(aside)
        if not _is_stale(aside):
            os.link(aside, lock)
            aside.unlink()
            return False
        aside.unlink()
    except OSError:
        return False
    return True


def _is_stale(lock: Path) -> bool:
    return time.time() - lock.stat().st_mtime > _STALE_S
