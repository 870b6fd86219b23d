"""Fresh processes: the certificate of a baseline, and the second look before a test fails.

Each has a fixed hash seed, so that unchanged code that iterates a set counts in the second look what it
counted when its baseline was certified.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_opprof.capture.replay import Replay
from pytest_opprof.children import send, started
from pytest_opprof.errors import MeasurementError, OpprofError
from pytest_opprof.experiment.place import Place
from pytest_opprof.experiment.progress import bar
from pytest_opprof.plugin.arguments import as_argument, fresh_arguments
from pytest_opprof.recovery.sessions import left_by, remove
from pytest_opprof.results.agreement import repeated
from pytest_opprof.results.files import read_run, write_run
from pytest_opprof.results.run import Run, TestResult
from pytest_opprof.wording import counted, listed

_HASH_SEED: Final = "PYTHONHASHSEED"
_DOCUMENT: Final = "run.json"
_ENDED: Final = "ended"
_ALL_LOOKS_S: Final = 30.0  # what the second looks of a session may take together
_LOOK_S: Final = 0.2  # between two looks at how far the processes are, where somebody watches
_WORTH_A_PROCESS: Final = 16  # tests; its start takes as long as some of them
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
        node_ids: From a result's node id to pytest's own.
        processes: How many processes are to have measured them in the end, this one among them.
    """
    wanted = [test for test in run.tests if test.is_usable]
    if not wanted:
        return Certified(tests=run.tests)
    if processes == 1:
        return Certified(tests=run.tests, note=_ALONE)
    seen = run.tests
    for number in range(2, processes + 1):
        # What the order of the tests decides shows when every other process turns it round.
        order = wanted if number % 2 else wanted[::-1]
        what = f"certifying {counted(len(wanted), 'test')} in a fresh process ({number} of {processes})"
        try:
            with _told(config, what, total=len(wanted)) as ended:
                again = _measured_again(
                    config, replace(run, tests=tuple(order)), node_ids, number=number, on_ended=ended
                )
        except (OpprofError, OSError) as error:
            # The next one would fail alike.
            return Certified(tests=seen, note=f"not certified in {processes} processes: {error}")
        seen = tuple(
            repeated(test, again[test.node_id], fresh_process=True) if test.node_id in again else test
            for test in seen
        )
    lost = [test.node_id for test in seen if test.is_usable and test.processes < processes]
    why = f"not certified in {processes} processes, as a fresh one could not measure it"
    return Certified(tests=seen, note=f"{why}: {listed(lost, most=1)}" if lost else None)


@contextlib.contextmanager
def _told(config: pytest.Config, text: str, *, total: int) -> Iterator[Callable[[int], None] | None]:
    """Say what takes so long, while it does: a save may take twice as long as its tests.

    Yields:
        What draws on a terminal how many tests have ended; None elsewhere, where the text has a line.
    """
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or config.get_verbosity() < 0:
        yield None
        return
    reporter.ensure_newline()
    if not reporter.isatty:
        reporter.write_line(f"opprof: {text}")
        yield None
        return

    def draw(ended: int) -> None:
        reporter.rewrite(f"opprof: {bar(ended, total)} {text}", erase=True)

    draw(0)
    try:
        yield draw
    finally:
        reporter.rewrite(f"opprof: {text}", erase=True)
        reporter.write_line("")


def _measured_again(
    config: pytest.Config,
    first: Run,
    node_ids: Mapping[str, str],
    *,
    number: int,
    on_ended: Callable[[int], None] | None,
) -> dict[str, TestResult]:
    """What fresh processes measure of a run's tests, in its order, by node id.

    Args:
        number: Of the processes, from 1 on.
        on_ended: Hears how many tests have ended, now and then; None for nobody.

    Raises:
        OpprofError: One left no document.
        OSError: One cannot be started.
    """
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(
                _fresh_process(
                    config,
                    [node_ids[test.node_id] for test in share],
                    number=number,
                    first=replace(first, tests=tuple(replace(test, tree=()) for test in share)),
                )
            )
            for share in _shares(config, first.tests)
        ]
        if on_ended is not None:
            while any(process.is_running for process in processes):
                on_ended(sum(process.ended_tests for process in processes))
                time.sleep(_LOOK_S)
        return {test.node_id: test for process in processes for test in process.run(None).tests}


class SecondLooks:
    """Measures tests that are about to fail in fresh processes, as long as that is affordable.

    It is not where a test uses fixtures of the project's own that outlive it: a second process would make
    and end them too, such as a database by its name, while this one goes on to use them.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._left_s = _ALL_LOOKS_S

    def at(self, item: pytest.Item) -> TestResult | None:
        """What a fresh process measures of a test; None where that cannot be had, or not be afforded."""
        if self._left_s <= 0 or _has_lasting_fixtures(item):
            return None
        cancel = getattr(item.ihook, "pytest_timeout_cancel_timer", None)
        if cancel is not None:
            cancel(item=item)  # the test has run: pytest-timeout's time is not for this
        began_s = time.monotonic()
        try:
            with _fresh_process(self._config, [item.nodeid], number=2) as process:
                run = process.run(self._left_s)
        except (OpprofError, OSError, subprocess.TimeoutExpired):
            return None
        finally:
            self._left_s -= time.monotonic() - began_s
        return next(iter(run.tests), None)


def _has_lasting_fixtures(item: pytest.Item) -> bool:
    """Whether a test uses fixtures that outlive it, but for those of installed plugins."""
    info = getattr(item, "_fixtureinfo", None)
    return info is not None and any(
        fixture.scope != "function" and "site-packages" not in fixture.func.__code__.co_filename
        for name in info.names_closure
        for fixture in info.name2fixturedefs.get(name, ())
        if hasattr(fixture.func, "__code__")
    )


def _hash_seed(number: int) -> str:
    """Of the process with this number: two by turns, neither of them this process's own."""
    own = os.environ.get(_HASH_SEED)
    if own is not None and Replay.here():
        return own  # machine instructions follow the order of each set
    return [seed for seed in ("1", "2", "3") if seed != own][number % 2]


def _shares(config: pytest.Config, tests: Sequence[TestResult]) -> list[list[TestResult]]:
    """What each of the fresh processes gets that run at once: there are as many as xdist has workers.

    The tests of one file stay together, and all in their order. Without xdist there is one process, since
    nobody has said that these tests may run side by side, and so where groups say that some may not.
    """
    option = config.option
    workers = 1 if getattr(option, "dist", "no") == "loadgroup" else getattr(option, "numprocesses", 1) or 1
    sizes = Counter(map(_file_of, tests))
    many = max(1, min(workers, len(sizes), len(tests) // _WORTH_A_PROCESS))
    loads, owners = [0] * many, {}
    for file, size in sizes.most_common():
        owners[file] = loads.index(min(loads))
        loads[owners[file]] += size
    return [[test for test in tests if owners[_file_of(test)] == share] for share in range(many)]


def _file_of(test: TestResult) -> str:
    return test.node_id.partition("::")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _FreshProcess:
    """A process that measures some tests to confirm what another one has."""

    folder: Path
    number: int
    process: subprocess.Popen[Any]

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    @property
    def ended_tests(self) -> int:
        """How many of its tests have ended so far."""
        path = self.folder / _ENDED
        return path.stat().st_size if path.exists() else 0

    def run(self, timeout_s: float | None) -> Run:
        """Wait for its end, for so many seconds at most; what it measured.

        Raises:
            OpprofError: It left no document.
            subprocess.TimeoutExpired: It has not ended.
        """
        code = self.process.wait(timeout_s)
        if (document := self.folder / _DOCUMENT).exists():
            return read_run(document)
        texts = [(self.folder / name).read_text(errors="replace").strip() for name in ("err", "out")]
        said = next(filter(None, texts), "it printed nothing").splitlines()
        raise MeasurementError(f"process {self.number} ended with exit code {code}: {said[-1]}")


@contextlib.contextmanager
def _fresh_process(
    config: pytest.Config, node_ids: Sequence[str], *, number: int, first: Run | None = None
) -> Iterator[_FreshProcess]:
    """A fresh process that measures some tests, in this order, to confirm what the `first` one has.

    Raises:
        OSError: It cannot be started.
    """
    with Place("certify") as place:
        folder = place.folder
        known = folder / "first.json"
        command = _command(config, node_ids, cache=f"{folder}/cache")
        command += [f"--opprof-json={folder / _DOCUMENT}", f"--opprof-ended={folder / _ENDED}"]
        if first is not None:
            write_run(known, first)
            command.append(f"--opprof-first={known}")
        with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
            process = started(
                command,
                cwd=config.invocation_params.dir,
                env={**os.environ, _HASH_SEED: _hash_seed(number)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
            try:
                yield _FreshProcess(folder=folder, number=number, process=process)
            finally:
                is_cut_short = process.poll() is None
                send(process, signal.SIGKILL)
                process.wait()
                for file in left_by(process.pid) if is_cut_short else ():
                    remove(file)  # it did not die in its test


def _command(config: pytest.Config, node_ids: Sequence[str], *, cache: str) -> list[str]:
    """The same options once more, with these tests in this order."""
    replay = Replay.here()
    return [
        *(replay.command if replay else ()),
        *(sys.executable, "-m", "pytest"),
        *fresh_arguments(config, cache=cache),
        *(as_argument(config, node_id) for node_id in node_ids),
    ]
