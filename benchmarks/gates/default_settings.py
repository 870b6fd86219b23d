"""Runs `opprof ab` with default options over unchanged code: plain tests, and tests of torch models.

``python -m benchmarks.gates.default_settings`` runs the trials that the file lacks, and prints a table.
With ``--keep`` they are added to benchmarks/results, which docs/ab.md reports.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from benchmarks.gates.ab import ab_trial, unchanged_rows
from benchmarks.gates.trials import FOLDER, Trial, add_files, append, files, lines, trials
from benchmarks.results import FOLDER as RESULTS
from benchmarks.table import Row, as_text

KEPT: Final = RESULTS / "ab_default_settings.jsonl"
# The test file for each kind of tests.
_TESTS: Final[Mapping[str, str]] = MappingProxyType({"plain": "test_steps.py", "torch": "test_torch.py"})
_TRIALS: Final = 20


def main() -> int:
    """Run the trials that the file lacks, and print the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gates.default_settings", description=__doc__)
    parser.add_argument(
        "--trials", type=int, default=_TRIALS, metavar="N", help="trials of each kind of tests"
    )
    parser.add_argument("--tests", choices=_TESTS, action="append", help="only this kind; may be repeated")
    add_files(parser, default=FOLDER / "default_settings.jsonl")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    parser.add_argument("--keep", action="store_true", help="add them to benchmarks/results")
    args = parser.parse_args()
    made: list[Trial] = []
    for tests in args.tests or _TESTS:

        def one(_: int, tests: str = tests) -> Trial:
            named = {"of": tests, "settings": "default"}
            return named | ab_trial(_TESTS[tests], slower={}, settings=())

        kind = f"ab, {tests}, default settings"
        made += trials(files(args), kind=kind, count=args.trials, run=one)
    if args.keep:
        keep(made)
    print(as_text(rows(made), markdown=args.markdown))
    return 0


def rows(found: Sequence[Trial]) -> list[Row]:
    """The rows of these trials, by kind of tests."""
    by_kind = {tests: [trial for trial in found if trial["of"] == tests] for tests in _TESTS}
    return [row for tests, some in by_kind.items() if some for row in _rows(tests, some)]


def keep(made: Sequence[Trial], path: Path = KEPT) -> None:
    """Add the trials that a file lacks."""
    known = lines(path)
    for trial in made:
        if trial not in known:
            append(path, trial)


def _rows(tests: str, found: Sequence[Trial]) -> list[Row]:
    middle = {
        name: sorted(trial[name] for trial in found)[len(found) // 2]
        for name in ("noise_ppm", "load", "seconds")
    }
    what = f"{max(trial['tests'] for trial in found)} unchanged {tests} tests, default settings"
    noise = f"middle noise floor {middle['noise_ppm'] / 10_000:.1f} %"
    load = f"middle load {middle['load']:.1f}, {middle['seconds']:.0f} s a run"
    return unchanged_rows(found, what, peers=(noise, load))


if __name__ == "__main__":
    sys.exit(main())
