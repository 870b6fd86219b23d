"""Run exactly the tests that a process was given, in their order; fresh processes load this by name.

The session has already chosen them. A plugin that chooses again, as pytest-split takes a half of each half,
would leave the rest unmeasured. They come in a file: a command line has no room for a large suite, and pytest
adds the paths of ``addopts`` to those on it.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest

from pytest_opprof.results.names import canonical_node_id

_TESTS: Final = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the tests, and the first process's run."""
    parser.addoption("--opprof-tests", metavar="PATH", help="a file with the node ids of the tests to run")
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


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Read the tests, whose conftests may add options."""
    told = early_config.known_args_namespace
    early_config.stash[_TESTS] = json.loads(Path(told.opprof_tests).read_bytes())
    told.file_or_dir = _files(early_config)


def pytest_configure(config: pytest.Config) -> None:
    """Collect only the files of the tests; report ended tests, if asked to."""
    config.args = _files(config)
    path = config.getoption("opprof_ended", None)
    if path:
        config.pluginmanager.register(Ended(Path(path)))


def _files(config: pytest.Config) -> list[str]:
    paths = dict.fromkeys(node_id.partition("::")[0] for node_id in config.stash[_TESTS])
    return [str(config.rootpath / path) for path in paths]


def first_run(config: pytest.Config) -> Path | None:
    """Its path; None if this process confirms nobody."""
    text = config.getoption("opprof_first", None)
    return Path(text) if text else None


# Inside the wrapper that plans the measurement, and around all that choose.
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, object, object]:
    """Leave out the files' other tests, and undo other plugins' deselection and order."""
    found = {canonical_node_id(item.nodeid): item for item in items}
    given = [found[node_id] for node_id in config.stash[_TESTS] if node_id in found]
    items[:] = given
    result = yield
    items[:] = given
    return result
