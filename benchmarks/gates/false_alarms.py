"""Judges unchanged code again and again: each flagged test is a false alarm.

``python -m benchmarks.gates.false_alarms`` prints a table, and exits with 1 if a bound is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.gates import project
from benchmarks.gates.ab import ab_trial, short_steps, unchanged_rows
from benchmarks.gates.neighbour import neighbour
from benchmarks.gates.peers import FIELDS, benchmark_trial
from benchmarks.gates.trials import FOLDER, Trial, add_files, at_most, files, trials
from benchmarks.table import Row, as_text

_EXACT_TRIALS: Final = 200
_TRIALS: Final = 40
_STEPS: Final = 200
_STEP_S: Final = 1e-4
_MOST_FLAGGED: Final = 1
_EXACT: Final = ("opprof", "test_ops.py")


def main() -> int:
    """Run the trials that the file lacks, and print the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gates.false_alarms", description=__doc__)
    parser.add_argument(
        "--trials",
        type=int,
        default=_TRIALS,
        metavar="N",
        help="trials of `opprof ab`; exact gates get five times as many",
    )
    add_files(parser, default=FOLDER / "false_alarms.jsonl")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    args = parser.parse_args()
    paths = files(args)
    exact = _exact(paths, count=args.trials * _EXACT_TRIALS // _TRIALS)
    with neighbour():
        ab = trials(
            paths,
            kind=f"ab, {_STEPS} steps",
            count=args.trials,
            run=lambda _: ab_trial("test_ops.py", slower={}, settings=short_steps(_STEPS, _STEP_S)),
        )
        peers = trials(paths, kind="pytest-benchmark", count=args.trials, run=benchmark_trial)
    rows = [_exact_row(exact), *_ab_rows(ab, peers)]
    print(as_text(rows, markdown=args.markdown))
    return int(not all(row.holds for row in rows))


def _exact(paths: Sequence[Path], *, count: int) -> list[Trial]:
    """Compare with a baseline that was saved once, each time in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project.write(folder, slower={})
        saved = project.session(folder, *_EXACT, "--opprof-save=main")
        if saved.returncode:
            raise RuntimeError(f"saving the baseline failed: {saved.stdout}")

        def compared(_: int) -> Trial:
            done = project.session(folder, *_EXACT, "--opprof-baseline=main")
            return {"exit": done.returncode, "said": done.stdout[-500:] if done.returncode else ""}

        return trials(paths, kind="exact", count=count, run=compared)


def _exact_row(found: list[Trial]) -> Row:
    failed = sum(trial["exit"] != 0 for trial in found)
    return Row(
        what="exact gates over unchanged code: comparisons that fail",
        ours=at_most(failed, len(found)),
        peer="",
        figure=failed,
        at_most=0,
        unit="failed",
    )


def _ab_rows(ab: list[Trial], peers: list[Trial]) -> list[Row]:
    noise = sorted(trial["noise_ppm"] for trial in ab)[len(ab) // 2] / 10_000
    ops = max(trial["tests"] for trial in ab)
    theirs = {field: sum(bool(trial["flagged"][field]) for trial in peers) for field in FIELDS}
    told = ", ".join(f"{field}:10% {count} of {len(peers)}" for field, count in theirs.items())
    what = f"opprof ab over {ops} unchanged ops and a busy neighbour"
    beside = (f"pytest-benchmark {told}", f"middle noise floor {noise:.1f} %")
    return unchanged_rows(ab, what, peers=beside, most=_MOST_FLAGGED)


if __name__ == "__main__":
    sys.exit(main())
