"""The certificate of a baseline: the same tests in fresh processes, in reverse and in order by turns."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from pytest_opprof.errors import MeasurementError, OpprofError
from pytest_opprof.results.agreement import repeated
from pytest_opprof.results.files import read_run
from pytest_opprof.results.run import Run, TestResult

# What reports on tests, distributes them, stops early, or remembers other runs: not for a fresh process.
# What selects among them stays: it chose these tests, and an ini file may hold a choice that it overrides.
_WITH_VALUE: Final = frozenset(
    {
        *("-n", "--numprocesses", "--maxprocesses", "--dist", "--tx", "--px", "--maxfail"),
        *("--junitxml", "--junit-xml", "--junitprefix", "--junit-prefix", "--html", "--css", "--report-log"),
        *("--json-report-file", "--durations", "--durations-min", "--log-file", "--pastebin", "--basetemp"),
        *("--lfnf", "--last-failed-no-failures", "--random-order-seed"),
    }
)
_FLAGS: Final = frozenset(
    {
        *("-x", "--exitfirst", "-v", "-vv", "-vvv", "--verbose", "-q", "-qq", "--quiet", "--pdb", "--trace"),
        *("--lf", "--last-failed", "--ff", "--failed-first", "--nf", "--new-first", "--cache-clear"),
        *("--sw", "--stepwise", "--sw-skip", "--stepwise-skip", "--sw-reset", "--stepwise-reset"),
        *("--self-contained-html", "--json-report"),
    }
)
_PREFIXES: Final = ("--opprof-", "--cov", "--benchmark-", "--alluredir")
_KEPT: Final = ("--opprof-capture",)
# What other plugins would do by themselves or by the ini file's wish, by a name among pytest's options.
_CALMING: Final = {
    "numprocesses": "-n0",
    "randomly_reorganize": "--randomly-dont-reorganize",
    "random_order_bucket": "--random-order-bucket=none",
    "reruns": "--reruns=0",
    "no_cov": "--no-cov",
}
_ALONE: Final = "not certified: --opprof-save-processes=1 leaves nobody to confirm what this process measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certified:
    """What came of it: the tests, each with the processes it was seen in, and a note where it failed."""

    tests: tuple[TestResult, ...]
    note: str | None = None


def certify(
    config: pytest.Config, tests: Sequence[TestResult], node_ids: Mapping[str, str], *, processes: int
) -> Certified:
    """Measure `tests` in fresh processes and compare what must be exact.

    Args:
        config: Of the session that measured them first.
        tests: What it measured.
        node_ids: From a result's node id to pytest's own.
        processes: How many processes are to have measured them in the end, this one among them.
    """
    wanted = [node_ids[test.node_id] for test in tests if test.is_usable]
    if not wanted:
        return Certified(tests=tuple(tests))
    if processes == 1:
        return Certified(tests=tuple(tests), note=_ALONE)
    seen = tuple(tests)
    for number in range(2, processes + 1):
        # What the order of the tests decides shows when every other process turns it round.
        order = wanted if number % 2 else wanted[::-1]
        try:
            again = {test.node_id: test for test in _fresh_run(config, order, number=number).tests}
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


def _fresh_run(config: pytest.Config, node_ids: Sequence[str], *, number: int) -> Run:
    """What a fresh process measures of some tests, in this order.

    Raises:
        OpprofError: It left no document.
        OSError: It cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="opprof-certify-") as folder:
        document = Path(folder) / "run.json"
        done = subprocess.run(
            [*_command(config, node_ids, cache=f"{folder}/cache"), f"--opprof-json={document}"],
            cwd=config.invocation_params.dir,
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
    """The same options once more, with an empty cache, one process, and no other order than the one given."""
    return [
        *(sys.executable, "-m", "pytest"),
        *_kept(config.invocation_params.args, positional=set(config.getoption("file_or_dir") or ())),
        *(option for dest, option in _CALMING.items() if hasattr(config.option, dest)),
        *(("-o", f"cache_dir={cache}") if config.pluginmanager.hasplugin("cacheprovider") else ()),
        # Other arguments could lead pytest to another ini file and root, and so to other node ids.
        *("-c", str(config.inipath or os.devnull), f"--rootdir={config.rootpath}"),
        *("-q", "--opprof=on", "--opprof-save=", "--opprof-baseline=", "--opprof-traces="),
        "--opprof-history=off",
        *(_as_argument(config, node_id) for node_id in node_ids),
    ]


def _kept(arguments: Sequence[str | os.PathLike[str]], *, positional: set[str]) -> Iterator[str]:
    """The options that say how tests are run, such as a conftest's own; not those that report."""
    may_be_value = False
    for argument in map(str, arguments):
        name, has_value = argument.partition("=")[0], "=" in argument
        is_value, may_be_value = may_be_value and not argument.startswith("-"), False
        if is_value or argument in positional or name in _FLAGS:
            continue
        is_dropped = name.startswith(_PREFIXES) and name not in _KEPT
        if is_dropped or name in _WITH_VALUE:
            # A flag may be followed by a path, which is positional and left out all the same.
            may_be_value = not has_value
        elif not (argument.startswith("-n") and not argument.startswith("--")):
            yield argument


def _as_argument(config: pytest.Config, node_id: str) -> str:
    """A node id is relative to the root folder; an argument, to where pytest was started."""
    path, separator, inside = node_id.partition("::")
    return os.path.relpath(config.rootpath / path, config.invocation_params.dir) + separator + inside
