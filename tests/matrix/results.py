"""Results on disk, saved after each column so that a stopped run can resume."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from matrix.environments import REPOSITORY, STOPPED

# Files that the answers depend on; a change of the documentation repeats nothing.
_SOURCES: Final = (
    "native",
    "pytest_opprof",
    "schemas",
    "tests/oracle",
    "tests/integration",
    "tests/e2e",
    "benchmarks",
)
_FAILED: Final = re.compile(r"(\d+) (failed|errors?)\b")
_OVER: Final = re.compile(r"  NO$", re.MULTILINE)  # as benchmarks print a bound that does not hold
_RAN: Final = re.compile(r"\b(\d+) (?:passed|failed|errors?)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One cell.

    Attributes:
        holds: The answer is yes.
        detail: What is wrong; "" where it holds.
    """

    holds: bool
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a row's environment answered.

    Attributes:
        commit: The one that was tried; with the day.
        sources: What the answers depend on.
        cells: By column's title; "" is the answer of an environment that cannot be had.
    """

    commit: str
    sources: str
    cells: dict[str, Result] = field(default_factory=dict)


def read(code: int, log: Path) -> Result:
    """The cell of a finished command, from its exit code and the last lines of its log."""
    if code == STOPPED:
        return Result(holds=False, detail="stopped: too slow")
    text = log.read_text(encoding="utf-8", errors="replace")
    summary = next((line for line in reversed(text.splitlines()) if _RAN.search(line)), "")
    failed = sum(int(count) for count, _ in _FAILED.findall(summary))
    if code == 0:
        return Result(holds=True)
    if over := len(_OVER.findall(text)):
        return Result(holds=False, detail=f"{over} over")
    return Result(holds=False, detail=f"{failed} failed" if failed else f"ended with {code}")


def commit() -> str:
    return _git("rev-parse", "--short=9", "HEAD")


def sources() -> str:
    """A digest of this commit's sources."""
    return " ".join(_git("rev-parse", *(f"HEAD:{folder}" for folder in _SOURCES)).split())


def load(folder: Path) -> dict[str, Answers]:
    """The last answers of each row, by its name."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        kept = json.loads(path.read_text(encoding="utf-8"))
        cells = {title: Result(**cell) for title, cell in kept["cells"].items()}
        found[path.stem] = Answers(commit=kept["commit"], sources=kept["sources"], cells=cells)
    return found


def save(folder: Path, row: str, answers: Answers) -> None:
    """Save a row's answers in its own file, so that runs of other rows can run concurrently."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{row}.json").write_text(json.dumps(asdict(answers), indent=1), encoding="utf-8")


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(REPOSITORY), *words], capture_output=True, text=True, check=True
    ).stdout.strip()
