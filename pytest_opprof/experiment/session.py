"""Run one pytest process in a folder, and read what it collected and measured."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pytest_opprof.children import Tether, is_gone, send, started
from pytest_opprof.errors import ExperimentError, UsageError
from pytest_opprof.recovery.deaths import last_words
from pytest_opprof.results.files import read_run
from pytest_opprof.results.members import Document, from_members
from pytest_opprof.results.run import Run

_LISTING_PLUGIN: Final = "pytest_opprof.plugin.listing"
_LIST_TO: Final = "OPPROF_LIST_TO"  # the plugin's own constant; importing it from here would point right
_LISTING: Final = "listing.json"
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_PATIENCE_S: Final = 5
_POLL_S: Final = 0.02
# Pytest adds its options to those of a command line, which has them already.
WITHOUT_ADDED: Final = {"PYTEST_ADDOPTS": ""}
_MOST_S: Final = 1_000_000
_LAST_LINES: Final = 15
# pytest's exit codes: passed or failed; passed or nothing collected, which the caller judges.
_TESTS_RAN: Final = (0, 1)
_COLLECTED: Final = (0, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where and how processes run."""

    python: str
    folder: Path
    environment: Mapping[str, str]  # all of their variables
    place: Path  # a folder for their files
    # Descriptors that they inherit: the folders that these lock are kept while one of them lives.
    locks: tuple[int, ...] = ()

    def told(self, variables: Mapping[str, str]) -> Spot:
        """A copy with these variables added."""
        return replace(self, environment={**self.environment, **variables})


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTest:
    """A test that pytest collected."""

    node_id: str  # as in a run
    argument: str  # Pytest's argument for its file, in the folder where it was listed
    path: str  # its file, relative to pytest's root folder
    is_marked: bool
    is_chosen: bool  # whether it was not deselected


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a pytest process found."""

    root: Path  # Pytest's root folder
    arguments: tuple[str, ...]  # arguments that start a process like it, without those for tests
    options: tuple[str, ...]  # its own arguments that do not name tests, files or reports
    sys_path: tuple[str, ...]
    stdlib: str  # the standard library's folder, an entry of `sys_path`
    modules: Mapping[str, str]  # the file of each module that it imported
    # For modules of an installed copy of a project, the folder or archive that it was installed from; "" if
    # that is unknown and the copy has the name of the tested project.
    copies: Mapping[str, str]
    gates: tuple[str, ...]  # the rules of its command line, as they were given
    ini_gates: tuple[str, ...]  # those of its ini file
    tests: tuple[ListedTest, ...]  # all tests that it collected, including deselected ones

    def is_installed(self, path: Path) -> bool:
        """Whether a file belongs to the standard library or an installed package.

        The interpreter's prefix does not decide: a project may lie under it, as in /usr/src, or be it.
        """
        return not _INSTALLED.isdisjoint(path.parts) or path.is_relative_to(Path(self.stdlib).resolve())


class ProcessDiedError(Exception):
    """A measuring process ended without a run; the text says how."""


def check_timeout(seconds: float | None) -> None:
    """Raise `UsageError` for an invalid ``--timeout``."""
    if seconds is not None and not 0 < seconds <= _MOST_S:
        raise UsageError(
            f"--timeout={seconds:g}: it must be a number of seconds above 0, and at most {_MOST_S}"
        )


def list_tests(arguments: Sequence[str], spot: Spot) -> Listing:
    """List what pytest collects in a folder; raises `ExperimentError` with its last lines if it cannot."""
    path = spot.place / _LISTING
    path.unlink(missing_ok=True)
    done = _pytest([*arguments, "--collect-only", "-q"], _listed(spot, path))
    if done.code not in _COLLECTED or not path.exists():
        raise ExperimentError(
            f"pytest cannot collect the tests in {spot.folder} ({done.ending}):\n{done.tail}"
        )
    return _read_listing(path)


def measure(arguments: Sequence[str], spot: Spot, *, timeout: float | None) -> tuple[Run, Ended]:
    """Run tests in a fresh process; gives its run and how it ended, or raises `ProcessDiedError`."""
    document = spot.place / "run.json"
    document.unlink(missing_ok=True)
    done = _pytest([*arguments, f"--opprof-json={document}"], spot, timeout=timeout)
    if not document.exists() or done.code not in _TESTS_RAN:
        words = last_words(done.pid)
        error = ProcessDiedError("\n".join([f"{done.ending}:", done.tail, *words]))
        error.add_note("\n".join([done.output, *words]))
        raise error
    return read_run(document), done


def measure_and_list(
    arguments: Sequence[str], spot: Spot, *, timeout: float | None
) -> tuple[Run, Listing, Ended]:
    """Like `measure`, with the process's listing, which has what it imported while it ran."""
    path = spot.place / _LISTING
    path.unlink(missing_ok=True)
    run, done = measure(arguments, _listed(spot, path), timeout=timeout)
    if not path.exists():
        raise ProcessDiedError("it ended without a list of what it imported")
    return run, _read_listing(path), done


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a process ended."""

    code: int  # its exit code; below 0 the signal that killed it
    pid: int
    output: str  # what it printed, without empty lines
    late: float | None = None  # the timeout after which it was stopped, seconds; None if it ended by itself

    @property
    def tail(self) -> str:
        """The last lines that it printed."""
        return "\n".join(self.output.splitlines()[-_LAST_LINES:])

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        if self.late is not None:
            return f"no end in {self.late:g} s (--timeout)"
        if self.code < 0:
            with contextlib.suppress(ValueError):
                return f"killed by {signal.Signals(-self.code).name}"
        return f"exit code {self.code}"


def run(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    timeout: float | None = None,
    locks: Sequence[int] = (),
) -> Ended:
    """Run a command to its end; an exception, such as KeyboardInterrupt, stops it and all that it started.

    So does the death of this process. What the command leaves in the background, such as a server, does not
    delay this. It is stopped after `timeout` seconds; for `locks` see `Spot`.
    """
    # Not a pipe: its end is the end of the last process that holds it.
    with tempfile.TemporaryFile() as file, Tether() as tether:
        # It has its own session: Ctrl-C is for us, and an unfinished measurement is of no use.
        process = started(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            pass_fds=(*locks, tether.end),
        )
        tether.tie(process)
        late = None
        try:
            if not _ends(process, timeout):
                late = timeout
                _end(process)
        except BaseException:
            _end(process)
            raise
        tether.untie()
        # Not seek(): what it left shares this file's position.
        output = os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")
    lines = [line for line in output.splitlines() if line.strip()]
    output = "\n".join(lines) or "it printed nothing"
    return Ended(code=process.returncode, pid=process.pid, output=output, late=late)


def _pytest(arguments: Sequence[str], spot: Spot, *, timeout: float | None = None) -> Ended:
    command = [spot.python, "-m", "pytest", *arguments]
    return run(command, folder=spot.folder, environment=spot.environment, timeout=timeout, locks=spot.locks)


def _ends(process: subprocess.Popen[bytes], timeout: float | None) -> bool:
    """Whether it ends within so many seconds; ``wait(timeout)`` polls, which would disturb the measured."""
    waiting = threading.Thread(target=process.wait, daemon=True)
    waiting.start()
    waiting.join(timeout)
    return process.returncode is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop a process and all that it started, politely first, so that it cleans up.

    After SIGINT its output also says where pytest was.
    """
    try:
        for kind in (signal.SIGINT, signal.SIGTERM):
            send(process, kind)
            if _is_gone_soon(process):
                return
    finally:  # also at a second Ctrl-C
        send(process, signal.SIGKILL)
    _is_gone_soon(process)


def _is_gone_soon(process: subprocess.Popen[bytes]) -> bool:
    last = time.monotonic() + _PATIENCE_S
    while not (gone := is_gone(process)) and time.monotonic() < last:
        time.sleep(_POLL_S)
    return gone


def _listed(spot: Spot, path: Path) -> Spot:
    plugins = filter(None, (spot.environment.get("PYTEST_PLUGINS"), _LISTING_PLUGIN))
    return spot.told({"PYTEST_PLUGINS": ",".join(plugins), _LIST_TO: str(path)})


def _read_listing(path: Path) -> Listing:
    """Read a listing unchecked: our own plugin wrote it, in a process that ended well."""
    document: Document = json.loads(path.read_bytes())
    return from_members(Listing, document, root=Path(document["root"]))
