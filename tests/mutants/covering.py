"""Which tests run which lines: an edit is tried with the tests that can notice it, the fastest first."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import coverage
import pytest
from mutants.single_edits import SingleEdit
from mutants.tree import Tree

_TESTS: Final = ("tests/unit", "tests/e2e", "tests/integration")
# The configuration file names it, so that child processes of a test count as the test's.
_TEST: Final = "MUTANTS_TEST"
_SECONDS: Final = "MUTANTS_SECONDS"
_FIRST: Final = 60
_HOURS_S: Final = 4 * 3_600.0


@dataclass(frozen=True, slots=True)
class Covering:
    """What a run of the tests covered.

    Attributes:
        seconds: How long each test took, by node id.
        tests: The node ids of the tests that ran a line, by file and line; all of the file's for a line that
            runs at import.
    """

    seconds: dict[str, float]
    tests: dict[str, dict[int, list[str]]]

    def of(self, edit: SingleEdit, *, root: Path, longest_s: float) -> list[list[str]]:
        """The tests to try an edit with: those of the same module's file, the fastest, then the others.

        The file is tried whole: its newest tests, and those that a tracer skips, are in no measurement.

        Args:
            edit: In a Python file.
            root: Of the sources.
            longest_s: Seconds that all of them took together at most.
        """
        lines = self.tests.get(edit.file, {})
        # coverage may know a statement of several lines only by its first
        line = max((known for known in lines if known <= edit.line), default=0)
        _, room, module = Path(edit.file).with_suffix("").parts[-3:]
        own = f"tests/unit/{room}/test_{module}.py"
        order = sorted(lines.get(line, ()), key=lambda test: self.seconds[test])
        chosen, left_s = [], longest_s
        for test in order:
            left_s -= self.seconds[test]
            if left_s < 0:
                break
            if not test.startswith(f"{own}::"):
                chosen.append(test)
        whole = [own] if (root / own).exists() else []
        return [part for part in (whole, chosen[:_FIRST], chosen[_FIRST:]) if part]


def covering(tree: Tree, folder: Path) -> Covering:
    """Run the tests once, in a copy that is not edited; what an earlier run measured is read again.

    A test that fails then, as some do under coverage, is asked about no edit.

    Args:
        tree: The copy.
        folder: Where what is measured lies.
    """
    rules = folder / "coverage.ini"
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        rules.write_text(
            f"[run]\nparallel = true\ncontext = ${{{_TEST}-}}\ndata_file = {folder}/data\n"
            f"include = {tree.root}/pytest_opprof/*\n",
            encoding="utf-8",
        )
        variables = {
            "COVERAGE_PROCESS_START": str(rules),
            "PYTHONPATH": str(tree.root / "tests"),
            _SECONDS: str(folder / "seconds"),
        }
        with tree.at_every_start("import coverage; coverage.process_startup()"):
            arguments = ["-q", "-p", __name__, "-m", "not slow", "-n", "2", *_TESTS]
            tree.pytest(arguments, longest_s=_HOURS_S, variables=variables)
        (folder / "done").touch()
    return _read(folder, tree.root)


def _read(folder: Path, root: Path) -> Covering:
    measured = coverage.Coverage(config_file=str(folder / "coverage.ini"))
    measured.combine(keep=True)
    data = measured.get_data()
    seconds: dict[str, float] = {}
    for line in (folder / "seconds").read_text(encoding="utf-8").splitlines():
        test, took_s = json.loads(line)
        if str(root.parent) not in test:  # a parameter that another copy lacks
            seconds[test] = took_s
    tests: dict[str, dict[int, list[str]]] = {}
    for path in data.measured_files():
        by_line = {
            line: {context.rpartition("|")[2] for context in contexts}
            for line, contexts in data.contexts_by_lineno(path).items()
        }
        everyone = set().union(*by_line.values()) & seconds.keys()
        tests[str(Path(path).relative_to(root))] = {
            line: sorted(everyone if "" in found else found & seconds.keys())
            for line, found in by_line.items()
        }
    return Covering(seconds, tests)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Attribute what runs from here on to this test; `covering` gives pytest this module."""
    os.environ[_TEST] = item.nodeid
    if (running := coverage.Coverage.current()) is not None:
        running.switch_context(item.nodeid)
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note the duration of a passed test."""
    if report.when == "call" and report.passed and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(os.environ[_SECONDS]).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps([report.nodeid, report.duration])}\n")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Store the measurement, because an xdist worker ends without notice."""
    if (running := coverage.Coverage.current()) is not None:
        running.stop()
        running.save()
