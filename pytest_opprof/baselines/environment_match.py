"""The nearest run for a session from an environment like its own."""

from __future__ import annotations

import itertools
import json
import zlib
from typing import TYPE_CHECKING

from pytest_opprof.baselines.keys import OTHER, distance
from pytest_opprof.errors import DocumentError, StoreError
from pytest_opprof.metrics.fingerprint import COUNT_FIELDS, SETTINGS
from pytest_opprof.results.merge import differences
from pytest_opprof.results.run import Environment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_opprof.baselines.archive import Archive
    from pytest_opprof.baselines.store import BaselineStore, Entry

# All that counts depend on, except what tests may set: a stored run has the last values of that.
_FIELDS = COUNT_FIELDS - SETTINGS | {"compile"}
# This many runs are read. Farther ones say little about the wanted commit.
MOST_RUNS = 20
# A document's environment is before its tests, and so in its first bytes.
_HEAD_BYTES = 64 * 1024
_KEY = '"environment":'
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP = zlib.MAX_WBITS | 16


def differences_of_counts(environment: Environment, here: Environment) -> str:
    """Differences that counts depend on, known on both sides, in words: ``torch 2.12.0 -> 2.13.0``."""
    found = differences(environment, here, ignore_unknown=True)
    return ", ".join(words for field, words in found.items() if field in _FIELDS)


def nearest_like(here: Environment, entries: Iterable[Entry], *, store: Archive) -> Entry | None:
    """The nearest run whose counts compare with those of an environment; None without one.

    At most `MOST_RUNS` are read, nearest first, and of these only the environments.
    """
    near = (entry for entry in entries if distance(entry.family, here) < OTHER)
    for entry in itertools.islice(near, MOST_RUNS):
        environment = environment_of(entry, store=store.store)
        if environment is not None and not differences_of_counts(environment, here):
            return entry
    return None


def environment_of(entry: Entry, *, store: BaselineStore) -> Environment | None:
    """Where a run was measured, read without its rest; None if its document does not say.

    A damaged run is never chosen by environment. If the user names it, reading it says so.
    """
    try:
        head = store.read(entry)[0]
        if head.startswith(_GZIP_MAGIC):
            head = zlib.decompressobj(_GZIP).decompress(head, _HEAD_BYTES)
        text = head[:_HEAD_BYTES].decode("utf-8", "replace")
        document, _ = json.JSONDecoder().raw_decode(text, text.index(_KEY) + len(_KEY))
        fields = document["fingerprint"].items()
        return Environment(fingerprint={str(key): str(value) for key, value in fields})
    except (DocumentError, StoreError, zlib.error, ValueError, TypeError, KeyError, AttributeError):
        return None
