"""Find tests worth marking: those with the same counts in two runs with all tests marked."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_opprof.errors import UsageError
from pytest_opprof.wording import counted

if TYPE_CHECKING:
    from pytest_opprof.results.run import Run, TestResult

_RUNS: Final = 2
_STEP: Final = "ProfilerStep*"
_RAN: Final = (0, 1)  # pytest's exit codes if tests ran: all passed, or some failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A test after two runs."""

    node_id: str  # without parameters
    step_ns: int  # the longest active step, nanoseconds
    refusal: str  # why it is not worth a mark; empty if it is


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A folder, file, class or function, and its parts; a function has none."""

    name: str
    inside: dict[str, _Part] = field(default_factory=dict)


def try_tests(folder: Path, pytest_args: Sequence[str]) -> list[Tried]:
    """Run a project's tests twice, all of them marked, in a new process each time."""
    runs = [_run(folder, pytest_args) for _ in range(_RUNS)]
    results = defaultdict(list)
    for run in runs:
        for test in run.tests:
            results[test.node_id].append(test)
    ran = {_bare(node_id) for node_id, tests in results.items() if not _is_skipped(tests)}
    # If a test ran with some parameters, skips of its others do not matter.
    return [
        _tried(node_id, tests)
        for node_id, tests in sorted(results.items())
        if not _is_skipped(tests) or _bare(node_id) not in ran
    ]


def lines_of(tests: Sequence[Tried]) -> list[str]:
    """The fewest lines of ``opprof_mark`` that choose exactly the tests worth a mark.

    A test with parameters is chosen only if it is worth a mark with all of them.
    """
    refused = {test.node_id for test in tests if test.refusal}
    root = _Part(name="")
    for test in tests:
        part, name = root, ""
        for word in re.split(r"(?<=/)|(?=::)", test.node_id):
            name += word
            part = part.inside.setdefault(word, _Part(name=name.rstrip("/")))
    return list(_inside(root, refused, is_marked=False))


def reason_of(line: str, tests: Sequence[Tried]) -> str:
    """Why a line is proposed, in words."""
    inside = [
        test
        for test in tests
        if re.match(rf"{re.escape(line.strip('!').strip(chr(34)))}(?![^/:])", test.node_id)
    ]
    if line.startswith("!"):
        return "; ".join(dict.fromkeys(test.refusal for test in inside if test.refusal))
    worth = [test for test in inside if not test.refusal]
    milliseconds = sum(test.step_ns for test in worth) / 1_000_000
    number = counted(len(worth), "test")
    return f"{number}, {milliseconds:.1f} ms in each step; the same counts in {_RUNS} runs"


def _run(folder: Path, pytest_args: Sequence[str]) -> Run:
    from pytest_opprof.experiment.one_commit import QUIET
    from pytest_opprof.results.files import read_run

    with tempfile.TemporaryDirectory() as reports:
        document = Path(reports) / "run.json"
        own = (*QUIET, "--opprof-mark=.", f"--opprof-json={document}")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *pytest_args, *own],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode not in _RAN or not document.exists():
            said = "\n".join(done.stdout.splitlines()[-10:])
            raise UsageError(f"--try: pytest measured nothing and ended with {done.returncode}:\n{said}")
        return read_run(document)


def _tried(node_id: str, tests: Sequence[TestResult]) -> Tried:
    steps = [row.cpu_time_total_ns.high for test in tests for row in test.ops if row.name == _STEP]
    return Tried(node_id=_bare(node_id), step_ns=max(steps, default=0), refusal=_refusal(tests))


def _bare(node_id: str) -> str:
    return node_id.partition("[")[0]


def _is_skipped(tests: Sequence[TestResult]) -> bool:
    return all(test.outcome.value == "skipped" for test in tests)


def _refusal(tests: Sequence[TestResult]) -> str:
    for test in tests:
        if not test.is_usable:
            return test.measurement.reason or f"it {test.outcome.value}"
    # Background rows vary with scheduling and are never gated.
    counts = [
        {
            row.name: (row.count.low, row.count.high)
            for row in test.ops
            if row.name != _STEP and not row.background
        }
        for test in tests
    ]
    if len(counts) < _RUNS or not any(counts):
        return "records neither ops nor ranges" if not any(counts) else "it ran once"
    first, second = counts
    varying = sorted(
        name
        for name in first.keys() | second.keys()
        if first.get(name) != second.get(name) or len(set(first[name])) > 1
    )
    return f"counts vary: {', '.join(varying)}" if varying else ""


def _fewest(part: _Part, refused: set[str], *, is_marked: bool) -> list[str]:
    """The fewest lines for a part, after lines that mark all of it (`is_marked`) or nothing."""
    line = f'"{part.name}"' if " " in part.name else part.name
    turned = [f"{'!' if is_marked else ''}{line}"]
    if not part.inside:
        return turned if (part.name in refused) == is_marked else []
    kept = list(_inside(part, refused, is_marked=is_marked))
    turned += _inside(part, refused, is_marked=not is_marked)
    return turned if len(turned) <= len(kept) else kept


def _inside(part: _Part, refused: set[str], *, is_marked: bool) -> Iterator[str]:
    for each in part.inside.values():
        yield from _fewest(each, refused, is_marked=is_marked)
