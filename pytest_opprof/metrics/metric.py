"""What a metric is: its name, unit and family, which way is worse, and what it depends on."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from pytest_opprof.metrics import fingerprint
from pytest_opprof.units import Unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_opprof.kinds import OpKind


class Family(StrEnum):
    """How far two measurements of unchanged code may differ."""

    EXACT = "exact"  # not at all: counts, copied and allocated bytes, flops
    BOUNDED = "bounded"  # by a tolerance: peak memory, as another thread may free a moment later
    TIME = "time"  # by any amount: judged only in an A/B


# Of the base, for a bounded metric. Not a Fraction: that would load `decimal` in every process.
BOUNDED_PERCENT = 1


class Scope(StrEnum):
    """What one value of a metric is about."""

    OP = "op"
    TOTAL = "total"


class Worse(StrEnum):
    """Which way a metric gets worse."""

    HIGHER = "higher"
    LOWER = "lower"


class Source(StrEnum):
    """What was recorded; a saved run names its sources."""

    RANGES = "ranges"  # record_function, range_push
    OPS = "ops"  # torch ops by the observer
    OPS_ITT = "ops-itt"  # torch ops through ITT: names only
    ITT = "itt"  # ITT tasks of other libraries
    NVTX = "nvtx"
    PYTHON = "python"  # Python and C calls
    CPP = "cpp"  # C++ stacks
    CUDA = "cuda"
    MEMORY = "memory"  # tensors
    MEMORY_PYTHON = "memory-python"  # Python's own allocator
    MEMORY_MALLOC = "memory-malloc"  # the malloc family
    MEMORY_CUDA = "memory-cuda"  # of devices: what calls of CUDA take
    TENSORS_CUDA = "memory-cuda-tensors"  # of devices: what torch's allocators give out
    FLOPS = "flops"
    INSTRUCTIONS = "instructions"  # bytecodes of a further call
    REPLAY = "replay"  # machine instructions of a further call
    SCALING = "scaling"  # bytecodes of a test's other sizes too
    COMPILE = "compile"  # what torch.compile did
    RETAINED = "retained"  # memory that steps leave in use
    WORK = "work"  # bytes given to torch's ops, and nodes added to autograd's graph


# What can measure a metric of the key's source. Two runs are comparable if the same of these ran.
ANSWERS: Mapping[Source, frozenset[Source]] = {source: frozenset({source}) for source in Source} | {
    Source.OPS: frozenset({Source.OPS, Source.OPS_ITT}),
    Source.RANGES: frozenset({Source.RANGES, Source.ITT, Source.NVTX}),
    Source.MEMORY: frozenset({Source.MEMORY, Source.MEMORY_PYTHON, Source.MEMORY_MALLOC}),
    Source.MEMORY_CUDA: frozenset({Source.MEMORY_CUDA, Source.TENSORS_CUDA}),
    Source.RETAINED: frozenset({Source.RETAINED, Source.MEMORY_PYTHON, Source.MEMORY_MALLOC}),
}

_OF_DEVICES = frozenset({Source.CUDA, Source.MEMORY_CUDA})

# The fields that a metric depends on, by its source, if not `COUNT_FIELDS`.
_FIELDS_OF: Mapping[Source | None, frozenset[str]] = {
    Source.RANGES: fingerprint.RANGE_FIELDS,
    Source.INSTRUCTIONS: fingerprint.RANGE_FIELDS,
    Source.SCALING: fingerprint.RANGE_FIELDS,
    Source.MEMORY: fingerprint.MEMORY_FIELDS,
    Source.RETAINED: fingerprint.MEMORY_FIELDS,
    Source.MEMORY_CUDA: fingerprint.DEVICE_MEMORY_FIELDS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
    """How far an edit that adds no work may move a metric: a rise fails a test only if it exceeds both.

    A smaller change is CHANGED, and the metric is advisory if it cannot be judged. If unchanged code moves it
    too (`Family.BOUNDED`), a smaller change is a PASS, and the test is INCONCLUSIVE if it cannot be judged.
    """

    percent: int  # of the base
    least: int  # in its unit


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSum:
    """A total that adds up a metric of a test's rows, without those of background threads."""

    metric: str
    less: str = ""  # a metric whose values are subtracted
    kind: OpKind | None = None  # only rows of this kind; None for all


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSum:
    """A total that adds up a column of the collector's groups (``op_group_column``)."""

    column: str


@dataclass(frozen=True, slots=True)
class Metric:
    """One thing that is measured, and everything the program knows about it."""

    name: str  # how users write it: a total's whole path, or the part after an op's name
    label: str  # what a table calls it
    unit: Unit  # what its integers count
    source: Source | None = None  # what must be recorded; None if every recording has it
    _: KW_ONLY
    scope: Scope
    family: Family = Family.EXACT
    worse: Worse = Worse.HIGHER
    is_free: bool = False  # more of it costs nothing: a change is shown, but fails a test only on request
    slack: Slack | None = None  # how far it may rise without a rule of the user's; None for not at all
    # This one gates only if both runs have these totals, constant over steps and processes.
    steady_with: tuple[str, ...] = ()
    # The fingerprint's fields that it depends on besides those of its source.
    fields: frozenset[str] = frozenset()
    is_signed: bool = False  # whether a value may be below zero
    column: str = ""  # for an op: its column of `OpGroup.steps`, if that has another name
    # For a total: how it adds up rows or a column; None if it is measured itself (`Cycle.totals`).
    summed: RowSum | ColumnSum | None = None

    @property
    def depends_on(self) -> frozenset[str]:
        """The fingerprint fields that must agree before two values may be compared."""
        if self.family is Family.TIME:
            return fingerprint.TIME_FIELDS
        return _FIELDS_OF.get(self.source, fingerprint.COUNT_FIELDS) | self.fields

    @property
    def is_of_devices(self) -> bool:
        """Whether it comes from CUPTI, so that what CUPTI lost is missing here."""
        return self.source in _OF_DEVICES

    @property
    def watched(self) -> bool:
        """Whether a rise fails a test by default; ops have their own list, `WATCHED_OPS`."""
        return self.scope is Scope.TOTAL and self.family is not Family.TIME and not self.is_free

    @property
    def is_moved_by_edits(self) -> bool:
        """Whether any edit may move it a little, and unchanged code does not."""
        return self.slack is not None and self.family is not Family.BOUNDED

    def rise(self, base: int, head: int) -> int:
        """How much worse a value is than another; below zero if it is better."""
        return head - base if self.worse is Worse.HIGHER else base - head

    def answers(self, sources: Iterable[str]) -> bool:
        """Whether these sources can measure this metric."""
        return self.source is None or not ANSWERS[self.source].isdisjoint(sources)


# A metric of one op, and a total of a test.
of_op = partial(Metric, scope=Scope.OP)
total = partial(Metric, scope=Scope.TOTAL)


def of_watched_memory(fields: frozenset[str], sources: Iterable[str]) -> frozenset[str]:
    """The fields of a fingerprint without those that matter only to memory that was not recorded."""
    watched = set(sources)
    if watched.isdisjoint({Source.MEMORY_PYTHON, Source.MEMORY_MALLOC}):
        fields -= fingerprint.PYTHON_MEMORY_FIELDS
    return fields if Source.MEMORY_MALLOC in watched else fields - fingerprint.MALLOC_FIELDS
