"""The collectives on the devices of a trace: the bytes that each moved, and its bandwidth."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pytest_opprof.capture.native import lib

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_opprof.traces.imported_recording import ImportedRecording

# Kernels of NCCL and RCCL: `ncclKernel_AllReduce_RING_LL_Sum_float(...)`, `ncclDevKernel_AllGather_...`.
_KERNEL: Final = re.compile(r"nccl(?:Symk?)?(?:Dev)?Kernel_([A-Za-z]+)")
_BYTES: Final = {
    **dict.fromkeys(("byte", "char", "signed char", "int8", "uint8", "unsigned char", "bool"), 1),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2"), 1),
    **dict.fromkeys(("half", "float16", "bfloat16", "short", "c10::bfloat16", "c10::half", "int16"), 2),
    **dict.fromkeys(("float", "float32", "int", "int32"), 4),
    **dict.fromkeys(("double", "float64", "long", "int64", "long int"), 8),
}
# Torch has names for forms of them: `_allgather_base`, `allreduce_coalesced`.
_OF_FORMS: Final = ("allreduce", "allgather", "reducescatter")
# In these, no member of the group ends before the last one has begun. In `all_to_allv` two may have nothing
# for each other.
_JOINT: Final = frozenset({*_OF_FORMS, "barrier", "alltoall"})


MOST_RANKS: Final = 1 << 24  # of a program
_MOST_ELEMENTS: Final = 1 << 53  # so that bytes fit 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """One collective, as one rank saw it."""

    event: int  # index of its kernel
    step: int  # index of the step that launched it; -1 for none
    # in lower case without underscores: ``allreduce``, ``allgather``, ``sendrecv``. A coalesced one has no
    # name of its own.
    name: str
    start_ns: int  # when its kernel began, from the trace's start
    duration_ns: int  # the duration of its kernel, including the wait for other ranks
    device: int  # torch's number of the device
    group: str = ""  # the process group's name; "" if unknown
    group_size: int = 0  # the number of ranks in the group; 0 if unknown
    ranks: tuple[int, ...] = ()  # those ranks; empty if unknown
    sequence: int = -1  # the collective's number in its group; -1 if unknown
    nbytes: int = 0  # the larger of this rank's input and output; 0 if unknown

    @property
    def is_joint(self) -> bool:
        """Whether no member of the group can end before the last one has begun."""
        return self.name in _JOINT

    @property
    def algorithm_bandwidth(self) -> float:
        """Bytes per second, as nccl-tests defines it; 0 if unknown. Waiting makes it a lower bound."""
        return self.nbytes * 1e9 / self.duration_ns if self.duration_ns > 0 else 0.0

    @property
    def bus_bandwidth(self) -> float:
        """Bytes per second on each link, as nccl-tests defines it (its doc/PERFORMANCE.md); 0 if unknown."""
        size = self.group_size
        if size < 1:
            return 0.0
        shared = (size - 1) / size
        factors = {"allreduce": 2 * shared} | dict.fromkeys(
            ("allgather", "reducescatter", "alltoall", "alltoallv"), shared
        )
        return self.algorithm_bandwidth * factors.get(self.name, 1.0)


def is_collective(kernel_name: str) -> bool:
    """Whether a kernel of this name is a collective, or a send or receive, of NCCL, RCCL or MSCCL++."""
    text = kernel_name.encode("utf-8", "surrogatepass")
    return bool(lib.op_name_is_collective(text, len(text)))


def collectives(recording: ImportedRecording) -> list[Collective]:
    """The collectives of a trace, in start order."""
    found = [_collective(recording, event) for event in recording.collectives()]
    found.sort(key=lambda one: (one.start_ns, one.event))
    return found


def _collective(recording: ImportedRecording, event: int) -> Collective:
    args = recording.args(event)
    launcher = recording.launcher[event]
    ranks, size = _ranks(str(args.get("Process Group Ranks"))), _number(args, "Group size")
    return Collective(
        event=event,
        step=recording.step[launcher if launcher >= 0 else event],
        name=_name(args.get("Collective name"), recording.name(event)),
        start_ns=recording.start_ns[event],
        duration_ns=recording.duration_ns[event],
        device=recording.threads[recording.thread[event]].device_index,
        group=str(args.get("Process Group Name", "")),
        group_size=size if 0 < size <= MOST_RANKS else len(ranks),
        ranks=ranks,
        sequence=_number(args, "Seq", otherwise=-1),
        nbytes=max(_number(args, "In msg nelems"), _number(args, "Out msg nelems"))
        * _BYTES.get(str(args.get("dtype", "")).lower(), 0),
    )


def _name(told: object, kernel: str) -> str:
    matched = _KERNEL.match(kernel)
    text = told if isinstance(told, str) and told else (matched and matched[1]) or kernel
    name = text.lower().replace("_", "")
    return next((kind for kind in _OF_FORMS if name.startswith(kind)), name)


def _number(args: Mapping[str, Any], key: str, *, otherwise: int = 0) -> int:
    value = args.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        return otherwise
    return value if abs(value) <= _MOST_ELEMENTS else otherwise


@functools.lru_cache(maxsize=64)  # each collective repeats the ranks of its group
def _ranks(told: str) -> tuple[int, ...]:
    """The ranks of a group; empty if the text is not a list, or was cut (``[0, 1, ..., 511]``)."""
    try:
        ranks = json.loads(told)
    except (RecursionError, ValueError):
        return ()
    if not isinstance(ranks, list) or not all(isinstance(rank, int) and rank < MOST_RANKS for rank in ranks):
        return ()
    return tuple(ranks)
