"""Runs the tests that a process was given, all of them and in this order: loaded by name in fresh processes.

The session that gave them has chosen already. A plugin that chooses again, such as pytest-split of each
half another half, would leave the rest unmeasured.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take what the first process has measured."""
    parser.addoption("--opprof-first", metavar="PATH", help="the run that this process is to confirm")
    parser.addoption("--opprof-ended", metavar="PATH", help="a file that gets a byte for each test that ends")


class Ended:
    """Tells the first process how many tests have ended."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @pytest.hookimpl
    def pytest_runtest_logfinish(self) -> None:
        """One more."""
        with self._path.open("ab") as file:
            file.write(b".")


def pytest_configure(config: pytest.Config) -> None:
    """Tell of ended tests where somebody looks."""
    path = config.getoption("opprof_ended", None)
    if path:
        config.pluginmanager.register(Ended(Path(path)))


def first_run(config: pytest.Config) -> Path | None:
    """Where that is; None where this process confirms nobody."""
    text = config.getoption("opprof_first", None)
    return Path(text) if text else None


# Inside of the wrapper that plans what is measured, and around all that choose.
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, object, object]:
    """Put back what other plugins deselected or put in another order."""
    given = list(items)
    result = yield
    items[:] = given
    return result
