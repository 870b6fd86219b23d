"""Runs, comparisons, A/Bs and accepted values: read, written again, compared and shown in every format."""

from __future__ import annotations

import functools
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from fuzz.target import CORPORA, Target, put, refusals_end_here

from pytest_opprof.baselines.accepted import read_accepted
from pytest_opprof.compare.comparison import Comparison
from pytest_opprof.compare.document import read_comparison, write_comparison
from pytest_opprof.compare.sessions import Policy, compare_runs
from pytest_opprof.compare.timing.comparison import TimeComparison
from pytest_opprof.compare.timing.document import read_judged, write_time_comparison
from pytest_opprof.report.ab import ab_lines
from pytest_opprof.report.formats import FORMATS
from pytest_opprof.report.op_table import op_table
from pytest_opprof.report.terminal import comparison_lines, result_title, run_title
from pytest_opprof.results.files import read_run, run_from_bytes, write_run
from pytest_opprof.results.run import Run

_NOW: Final = datetime(2026, 1, 3, tzinfo=UTC)
_WIDTH: Final = 100
_TEXTS: Final = (
    "aten::clone",
    "ops.count",
    "exact",
    "off",
    "5%",
    "<= 3",
    "tests/test_a.py::test_x",
    "regressed",
)


def show(comparison: Comparison | TimeComparison) -> None:
    """Run every use that a command makes of a comparison."""
    for report in FORMATS.values():
        with refusals_end_here():
            report(comparison).encode("utf-8")
    if isinstance(comparison, TimeComparison):
        ab_lines(comparison, width=_WIDTH, verbosity=1)
    else:
        comparison_lines(comparison, width=_WIDTH, verbosity=1)


@functools.cache
def _before() -> Run:
    return run_from_bytes((CORPORA / "run" / "plain.json").read_bytes(), where="plain.json")


def _read_run(data: bytes, folder: Path) -> None:
    run = read_run(put(folder, "run.json", data))
    again = folder / "again.json"
    write_run(again, run)
    assert read_run(again) == run
    run_title(run)
    for test in run.tests:
        result_title(test)
        op_table(test, rows=-1)
    for base in (None, _before(), run):
        comparison = compare_runs(base, run, created=_NOW, opprof_version="0")
        with refusals_end_here():
            show(comparison)
            write_comparison(folder / "comparison.json", comparison)
            assert read_comparison(folder / "comparison.json") == comparison


def _read_comparison(data: bytes, folder: Path) -> None:
    path, again = put(folder, "comparison.json", data), folder / "again.json"
    comparison = read_comparison(path)
    write_comparison(again, comparison)
    assert read_comparison(again) == comparison
    show(read_judged(path))


def _read_times(data: bytes, folder: Path) -> None:
    comparison, again = read_judged(put(folder, "ab.json", data)), folder / "again.json"
    if isinstance(comparison, TimeComparison):
        write_time_comparison(again, comparison)
        assert read_judged(again) == comparison
    show(comparison)


def _read_accepted(data: bytes, folder: Path) -> None:
    put(folder, "accepted.json", data)
    accepted = read_accepted(folder)
    for entry in accepted.values():
        assert entry.path
        assert entry.value_text
    run = _before()
    show(compare_runs(run, run, created=_NOW, opprof_version="0", policy=Policy(accepted=accepted)))


TARGETS: Final = (
    Target(name="run", read=_read_run, words=_TEXTS),
    Target(name="comparison", read=_read_comparison, words=_TEXTS),
    Target(name="ab", read=_read_times, words=_TEXTS),
    Target(name="accepted", read=_read_accepted, words=_TEXTS),
)
