"""A store's baselines as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from pytest_opprof.baselines.keys import FAMILY, LONG_AGO
from pytest_opprof.baselines.resolve import CLOCKS_APART, age_in_words
from pytest_opprof.baselines.store import Entry
from pytest_opprof.baselines.summary import Summary
from pytest_opprof.report.text import Line, Style, escaped, table

_SHORT = 7
_FINGERPRINT = 8


def baseline_lines(found: Sequence[Summary], *, uri: str, now: datetime, width: int) -> Iterator[Line | str]:
    """A row for each baseline, then the unreadable ones."""
    if not found:
        yield f"{escaped(uri)} is empty: record a baseline with pytest --opprof-save=NAME"
        return
    rows = [
        (
            one.name,
            short_key(one.newest),
            _age(one.newest, now),
            str(one.runs),
            "?" if one.tests is None else str(one.tests),
            (one.fingerprint or "?")[:_FINGERPRINT],
        )
        for one in found
    ]
    headers = ("baseline", "newest", "age", "runs", "tests", "environment")
    first, *others = table(headers, rows, width=width, names=0, right=("runs", "tests"))
    yield Line(first, Style.BOLD)
    yield from others
    for one in found:
        if one.problem:
            yield Line(escaped(one.problem), Style.BAD)


def entry_lines(entries: Sequence[Entry], *, now: datetime, width: int) -> Iterator[Line | str]:
    """A row for each run of a baseline, newest first."""
    rows = [(short_key(entry), entry.family or "-", _age(entry, now), entry.place) for entry in entries]
    first, *others = table(("run", "environment", "age", "place"), rows, width=width, names=3)
    yield Line(first, Style.BOLD)
    yield from others


def short_key(entry: Entry) -> str:
    """A run's key as people write it: ``1a2b3c4``, ``1a2b3c4+dirty``, or a time."""
    if entry.commit is None:
        return entry.key.partition(FAMILY)[0]
    return entry.commit[:_SHORT] + ("+dirty" if entry.is_dirty else "")


def _age(entry: Entry, now: datetime) -> str:
    if entry.created == LONG_AGO:
        return "-"
    age = now - entry.created
    return f"{age_in_words(-age)} ahead" if age < -CLOCKS_APART else age_in_words(age)
