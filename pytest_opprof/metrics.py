"""Every metric there is: its name, unit and family, which way is worse, and what it depends on.

A metric is written ``<op name or pattern>.<metric>`` for one op (``aten::item.count``,
``aten::*.cpu_time_total``) or by its own name for a total of a whole test (``ops.count``). Op names may hold
dots, so a path is cut at the last dot with a metric's name behind it.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_opprof.errors import UsageError
from pytest_opprof.units import Unit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


class Family(StrEnum):
    """How far two measurements of unchanged code may differ."""

    EXACT = "exact"  # not at all: counts, copied and allocated bytes, flops
    BOUNDED = "bounded"  # by a tolerance: peak memory, as another thread may free a moment later
    TIME = "time"  # by whatever the machine does: judged in an A/B only


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
    CUDA = "cuda"
    MEMORY = "memory"  # tensors
    MEMORY_PYTHON = "memory-python"  # Python's own allocator
    MEMORY_MALLOC = "memory-malloc"  # the malloc family
    FLOPS = "flops"


# What can answer for a metric that asks for the key. Two runs are comparable where the same of these ran.
ANSWERS: Mapping[Source, frozenset[Source]] = MappingProxyType(
    {
        Source.OPS: frozenset({Source.OPS, Source.OPS_ITT}),
        Source.RANGES: frozenset({Source.RANGES, Source.ITT, Source.NVTX}),
        Source.CUDA: frozenset({Source.CUDA}),
        Source.MEMORY: frozenset({Source.MEMORY, Source.MEMORY_PYTHON, Source.MEMORY_MALLOC}),
        Source.FLOPS: frozenset({Source.FLOPS}),
    }
)

# The fields of an environment's fingerprint, and how each is called in a sentence.
FINGERPRINT_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "python": "Python",  # minor version
        "implementation": "Python implementation",
        "machine": "machine architecture",
        "torch": "torch",
        "numpy": "NumPy",
        "cpu_capability": "CPU capability",
        "gpu_arch": "GPU architecture",
        "cuda": "CUDA",
        "cudnn": "cuDNN",
        "triton": "Triton",
        "determinism": "determinism flags",
        "compile": "compile flags",
        "cpu_model": "CPU model",
        "gpu_model": "GPU model",
        "cpu_count": "CPU count",
        "threads": "threads of torch",
    }
)
_RANGE_FIELDS = frozenset({"python", "implementation"})
_COUNT_FIELDS = _RANGE_FIELDS | {
    "machine",
    "torch",
    "cpu_capability",
    "gpu_arch",
    "cuda",
    "cudnn",
    "triton",
    "determinism",
    "compile",
}
# What the values of a metric depend on, by its source, where that is not what counts depend on.
_FIELDS_OF: Mapping[Source | None, frozenset[str]] = MappingProxyType(
    {
        Source.RANGES: _RANGE_FIELDS,
        Source.MEMORY: _COUNT_FIELDS | {"threads"},  # some kernels take scratch memory for each thread
    }
)
_TIME_FIELDS = frozenset(FINGERPRINT_FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One thing that is measured.

    Attributes:
        name: how users write it; a total's whole path, or the part behind an op's name.
        label: what a table calls it.
        unit: what its integers count.
        scope: one op's value, or a test's total.
        source: what must have been listened to; None when every recording has it.
        family: how it may be judged.
        worse: which way is worse.
    """

    name: str
    label: str
    unit: Unit
    scope: Scope
    source: Source | None = None
    family: Family = Family.EXACT
    worse: Worse = Worse.HIGHER

    @property
    def depends_on(self) -> frozenset[str]:
        """The fingerprint fields that must agree before two values may be compared."""
        if self.family is Family.TIME:
            return _TIME_FIELDS
        return _FIELDS_OF.get(self.source, _COUNT_FIELDS)

    @property
    def watched(self) -> bool:
        """Whether a rise fails a test without being asked for; ops have their own list, `WATCHED_OPS`."""
        return self.scope is Scope.TOTAL and self.family is not Family.TIME

    def answers(self, sources: Iterable[str]) -> bool:
        """Whether what was listened to can say the value of this metric."""
        return self.source is None or not ANSWERS[self.source].isdisjoint(sources)


def _of_op(
    name: str, label: str, unit: Unit, source: Source | None = None, *, family: Family = Family.EXACT
) -> Metric:
    return Metric(name=name, label=label, unit=unit, scope=Scope.OP, source=source, family=family)


def _total(
    name: str, label: str, unit: Unit, source: Source | None, *, family: Family = Family.EXACT
) -> Metric:
    return Metric(name=name, label=label, unit=unit, scope=Scope.TOTAL, source=source, family=family)


COUNT = _of_op("count", "count", Unit.COUNT)
CPU_TIME_TOTAL = _of_op("cpu_time_total", "CPU total", Unit.NS, family=Family.TIME)
SELF_CPU_TIME_TOTAL = _of_op("self_cpu_time_total", "self CPU", Unit.NS, family=Family.TIME)
CPU_MEMORY = _of_op("cpu_memory", "CPU memory", Unit.BYTES, Source.MEMORY)
FLOPS = _of_op("flops", "FLOPs", Unit.FLOPS, Source.FLOPS)

OPS_COUNT = _total("ops.count", "ops", Unit.COUNT, Source.OPS)
RANGES_COUNT = _total("ranges.count", "ranges", Unit.COUNT, Source.RANGES)
FLOPS_TOTAL = _total("flops.total", "FLOPs", Unit.FLOPS, Source.FLOPS)
CPU_MEMORY_ALLOCATED = _total("cpu_memory.allocated", "allocated memory", Unit.BYTES, Source.MEMORY)
CPU_MEMORY_PEAK = _total("cpu_memory.peak", "peak memory", Unit.BYTES, Source.MEMORY, family=Family.BOUNDED)
CPU_MEMORY_ALLOCATIONS = _total("cpu_memory.allocations", "allocations", Unit.COUNT, Source.MEMORY)
TOTAL_SELF_CPU_TIME = _total("total.self_cpu_time_total", "self CPU", Unit.NS, None, family=Family.TIME)


def _by_name(*metrics: Metric) -> Mapping[str, Metric]:
    return MappingProxyType({metric.name: metric for metric in metrics})


OP_METRICS: Mapping[str, Metric] = _by_name(COUNT, CPU_TIME_TOTAL, SELF_CPU_TIME_TOTAL, CPU_MEMORY, FLOPS)
TOTALS: Mapping[str, Metric] = _by_name(
    OPS_COUNT,
    RANGES_COUNT,
    _total("kernels.count", "kernels", Unit.COUNT, Source.CUDA),
    _total("launches.count", "launches", Unit.COUNT, Source.CUDA),
    _total("copies.count", "copies", Unit.COUNT, Source.CUDA),
    _total("host_copies.count", "copies from or to the host", Unit.COUNT, Source.CUDA),
    _total("copies.bytes", "copied bytes", Unit.BYTES, Source.CUDA),
    _total("syncs.count", "syncs", Unit.COUNT, Source.CUDA),
    FLOPS_TOTAL,
    CPU_MEMORY_ALLOCATED,
    CPU_MEMORY_PEAK,
    CPU_MEMORY_ALLOCATIONS,
    TOTAL_SELF_CPU_TIME,
)

# Ready-made limits, by the name that `limits=["no_sync"]` gives.
PRESETS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "no_sync": MappingProxyType({"syncs.count": 0}),
        "no_host_copy": MappingProxyType({"host_copies.count": 0}),
    }
)

_ALLOCATES = "allocates a tensor"
# A rise of one of these fails a test even where no total rises; each with the reason that a table may quote.
WATCHED_OPS: Mapping[str, str] = MappingProxyType(
    {
        "aten::item": "reads a value back into Python: on a GPU everything waits for it",
        "aten::_local_scalar_dense": "the read behind item(), bool() and int() of a tensor",
        "aten::is_nonzero": "a tensor in an `if`: reads its value back",
        "aten::nonzero": "its result's size is data: on a GPU everything waits for it",
        "aten::copy_": "moves every byte once more",
        "aten::clone": "moves every byte once more, into new memory",
        "aten::contiguous": "moves every byte when the layout is not contiguous yet",
        "aten::to": "converts or moves a tensor",
        "aten::_to_copy": "the conversion or move behind to()",
        "aten::empty": _ALLOCATES,
        "aten::empty_like": _ALLOCATES,
        "aten::empty_strided": _ALLOCATES,
        "aten::new_empty": _ALLOCATES,
        "aten::new_empty_strided": _ALLOCATES,
        "aten::resize_": "may allocate a tensor's memory anew",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPath:
    """A metric as it was written: of the ops that ``op`` names or matches, or a total when ``op`` is None."""

    op: str | None
    metric: Metric

    def __str__(self) -> str:
        return self.metric.name if self.op is None else f"{self.op}.{self.metric.name}"


def parse_path(text: str, *, where: str, known_ops: Collection[str] = ()) -> MetricPath:
    """Read ``ops.count`` or ``aten::item.count``.

    Args:
        text: the path as written.
        where: what an error says it stands in, such as ``limits of test_x``.
        known_ops: the names of torch's ops. In their namespaces (``aten::``, ``prim::``) a name that is not
            among them is an error; any other name may be a range of the user's. Empty: nothing is checked.

    Raises:
        UsageError: no such metric, or no such op; it suggests the nearest.
    """
    if text in TOTALS:
        return MetricPath(op=None, metric=TOTALS[text])
    op, _, name = text.rpartition(".")
    if not op or name not in OP_METRICS:
        raise _unknown(text, where=where, candidates=_paths_like(op, name))
    path = MetricPath(op=op, metric=OP_METRICS[name])
    if is_pattern(op):
        return path
    if "::" in op:
        namespaces = {known.partition("::")[0] for known in known_ops}
        if op not in known_ops and op.partition("::")[0] in namespaces:
            near = difflib.get_close_matches(op, known_ops, n=1, cutoff=0.5)
            raise _unknown(text, where=where, candidates=[f"{known}.{name}" for known in near])
        return path
    # A mistyped total would else pass for a range that never runs, and its limit would hold for ever.
    if near_totals := difflib.get_close_matches(text, TOTALS, n=1, cutoff=0.85):
        hint = f"did you mean {near_totals[0]!r}? For a range of that name write '[{op[0]}]{text[1:]}'"
        raise UsageError(f"unknown metric {text!r} in {where} ({hint})")
    return path


def is_pattern(op: str) -> bool:
    """Whether an op's name in a path is an fnmatch pattern."""
    return any(character in op for character in "*?[")


def _paths_like(op: str, name: str) -> list[str]:
    metrics = difflib.get_close_matches(name, OP_METRICS, n=1, cutoff=0.5) if op else []
    totals = difflib.get_close_matches(f"{op}.{name}", TOTALS, n=1)
    return [*totals, *(f"{op}.{metric}" for metric in metrics)]


def _unknown(text: str, *, where: str, candidates: list[str]) -> UsageError:
    nearest = difflib.get_close_matches(text, candidates, n=1, cutoff=0.0)
    if nearest:
        return UsageError(f"unknown metric {text!r} in {where} (did you mean {nearest[0]!r}?)")
    known = ", ".join([*TOTALS, *(f"<op>.{name}" for name in OP_METRICS)])
    return UsageError(f"unknown metric {text!r} in {where} (there are: {known})")
