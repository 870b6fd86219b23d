"""Stores results of `make bench` as ``benchmarks/results/DATE.json``; the newest one feeds the docs."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.table import Row
from pytest_opprof.capture.environment import fingerprint

FOLDER: Final = Path(__file__).with_name("results")
_PEERS: Final = ("torch", "numpy", "viztracer", "nvtx", "pyinstrument", "HolisticTraceAnalysis")
_MOVED: Final = 0.2


def document(benches: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """The rows of one run, with the commit, the machine and the peers' versions.

    A row has its cells as printed, and its figure, which later runs are compared with.
    """
    found = fingerprint()
    return {
        "commit": commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": {name: found[name] for name in ("cpu_model", "cpu_count", "machine", "python")},
        "versions": dict(_versions()),
        "benches": {
            name: [{"cells": row.cells(), "figure": row.figure} for row in rows]
            for name, rows in benches.items()
        },
    }


def keep(document: Mapping[str, Any], folder: Path = FOLDER) -> Path:
    """Write the run to its day's file."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{document['date']}.json"
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return path


def newest(folder: Path = FOLDER, *, before: str = "9") -> dict[str, Any] | None:
    """The newest stored run before a date."""
    kept = sorted(path for path in folder.glob("*.json") if path.stem < before)
    return json.loads(kept[-1].read_text(encoding="utf-8")) if kept else None


def moved(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """A line for each row whose figure moved by more than a fifth between two runs."""
    known = {key: row["figure"] for key, row in _keyed(before)}
    for key, row in _keyed(now):
        was = known.get(key)
        if was is not None and abs(row["figure"] - was) > _MOVED * abs(was):
            yield f"{row['cells'][0]}, beside {row['cells'][2]}: {row['cells'][3]}, {was:.3g} before"


def _keyed(run: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str, int], Mapping[str, Any]]]:
    """Rows by bench, text without the numbers, which vary between runs, and position among equal texts."""
    seen: Counter[tuple[str, str]] = Counter()
    for bench, rows in run["benches"].items():
        for row in rows:
            key = bench, re.sub(r"\d[\d,.]*", "N", row["cells"][0])
            seen[key] += 1
            yield (*key, seen[key]), row


def commit() -> str:
    """The id of the current commit, with ``-dirty`` appended if tracked files have changed."""
    git = ["git", "-C", str(FOLDER.parent), "describe", "--always", "--dirty", "--abbrev=9", "--exclude=*"]
    return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()


def _versions() -> Iterator[tuple[str, str]]:
    for name in _PEERS:
        try:
            yield name, importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
