"""The certificate of a baseline: the same tests once more, in a fresh process, in reverse order."""

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

from pytest_opprof.errors import OpprofError
from pytest_opprof.results.agreement import repeated
from pytest_opprof.results.files import read_run
from pytest_opprof.results.run import TestResult

# What selects tests, reports on them, distributes them or stops early: not for the second process.
_WITH_VALUE: Final = frozenset(
    {
        *(
            "-n",
            "--numprocesses",
            "--maxprocesses",
            "--dist",
            "--tx",
            "--px",
            "-k",
            "-m",
            "--maxfail",
            "--deselect",
        ),
        *("--junitxml", "--junit-xml", "--junitprefix", "--junit-prefix", "--html", "--css", "--report-log"),
        *("--json-report-file", "--durations", "--durations-min", "--log-file", "--debug", "--pastebin"),
        *("--random-order-seed", "--lfnf", "--last-failed-no-failures"),
    }
)
_FLAGS: Final = frozenset(
    {
        *("-x", "--exitfirst", "-v", "-vv", "-vvv", "--verbose", "-q", "-qq", "--quiet", "--pdb", "--trace"),
        *("--lf", "--last-failed", "--ff", "--failed-first", "--nf", "--new-first", "--sw", "--stepwise"),
        *("--self-contained-html", "--co", "--collect-only", "--cache-clear", "--json-report"),
    }
)
_PREFIXES: Final = ("--opprof-", "--cov", "--benchmark-", "--alluredir")
_KEPT: Final = ("--opprof-capture",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certified:
    """What came of it: the tests, each with the processes it was seen in, and a note where it failed."""

    tests: tuple[TestResult, ...]
    note: str | None = None


def certify(config: pytest.Config, tests: Sequence[TestResult], node_ids: Mapping[str, str]) -> Certified:
    """Measure `tests` in a second process and compare what must be exact.

    Args:
        config: Of the session that measured them first.
        tests: What it measured.
        node_ids: From a result's node id to pytest's own.
    """
    wanted = [node_ids[test.node_id] for test in tests if test.is_usable]
    if not wanted:
        return Certified(tests=tuple(tests))
    with tempfile.TemporaryDirectory(prefix="opprof-certify-") as folder:
        document = Path(folder) / "run.json"
        done = subprocess.run(
            _command(config, wanted, document),
            cwd=config.invocation_params.dir,
            env=os.environ | {"OPPROF_CERTIFYING": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        try:
            second = read_run(document)
        except OpprofError:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            return Certified(
                tests=tuple(tests),
                note=f"not certified, as the second process ended with exit code {done.returncode}: "
                + (said[-1] if said else "it printed nothing"),
            )
    again = {test.node_id: test for test in second.tests}
    return Certified(
        tests=tuple(
            repeated(test, again[test.node_id], fresh_process=True) if test.node_id in again else test
            for test in tests
        )
    )


def _command(config: pytest.Config, node_ids: Sequence[str], document: Path) -> list[str]:
    positional = set(config.getoption("file_or_dir") or ())
    loaded = config.pluginmanager.hasplugin
    off = [name for name in ("randomly", "random_order", "rerunfailures") if loaded(name)]
    return [
        *(sys.executable, "-m", "pytest"),
        *_kept(config.invocation_params.args, positional),
        *(f"-pno:{name}" for name in off),
        *(("-n0",) if loaded("xdist") else ()),
        *(
            "-pno:cacheprovider",
            "-q",
            "--opprof=on",
            "--opprof-save=",
            "--opprof-baseline=",
            "--opprof-traces=",
        ),
        f"--opprof-json={document}",
        *(_as_argument(config, node_id) for node_id in reversed(node_ids)),
    ]


def _kept(arguments: Sequence[str], positional: set[str]) -> Iterator[str]:
    """The options that say how tests are run, such as a conftest's own; not those that select or report."""
    skip_value = False
    for argument in map(str, arguments):
        name, has_value = argument.partition("=")[0], "=" in argument
        if skip_value:
            skip_value = False
        elif argument in positional or name in _FLAGS:
            continue
        elif name in _WITH_VALUE:
            skip_value = not has_value
        elif argument[:2] in {"-n", "-k", "-m"} and not argument.startswith("--"):
            continue
        elif name.startswith(_PREFIXES) and name not in _KEPT:
            # Our own options all take a value; of the others, those with one are written with "=".
            skip_value = name.startswith("--opprof-") and not has_value
        else:
            yield argument


def _as_argument(config: pytest.Config, node_id: str) -> str:
    """A node id is relative to the root folder; an argument, to where pytest was started."""
    path, separator, inside = node_id.partition("::")
    return os.path.relpath(config.rootpath / path, config.invocation_params.dir) + separator + inside
