"""What devices did for each row of the key averages, as the native collector sums it up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import check, value_of

DIRECTIONS: Final = ("htod", "dtoh", "dtod", "ptop", "htoh")
# In the collector's order.
MEASURES: Final = (
    "kernels",
    "launches",
    "memsets",
    "syncs",
    "copies",
    *(f"copies_{direction}" for direction in DIRECTIONS),
    "bytes",
    *(f"bytes_{direction}" for direction in DIRECTIONS),
    "busy_ns",
    "idle_ns",
    "span_ns",
    "depth",
    "depths",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceWork:
    """What devices did for one row, or for all of a recording, by the names of `MEASURES`.

    ``busy_ns`` is the union of the work's intervals on each device. ``span_ns`` is the row's time on the
    host, and ``idle_ns`` the part of it in which a device ran nothing; both are summed over the devices in
    use. ``depth`` adds up the kernels that were launched but had not begun, at each of the row's events (for
    the whole: at each launch); ``depths`` is the number of these moments.

    Attributes:
        steps: One value per step; measures that are 0 in all steps are left out.
        outside: What belongs to no step: everything if there are no steps.
    """

    steps: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    outside: Mapping[str, int] = field(default_factory=dict)

    def as_one_step(self) -> DeviceWork:
        """What belongs to no step, as one step."""
        return DeviceWork(steps={name: (value,) for name, value in self.outside.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """What devices did, and what is unknown about it.

    Attributes:
        rows: By index into `Recording.groups()`: the work that the row's events launched, or are.
        launchers: For rows that are device work: the row that launched most of it.
        unmatched_launches: Launches whose kernel is not on record.
        unmatched_kernels: Kernels in the steps whose launch is not on record.
        untimed: Work without a time.
        unsized: Copies of unknown size.
        undirected: Copies of unknown direction.
    """

    whole: DeviceWork
    rows: Mapping[int, DeviceWork]
    launchers: Mapping[int, int]
    unmatched_launches: int
    unmatched_kernels: int
    untimed: int
    unsized: int
    undirected: int

    def as_one_step(self) -> DeviceUse:
        """The use of a recording without steps, as one step."""
        rows = {row: work.as_one_step() for row, work in self.rows.items()}
        return replace(self, whole=self.whole.as_one_step(), rows=rows)


def read_device_use(result: Any, *, groups: int, steps: int) -> DeviceUse | None:
    """What devices did in a native result whose groups were just read; None if no device was used.

    Args:
        result: No other thread may query it meanwhile.
        groups: The number of these groups.

    Raises:
        CollectorError: Out of memory.
    """
    use = ffi.new("op_device_use *")
    check(lib.op_result_device_use(result, use))
    if not use.count:
        return None
    places = ffi.unpack(use.of_group, groups) if groups else []
    launchers = ffi.unpack(use.launcher, groups) if groups else []
    return value_of(
        DeviceUse,
        use,
        whole=_work(use.values, 0, steps=steps),
        rows={row: _work(use.values, place, steps=steps) for row, place in enumerate(places) if place},
        launchers={row: launcher - 1 for row, launcher in enumerate(launchers) if launcher},
    )


def _work(values: Any, place: int, *, steps: int) -> DeviceWork:
    assert len(MEASURES) == lib.OP_USE_MEASURES, "the collector has other measures"
    cells = len(MEASURES) * (steps + 1)
    flat = ffi.unpack(values + place * cells, cells)
    rows = {name: flat[at * (steps + 1) : (at + 1) * (steps + 1)] for at, name in enumerate(MEASURES)}
    return DeviceWork(
        steps={name: tuple(row[:steps]) for name, row in rows.items() if any(row[:steps])},
        outside={name: row[steps] for name, row in rows.items() if row[steps]},
    )
