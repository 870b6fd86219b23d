"""The timeline of a step as a page draws it, from the traces of a folder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_opprof.results.names import trace_stem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_opprof.traces.step import StepEvents

# A page has room for so many events of a step: the shortest, which nobody could see, are left out.
_MOST_EVENTS = 4_000
# What stands between a trace's stem and its suffix: a side, a cycle, both or neither.
_PART = re.compile(r"(?:\.(base|head))?(?:\.cycle([0-9]+))?\.json(?:\.gz)?")


def traces_by_test(folder: Path, node_ids: Sequence[str]) -> dict[str, list[Path]]:
    """The traces that a folder has of each test, as ``--opprof-traces`` names them.

    Raises:
        OSError: the folder cannot be listed.
    """
    stems = {trace_stem(node_id): node_id for node_id in node_ids}
    found: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        for stem, node_id in stems.items():
            if path.name.startswith(stem) and _PART.fullmatch(path.name, len(stem)):
                found.setdefault(node_id, []).append(path)
    return found


def timelines(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """The first step of each trace, as the script of the page reads it.

    Raises:
        StoreError: a trace cannot be read.
        DocumentError: a file holds no trace.
    """
    # Here, as they load the collector, which a page without traces does not need.
    from pytest_opprof.traces.kineto import load_trace  # noqa: PLC0415
    from pytest_opprof.traces.step import first_step  # noqa: PLC0415

    return [_to_page(first_step(load_trace(path), most=_MOST_EVENTS), name=path.name) for path in paths]


def _to_page(step: StepEvents, *, name: str) -> dict[str, Any]:
    names = {one: place for place, one in enumerate(dict.fromkeys(one.name for one in step.slices))}
    what = "all of" if step.number is None else f"step {step.number} of"
    return {
        "title": f"{what} {name}",
        "duration_ns": step.duration_ns,
        "lanes": step.lanes,
        "names": list(names),
        "slices": [
            [one.lane, one.depth, names[one.name], one.start_ns, one.duration_ns, one.kind.value]
            for one in step.slices
        ],
        "left_out": step.left_out,
    }
