"""Times under torch's names, in microseconds, over integers of nanoseconds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_opprof.units import NS_IN_US, format_time_us


@dataclass(frozen=True, slots=True)
class Interval:
    """A stretch of time.

    Attributes:
        start: Microseconds since the window's start.
        end: The same.
    """

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Its length, microseconds."""
        return self.end - self.start


class Kernel(NamedTuple):
    """Work that an op launched on a device.

    Attributes:
        name: The kernel's name.
        device: The device's index.
        duration: Microseconds.
    """

    name: str
    device: int
    duration: float


def microseconds(time_ns: int) -> float:
    """Nanoseconds as microseconds."""
    return time_ns / NS_IN_US


def _renamed(old: str, new: str) -> property:
    def read(self: object) -> Any:
        warnings.warn(f"`{old}` is deprecated, please use `{new}` instead.", FutureWarning, stacklevel=2)
        return getattr(self, new)

    return property(read, doc=f"Deprecated: use `{new}`.")


class TorchTimes:
    """The times that torch's events and averages have, floats of microseconds."""

    __slots__ = ()

    if TYPE_CHECKING:
        # What a subclass brings along, as attributes or as properties.
        @property
        def count(self) -> int: ...  # noqa: D102
        @property
        def cpu_time_total_ns(self) -> int: ...  # noqa: D102
        @property
        def self_cpu_time_total_ns(self) -> int: ...  # noqa: D102
        @property
        def device_time_total_ns(self) -> int: ...  # noqa: D102
        @property
        def self_device_time_total_ns(self) -> int: ...  # noqa: D102

    @property
    def cpu_time_total(self) -> float:
        """Time on the host, microseconds."""
        return microseconds(self.cpu_time_total_ns)

    @property
    def self_cpu_time_total(self) -> float:
        """Time on the host less that of the ops inside, microseconds."""
        return microseconds(self.self_cpu_time_total_ns)

    @property
    def device_time_total(self) -> float:
        """Time of the kernels launched in it, microseconds."""
        return microseconds(self.device_time_total_ns)

    @property
    def self_device_time_total(self) -> float:
        """Time of the kernels launched by it and not by an op inside it, microseconds."""
        return microseconds(self.self_device_time_total_ns)

    @property
    def cpu_time(self) -> float:
        """Time on the host for each call, microseconds."""
        return microseconds(self.cpu_time_total_ns) / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Time of kernels for each call, microseconds."""
        return microseconds(self.device_time_total_ns) / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        """`cpu_time` as text."""
        return format_time_us(self.cpu_time)

    @property
    def device_time_str(self) -> str:
        """`device_time` as text."""
        return format_time_us(self.device_time)

    @property
    def cpu_time_total_str(self) -> str:
        """`cpu_time_total` as text."""
        return format_time_us(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """`self_cpu_time_total` as text."""
        return format_time_us(self.self_cpu_time_total)

    @property
    def device_time_total_str(self) -> str:
        """`device_time_total` as text."""
        return format_time_us(self.device_time_total)

    @property
    def self_device_time_total_str(self) -> str:
        """`self_device_time_total` as text."""
        return format_time_us(self.self_device_time_total)

    cuda_time = _renamed("cuda_time", "device_time")
    cuda_time_total = _renamed("cuda_time_total", "device_time_total")
    self_cuda_time_total = _renamed("self_cuda_time_total", "self_device_time_total")
    self_cuda_memory_usage = _renamed("self_cuda_memory_usage", "self_device_memory_usage")
