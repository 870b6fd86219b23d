"""Judges slower code again and again: how often is it found, and the slower op named?

``python -m benchmarks.gates.power`` prints a table, and exits with 1 if a bound is missed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from scipy import stats

from benchmarks.gates.ab import ab_trial, short_steps
from benchmarks.gates.project import SLOWER, STEPS
from benchmarks.gates.trials import FOLDER, Trial, add_files, at_most, files, trials
from benchmarks.table import Row, as_text

_TRIALS: Final = 100
_STEPS: Final = 50
_STEP_S: Final = 1e-3
# How much slower an op is, in percent, and the percentage of trials that must find it.
_BOUNDS: Final = {5: 50, 10: 65, 20: 75}


def main() -> int:
    """Run the trials that the file lacks, and print the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gates.power", description=__doc__)
    parser.add_argument("--trials", type=int, default=_TRIALS, metavar="N", help="trials of each size")
    parser.add_argument(
        "--size",
        type=int,
        choices=_BOUNDS,
        action="append",
        help="only this size, in percent; may be repeated",
    )
    add_files(parser, default=FOLDER / "power.jsonl")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    args = parser.parse_args()
    sizes = {percent: _trials(files(args), percent, count=args.trials) for percent in args.size or _BOUNDS}
    rows = [_found(percent, found) for percent, found in sizes.items()]
    rows.append(_unchanged([trial for found in sizes.values() for trial in found]))
    print(as_text(rows, markdown=args.markdown))
    return int(not all(row.holds for row in rows))


def _trials(paths: Sequence[Path], percent: int, *, count: int) -> list[Trial]:
    def one(number: int) -> Trial:
        name = STEPS[number % len(STEPS)]
        slower = {name: SLOWER[percent]}
        settings = short_steps(_STEPS, _STEP_S)
        return {"op": name, **ab_trial("test_steps.py", slower=slower, settings=settings)}

    return trials(paths, kind=f"{percent} %, {_STEPS} steps", count=count, run=one)


def _found(percent: int, found: Sequence[Trial]) -> Row:
    seen = [trial for trial in found if _verdict(trial) == "regressed"]
    named = [trial for trial in seen if f"{trial['op']} +" in _cause(trial)]
    noise = statistics.median(trial["noise_ppm"] for trial in found) / 10_000
    disturbed = sum(any("was disturbed in" in note for note in trial["noted"]) for trial in found)
    test = stats.binomtest(len(named), len(found), alternative="greater")
    low = 100 * test.proportion_ci(confidence_level=0.95, method="exact").low
    return Row(
        what=f"one op slower by {percent} %: found and named, at least (95 %, Clopper-Pearson)",
        ours=f"{len(named)} of {len(found)} ({len(seen)} found)",
        peer=f"middle noise floor {noise:.1f} %; machine disturbed in {disturbed}",
        figure=low,
        at_least=_BOUNDS[percent],
        unit="%",
    )


def _unchanged(found: Sequence[Trial]) -> Row:
    flagged = sum(
        said[0] in {"regressed", "improved"}
        for trial in found
        for node_id, said in trial["said"].items()
        if node_id != _slowed(trial)
    )
    return Row(
        what="the tests of these runs that did not change: flagged",
        ours=at_most(flagged, sum(trial["tests"] - 1 for trial in found)),
        peer="",
        figure=flagged,
        unit="flagged",
    )


def _slowed(trial: Trial) -> str:
    return f"test_steps.py::test_step[{trial['op']}]"


def _of_slowed(trial: Trial) -> list[str]:
    said: list[str] = trial["said"].get(_slowed(trial), ["pass", "", ""])
    return said


def _verdict(trial: Trial) -> str:
    return _of_slowed(trial)[0]


def _cause(trial: Trial) -> str:
    return _of_slowed(trial)[1]


if __name__ == "__main__":
    sys.exit(main())
