"""The text of docs/compatibility.md: the table of what was tried, and what support means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from matrix.results import Result
from matrix.rows import COLUMNS, Row

from pytest_opprof.capture.torch_build import SUPPORTED

_HEAD: Final = f"""\
# Compatibility

torch {SUPPORTED} (CPU and CUDA builds) and CPython 3.11 to 3.15 are supported, on Linux with glibc, on x86-64 and aarch64. torch
is optional.

- **Supported** means: the table below is made for it before each release of ours, and what fails in it is a defect.
- A minor release of torch is supported for two years, and the newest within two weeks of its release. CPython's are
  supported until their own end of life.
- A torch that is newer than these is `untested` in `opprof doctor`: its headers are asked for what differs. Where that
  is enough it is recorded as ever; where it is not, a sentence says what to do, and tests are INCONCLUSIVE.
- A Python that is newer than these is refused by pip: the collector reads the interpreter's frames, whose layout changes with
  each minor release.
- Free-threaded builds of CPython are refused: see [decision 76](decisions.md).
- Elsewhere (macOS, Windows, musl, PyPy) the package installs and stands aside: tests run unmeasured, and commands that
  work on stored runs work.

## What was tried

`make test-matrix` makes each environment, runs the tests of each column in it and prints this table. A cell is `yes`, or
how many tests failed.
"""
_TAIL: Final = """
- *compiles*: the observer and the emitter, by `opprof prepare`. *loads*: `opprof doctor` records an op with it.
- *ops*, *shapes*: the same events as torch.profiler, and on five workloads the same multiset of ops. *memory*, *stacks*,
  *tables, traces*: the same answers as torch.profiler's.
- *compiled*: models that torch.compile compiled. *sessions*: whole pytest sessions. *A/B*: `opprof ab`.
- *cost*: the time that recording adds to ops, within the bounds of `make bench` beside that torch's profiler.
- *make test*: the suite of this repository, as a newcomer runs it by the README, in a distribution made for it alone.
"""


def page(rows: Sequence[Row], results: Mapping[str, Mapping[str, Result]], *, commit: str, day: str) -> str:
    """The page.

    Args:
        rows: In order.
        results: By row's name and column's title; a row that could not be made has one under "".
        commit: The sources'.
        day: On which the run ended.
    """
    titles = [column.title for column in COLUMNS if not column.whole]
    head = ["Python", "torch", *titles]
    lines = [_line(head), _line(["---"] * len(head))]
    lines += [_line(_cells(row, results.get(row.name, {}), titles)) for row in rows if not row.whole]
    whole = [_line(["distribution", "Python", "make test"]), _line(["---"] * 3)]
    whole += [
        _line([row.suite, f"its own {row.python}", _cell(results.get(row.name, {}), "make test")])
        for row in rows
        if row.whole
    ]
    made = f"Commit {commit}, {day}.\n"
    return "\n".join([_HEAD, made, *lines, "", *whole]) + "\n" + _TAIL


def _cells(row: Row, results: Mapping[str, Result], titles: Sequence[str]) -> list[str]:
    python = f"{row.python} ({row.suite})" if row.suite else row.python
    torch = row.torch or ("its own" if row.has_torch else "none")
    if "" in results:
        return [python, torch, results[""].detail, *[""] * (len(titles) - 1)]
    asked = {column.title for column in COLUMNS if column.is_asked(row)}
    return [python, torch, *(_cell(results, title) if title in asked else "" for title in titles)]


def _cell(results: Mapping[str, Result], title: str) -> str:
    if "" in results:
        return results[""].detail
    result = results.get(title)
    return "not run" if result is None else "yes" if result.holds else result.detail


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
