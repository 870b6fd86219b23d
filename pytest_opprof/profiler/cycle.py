"""One finished cycle of a profiler."""

from __future__ import annotations

import functools
import json
import os
import sys
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pytest_opprof.capture.cuda import CUDA
from pytest_opprof.capture.gpus import cuda_versions
from pytest_opprof.capture.recording import Recording
from pytest_opprof.capture.sources import StackKind, stack_sources
from pytest_opprof.capture.tensor_roles import TensorRoles
from pytest_opprof.events.columns import Compat
from pytest_opprof.events.event_list import EventList
from pytest_opprof.events.flops import registered_formulas
from pytest_opprof.events.key_averages import Averaged, Grouping, KeyAverages
from pytest_opprof.events.kineto_results import KinetoResults
from pytest_opprof.traces.speedscope import export_speedscope

if TYPE_CHECKING:
    from pytest_opprof.analysis.memory_timeline import MemoryTimeline


# What a trace has besides metadata. A key that occurs twice makes it unreadable, or is lost.
_TRACES_OWN: Final = frozenset(
    {
        "baseTimeNanoseconds",
        "deviceProperties",
        "displayTimeUnit",
        "schemaVersion",
        "traceEvents",
        "traceName",
    }
)


class TraceMetadata:
    """Names and JSON values for traces, checked when they are set, so that no trace is broken JSON.

    A `ValueError` names a value that is not JSON, and a key that each trace has of itself.
    """

    def __init__(self) -> None:
        self.preset_values: dict[str, str] = {}
        self._values: dict[str, str] = {}

    def preset(self, key: str, value: str) -> None:
        """Set a JSON value that `add_json` and `add` override."""
        self.preset_values[_checked_key(key)] = _checked(key, value)

    def add_json(self, key: str, value: str) -> None:
        """Set a JSON value."""
        self._values[_checked_key(key)] = _checked(key, value)

    def add(self, key: str, value: str) -> None:
        """Set a string."""
        self._values[_checked_key(key)] = json.dumps(value)

    def merged(self, known: Mapping[str, object]) -> dict[str, str]:
        """All values as JSON text; the user's override the profiler's."""
        return {key: json.dumps(value) for key, value in known.items()} | self.preset_values | self._values


def distributed_info() -> dict[str, object] | None:
    """The place of this process in a torch.distributed job, and its process groups; None outside of one.

    Trace analysers read the rank from it. Torch is not imported for this: a process in a job has imported it.
    """
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    info = {
        "backend": distributed.get_backend(),
        "rank": distributed.get_rank(),
        "world_size": distributed.get_world_size(),
    }
    if hasattr(distributed, "get_pg_count"):
        info["pg_count"] = distributed.get_pg_count()
    if hasattr(distributed.distributed_c10d, "_get_all_pg_configs"):
        info["pg_config"] = distributed.distributed_c10d._get_all_pg_configs()  # noqa: SLF001  # as torch's profile
    if info["backend"] == "nccl":
        info["nccl_version"] = ".".join(str(part) for part in sys.modules["torch"].cuda.nccl.version())
    return info


def _checked_key(key: str) -> str:
    if key in _TRACES_OWN:
        raise ValueError(f"metadata {key!r}: each trace has this key of itself; choose another one")
    return key


def _checked(key: str, value: str) -> str:
    try:
        json.loads(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"metadata {key!r} is not JSON: {value!r} ({error}); a plain string goes to add_metadata"
        ) from error
    return value


_NEEDED_FOR_TIMELINE: Final = ("record_shapes", "profile_memory", "with_stack")


class Exported(Averaged):
    """A profiler, which exports its last finished cycle, or such a cycle itself."""

    __slots__ = ()

    @abstractmethod
    def events(self) -> EventList:
        """The events, one by one."""

    @abstractmethod
    def _latest(self, call: str) -> Cycle:
        """The cycle to export; `call` names what is exported, for an error if there is none."""

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None = None) -> None:
        """Write the memory of the last finished cycle over time, by category; see `analysis.memory_timeline`.

        Args:
            path: The file. Its ending chooses the format: ``.raw.json.gz``, ``.html``, ``.gz``, or else JSON.
            device: Such as ``cpu`` or ``cuda:0`` (default: the profiled device, else the host).

        Raises:
            UsageError: No cycle has finished, or there is no such device.
            ValueError: Shapes, memory or stacks were not recorded. Torch raises the same.
            OSError: The file cannot be written.
        """
        from pytest_opprof.analysis.memory_timeline import export_memory_timeline  # noqa: PLC0415  # seldom asked for

        cycle = self._latest("export_memory_timeline()")
        used = cycle.recording.use_device
        export_memory_timeline(cycle.memory_timeline(), path, device or (f"{used}:0" if used else "cpu"))

    def export_stacks(
        self,
        path: str | os.PathLike[str],
        metric: str = "self_cpu_time_total",
        *,
        compat: Compat | None = None,
        stacks: StackKind = "python",
    ) -> None:
        """Write the stacks of `events` and their costs; see `EventList.export_stacks`.

        Raises:
            AssertionError: Stacks were not recorded. Torch raises the same.
            ValueError: There is no such metric.
            UsageError: No cycle has finished, there is no such kind of stacks, or torch does not write it.
            OSError: The file cannot be written.
        """
        self._latest("export_stacks()").expect_stacks(stacks)
        self.events().export_stacks(path, metric, compat=compat, stacks=stacks)

    def export_speedscope(self, path: str | os.PathLike[str]) -> None:
        """Write the last finished cycle as a speedscope file, atomically; see `traces.speedscope`.

        Raises:
            UsageError: No cycle has finished.
            OSError: The file cannot be written.
        """
        cycle = self._latest("export_speedscope()")
        export_speedscope(cycle.recording, path, name=cycle.trace_id)


class Cycle(Exported):
    """The recording of a cycle, from its first active step to its last.

    Attributes:
        trace_id: The cycle's name.
        roles: The roles of the tensors that were alive when it ended, if they were asked for.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        trace_id: str,
        metadata: TraceMetadata,
        settings: Mapping[str, object],
        profile_memory: bool = False,
        with_flops: bool = False,
    ) -> None:
        self.recording = recording
        self.trace_id = trace_id
        self._metadata = metadata
        self._settings = settings
        self.roles: TensorRoles | None = None
        if with_flops:
            recording.count_flops(registered_formulas())
        self._events = EventList([recording], profile_memory=profile_memory, with_flops=with_flops)

    def events(self) -> EventList:
        """The events, one by one."""
        return self._events

    @functools.cached_property
    def kineto_results(self) -> KinetoResults:
        """The events as torch's ``profile.kineto_results`` offers them."""
        return KinetoResults(self.recording)

    def _latest(self, _call: str) -> Cycle:
        return self

    def _averages(self, grouping: Grouping, *, compat: Compat | None) -> KeyAverages:
        return self._events.averages(grouping, compat=compat)

    def memory_timeline(self) -> MemoryTimeline:
        """The memory of tensors over time, by category.

        Raises:
            ValueError: Shapes, memory or stacks were not recorded. Torch raises the same.
        """
        from pytest_opprof.analysis.memory_timeline import MemoryTimeline  # noqa: PLC0415  # as above

        missing = [f"{name}=True" for name in _NEEDED_FOR_TIMELINE if name not in self._settings]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")
        return MemoryTimeline(self.recording, self.roles)

    def expect_stacks(self, stacks: StackKind) -> None:
        """Check that stacks of this kind were recorded.

        Raises:
            AssertionError: They were not. Torch raises the same.
            UsageError: There is no such kind.
        """
        if not stack_sources(stacks, where="export_stacks()") <= set(self.recording.sources):
            given = "True" if stacks == "python" else repr(stacks)
            raise AssertionError(f"export_stacks() requires with_stack={given}")

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the events as a Chrome trace, atomically; compressed if the path ends in ``.gz``.

        An existing file is replaced. It can be called more than once.

        Raises:
            OSError: The file cannot be written.
        """
        import socket  # noqa: PLC0415  # for traces only

        host = {"host_name": socket.gethostname()}
        known: dict[str, object] = {"trace_id": self.trace_id, **self._settings, **host}
        if CUDA in self.recording.sources:
            known |= cuda_versions()
        distributed = distributed_info()
        if distributed is not None:
            known["distributedInfo"] = distributed
        self.recording.write_chrome_trace(path, metadata=self._metadata.merged(known))
