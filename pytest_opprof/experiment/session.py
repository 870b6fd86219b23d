"""One pytest process in a folder: what it collects, and what it measures."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pytest_opprof.children import send, started
from pytest_opprof.errors import ExperimentError, UsageError
from pytest_opprof.recovery.death_report import last_words
from pytest_opprof.results.files import read_run
from pytest_opprof.results.members import Document, from_members
from pytest_opprof.results.run import Run

_LISTING_PLUGIN: Final = "pytest_opprof.plugin.listing"
_LIST_TO: Final = "OPPROF_LIST_TO"  # the plugin's own constant; importing it from here would point right
_LISTING: Final = "listing.json"
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_PATIENCE_S: Final = 5
_MOST_S: Final = 1_000_000
_LAST_LINES: Final = 15
# pytest's exit codes: passed and failed; passed, and nothing collected, which is for the caller to judge.
_TESTS_RAN: Final = (0, 1)
_COLLECTED: Final = (0, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where processes run, and by what.

    Attributes:
        environment: All of their variables.
        place: A folder for what they leave.
        locks: Descriptors that they inherit: while one of them lives, the folders that these lock are kept.
    """

    python: str
    folder: Path
    environment: Mapping[str, str]
    place: Path
    locks: tuple[int, ...] = ()

    def told(self, variables: Mapping[str, str]) -> Spot:
        """The same, with these variables too."""
        return replace(self, environment={**self.environment, **variables})


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTest:
    """A test that pytest collected.

    Attributes:
        node_id: As a run's document has it.
        argument: What pytest takes to run it, in the folder where it was listed.
        path: Its file, from pytest's root folder on.
        is_chosen: Nobody deselected it.
    """

    node_id: str
    argument: str
    path: str
    is_marked: bool
    is_chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a pytest process found.

    Attributes:
        root: Pytest's root folder.
        arguments: What makes another process like it, but for the tests.
        options: Of what it was given itself, what does not name tests, files or reports.
        sys_path: Where it imported from.
        stdlib: The standard library's folder, an entry of that.
        modules: The file of each module that it imported.
        copies: Of those that belong to an installed copy of a project, which folder or archive it was
            installed from; "" where nothing says that, and it has the name of the project that is tested.
        gates: The rules of its command line, as they were given.
        ini_gates: Those of its ini file.
        tests: All tests that it collected, also those that were deselected.
    """

    root: Path
    arguments: tuple[str, ...]
    options: tuple[str, ...]
    sys_path: tuple[str, ...]
    stdlib: str
    modules: Mapping[str, str]
    copies: Mapping[str, str]
    gates: tuple[str, ...]
    ini_gates: tuple[str, ...]
    tests: tuple[ListedTest, ...]

    def is_installed(self, path: Path) -> bool:
        """Whether a file belongs to the interpreter and what is installed for it, wherever that is.

        What else lies under the interpreter's prefix does not: a project may, as in /usr/src, or be it.
        """
        return not _INSTALLED.isdisjoint(path.parts) or path.is_relative_to(Path(self.stdlib).resolve())


class ProcessDiedError(Exception):
    """A measuring process ended without a document; the text says how."""


def check_timeout(seconds: float | None) -> None:
    """Refuse what is not a time to wait for a process.

    Raises:
        UsageError: It is none.
    """
    if seconds is not None and not 0 < seconds <= _MOST_S:
        raise UsageError(
            f"--timeout={seconds:g}: it must be a number of seconds above 0, and at most {_MOST_S}"
        )


def list_tests(arguments: Sequence[str], spot: Spot) -> Listing:
    """What pytest collects in a folder.

    Args:
        spot: Where it runs; the processes of the listing's arguments leave what they do in its place, too.

    Raises:
        ExperimentError: It cannot collect; the sentence is followed by its last lines.
    """
    path = spot.place / _LISTING
    path.unlink(missing_ok=True)
    done = _pytest([*arguments, "--collect-only", "-q"], _listed(spot, path))
    if done.code not in _COLLECTED or not path.exists():
        raise ExperimentError(
            f"pytest cannot collect the tests in {spot.folder} ({done.ending}):\n{done.tail}"
        )
    return _read_listing(path)


def measure(arguments: Sequence[str], spot: Spot, *, timeout: float | None) -> tuple[Run, Ended]:
    """Run tests in a fresh process, and read the document that it leaves; and how it ended.

    Args:
        arguments: Of pytest, all but the document's.
        timeout: Seconds after which it is ended; None waits for ever.

    Raises:
        ProcessDiedError: It left none.
        OpprofError: The document cannot be used.
    """
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
    """The same, with what the process imported while it ran, and how it ended.

    Raises:
        ProcessDiedError: It left no document.
        OpprofError: The document cannot be used.
    """
    path = spot.place / _LISTING
    path.unlink(missing_ok=True)
    run, done = measure(arguments, _listed(spot, path), timeout=timeout)
    if not path.exists():
        raise ProcessDiedError("it ended without a list of what it imported")
    return run, _read_listing(path), done


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a process ended.

    Attributes:
        code: Its exit code; below 0 the signal that killed it.
        output: What it printed, without empty lines.
        late: The seconds that it did not end in, and so was ended after; None where it ended by itself.
    """

    code: int
    pid: int
    output: str
    late: float | None = None

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
    """Run a command to its end, with all that it starts.

    Args:
        environment: All of its variables.
        timeout: Seconds after which it is ended; None waits for ever.
        locks: See `Spot`.

    Raises:
        KeyboardInterrupt: The user, or whatever else ended this, has ended the command too.
    """
    # In a session of its own: Ctrl-C is for us, and what it had measured so far is of no use.
    process = started(
        command,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        pass_fds=locks,
    )
    late = None
    try:
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            late, output = timeout, _end(process)
    except BaseException:
        _end(process)
        raise
    lines = [line for line in output.splitlines() if line.strip()]
    output = "\n".join(lines) or "it printed nothing"
    return Ended(code=process.returncode, pid=process.pid, output=output, late=late)


def _pytest(arguments: Sequence[str], spot: Spot, *, timeout: float | None = None) -> Ended:
    command = [spot.python, "-m", "pytest", *arguments]
    return run(command, folder=spot.folder, environment=spot.environment, timeout=timeout, locks=spot.locks)


def _end(process: subprocess.Popen[str]) -> str:
    """End a process and all that it started: politely, so that its recordings are put away, then not.

    Returns:
        What it printed: after SIGINT also where pytest stood.
    """
    for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        send(process, kind)
        try:
            output, _ = process.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            continue
        except BaseException:
            send(process, signal.SIGKILL)  # a second Ctrl-C: nobody waits, and nothing may stay behind
            raise
        return output
    return ""  # what it started in a session of its own still holds the pipe


def _listed(spot: Spot, path: Path) -> Spot:
    plugins = [name for name in (spot.environment.get("PYTEST_PLUGINS"), _LISTING_PLUGIN) if name]
    return spot.told({"PYTEST_PLUGINS": ",".join(plugins), _LIST_TO: str(path)})


def _read_listing(path: Path) -> Listing:
    """Our own plugin wrote it, in a process that ended well."""
    document: Document = json.loads(path.read_bytes())
    return from_members(Listing, document, root=Path(document["root"]))
