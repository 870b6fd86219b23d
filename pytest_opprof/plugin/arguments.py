"""A session's arguments for a fresh process that runs some of its tests and reports nothing."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from pytest_opprof.errors import MeasurementError
from pytest_opprof.plugin.stash import PARSER, XDIST

# Left out: options that report on tests, distribute them, stop early or remember other runs. Selecting
# options stay, because they may override an ini file's; there they select nothing (`plugin.fresh`).
_WITH_VALUE: Final = frozenset(
    {
        *("-n", "--numprocesses", "--maxprocesses", "--dist", "--tx", "--px", "--maxfail"),
        *("--junitxml", "--junit-xml", "--junitprefix", "--junit-prefix", "--html", "--css", "--report-log"),
        *("--json-report-file", "--durations", "--durations-min", "--log-file", "--pastebin", "--basetemp"),
        "--debug",
        *("--lfnf", "--last-failed-no-failures", "--random-order-seed"),
        *("--splits", "--group", "--splitting-algorithm", "--durations-path"),
    }
)
_FLAGS: Final = frozenset(
    {
        *("-x", "--exitfirst", "-v", "-vv", "-vvv", "--verbose", "-q", "-qq", "--quiet", "--pdb", "--trace"),
        *("--lf", "--last-failed", "--ff", "--failed-first", "--nf", "--new-first", "--cache-clear"),
        *("--sw", "--stepwise", "--sw-skip", "--stepwise-skip", "--sw-reset", "--stepwise-reset"),
        *("--self-contained-html", "--json-report", "--co", "--collect-only"),
        *("--store-durations", "--clean-durations", "--"),
    }
)
_PREFIXES: Final = ("--opprof-", "--cov", "--benchmark-", "--alluredir")
_ADDED: Final = "PYTEST_ADDOPTS"
# Our options on which tests are measured, and how.
_KEPT: Final = (
    "--opprof-capture",
    "--opprof-instructions",
    "--opprof-mark",
    "--opprof-profile",
    "--opprof-seed",
)
# Turns off what pytest and plugins would do by default or by the ini file, by an option's name.
_CALMING: Final = {
    "maxfail": "--maxfail=0",
    "numprocesses": "-n0",
    "randomly_reorganize": "--randomly-dont-reorganize",
    "random_order_bucket": "--random-order-bucket=none",
    "reruns": "--reruns=0",
    "no_cov": "--no-cov",
    "benchmark_disable": "--benchmark-disable",
}


def fresh_arguments(
    config: pytest.Config, *, folder: Path, environment: Mapping[str, str] = os.environ
) -> list[str]:
    """The same options, with files of its own in `folder`, one process, and the order of the tests.

    They are all that ``python -m pytest`` needs except the file of the tests (see `plugin.fresh`). Pytest
    empties its ``--basetemp``. The options of ``PYTEST_ADDOPTS`` are among these: the process's environment
    must not have it (see `session.WITHOUT_ADDED`).
    """
    has, known = config.pluginmanager.hasplugin, config.known_args_namespace
    added = [*config.getini("addopts"), *shlex.split(environment.get(_ADDED, ""))]
    return [
        *_options(config, added),
        *own_options(config),
        *("-o", "addopts="),
        *(option for dest, option in _CALMING.items() if hasattr(config.option, dest)),
        *("-p", "pytest_opprof.plugin.fresh"),
        *(("-o", f"cache_dir={folder / 'cache'}") if has("cacheprovider") else ()),
        *((f"--basetemp={folder / 'tmp'}",) if has("tmpdir") else ()),
        *((f"--log-file={os.devnull}",) if has("logging") else ()),
        # Other arguments could lead pytest to another ini file and root, and so to other node ids.
        *("-c", str(config.inipath or os.devnull), f"--rootdir={config.rootpath}"),
        # By default that of the ini file, or else of the root: not of os.devnull.
        f"--confcutdir={known.confcutdir}",
        *("-q", "--opprof=on", "--opprof-save=", "--opprof-baseline=", "--opprof-traces="),
        *("--opprof-history=off", "--opprof-timed-steps=0", "--opprof-report="),
    ]


def own_options(config: pytest.Config) -> list[str]:
    """The session's options on how tests are run; an xdist worker has its controller's."""
    told = getattr(config, "workerinput", {}).get(XDIST, {}).get("options")
    return told if told is not None else _options(config, config.invocation_params.args)


class _Argument(str):
    """One argument: an object of its own, even if another is equal."""

    __slots__ = ()


def _options(config: pytest.Config, given: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Those of the given arguments that say how tests are run, without the tests."""
    left = [_Argument(text) for text in kept(_expanded(given, config.invocation_params.dir))]
    # Only the parser knows whether a text is a path or an option's value; it hands paths over as they are.
    try:
        parsed, others = config.stash[PARSER].parse_known_and_unknown_args(left)
    except pytest.UsageError as error:  # of a plugin's option whose value is valid only once
        raise MeasurementError(f"the options cannot be read again for a fresh process: {error}") from error
    paths = {id(argument) for argument in (*parsed.file_or_dir, *others)}
    return [str(argument) for argument in left if id(argument) not in paths]


def _expanded(given: Iterable[str | os.PathLike[str]], folder: Path) -> Iterator[str]:
    """Arguments with those of each ``@file`` in its place, one a line, as pytest reads it."""
    for argument in map(str, given):
        if argument.startswith("@") and (file := folder / argument[1:]).exists() and not file.is_dir():
            yield from _expanded(file.read_text(encoding="utf-8").splitlines(), folder)
        else:
            yield argument


def kept(arguments: Iterable[str]) -> Iterator[str]:
    """Paths, and the options that say how tests are run, such as a conftest's own; not those that report."""
    may_be_value = False
    for argument in arguments:
        name, has_value = argument.partition("=")[0], "=" in argument
        is_value, may_be_value = may_be_value and not argument.startswith("-"), False
        if is_value or name in _FLAGS:
            continue
        is_dropped = name.startswith(_PREFIXES) and name not in _KEPT
        if is_dropped or name in _WITH_VALUE:
            # A flag may be followed by a path: that is left out anyway.
            may_be_value = not has_value
        elif not (argument.startswith("-n") and not argument.startswith("--")):
            yield argument
