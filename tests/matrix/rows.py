"""The matrix: one environment per row, one question per column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One environment.

    Attributes:
        python: The interpreter's minor release.
        torch: The release that pip is asked for; "" for none, or for the one that the distribution has.
        suite: A release of Debian, whose own interpreter this is; "" for an interpreter of this machine.
        packages: Of that release, besides those that the README names.
        whole: `make test` is run here, as a newcomer would.
    """

    python: str
    torch: str = ""
    suite: str = ""
    packages: tuple[str, ...] = ()
    whole: bool = False

    @property
    def name(self) -> str:
        """Its name in folders and on the command line."""
        torch = f"torch{self.torch}" if self.torch else ""
        parts = [self.suite, f"py{self.python}", torch, "fresh" if self.whole else ""]
        return "-".join(filter(None, parts))

    @property
    def has_torch(self) -> bool:
        return bool(self.torch) or "python3-torch" in self.packages


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One question.

    Attributes:
        command: What is run in the environment, from the checkout; its programs are on PATH.
        needs_torch: It is not asked where there is none.
        whole: It is asked in rows that run everything, and only there.
        limit_s: After which it is stopped, in seconds.
    """

    title: str
    command: str
    needs_torch: bool = True
    whole: bool = False
    limit_s: int = 3600

    def is_asked(self, row: Row) -> bool:
        """Whether a row has a cell for it."""
        return self.whole == row.whole and (row.has_torch or not self.needs_torch)


_TORCH: Final = ("python3-torch", "libtorch-dev")

ROWS: Final = (
    *(
        Row(python="3.11", torch=torch)
        for torch in ("2.6.0", "2.9.1", "2.12.1", "2.13.0", "2.14.1", "2.15.0")
    ),
    *(Row(python=python, torch="2.15.0") for python in ("3.12", "3.13")),
    Row(python="3.14", suite="sid", packages=_TORCH),
    Row(python="3.15", torch="2.15.0", suite="sid", packages=("python3.15-dev", "python3.15-venv")),
    Row(python="3.11", suite="bookworm", whole=True),
    Row(python="3.13", suite="trixie", whole=True),
    Row(python="3.14", suite="sid", whole=True),
)

_PYTEST: Final = "pytest -q -p no:cacheprovider -p no:randomly "
_SEQUENCE: Final = "tests/oracle/test_torch_sequence.py"
# Only rows that compare with torch.profiler decide the exit code: others depend on the machine's clock and say
# nothing about a torch.
_COST: Final = (
    "{ python -m benchmarks --only capture || true; } | "
    "awk '/torch[.]profiler/ { print; rows++; over += /  NO$/ } END { exit over || !rows }'"
)

COLUMNS: Final = (
    Column(title="compiles", command='rm -rf "$OPPROF_CACHE_DIR"; opprof prepare'),
    Column(
        title="loads",
        command="opprof doctor | grep -E '^torch ops +(ok|untested) '",
    ),
    Column(title="ops", command=f"{_PYTEST}{_SEQUENCE} -k 'not inputs and not compiled'"),
    Column(
        title="shapes",
        command=f"{_PYTEST}{_SEQUENCE} tests/oracle/test_overloads_oracle.py -k 'inputs or overload'",
    ),
    Column(
        title="memory",
        command=f"{_PYTEST}tests/oracle/test_memory_oracle.py tests/oracle/test_memory_timeline_oracle.py "
        "tests/integration/test_torch_memory.py tests/integration/test_memory_sources.py",
        needs_torch=False,
    ),
    Column(
        title="stacks",
        command=f"{_PYTEST}tests/oracle/test_stack_oracle.py tests/integration/test_stacks.py "
        "tests/integration/test_python_calls.py tests/integration/test_python_profilers_beside.py "
        "tests/integration/test_cpp_stacks.py tests/integration/test_call_sites.py",
        needs_torch=False,
    ),
    Column(
        title="compiled",
        command=f"{_PYTEST}{_SEQUENCE} tests/e2e/test_compiled.py -k 'compiled or test_compiled'",
    ),
    Column(
        title="tables, traces",
        command=f"{_PYTEST}tests/oracle --ignore={_SEQUENCE} "
        "--ignore=tests/oracle/test_stack_oracle.py --ignore=tests/oracle/test_memory_oracle.py",
    ),
    Column(
        title="sessions",
        command=f"{_PYTEST}-m 'not slow' tests/e2e/test_marker.py tests/e2e/test_verdicts.py "
        "tests/e2e/test_outcomes.py tests/e2e/test_torch_ops.py tests/e2e/test_xdist.py",
        needs_torch=False,
    ),
    Column(title="A/B", command=f"{_PYTEST}-m 'not slow' tests/e2e/ab", needs_torch=False),
    Column(title="cost", command=_COST),
    Column(title="make test", command="make test", needs_torch=False, whole=True, limit_s=5400),
)
