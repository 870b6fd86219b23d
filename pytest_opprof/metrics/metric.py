"""What a metric is: its name, unit and family, which way is worse, and what it depends on."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_opprof.metrics.fingerprint import (
    COUNT_FIELDS,
    DEVICE_MEMORY_FIELDS,
    MALLOC_FIELDS,
    MEMORY_FIELDS,
    PYTHON_MEMORY_FIELDS,
    RANGE_FIELDS,
    TIME_FIELDS,
)
from pytest_opprof.units import Unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_opprof.kinds import OpKind


class Family(StrEnum):
    """How far two measurements of unchanged code may differ."""

    EXACT = "exact"  # not at all: counts, copied and allocated bytes, flops
    BOUNDED = "bounded"  # by a tolerance: peak memory, as another thread may free a moment later
    TIME = "time"  # by whatever the machine does: judged in an A/B only


# Of the base, for a bounded metric. No Fraction: it loads decimals, and everybody needs metrics.
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
    """What was listened to; a document names the sources that ran."""

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
    SCALING = "scaling"  # bytecodes of other sizes of a test too
    COMPILE = "compile"  # what torch.compile did
    RETAINED = "retained"  # of memory, what steps leave in use
    WORK = "work"  # what torch's ops are given, and add to autograd's graph


# What can answer for a metric that asks for the key. Two runs are comparable where the same of these ran.
ANSWERS: Mapping[Source, frozenset[Source]] = MappingProxyType(
    {
        Source.OPS: frozenset({Source.OPS, Source.OPS_ITT}),
        Source.RANGES: frozenset({Source.RANGES, Source.ITT, Source.NVTX}),
        Source.CUDA: frozenset({Source.CUDA}),
        Source.MEMORY: frozenset({Source.MEMORY, Source.MEMORY_PYTHON, Source.MEMORY_MALLOC}),
        Source.MEMORY_CUDA: frozenset({Source.MEMORY_CUDA, Source.TENSORS_CUDA}),
        Source.FLOPS: frozenset({Source.FLOPS}),
        Source.INSTRUCTIONS: frozenset({Source.INSTRUCTIONS}),
        Source.REPLAY: frozenset({Source.REPLAY}),
        Source.SCALING: frozenset({Source.SCALING}),
        Source.COMPILE: frozenset({Source.COMPILE}),
        Source.RETAINED: frozenset({Source.RETAINED, Source.MEMORY_PYTHON, Source.MEMORY_MALLOC}),
        Source.WORK: frozenset({Source.WORK}),
    }
)

_OF_DEVICES = frozenset({Source.CUDA, Source.MEMORY_CUDA})

# What the values of a metric depend on, by its source, where that is not what counts depend on.
_FIELDS_OF: Mapping[Source | None, frozenset[str]] = MappingProxyType(
    {
        Source.RANGES: RANGE_FIELDS,
        Source.INSTRUCTIONS: RANGE_FIELDS,
        Source.SCALING: RANGE_FIELDS,
        Source.MEMORY: MEMORY_FIELDS,
        Source.RETAINED: MEMORY_FIELDS,
        Source.MEMORY_CUDA: DEVICE_MEMORY_FIELDS,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
    """How far an edit that does no more work may move a metric: less than both fails nothing.

    If such a metric cannot be judged, it is advisory, unless unchanged code moves it too (`Family.BOUNDED`):
    then less than both is a PASS, and the test is INCONCLUSIVE.

    Attributes:
        percent: Of the base.
        least: In its unit.
    """

    percent: int
    least: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSum:
    """A total that adds up a metric of a test's rows, but for those of background threads.

    Attributes:
        less: A metric whose values are taken off.
        kind: Rows of this kind alone; None for all.
    """

    metric: str
    less: str = ""
    kind: OpKind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSum:
    """A total that adds up a column of the collector's groups (``op_group_column``)."""

    column: str


@dataclass(frozen=True, slots=True)
class Metric:
    """One thing that is measured: all that the program knows of it.

    Attributes:
        name: How users write it; a total's whole path, or the part behind an op's name.
        label: What a table calls it.
        unit: What its integers count.
        source: What must have been listened to; None when every recording has it.
        scope: One op's value, or a test's total.
        family: How it may be judged.
        worse: Which way is worse.
        is_free: Whether more of it costs nothing: a change is shown, and fails a test only where asked for.
        slack: How far it may rise where no rule is asked for; None for not at all.
        steady_with: Totals that must be known, and the same in all steps and processes of both runs, before
            this one gates.
        fields: Of the fingerprint, what it depends on beside what its source does.
        is_signed: Whether a value may be below zero.
        column: Of an op: the collector's column that has it (``op_group_column``); empty where there is none.
        summed: Of a total: how it follows from rows or columns; None where whoever measures it says it
            (`Cycle.totals`).
    """

    name: str
    label: str
    unit: Unit
    source: Source | None = None
    _: KW_ONLY
    scope: Scope
    family: Family = Family.EXACT
    worse: Worse = Worse.HIGHER
    is_free: bool = False
    slack: Slack | None = None
    steady_with: tuple[str, ...] = ()
    fields: frozenset[str] = frozenset()
    is_signed: bool = False
    column: str = ""
    summed: RowSum | ColumnSum | None = None

    @property
    def depends_on(self) -> frozenset[str]:
        """The fingerprint fields that must agree before two values may be compared."""
        if self.family is Family.TIME:
            return TIME_FIELDS
        return _FIELDS_OF.get(self.source, COUNT_FIELDS) | self.fields

    @property
    def is_of_devices(self) -> bool:
        """Whether CUPTI must have been listened to, so that what it lost is missing here."""
        return self.source in _OF_DEVICES

    @property
    def watched(self) -> bool:
        """Whether a rise fails a test without being asked for; ops have their own list, `WATCHED_OPS`."""
        return self.scope is Scope.TOTAL and self.family is not Family.TIME and not self.is_free

    def rise(self, base: int, head: int) -> int:
        """How much worse a value is than another; below zero where it is better."""
        return head - base if self.worse is Worse.HIGHER else base - head

    def answers(self, sources: Iterable[str]) -> bool:
        """Whether what was listened to can say the value of this metric."""
        return self.source is None or not ANSWERS[self.source].isdisjoint(sources)


# A metric of one op, and a total of a test.
of_op = partial(Metric, scope=Scope.OP)
total = partial(Metric, scope=Scope.TOTAL)


def of_watched_memory(fields: frozenset[str], sources: Iterable[str]) -> frozenset[str]:
    """The fields of a fingerprint without what matters only to memory that nobody watched."""
    watched = set(sources)
    if watched.isdisjoint({Source.MEMORY_PYTHON, Source.MEMORY_MALLOC}):
        fields -= PYTHON_MEMORY_FIELDS
    return fields if Source.MEMORY_MALLOC in watched else fields - MALLOC_FIELDS
