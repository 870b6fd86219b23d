"""Results, stored on disk after each session so that a stopped run can be resumed."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[2]
# Folders that the figures depend on.
_SOURCES: Final = ("native", "pytest_opprof", "schemas")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One session.

    Attributes:
        code: Pytest's exit code.
        tests: How many tests ran.
        failed: How many of them pytest reported as failed, for whatever reason.
        whole_s: User and system time of the session and all its child processes.
        tests_s: The same, from the end of the collection on.
        peak_mib: Peak resident memory of its largest process.
        verdicts: Number of tests by verdict.
        causes: Number of failing tests by cause, most frequent first.
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
    """The results of a project's sessions.

    Attributes:
        commit: The commit of pytest-opprof that was measured, and the day.
        sources: See `sources`.
        cells: Results by session title.
        unavailable: Why the project could not be installed, or "".
    """

    commit: str
    sources: str
    cells: dict[str, Cell] = field(default_factory=dict)
    unavailable: str = ""


def commit() -> str:
    """The commit that is checked out here."""
    return _git("rev-parse", "--short=9", "HEAD")


def sources() -> str:
    """Git's ids of the folders that the figures depend on."""
    return " ".join(_git("rev-parse", *(f"HEAD:{folder}" for folder in _SOURCES)).split())


def load(folder: Path) -> dict[str, Figures]:
    """The stored figures by project name."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        kept["cells"] = {title: Cell(**cell) for title, cell in kept["cells"].items()}
        found[path.stem] = Figures(**kept)
    return found


def save(folder: Path, project: str, figures: Figures) -> None:
    """Store a project's figures in its own file, so that runs of other projects may go on in parallel."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{project}.json").write_text(json.dumps(asdict(figures), indent=1), encoding="utf-8")


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(REPOSITORY), *words], capture_output=True, text=True, check=True
    ).stdout.strip()
