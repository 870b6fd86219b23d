"""All metrics by their names, ready-made limits, and the ops that are watched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_opprof.metrics import host
from pytest_opprof.metrics.device import DEVICE_AMOUNTS, DEVICE_COUNTS, DEVICE_METRICS, TOTAL_TIMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_opprof.metrics.metric import Metric


def _by_name(metrics: Iterable[Metric]) -> Mapping[str, Metric]:
    return {metric.name: metric for metric in metrics}


# Metrics of an op that users can name.
OP_METRICS: Mapping[str, Metric] = _by_name((*host.HOST_METRICS, *DEVICE_METRICS))
# Metrics of a test's rows.
ROW_METRICS: Mapping[str, Metric] = _by_name((*OP_METRICS.values(), host.VIEWS))
TOTALS: Mapping[str, Metric] = _by_name(
    (
        *host.HOST_COUNTS,
        *DEVICE_COUNTS,
        *host.HOST_AMOUNTS,
        *DEVICE_AMOUNTS,
        host.MEMORY_RETAINED,
        *host.COMPILE_TOTALS,
        *host.INSTRUCTION_TOTALS,
        host.NATIVE_INSTRUCTIONS,
        host.SCALING,
        *host.HOST_TIMES,
        *TOTAL_TIMES,
    )
)

# Ready-made limits, by their names in `limits=["no_sync"]`.
PRESETS: Mapping[str, Mapping[str, int]] = {
    "no_sync": {"syncs.count": 0},
    "no_host_copy": {"host_copies.count": 0},
    "no_recompile": {host.RECOMPILES.name: 0},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpFamily:
    """Watched ops that do one thing under several names; if one calls another, both count."""

    name: str  # what they do, for the end of a sentence
    ops: Mapping[str, str]  # each with the reason to show in a table
    core: frozenset[str]  # the ops that do it themselves


_ALLOCATES = "allocates a tensor"
# A rise of one of these fails a test even if no total rises, unless its family did not rise.
OP_FAMILIES: tuple[OpFamily, ...] = (
    OpFamily(
        name="reads of values",
        ops={
            "aten::item": "reads a value back into Python: on a GPU everything waits for it",
            "aten::_local_scalar_dense": "the read behind item(), bool() and int() of a tensor",
            "aten::is_nonzero": "a tensor in an `if`: reads its value back",
            "aten::nonzero": "its result's size is data: on a GPU everything waits for it",
        },
        core=frozenset({"aten::_local_scalar_dense", "aten::nonzero"}),
    ),
    OpFamily(
        name="copies",
        ops={
            "aten::copy_": "moves every byte once more",
            "aten::clone": "moves every byte once more, into new memory",
            "aten::contiguous": "moves every byte when the layout is not contiguous yet",
            "aten::to": "converts or moves a tensor",
            "aten::_to_copy": "the conversion or move behind to()",
        },
        core=frozenset({"aten::copy_"}),
    ),
    OpFamily(
        name="allocations",
        ops={
            "aten::empty": _ALLOCATES,
            "aten::empty_like": _ALLOCATES,
            "aten::empty_strided": _ALLOCATES,
            "aten::new_empty": _ALLOCATES,
            "aten::new_empty_strided": _ALLOCATES,
            "aten::resize_": "may reallocate a tensor's memory",
        },
        core=frozenset({"aten::empty", "aten::empty_strided", "aten::resize_"}),
    ),
)
WATCHED_OPS: Mapping[str, str] = {op: why for family in OP_FAMILIES for op, why in family.ops.items()}
