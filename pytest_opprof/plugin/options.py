"""What the user asked for: command line over marker over ini.

Every pytest session imports this module, so it imports as little as `option_table`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from pytest_opprof.plugin.option_table import CAPTURE, OPTIONS, Option

ALWAYS: Final = "always"
_MODES: Final = ("on", "off", "only", ALWAYS)
_SHOWING: Final = ("collectonly", "setuponly", "setupplan", "showfixtures", "show_fixtures_per_test")
_LARGEST_SEED: Final = 2**32 - 1  # that numpy takes
_MOST_PROCESSES: Final = 100
_MOST_ROWS: Final = 1_000_000
_HISTORY: Final = ("saved", "all", "off")
MOST_TIMED_STEPS: Final = 1_000  # a document has no room for more
_MOST_SECONDS: Final = 3_600


class WantedReport(NamedTuple):
    """A report of the session."""

    kind: str
    path: Path  # where it goes; ``-`` to print it


class Options:
    """What the user asked for, from the command line or the ini file."""

    mode: str  # "on", "off", "only" or "always"
    marks: tuple[str, ...]  # lines that choose tests to profile, the weaker first
    profile: str  # the marker's arguments for all tests, as text
    limits: tuple[str, ...]  # budgets for all tests, as text
    save: str | None
    save_processes: int  # how many processes measure saved tests; 1 for only this one
    baseline: str | None
    store: str
    history: str  # "saved", "all" or "off"
    fail_on: str
    gates: tuple[str, ...]
    ini_gates: tuple[str, ...]  # rules of the ini file; a test's own overrule them
    renames: tuple[str, ...]  # new names of baseline tests
    capture: frozenset[str]
    call_sites: bool  # whether each measurement notes ops' lines
    instructions: bool
    seed: int | None  # the random seed; None to seed nothing
    sort: str
    columns: tuple[str, ...] | None  # titles of columns; None for all
    rows: int  # rows of op tables; -1 for all
    timed_steps: int  # steps to time without the profiler
    timed_max_time: float  # seconds for waiting for undisturbed steps
    traces: Path | None
    trace_budget: str
    json: Path | None
    reports: tuple[WantedReport, ...]  # reports of the comparison to write at the end

    def __init__(self, **values: object) -> None:
        self.__dict__.update(values)

    @property
    def asks_for_something(self) -> bool:
        """Whether there is work even without marked tests."""
        return bool(self.save or self.baseline or self.json or self.reports)


def read_options(config: pytest.Config) -> Options:
    """Read what the user asked for; raises `pytest.UsageError` if a value is invalid."""
    values = {f"--{option.name}": _value(config, option) for option in OPTIONS}
    capture = frozenset(_listed(values["--opprof-capture"]))
    unknown = sorted(capture - set(CAPTURE))
    if unknown:
        raise pytest.UsageError(
            f"--opprof-capture: unknown source {unknown[0]!r}; known: {', '.join(CAPTURE)}"
        )
    columns = _listed(values["--opprof-columns"] or "")
    return Options(
        mode=_one_of(values, "--opprof", _MODES),
        marks=(*config.getini("opprof_mark"), *(config.getoption("opprof_mark") or ())),
        profile=values["--opprof-profile"] or "",
        limits=tuple(values["--opprof-limits"]),
        save=values["--opprof-save"] or None,
        save_processes=_number(values, "--opprof-save-processes", 1, _MOST_PROCESSES),
        baseline=values["--opprof-baseline"] or None,
        store=values["--opprof-store"],
        history=_one_of(values, "--opprof-history", _HISTORY),
        fail_on=values["--opprof-fail-on"],
        gates=tuple(config.getoption("opprof_gate") or ()),
        ini_gates=tuple(config.getini("opprof_gate")),
        renames=(*(config.getoption("opprof_rename") or ()), *config.getini("opprof_rename")),
        capture=capture,
        call_sites=_is_on(values, "--opprof-call-sites"),
        instructions=_is_on(values, "--opprof-instructions"),
        seed=None if values["--opprof-seed"] == "off" else _seed(values["--opprof-seed"]),
        sort=values["--opprof-sort"],
        columns=tuple(columns) or None,
        rows=_number(values, "--opprof-rows", -1, _MOST_ROWS),
        timed_steps=_number(values, "--opprof-timed-steps", 0, MOST_TIMED_STEPS),
        timed_max_time=_timed_max_time(values["--opprof-timed-max-time"]),
        traces=_path(config, "opprof_traces"),
        trace_budget=values["--opprof-trace-budget"],
        json=_of_rank(_path(config, "opprof_json")),
        reports=tuple(_reports(config)),
    )


def calls_no_test(config: pytest.Config) -> bool:
    """Whether pytest only shows what there is, or what it would run."""
    return any(config.getoption(name, default=False) for name in _SHOWING)


def _one_of(values: Mapping[str, Any], option: str, known: Collection[str]) -> str:
    if values[option] not in known:
        raise pytest.UsageError(f"{option}={values[option]}: it must be one of {', '.join(known)}")
    return str(values[option])


def _is_on(values: Mapping[str, Any], option: str) -> bool:
    if values[option] not in {"on", "off"}:
        raise pytest.UsageError(f"{option}={values[option]}: it must be on or off")
    return bool(values[option] == "on")


def _value(config: pytest.Config, option: Option) -> Any:
    given = config.getoption(option.dest)
    if given is not None:
        return given
    ini = config.getini(option.dest)
    return ini or ([] if option.is_list else option.default)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _whole_number(values: Mapping[str, Any], option: str) -> int:
    try:
        return int(values[option])
    except ValueError:
        raise pytest.UsageError(f"{option}={values[option]}: it must be a whole number") from None


def _number(values: Mapping[str, Any], option: str, least: int, most: int) -> int:
    number = _whole_number(values, option)
    if not least <= number <= most:
        raise pytest.UsageError(f"{option}={values[option]}: it must be a number from {least} to {most}")
    return number


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) > _LARGEST_SEED:
        raise pytest.UsageError(
            f"--opprof-seed={text}: it must be a number from 0 to {_LARGEST_SEED}, or off"
        )
    return int(text)


def _of_rank(path: Path | None) -> Path | None:
    """Replaces ``{rank}`` in a path, so that each of torchrun's processes has its own."""
    return None if path is None else Path(str(path).replace("{rank}", os.environ.get("RANK", "0")))


def _timed_max_time(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= _MOST_SECONDS:
        raise pytest.UsageError(
            f"--opprof-timed-max-time={text}: it must be a number of seconds from 0 to {_MOST_SECONDS}"
        )
    return seconds


def _path(config: pytest.Config, dest: str) -> Path | None:
    """A command line's path is relative to where pytest was started; an ini file's, to its folder."""
    given = config.getoption(dest)
    if given is not None:
        return config.invocation_params.dir / given if given else None
    text = config.getini(dest)
    return _ini_folder(config) / text if text else None


def _ini_folder(config: pytest.Config) -> Path:
    return config.inipath.parent if config.inipath else config.rootpath


def _reports(config: pytest.Config) -> Iterator[WantedReport]:
    """The command line's reports, else the ini file's; an empty one clears these."""
    given = config.getoption("opprof_report")
    folder = _ini_folder(config) if given is None else config.invocation_params.dir
    for text in config.getini("opprof_report") if given is None else filter(None, given):
        kind, separator, path = text.partition(":")
        if not (kind and separator and path):
            raise pytest.UsageError(
                f"--opprof-report={text}: write it as FORMAT:PATH, such as markdown:report.md"
            )
        where = Path(path) if path == "-" else _of_rank(folder / path)
        assert where is not None, "a path stays one"
        yield WantedReport(kind=kind, path=where)
