"""Tables of the newest run of `make bench`; see benchmarks/results.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from opprof_docs.tables import table

if TYPE_CHECKING:
    from collections.abc import Iterator

_RESULTS: Final = Path(__file__).parents[2] / "benchmarks" / "results"
_HEAD: Final = ("what", "ours", "peer", "figure", "bound", "holds")
_SCRIPTS: Final = "run"


def machine_lines() -> Iterator[str]:
    """When, where and with which versions the benches ran."""
    run = _newest()
    machine = run["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    yield ""
    yield f"Measured on {run['date']} at commit {run['commit']}, on a shared virtual machine with"
    yield f"{machine['cpu_count']} cores ({machine['cpu_model']}), one thread, Python {machine['python']},"
    yield f"{versions}."
    yield ""


def bench_lines(*names: str) -> Iterator[str]:
    """A row for each comparison of these benches; without names, of all benches except ``run``."""
    benches = _newest()["benches"]
    wanted = names or [name for name in benches if name != _SCRIPTS]
    return table(_HEAD, (row["cells"] for name in wanted for row in benches[name]))


def headline_lines(*names: str) -> Iterator[str]:
    """The rows of these benches without bounds; ``NAME:COUNT`` takes only a bench's first rows."""
    benches, rows = _newest()["benches"], []
    for name, _, count in (each.partition(":") for each in names):
        rows += benches[name][: int(count) if count else None]
    return table(_HEAD[:4], (row["cells"][:4] for row in rows))


def _newest() -> dict[str, Any]:
    path = max(_RESULTS.glob("*.json"))
    run: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return run
