"""Fresh processes: the certificate of a baseline, and the second look before a test fails.

Each has a fixed hash seed, so unchanged code that iterates a set has the same counts in the second look as
when its baseline was certified.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import unwrap
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, Final

import pytest

from pytest_opprof.capture.call_sites import library_folders
from pytest_opprof.capture.replay import Replay
from pytest_opprof.children import Tether, send, started
from pytest_opprof.errors import MeasurementError, OpprofError
from pytest_opprof.experiment.place import Place
from pytest_opprof.experiment.progress import bar
from pytest_opprof.experiment.session import WITHOUT_ADDED
from pytest_opprof.plugin.arguments import fresh_arguments
from pytest_opprof.plugin.shortfall import FAULTS
from pytest_opprof.recovery.sessions import left_by, remove
from pytest_opprof.results.agreement import repeated
from pytest_opprof.results.files import read_run, write_run
from pytest_opprof.results.names import canonical_node_id
from pytest_opprof.results.run import Run, TestResult
from pytest_opprof.wording import counted, listed

_HASH_SEED: Final = "PYTHONHASHSEED"
_DOCUMENT: Final = "run.json"
_ENDED: Final = "ended"
_ALL_LOOKS_S: Final = 30.0  # all second looks of a session together
# Python's, pytest's own and its users'; other lines may follow these.
_ERRORS: Final = ("Fatal Python error: ", "INTERNALERROR> ", "ERROR: ", "python -m pytest: error: ")
_LOOK_S: Final = 0.2  # between two updates of the progress
_WORTH_A_PROCESS: Final = 16  # tests; its start takes as long as some
_ALONE: Final = "not certified: --opprof-save-processes=1 starts no process to confirm what this one measured"
_EMPTY: Final = CellType()
# Libraries' fixtures that make something by a fixed name: pytest-django's test database.
_MADE_BY_NAME: Final = frozenset({"django_db_setup"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Certified:
    """The result: the tests, each with its number of processes, and a note if it failed."""

    tests: tuple[TestResult, ...]
    note: str | None = None


def certify(config: pytest.Config, run: Run, *, processes: int) -> Certified:
    """Measure a run's tests in fresh processes, so many with this one, and compare what must be exact.

    One active step is enough for a test with the same counts as in the run.
    """
    wanted = [test for test in run.tests if test.is_usable]
    if not wanted:
        return Certified(tests=run.tests)
    if processes == 1:
        return Certified(tests=run.tests, note=_ALONE)
    seen = run.tests
    for number in range(2, processes + 1):
        # Every other process reverses the tests, which shows what depends on their order.
        order = wanted if number % 2 else wanted[::-1]
        what = f"certifying {counted(len(wanted), 'test')} in a fresh process ({number} of {processes})"
        try:
            with _told(config, what, total=len(wanted)) as ended:
                again = _measured_again(
                    config, replace(run, tests=tuple(order)), number=number, on_ended=ended
                )
        except (OpprofError, OSError) as error:
            # The next would fail too.
            return Certified(tests=seen, note=f"not certified in {processes} processes: {error}")
        seen = tuple(
            repeated(test, again[test.node_id], fresh_process=True) if test.node_id in again else test
            for test in seen
        )
    lost = [test.node_id for test in seen if test.is_usable and test.processes < processes]
    why = f"not certified in {processes} processes, because a fresh process could not measure it"
    return Certified(tests=seen, note=f"{why}: {listed(lost, most=1)}" if lost else None)


@contextlib.contextmanager
def _told(config: pytest.Config, text: str, *, total: int) -> Iterator[Callable[[int], None] | None]:
    """Show the progress of a save, which may take twice as long as its tests.

    Yields what draws the number of ended tests on a terminal; None elsewhere, where the text gets a line.
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

    # A line that wraps is not drawn over, but once more.
    width = config.get_terminal_writer().fullwidth - 1

    def draw(ended: int) -> None:
        reporter.rewrite(f"opprof: {bar(ended, total)} {text}"[:width], erase=True)

    draw(0)
    try:
        yield draw
    finally:
        reporter.rewrite(f"opprof: {text}", erase=True)
        reporter.write_line("")


def _measured_again(
    config: pytest.Config,
    first: Run,
    *,
    number: int,
    on_ended: Callable[[int], None] | None,
) -> dict[str, TestResult]:
    """Fresh processes' measurements of a run's tests, in its order, by node id.

    `number` counts processes, from 1 on; `on_ended` gets the number of ended tests now and then. Raises
    `OpprofError` if a process left no document, and `OSError` if one cannot be started.
    """
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(
                _fresh_process(
                    config,
                    [test.node_id for test in share],
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
    """Measures tests that are about to fail in fresh processes, within 30 s.

    It does not if a second process could disturb what the test's fixtures made (see `must_run_alone`).
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._environment = dict(os.environ)  # a test's fixtures may change it until the test is torn down
        self._left_s = _ALL_LOOKS_S

    def at(self, item: pytest.Item) -> TestResult | None:
        """A fresh process's measurement of a test; None if it fails or takes too long."""
        if self._left_s <= 0 or must_run_alone(item):
            return None
        cancel = getattr(item.ihook, "pytest_timeout_cancel_timer", None)
        if cancel is not None:
            cancel(item=item)  # the test has run: stop pytest-timeout's clock
        node_id, began_s = canonical_node_id(item.nodeid), time.monotonic()
        try:
            with _fresh_process(self._config, [node_id], number=2, environment=self._environment) as process:
                run = process.run(self._left_s)
        except FAULTS:  # the test's fixtures may have replaced anything
            return None
        finally:
            self._left_s -= time.monotonic() - began_s
        return next((test for test in run.tests if test.node_id == node_id), None)


def _hash_seed(number: int, environment: Mapping[str, str]) -> str:
    """A process's seed by number: two alternate, neither of them this process's own."""
    own = environment.get(_HASH_SEED)
    if own is not None and Replay.here():
        return own  # sets' order changes machine instructions
    return [seed for seed in ("1", "2", "3") if seed != own][number % 2]


def _shares(config: pytest.Config, tests: Sequence[TestResult]) -> list[list[TestResult]]:
    """The tests of each simultaneous fresh process: there are as many as xdist workers.

    The tests of one file stay together, and all in their order. Without xdist, or if groups forbid it, there
    is one process: these tests may not be able to run side by side.
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
    """A process that measures some tests to confirm another's results."""

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
        """Wait for its end, at most so many seconds; gives its run, and raises `OpprofError` without one."""
        code = self.process.wait(timeout_s)
        if (document := self.folder / _DOCUMENT).exists():
            return read_run(document)
        texts = ((self.folder / name).read_text(errors="replace") for name in ("out", "err"))
        said = [line for text in texts for line in text.splitlines() if line.strip()]
        why = [line for line in said if line.startswith(_ERRORS)] or said or ["it printed nothing"]
        raise MeasurementError(f"process {self.number} ended with exit code {code}: {why[-1]}")


@contextlib.contextmanager
def _fresh_process(
    config: pytest.Config,
    node_ids: Sequence[str],
    *,
    number: int,
    first: Run | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Iterator[_FreshProcess]:
    """A fresh process that measures some tests, in this order, to confirm the `first` run."""
    with Place("certify") as place, Tether() as tether:
        folder = place.folder
        known, tests = folder / "first.json", folder / "tests.json"
        tests.write_text(json.dumps(node_ids), encoding="ascii")
        command = _command(config, folder=folder, environment=environment)
        command.append(f"--opprof-tests={tests}")
        command += [f"--opprof-json={folder / _DOCUMENT}", f"--opprof-ended={folder / _ENDED}"]
        if first is not None:
            write_run(known, first)
            command.append(f"--opprof-first={known}")
        with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
            process = started(
                command,
                cwd=config.invocation_params.dir,
                env={**environment, **WITHOUT_ADDED, _HASH_SEED: _hash_seed(number, environment)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                pass_fds=(place.lock, tether.end),
            )
            try:
                tether.tie(process)
                yield _FreshProcess(folder=folder, number=number, process=process)
            finally:
                is_cut_short = process.poll() is None
                send(process, signal.SIGKILL)
                process.wait()
                for file in left_by(process.pid) if is_cut_short else ():
                    remove(file)  # it did not die in its test


def _command(config: pytest.Config, *, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """A process with the same options, which imports the same copy of the project."""
    replay = Replay.here()
    # `python -m` puts the current folder first; the `pytest` script does not, and may test an installed copy.
    here = {"", os.fspath(config.invocation_params.dir)}
    like_a_script = () if here.intersection(sys.path) else ("-P",)
    return [
        *(replay.command if replay else ()),
        *(sys.executable, *like_a_script, "-m", "pytest"),
        *fresh_arguments(config, folder=folder, environment=environment),
    ]


def must_run_alone(item: pytest.Item) -> bool:
    """Whether a test uses fixtures that outlive it: the project's own, or a library's that go by a name.

    A second process would make and end what they made, such as a database by its name, while later tests of
    this one still use it.
    """
    return any(
        fixture.argname in _MADE_BY_NAME or not code.co_filename.startswith(library_folders())
        for fixture in _fixtures(item)
        if fixture.scope != "function"
        for code in _codes(fixture.func)
    )


def _fixtures(item: pytest.Item) -> Iterator[Any]:
    """A test's fixtures: those known at collection, and those that were asked for by name later."""
    info, request = getattr(item, "_fixtureinfo", None), getattr(item, "_request", None)
    if info is not None:
        for name in info.names_closure:
            yield from info.name2fixturedefs.get(name, ())
    yield from getattr(request, "_fixture_defs", {}).values()


def _codes(function: Callable[..., object]) -> list[CodeType]:
    """The code of a fixture's function, and of those that it wraps or has in its closure.

    A decorator has the project's function there, and so has pytest's fixture for `setup_module()`.
    """
    found: dict[CodeType, None] = {}
    left: list[object] = [function, unwrap(function)]
    while left:
        one = left.pop()
        if type(one) is MethodType:  # not isinstance(): that would ask the objects in a closure
            one = one.__func__
        if type(one) is FunctionType and one.__code__ not in found:
            found[one.__code__] = None
            left += [cell.cell_contents for cell in one.__closure__ or () if cell != _EMPTY]
    return list(found)
