"""Trials that take hours: each finished one is a line in a file, and a rerun goes on from there."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks.gates.project import DIGEST

FOLDER: Final = Path("build") / "gates"

Trial = dict[str, Any]


def trials(path: Path, *, kind: str, count: int, run: Callable[[int], Trial]) -> list[Trial]:
    """The first so many trials of a kind; those that the file lacks are run now.

    Args:
        path: The JSON-lines file. Lines of another version of the project are left alone.
        kind: What is tried.
        count: How many trials.
        run: Makes the trial of a number, from 0.
    """
    known = {
        line["trial"]: line for line in _lines(path) if (line["kind"], line["project"]) == (kind, DIGEST)
    }
    for number in range(count):
        if number not in known:
            print(f"{kind}: trial {number + 1} of {count}", file=sys.stderr, flush=True)
            known[number] = {"kind": kind, "project": DIGEST, "trial": number, **run(number)}
            _append(path, known[number])
    return [known[number] for number in range(count)]


def _lines(path: Path) -> list[Trial]:
    if not path.exists():
        return []
    found = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(text))
        except ValueError:
            continue  # the line that was being written when a run was killed
    return found


def _append(path: Path, trial: Trial) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        # A line that a kill cut off ends here, and not in the middle of the next one.
        file.seek(max(file.seek(0, 2) - 1, 0))
        torn = file.read(1) not in {b"", b"\n"}
        file.write(b"\n" * torn + json.dumps(trial).encode() + b"\n")
