"""``python native/check_rooms.py`` checks that includes point one way, as import-linter does for Python.

Each file in ``src`` is in a room (a folder), which may include files of its own room and of those before it.
A unit is a ``.c``, a ``.h``, or both with the same name. Units must not include each other in a circle, and a
new unit needs both files.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOMS = ("core", "sources", "python", "result", "cuda", "session", "import", "export")
# Units declared in `include/`, or beside the types they use: in collector.h, result.h or device_use.h.
WITHOUT_HEADER = frozenset(
    {
        "core/speed",
        "export/kineto_out",
        "export/trace",
        "import/categories",
        "import/kineto_in",
        "import/listed_events",
        "python/fast",
        "result/device_busy",
        "result/device_launchers",
        "result/group_rows",
        "result/memory",
        "result/result_free",
        "session/fork",
        "session/gather",
        "session/recover",
        "session/session",
        "session/source",
        "session/thread",
        "session/tree",
        "sources/itt",
        "sources/nvtx",
        "sources/replay",
    }
)
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def faults(source: Path) -> list[str]:
    """A sentence for each broken rule, given the folder with the rooms."""
    files = sorted(path.relative_to(source) for path in source.rglob("*") if path.suffix in {".c", ".h"})
    includes = {
        file.as_posix(): _INCLUDE.findall((source / file).read_text(encoding="utf-8")) for file in files
    }
    found = [
        f"{file}: it stands in none of the rooms {', '.join(ROOMS)}" for file in includes if not _room(file)
    ]
    for file, included in includes.items():
        found += [
            f"{file} includes {other}: {_room(file)} comes before {_room(other)}"
            for other in included
            if other in includes and _rank(other) > _rank(file)
        ]
    found += [
        f"{file}: it has no header {_unit(file)}.h to declare what it gives"
        for file in includes
        if file.endswith(".c") and f"{_unit(file)}.h" not in includes and _unit(file) not in WITHOUT_HEADER
    ]
    return found + [f"includes itself: {' -> '.join(circle)}" for circle in _circles(_of_units(includes))]


def _of_units(includes: dict[str, list[str]]) -> dict[str, list[str]]:
    units: dict[str, list[str]] = {}
    for file, included in includes.items():
        own = _unit(file)
        others = [_unit(other) for other in included if other in includes and _unit(other) != own]
        units.setdefault(own, []).extend(others)
    return units


def _unit(file: str) -> str:
    return file.rpartition(".")[0]


def _room(file: str) -> str:
    room = file.partition("/")[0]
    return room if room in ROOMS else ""


def _rank(file: str) -> int:
    return ROOMS.index(_room(file)) if _room(file) else len(ROOMS)


def _circles(includes: dict[str, list[str]]) -> list[list[str]]:
    found: list[list[str]] = []
    done: set[str] = set()

    def follow(file: str, way: list[str]) -> None:
        if file in way:
            found.append([*way[way.index(file) :], file])
        elif file not in done:
            for other in includes.get(file, []):
                follow(other, [*way, file])
            done.add(file)

    for file in includes:
        follow(file, [])
    return found


if __name__ == "__main__":
    problems = faults(Path(__file__).parent / "src")
    if problems:
        sys.exit("\n".join(problems))
