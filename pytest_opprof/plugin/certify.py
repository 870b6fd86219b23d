"""Fresh processes: the certificate of a baseline, and the second look before a test fails.

Each has a fixed hash seed, so that unchanged code that iterates a set counts in the second look what it
counted when its baseline was certified.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest

from pytest_opprof.errors import MeasurementError, OpprofError
from pytest_opprof.experiment.place import Place
from pytest_opprof.plugin.arguments import as_argument, fresh_arguments
from pytest_opprof.results.agreement import repeated
from pytest_opprof.results.files import read_run, write_run
from pytest_opprof.results.run import Run, TestResult

_HASH_SEED: Final = "PYTHONHASHSEED"
_ALONE: Final = "not certified: --opprof-save-processes=1 leaves nobody to confirm what this process measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certified:
    """What came of it: the tests, each with the processes it was seen in, and a note where it failed."""

    tests: tuple[TestResult, ...]
    note: str | None = None


def certify(config: pytest.Config, run: Run, node_ids: Mapping[str, str], *, processes: int) -> Certified:
    """Measure a run's tests in fresh processes and compare what must be exact.

    There one active step is enough for a test that counts what it counted in the run.

    Args:
        config: Of the session that measured them first.
        run: What it measured.
        node_ids: From a result's node id to pytest's own.
        processes: How many processes are to have measured them in the end, this one among them.
    """
    wanted = [node_ids[test.node_id] for test in run.tests if test.is_usable]
    if not wanted:
        return Certified(tests=run.tests)
    if processes == 1:
        return Certified(tests=run.tests, note=_ALONE)
    seen = run.tests
    for number in range(2, processes + 1):
        # What the order of the tests decides shows when every other process turns it round.
        order = wanted if number % 2 else wanted[::-1]
        try:
            again = {test.node_id: test for test in _fresh_run(config, order, number=number, first=run).tests}
        except (OpprofError, OSError) as error:
            # The next one would fail alike.
            return Certified(tests=seen, note=f"not certified in {processes} processes: {error}")
        seen = tuple(
            repeated(test, again[test.node_id], fresh_process=True) if test.node_id in again else test
            for test in seen
        )
    lost = [test for test in seen if test.is_usable and test.processes < processes]
    return Certified(tests=seen, note=_uncertified(lost, processes=processes) if lost else None)


def _uncertified(tests: Sequence[TestResult], *, processes: int) -> str:
    more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
    return (
        f"not certified in {processes} processes, as a fresh one could not measure it: "
        f"{tests[0].node_id}{more}"
    )


class SecondLooks:
    """Measures tests that are about to fail in fresh processes, as long as that is affordable.

    It is not where a test uses fixtures of the project's own that outlive it: a second process would make
    and end them too, such as a database by its name, while this one goes on to use them.

    Args:
        config: pytest's.
        budget_s: What all looks of the session may take, in seconds.
    """

    def __init__(self, config: pytest.Config, *, budget_s: float = 30.0) -> None:
        self._config = config
        self._left_s = budget_s

    def at(self, item: pytest.Item) -> TestResult | None:
        """What a fresh process measures of a test; None where that cannot be had, or not be afforded."""
        if self._left_s <= 0 or _has_lasting_fixtures(item):
            return None
        cancel = getattr(item.ihook, "pytest_timeout_cancel_timer", None)
        if cancel is not None:
            cancel(item=item)  # the test has run: pytest-timeout's time is not for this
        began_s = time.monotonic()
        try:
            run = _fresh_run(self._config, [item.nodeid], number=2, timeout_s=self._left_s)
        except (OpprofError, OSError, subprocess.TimeoutExpired):
            return None
        finally:
            self._left_s -= time.monotonic() - began_s
        return next(iter(run.tests), None)


def _has_lasting_fixtures(item: pytest.Item) -> bool:
    """Whether a test uses fixtures that outlive it, but for those of installed plugins."""
    info = getattr(item, "_fixtureinfo", None)
    used = [] if info is None else [used for name in info.names_closure for used in _fixtures(info, name)]
    return any(
        fixture.scope != "function" and "site-packages" not in fixture.func.__code__.co_filename
        for fixture in used
        if hasattr(fixture.func, "__code__")
    )


def _fixtures(info: Any, name: str) -> Sequence[Any]:
    found: Sequence[Any] = info.name2fixturedefs.get(name, ())
    return found


def _hash_seed(number: int) -> str:
    """Of the process with this number: two by turns, neither of them this process's own."""
    own = os.environ.get(_HASH_SEED)
    return [seed for seed in ("1", "2", "3") if seed != own][number % 2]


def _fresh_run(
    config: pytest.Config,
    node_ids: Sequence[str],
    *,
    number: int,
    first: Run | None = None,
    timeout_s: float | None = None,
) -> Run:
    """What a fresh process measures of some tests, in this order, to confirm what the `first` one has.

    Raises:
        OpprofError: It left no document.
        OSError: It cannot be started.
        subprocess.TimeoutExpired: It took longer than `timeout_s`.
    """
    with Place("certify") as place:
        folder = place.folder
        document, known = folder / "run.json", folder / "first.json"
        command = [*_command(config, node_ids, cache=f"{folder}/cache"), f"--opprof-json={document}"]
        if first is not None:
            write_run(known, first)
            command.append(f"--opprof-first={known}")
        done = subprocess.run(
            command,
            cwd=config.invocation_params.dir,
            env={**os.environ, _HASH_SEED: _hash_seed(number)},
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if document.exists():
            return read_run(document)
    said = (done.stderr.strip() or done.stdout.strip() or "it printed nothing").splitlines()
    raise MeasurementError(f"process {number} ended with exit code {done.returncode}: {said[-1]}")


def _command(config: pytest.Config, node_ids: Sequence[str], *, cache: str) -> list[str]:
    """The same options once more, with these tests in this order."""
    return [
        *(sys.executable, "-m", "pytest"),
        *fresh_arguments(config, cache=cache),
        *(as_argument(config, node_id) for node_id in node_ids),
    ]
