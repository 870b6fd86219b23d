"""The line of the user's own code that an op comes from: the innermost call outside installed packages."""

from __future__ import annotations

import functools
import linecache
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from pytest_opprof.capture.call_sites import CalledFrom, CallSite, library_folders
from pytest_opprof.capture.folders import start_folder
from pytest_opprof.events.kineto_recording import RecordingView
from pytest_opprof.events.stacks import Stacks, StackTree, at_line, frame_of
from pytest_opprof.kinds import FLAG_CREDITED, PYTHON_CALLS, EventKind
from pytest_opprof.statement import rest_of_statement

_NOT_CALLED_FROM_A_LINE = PYTHON_CALLS | {EventKind.MEMORY, EventKind.MARK}


class Place(NamedTuple):
    """A line of the user's own code."""

    name: str  # ``Block.forward, model.py:41``, with the file relative to the start folder if it is there
    text: str  # the source of the line, stripped; empty if the file cannot be read
    rest: tuple[str, ...] = ()  # the lines after it that are shown with it, stripped


def places_of_sites(
    called_from: Iterable[CalledFrom], amount: Callable[[CalledFrom], int] = attrgetter("calls")
) -> dict[str, Counter[Place]]:
    """As `places_of_ops`, from call sites recorded while ops ran, with sums of `amount` instead of events."""
    found: dict[str, Counter[Place]] = {}
    for called in called_from:
        place = _place_of_site(called.site)
        if place is not None and (more := amount(called)):
            found.setdefault(called.name, Counter())[place] += more
    return found


def callers_of_places(called_from: Iterable[CalledFrom]) -> dict[Place, Counter[Place]]:
    """By line that calls ops: the lines that called its function, and so on outwards.

    Each has the number of op calls that came through it. Call sites recorded without callers give nothing.
    """
    calls = Counter[CallSite]()
    for called in called_from:
        calls[called.site] += called.calls
    found = defaultdict[Place, Counter[Place]](Counter)
    for site, many in calls.items():
        place, outer = _place_of_site(site), site.caller
        while outer is not None:
            around, outer = _place_of_site(outer), outer.caller
            if around is None:  # generated code, or its file is gone
                continue
            if place is not None and place != around:
                found[place][around] += many
            place = around
    return dict(found)


def places_of_ops(recording: RecordingView) -> dict[str, Counter[Place]]:
    """The lines that called each op, range or Python call in the steps, by its name, with numbers of events.

    Empty if no calls were recorded.
    """
    stacks, known = Stacks(recording), dict[int, Place | None]()
    if not stacks.were_recorded:
        return {}
    found = _places_of_calls(recording, stacks)
    for event, kind in enumerate(recording.kind):
        is_counted = recording.step[event] >= 0 and not recording.flags[event] & FLAG_CREDITED
        if not is_counted or kind in _NOT_CALLED_FROM_A_LINE or EventKind(kind).is_on_device:
            continue
        place = _innermost_place(*stacks.tree_and_node(event), known)
        if place is not None:
            found.setdefault(recording.row_name(event), Counter())[place] += 1
    return found


def _places_of_calls(recording: RecordingView, stacks: Stacks) -> dict[str, Counter[Place]]:
    """As `places_of_ops`, for the many Python calls: each takes its place from the call around it."""
    parents, lines, steps, flags = recording.parent, recording.line, recording.step, recording.flags
    found = defaultdict[str, Counter[Place]](Counter)
    of_frames: dict[tuple[str, int], Place | None] = {}
    of_calls: dict[int, Place | None] = {}
    for call in (row for row, kind in enumerate(recording.kind) if kind in PYTHON_CALLS):
        parent = parents[call]
        if parent in of_calls:
            frame = recording.name(parent), lines[call]
            if frame not in of_frames:
                of_frames[frame] = _place_of_entry(at_line(*frame), start_folder())
            place = of_frames[frame] or of_calls[parent]
        else:
            place = _innermost_place(*stacks.tree_and_node(call), {})
        of_calls[call] = place
        if place is not None and steps[call] >= 0 and not flags[call] & FLAG_CREDITED:
            found[recording.row_name(call)][place] += 1
    return found


def _innermost_place(stacks: StackTree, node: int, known: dict[int, Place | None]) -> Place | None:
    """The place of the innermost entry that has one; `known` caches the answer for each stack."""
    waiting, place = [], None
    while node >= 0 and node not in known and place is None:
        waiting.append(node)
        place = _place_of_entry(stacks.entry[node], start_folder())
        node = stacks.outer[node]
    place = place or known.get(node)
    known.update(dict.fromkeys(waiting, place))
    return place


@functools.lru_cache(maxsize=1 << 14)
def _place_of_entry(entry: str, start: Path) -> Place | None:
    """A stack entry as a place in the user's code; None if it is not in it."""
    frame = frame_of(entry)
    return None if frame is None else _place(*frame, start)


def place_of(file: str, line: int, function: str) -> Place | None:
    """A line as a place in the user's code; None if it is not in it."""
    return _place(file, line, function, start_folder())


def _place_of_site(site: CallSite) -> Place | None:
    return place_of(site.file, site.line, site.function)


@functools.lru_cache(maxsize=1 << 14)
def _place(file: str, line: int, function: str, start: Path) -> Place | None:
    path = _user_file(file, start)
    if path is None:
        return None
    shown = path.relative_to(start) if path.is_relative_to(start) else path
    rest = rest_of_statement(linecache.getlines(str(path)), line)
    return Place(f"{function}, {shown}:{line}", linecache.getline(str(path), line).strip(), rest)


@functools.lru_cache(maxsize=1 << 12)
def _user_file(text: str, start: Path) -> Path | None:
    """A file of the user's own; None for any other.

    Stack entries lack the folder of the import: it is the longest of ``sys.path`` that has such a file.
    """
    path = Path(text)
    folders = sorted({folder for folder in sys.path if folder}, key=len, reverse=True)
    candidates = [path] if path.is_absolute() else [start / folder / text for folder in folders]
    found = next((candidate for candidate in candidates if candidate.is_file()), None)
    return None if found is None or str(found).startswith(library_folders()) else found
