"""Run exactly the tests that a process was given, in their order; fresh processes load this by name.

The session has already chosen them. A plugin that chooses again, as pytest-split takes a half of each half,
would leave the rest unmeasured.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the first process's run."""
    parser.addoption("--opprof-first", metavar="PATH", help="the run that this process is to confirm")
    parser.addoption("--opprof-ended", metavar="PATH", help="a file that gets a byte for each test that ends")


class Ended:
    """Tells the first process the number of ended tests."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @pytest.hookimpl
    def pytest_runtest_logfinish(self) -> None:
        """One more."""
        with self._path.open("ab") as file:
            file.write(b".")


def pytest_configure(config: pytest.Config) -> None:
    """Report ended tests, if asked to."""
    path = config.getoption("opprof_ended", None)
    if path:
        config.pluginmanager.register(Ended(Path(path)))


def first_run(config: pytest.Config) -> Path | None:
    """Its path; None if this process confirms nobody."""
    text = config.getoption("opprof_first", None)
    return Path(text) if text else None


# Inside the wrapper that plans the measurement, and around all that choose.
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, object, object]:
    """Undo other plugins' deselection and order."""
    given = list(items)
    result = yield
    items[:] = given
    return result
