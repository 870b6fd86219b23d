"""Which line of the user's own code an op comes from: the innermost call outside of installed packages."""

from __future__ import annotations

import functools
import site
import sys
import sysconfig
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_opprof.capture.op_kind import FLAG_CREDITED, OpKind
from pytest_opprof.events.names import summed_name
from pytest_opprof.events.stacks import Stacks, StackTree, frame_of

if TYPE_CHECKING:
    from pytest_opprof.events.recording_view import RecordingView

_NOT_CALLED_FROM_A_LINE = frozenset({OpKind.PYTHON_CALL, OpKind.C_CALL, OpKind.MEMORY, OpKind.MARK})


def places_of_ops(recording: RecordingView) -> dict[str, Counter[str]]:
    """Per op or range, from which lines it was called in the steps, and how often.

    Returns:
        By name: places such as ``forward, model.py:41``, with numbers of events. Empty where no calls were
        recorded.
    """
    found: dict[str, Counter[str]] = {}
    stacks, known = Stacks(recording), dict[int, str | None]()
    if not stacks.were_recorded:
        return found
    for event, kind in enumerate(recording.kind):
        is_counted = recording.step[event] >= 0 and not recording.flags[event] & FLAG_CREDITED
        if not is_counted or kind in _NOT_CALLED_FROM_A_LINE or OpKind(kind).is_on_device:
            continue
        place = _innermost_place(*stacks.tree_and_node(event), known)
        if place is not None:
            found.setdefault(summed_name(recording.name(event)), Counter())[place] += 1
    return found


def _innermost_place(stacks: StackTree, node: int, known: dict[int, str | None]) -> str | None:
    """The place of the innermost entry that has one; `known` keeps the answer for each stack."""
    waiting, place = [], None
    while node >= 0 and node not in known and place is None:
        waiting.append(node)
        place = _place(stacks.entry(node))
        node = stacks.outer(node)
    place = place or known.get(node)
    known.update(dict.fromkeys(waiting, place))
    return place


@functools.lru_cache(maxsize=1 << 14)
def _place(entry: str) -> str | None:
    """An entry of a stack as a place in the user's code; None for one that is none."""
    frame = frame_of(entry)
    if frame is None:
        return None
    path, line, function = frame
    shown = _user_path(path)
    return f"{function}, {shown}:{line}" if shown else None


@functools.lru_cache(maxsize=1 << 12)
def _user_path(text: str) -> str | None:
    """A file of the user's own, from the working directory where it lies below; None for any other.

    Entries have lost the folder that they are imported from: the first one that has such a file is it.
    """
    path = Path(text)
    folders = sorted({folder for folder in sys.path if folder}, key=len, reverse=True)
    candidates = [path] if path.is_absolute() else [Path(folder, text) for folder in folders]
    found = next((candidate for candidate in candidates if candidate.is_file()), None)
    if found is None or any(found.is_relative_to(folder) for folder in _library_folders()):
        return None
    here = Path.cwd()
    return str(found.relative_to(here) if found.is_relative_to(here) else found)


@functools.cache
def _library_folders() -> tuple[Path, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    known = {sysconfig.get_paths()[name] for name in names}
    return tuple(Path(folder) for folder in known | {*site.getsitepackages(), site.getusersitepackages()})
