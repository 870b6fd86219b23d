"""Runs `opprof ab` as a user would, and reads its result."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.gates import project
from benchmarks.gates.trials import Trial, at_most
from benchmarks.table import Row
from pytest_opprof.compare.timing.comparison import TestTimes, TimeComparison
from pytest_opprof.compare.timing.document import read_judged

_OPPROF: Final = str(Path(sys.executable).with_name("opprof"))
# 0: passed, 1: a gate failed. Any other exit code is an error.
_ANSWERS: Final = (0, 1)
# A test may take this multiple of its normal time to get undisturbed steps.
_PATIENCE: Final = 2


def short_steps(steps: int, step_s: float) -> list[str]:
    """Options for very short steps: enough of them to outlast a disturbance.

    Args:
        steps: How many steps of each test a process times.
        step_s: The approximate time of a step, in seconds.
    """
    return [f"--steps={steps}", f"--max-time={_PATIENCE * steps * step_s:g}"]


def ab_trial(test_file: str, *, slower: dict[str, int], settings: Sequence[str]) -> Trial:
    """Make a repository, run `opprof ab` in it, and read its JSON file.

    Args:
        test_file: The tests to run.
        slower: See `project.write`.
        settings: Options of the command.

    Returns:
        The exit code; verdict, cause and reason of each test that was flagged or did not pass; the times,
        notes and noise floor behind them; the machine's load average when it began; the seconds it took.

    Raises:
        RuntimeError: The command failed.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "project")
        folder.mkdir()
        project.write(folder, slower=slower)
        document = Path(name, "ab.json")
        command = [_OPPROF, "ab", "HEAD~1", test_file, *settings, "-p", "opprof", "-q", "-o", str(document)]
        began, load = time.monotonic(), os.getloadavg()[0]
        done = project.run(folder, command)
        if done.returncode not in _ANSWERS or not document.exists():
            msg = f"{' '.join(command)} ended with {done.returncode}: {done.stdout}"
            raise RuntimeError(msg)
        found = read_judged(document)
        assert isinstance(found, TimeComparison)  # `opprof ab` writes no other
    return {
        "exit": done.returncode,
        "tests": len(found.tests),
        "said": {
            test.node_id: [test.verdict and test.verdict.value, test.cause, test.reason]
            for test in found.tests
            if test.verdict != "pass" or test.flagged
        },
        "flagged": [test.node_id for test in found.tests if test.flagged],
        "ops": {test.node_id: [op.name for op in test.ops if op.is_significant] for test in found.tests},
        "times_ns": {test.node_id: _times(test) for test in found.tests if test.times},
        "noted": list(found.notes),
        "processes": found.base_processes,
        "noise_ppm": found.control.noise_ppm,
        "load": round(load, 2),
        "seconds": round(time.monotonic() - began, 1),
    }


def _times(test: TestTimes) -> list[Sequence[int]]:
    """The times of base and head, then those of their confirmation in fresh processes, if any."""
    rounds = [sides for sides in (test.times, test.confirmation) if sides]
    return [times for sides in rounds for times in (sides.base_ns, sides.head_ns)]


def unchanged_rows(
    found: Sequence[Trial], what: str, *, peers: tuple[str, str], most: int | None = None
) -> list[Row]:
    """Count the runs over unchanged code that flag a test, and those that are inconclusive.

    Args:
        found: The runs.
        what: The bench's name in a row.
        peers: The text in each row's peer column.
        most: How many runs may flag a test; None only prints the number.
    """
    flagged = sum(not _verdicts(trial).isdisjoint({"regressed", "improved"}) for trial in found)
    unsure = sum("inconclusive" in _verdicts(trial) for trial in found)
    return [
        Row(
            what=f"{what}: runs that flag one",
            ours=at_most(flagged, len(found)),
            peer=peers[0],
            figure=flagged,
            at_most=most,
            unit="flagged",
        ),
        Row(
            what="the same: runs that end INCONCLUSIVE",
            ours=at_most(unsure, len(found)),
            peer=peers[1],
            figure=unsure,
            unit="unsure",
        ),
    ]


def _verdicts(trial: Trial) -> set[str | None]:
    """The verdicts of the tests that were flagged or did not pass."""
    return {said[0] for said in trial["said"].values()}
