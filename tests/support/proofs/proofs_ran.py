"""Tests that the docs name as proof: a run reports skipped ones, and fails if a package was missing.

If the machine or interpreter lacks something else (root's rights, torch, a device), only the summary names the
tests.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

_PAGES: Final = ("detectors.md", "reliability.md")
_DOCS: Final = Path(__file__).parents[3] / "docs"
# `make test` installs the tests' imports, except for torch, which a newcomer may leave out.
_WANTS_A_PACKAGE: Final = re.compile(r"could not import '(?!torch\b)|^(?!torch ).* is not installed")


class Proofs:
    """Collects the outcomes of the tests that the docs name.

    Args:
        pages: Files that name tests as ``tests/test_x.py::test_y``.
    """

    def __init__(self, pages: list[Path]) -> None:
        text = "".join(page.read_text(encoding="utf-8") for page in pages)
        self._named = set(re.findall(r"`(tests/[\w/]+\.py::\w+)`", text))
        self._ran: set[str] = set()
        self._skipped: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note whether it ran; with parameters, whether any case did."""
        name = report.nodeid.partition("[")[0]
        if name not in self._named:
            return
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self._skipped[name] = reason.removeprefix("Skipped: ")
        elif report.when == "call":
            self._ran.add(name)

    @property
    def skipped(self) -> dict[str, str]:
        """The reason of each proof that never ran."""
        return {name: why for name, why in sorted(self._skipped.items()) if name not in self._ran}

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run if a proof was skipped for want of a package."""
        lost = any(map(_WANTS_A_PACKAGE.search, self.skipped.values()))
        if lost and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the skipped proofs."""
        for name, why in self.skipped.items():
            is_lost = bool(_WANTS_A_PACKAGE.search(why))
            line = f"the docs name {name} as proof, and it was skipped: {why}"
            terminalreporter.write_line(line, red=is_lost, yellow=not is_lost)


def hear(config: pytest.Config) -> None:
    """Collect this repository's proofs; with xdist, only in the controller."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Proofs([_DOCS / page for page in _PAGES]), "proofs-ran")
