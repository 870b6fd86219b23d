"""Read the lines of a segment, which may be damaged or not ours."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from pytest_opprof.history.record import (
    DIGEST_LENGTH,
    Counts,
    Definition,
    RunHead,
    RunRecord,
    counts_from,
    digest_of,
)
from pytest_opprof.regular_files import open_regular
from pytest_opprof.results.files import store_errors
from pytest_opprof.results.run import Commit

_DEFINITION = re.compile(rb'\{"define":"([0-9a-f]{16})","as":(.+)\}')
_DEFINES = b'{"define":"'
_DIGEST = slice(len(_DEFINES), len(_DEFINES) + DIGEST_LENGTH)
# What parsing raises for a line that is not one of our entries.
_NO_ENTRY = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionEntry:
    """A definition with its content: a test's counts, or else a fingerprint."""

    definition: Definition
    counts: Counts | None
    fingerprint: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """A run: its environment and tests by their definitions' digests, and each test's varying values."""

    head: RunHead
    environment: str
    tests: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The entries of a segment."""

    entries: tuple[DefinitionEntry | RunEntry, ...]  # in the order in which they were written
    damaged: int  # the number of lines that are not entries
    is_torn: bool  # whether it ends in half a line


def read_entries(path: Path, *, known: Collection[str] = ()) -> Chunk:
    """Read the entries of a segment, without definitions whose digests are known."""
    with store_errors(path, "cannot be read"), open_regular(path) as file:
        *lines, rest = file.read().split(b"\n")
    # Each segment repeats most definitions of the one before it.
    parsed = [
        _entry(line)
        for line in lines
        if not (line.startswith(_DEFINES) and line[_DIGEST].decode("ascii", "replace") in known)
    ]
    entries = tuple(entry for entry in parsed if entry is not None)
    return Chunk(entries=entries, damaged=len(parsed) - len(entries), is_torn=bool(rest))


def definitions_of(entries: Iterable[DefinitionEntry | RunEntry]) -> Iterator[tuple[str, Definition]]:
    """The definitions among entries, with their digests."""
    return (
        (entry.definition.digest, entry.definition) for entry in entries if isinstance(entry, DefinitionEntry)
    )


def records_of(
    entries: Iterable[DefinitionEntry | RunEntry], known: Mapping[str, Definition]
) -> Iterator[RunRecord]:
    """The runs among entries, without tests whose definitions are not known."""
    for entry in entries:
        if isinstance(entry, RunEntry) and entry.environment in known:
            yield RunRecord(
                head=entry.head,
                environment=known[entry.environment],
                tests=tuple(
                    (known[test], tuple(values)) for test, values in entry.tests.items() if test in known
                ),
            )


def _entry(line: bytes) -> DefinitionEntry | RunEntry | None:
    try:
        found = _DEFINITION.fullmatch(line)
        return (
            _run(json.loads(line)) if found is None else _defined(found[1].decode(), found[2].decode("ascii"))
        )
    except _NO_ENTRY:
        return None


def _defined(digest: str, text: str) -> DefinitionEntry:
    if digest_of(text) != digest:
        raise ValueError("the line differs from what was written")
    document = json.loads(text)
    definition = Definition(digest=digest, text=text)
    if "fingerprint" in document:
        fingerprint = {str(name): str(value) for name, value in document["fingerprint"].items()}
        return DefinitionEntry(definition=definition, counts=None, fingerprint=fingerprint)
    return DefinitionEntry(definition=definition, counts=counts_from(document), fingerprint={})


def _run(document: Any) -> RunEntry:
    tests, commit, committed = document["tests"], document["commit"], document["committed"]
    array("q", chain.from_iterable(tests.values()))  # refuses, at C speed, anything but integers of 64 bits
    branch = None if commit is None else commit["branch"]
    head = RunHead(
        run_id=str(document["run"]),
        created=_moment(document["created"]),
        committed=None if committed is None else _moment(committed),
        commit=None
        if commit is None
        else Commit(
            id=str(commit["id"]), dirty=bool(commit["dirty"]), branch=None if branch is None else str(branch)
        ),
        name=None if document["name"] is None else str(document["name"]),
    )
    return RunEntry(head=head, environment=str(document["environment"]), tests=tests)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
