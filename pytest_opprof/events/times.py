"""Times under torch's names, in microseconds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_opprof.units import NS_IN_US, format_time_us


@dataclass(slots=True)
class Interval:
    """A stretch of time.

    Attributes:
        start: Microseconds since the window's start.
        end: Microseconds since the window's start.
    """

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Its length, microseconds."""
        return self.end - self.start


class Kernel(NamedTuple):
    """Work that an op launched on a device.

    Attributes:
        device: The device's index.
        duration: Microseconds.
    """

    name: str
    device: int
    duration: float


def microseconds(time_ns: int) -> float:
    """Nanoseconds as microseconds."""
    return time_ns / NS_IN_US


def nanoseconds(time_us: float) -> int:
    """Microseconds as nanoseconds: reverses `microseconds` exactly for all times below a month."""
    return round(time_us * NS_IN_US)


def renamed(old: str, new: str) -> property:
    """A property under a name that torch deprecated: it warns, and returns the value of the new one."""

    def read(self: object) -> Any:
        warnings.warn(f"`{old}` is deprecated, please use `{new}` instead.", FutureWarning, stacklevel=2)
        return getattr(self, new)

    return property(read, doc=f"Deprecated: use `{new}`.")


def _text_of(name: str) -> Any:
    def read(self: Any) -> str:
        return format_time_us(getattr(self, name))

    return property(read, doc=f"`{name}` as text.")


class FormattedTimesMixin:
    """The times of torch's events and averages per call, and as text."""

    __slots__ = ()

    if TYPE_CHECKING:
        # A subclass has these as attributes or properties, in microseconds.
        @property
        def count(self) -> int: ...  # noqa: D102
        @property
        def cpu_time_total(self) -> float: ...  # noqa: D102
        @property
        def self_cpu_time_total(self) -> float: ...  # noqa: D102
        @property
        def device_time_total(self) -> float: ...  # noqa: D102
        @property
        def self_device_time_total(self) -> float: ...  # noqa: D102

    @property
    def cpu_time_total_ns(self) -> int:
        """Time on the host, nanoseconds."""
        return nanoseconds(self.cpu_time_total)

    @property
    def self_cpu_time_total_ns(self) -> int:
        """Time on the host less that of the ops inside, nanoseconds."""
        return nanoseconds(self.self_cpu_time_total)

    @property
    def device_time_total_ns(self) -> int:
        """Time of the device work launched in it, nanoseconds."""
        return nanoseconds(self.device_time_total)

    @property
    def self_device_time_total_ns(self) -> int:
        """Time of the device work launched by it, not by an op inside, nanoseconds."""
        return nanoseconds(self.self_device_time_total)

    @property
    def cpu_time(self) -> float:
        """Time on the host per call, microseconds."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Time of device work per call, microseconds."""
        return self.device_time_total / self.count if self.count else 0.0

    cpu_time_str = _text_of("cpu_time")
    device_time_str = _text_of("device_time")
    cpu_time_total_str = _text_of("cpu_time_total")
    self_cpu_time_total_str = _text_of("self_cpu_time_total")
    device_time_total_str = _text_of("device_time_total")
    self_device_time_total_str = _text_of("self_device_time_total")
    cuda_time = renamed("cuda_time", "device_time")
    cuda_time_total = renamed("cuda_time_total", "device_time_total")
    self_cuda_time_total = renamed("self_cuda_time_total", "self_device_time_total")
    self_cuda_memory_usage = renamed("self_cuda_memory_usage", "self_device_memory_usage")
