"""One test, run over the copy: does it pass or fail, and where?"""

from __future__ import annotations

import enum
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mutants.tree import BuildError, Tree

_NATIVE: Final = "native/tests/"
_LONGEST_S: Final = 300
_RAN: Final = re.compile(r"^ok (\w+)$", re.MULTILINE)
_RUN: Final = re.compile(r"\bRUN\((\w+)\)")
_OUTCOME: Final = re.compile(r"^(tests/.+?) (PASSED|FAILED|SKIPPED|ERROR)\b", re.MULTILINE)


class Ended(enum.Enum):
    """How a test ended."""

    HELD = "held"
    FAILED = "failed"
    SKIPPED = "is skipped here"
    BROKE = "broke"  # something other than the test failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The result of a test.

    Attributes:
        ended: How it ended.
        where: The failed test, or its failed case; otherwise ``""``.
        why: Its message, shortened.
    """

    ended: Ended
    where: str = ""
    why: str = ""


def is_native(test: str) -> bool:
    """Whether a test is a check of a C program."""
    return test.startswith(_NATIVE)


def tried(tree: Tree, test: str) -> Trial:
    """Build the test's requirements, and run it."""
    try:
        return _of_program(tree, test) if is_native(test) else _of_pytest(tree, test)
    except BuildError as error:
        return Trial(ended=Ended.BROKE, why=f"it does not compile: {error}")
    except subprocess.TimeoutExpired:
        return Trial(ended=Ended.BROKE, why=f"it ran for more than {_LONGEST_S} s")


def all_tried(tree: Tree, tests: Sequence[str]) -> dict[str, Trial]:
    """Run several pytest tests in one session, which is faster than one after the other."""
    try:
        done = _pytest(tree, *tests, longest_s=len(tests) * _LONGEST_S)
    except BuildError as error:
        return {test: Trial(ended=Ended.BROKE, why=f"it does not compile: {error}") for test in tests}
    cases = _OUTCOME.findall(done.stdout)
    return {
        test: Trial(ended=_together(outcome for case, outcome in cases if _is_of(case, test)))
        for test in tests
    }


def _is_of(case: str, test: str) -> bool:
    return case == test or case.startswith(f"{test}[")


def checks_of(source: Path) -> list[str]:
    """The checks of a C program, in run order."""
    return _RUN.findall(source.read_text(encoding="utf-8"))


def _of_program(tree: Tree, test: str) -> Trial:
    file, _, check = test.partition("::")
    programs = tree.program(Path(file).stem)
    if not programs:
        return Trial(ended=Ended.SKIPPED, why=f"{file} is not built here")
    checks = checks_of(tree.root / file)
    for program in programs:
        done = tree.run([str(program)], longest_s=_LONGEST_S)
        passed = set(_RAN.findall(done.stdout))
        if done.returncode == 0 and check in passed:
            continue
        failed = next((name for name in checks if name not in passed), "")
        ended = Ended.FAILED if failed == check else Ended.BROKE
        return Trial(ended=ended, where=f"{file}::{failed}", why=" ".join(done.stderr.split()))
    return Trial(ended=Ended.HELD)


def _of_pytest(tree: Tree, test: str) -> Trial:
    done = _pytest(tree, "-x", test, longest_s=_LONGEST_S)
    cases = _OUTCOME.findall(done.stdout)
    failed = next((case for case, outcome in cases if outcome == "FAILED"), "")
    if done.returncode == 1 and failed:
        said = [line[1:].strip() for line in done.stdout.splitlines() if line.startswith("E ")]
        return Trial(ended=Ended.FAILED, where=failed, why=said[0] if said else "")
    if done.returncode == 0:
        return Trial(ended=_together(outcome for _, outcome in cases))
    return Trial(ended=Ended.BROKE, why=(done.stdout + done.stderr)[-2_000:])


def _together(outcomes: Iterable[str]) -> Ended:
    """The combined result of a test's cases."""
    seen = set(outcomes)
    if not seen or "ERROR" in seen:
        return Ended.BROKE
    if "FAILED" in seen:
        return Ended.FAILED
    return Ended.HELD if "PASSED" in seen else Ended.SKIPPED


def _pytest(tree: Tree, *arguments: str, longest_s: float) -> subprocess.CompletedProcess[str]:
    return tree.pytest(["-v", "--tb=short", *arguments], longest_s=longest_s)
