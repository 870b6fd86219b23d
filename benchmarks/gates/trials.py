"""Runs trials for hours: each finished one is a line in a file, and a rerun continues from there."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from scipy import stats

from benchmarks.gates.project import DIGEST
from benchmarks.results import commit

FOLDER: Final = Path("build") / "gates"

Trial = dict[str, Any]


def add_files(parser: argparse.ArgumentParser, *, default: Path) -> None:
    """Add the option that names the files of finished trials."""
    parser.add_argument(
        "--file",
        type=Path,
        action="append",
        dest="files",
        metavar="FILE",
        help=f"file of finished trials (default: {default}); repeat it to count those of other files too, "
        "such as another core's",
    )
    parser.set_defaults(default_file=default)


def files(args: argparse.Namespace) -> list[Path]:
    """The files given as options, or the default one."""
    return args.files or [args.default_file]


def trials(paths: Sequence[Path], *, kind: str, count: int, run: Callable[[int], Trial]) -> list[Trial]:
    """So many trials of a kind; runs those that the files lack.

    Args:
        paths: JSON-lines files. New trials are appended to the first; lines of other project versions are
            ignored.
        kind: The name of the bench and its settings.
        count: How many trials.
        run: Makes a trial, given its number from 0.
    """
    path, *others = paths
    known = {line["trial"]: line for line in _of_kind(path, kind)}
    elsewhere = [line for other in others for line in _of_kind(other, kind)][:count]
    for number in range(count - len(elsewhere)):
        if number not in known:
            print(f"{kind}: trial {number + 1} of {count - len(elsewhere)}", file=sys.stderr, flush=True)
            known[number] = {"kind": kind, "project": DIGEST, "commit": commit(), "trial": number}
            known[number] |= run(number)
            append(path, known[number])
    return [*(known[number] for number in range(count - len(elsewhere))), *elsewhere]


def at_most(count: int, trials: int) -> str:
    """The count as text, with the upper 95 % confidence bound of the rate (Clopper-Pearson) in percent."""
    test = stats.binomtest(count, trials, alternative="less")
    high = 100 * test.proportion_ci(confidence_level=0.95, method="exact").high
    return f"{count} of {trials} (at most {high:.1f} %)"


def _of_kind(path: Path, kind: str) -> list[Trial]:
    return [line for line in lines(path) if (line["kind"], line["project"]) == (kind, DIGEST)]


def lines(path: Path) -> list[Trial]:
    """The trials of a file, of any kind and project version; none if it does not exist."""
    if not path.exists():
        return []
    found = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(text))
        except ValueError:
            continue  # the line that was being written when a run was killed
    return found


def append(path: Path, trial: Trial) -> None:
    """Add a finished trial to a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        # End a line that a kill cut off, so that the new trial starts on its own line.
        file.seek(max(file.seek(0, 2) - 1, 0))
        torn = file.read(1) not in {b"", b"\n"}
        file.write(b"\n" * torn + json.dumps(trial).encode() + b"\n")
