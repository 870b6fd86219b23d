"""What was measured, kept on disk after each session, so that a run that was stopped goes on."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[2]
# What the figures depend on.
_SOURCES: Final = ("native", "pytest_opprof", "schemas")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One session.

    Attributes:
        code: Pytest's exit code.
        tests: How many ran.
        failed: How many of them failed by pytest's outcome, with gates or without.
        whole_s: User and system time of the session and all processes that it started.
        tests_s: The same, from the end of the collection on.
        peak_mib: Resident memory of the largest of its processes.
        verdicts: How many tests have each one.
        causes: How many of the failing tests have each one, most frequent first.
        failures: The cause of each failing test.
    """

    code: int
    tests: int
    failed: int
    whole_s: float
    tests_s: float
    peak_mib: float
    verdicts: dict[str, int] = field(default_factory=dict)
    causes: dict[str, int] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a project's sessions came to.

    Attributes:
        commit: The one that was tried; with the day.
        sources: What the figures depend on.
        cells: By session's title.
        unavailable: Why there are none; "" where they can be had.
    """

    commit: str
    sources: str
    cells: dict[str, Cell] = field(default_factory=dict)
    unavailable: str = ""


def commit() -> str:
    """The commit that is tried."""
    return _git("rev-parse", "--short=9", "HEAD")


def sources() -> str:
    """Tells the package of this commit from any other's."""
    return " ".join(_git("rev-parse", *(f"HEAD:{folder}" for folder in _SOURCES)).split())


def load(folder: Path) -> dict[str, Figures]:
    """The last figures of each project, by its name."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        kept["cells"] = {title: Cell(**cell) for title, cell in kept["cells"].items()}
        found[path.stem] = Figures(**kept)
    return found


def save(folder: Path, project: str, figures: Figures) -> None:
    """Keep a project's figures in a file of its own, so that runs of other projects may go on beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{project}.json").write_text(json.dumps(asdict(figures), indent=1), encoding="utf-8")


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(REPOSITORY), *words], capture_output=True, text=True, check=True
    ).stdout.strip()
