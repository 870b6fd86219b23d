"""The text of docs/compatibility.md: the table of what was tried, and what support means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from matrix.results import Answers, Result
from matrix.rows import COLUMNS, Row

from pytest_opprof.capture.torch_build import SUPPORTED

_HEAD: Final = f"""\
# Compatibility

torch {SUPPORTED} (CPU and CUDA builds) and CPython 3.11 to 3.15 are supported, on Linux with glibc. torch is
optional. Everything below was tested on x86-64, CUDA builds without a GPU; a test with a GPU has
[a page of its own](gpu-validation.md).

- **Supported** means: we make the table below before each release of ours, and a failure in it is a defect.
- A minor release of torch is supported for two years, and the newest within two weeks of its release. CPython releases
  are supported until their own end of life.
- A newer torch is `untested` in `opprof doctor`: its headers are checked for differences. If the collector can handle
  them, it records as usual; otherwise a sentence says what to do, and tests are INCONCLUSIVE.
- pip refuses a newer Python: the collector reads the interpreter's frames, whose layout changes with each minor
  release.
- On free-threaded builds of CPython nothing is measured: see [decision 76](decisions.md#76-free-threaded-builds-of-cpython-are-not-measured). This was not tested.
- Elsewhere (macOS, Windows, musl, PyPy) the package installs, but
  [measures nothing](usage.md#where-nothing-can-be-measured).

## Tested combinations

`make test-matrix` makes each environment, runs the tests of each column in it and prints this table. A cell is `yes`, or
how many tests failed. Each row ends with its commit and day.
"""
_TAIL: Final = """
- *compiles*: the observer and the emitter, by `opprof prepare`. *loads*: `opprof doctor` records an op with it.
- *ops*, *shapes*: the same events as torch.profiler, and on five workloads the same multiset of ops. *memory*, *stacks*,
  *tables, traces*: the same answers as torch.profiler's.
- *compiled*: models that torch.compile compiled. *sessions*: whole pytest sessions. *A/B*: `opprof ab`.
- *cost*: the time that recording adds to ops is within the bounds of `make bench`, against that torch's own profiler,
  on four workloads: half of its time for ops alone, 0.65 of it with shapes and memory. *n over*: n of these six bounds
  do not hold. It is always a small linear layer, forward and backward, with shapes and memory, at up to 0.69: torch
  takes most of that time to hand out inputs, to its own profiler as to this one. [Performance](performance.md) has the
  nanoseconds, which depend on the machine.
- Tests are left out if a release has no result to compare with. `compat="torch"` follows the profiler of 2.13: older
  ones' events had no metadata, and since 2.15 a table leaves out Python functions, and kernels that no op began. Since
  2.14 there is no `BasicEvaluation`. Debian builds torch without ITT.
- *make test*: this repository's suite, run as the README says, in a fresh distribution.
"""


def page(rows: Sequence[Row], answers: Mapping[str, Answers]) -> str:
    """The page.

    Args:
        rows: In order.
        answers: By row's name.
    """
    titles = [column.title for column in COLUMNS if not column.whole]
    head = ["Python", "torch", *titles, "commit"]
    lines = [_line(head), _line(["---"] * len(head))]
    lines += [_line(_cells(row, answers.get(row.name), titles)) for row in rows if not row.whole]
    whole = [_line(["distribution", "Python", "make test", "commit"]), _line(["---"] * 4)]
    whole += [_line(_cells(row, answers.get(row.name), ["make test"])) for row in rows if row.whole]
    return "\n".join([_HEAD, *lines, "", *whole]) + "\n" + _TAIL


def _cells(row: Row, answers: Answers | None, titles: Sequence[str]) -> list[str]:
    if row.whole:
        head = [row.suite, f"its own {row.python}"]
    else:
        python = f"{row.python} ({row.suite})" if row.suite else row.python
        head = [python, row.torch or ("its own" if row.has_torch else "none")]
    asked = {column.title for column in COLUMNS if column.is_asked(row)}
    if answers is None:
        return [*head, *("not run" if title in asked else "" for title in titles), ""]
    if "" in answers.cells:
        return [*head, answers.cells[""].detail, *[""] * (len(titles) - 1), answers.commit]
    said = (_cell(answers.cells.get(title)) if title in asked else "" for title in titles)
    return [*head, *said, answers.commit]


def _cell(result: Result | None) -> str:
    return "not run" if result is None else "yes" if result.holds else result.detail


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
