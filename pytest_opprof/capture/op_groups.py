"""Events summed up by the collector: the rows of the key averages."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pytest_opprof.capture.inputs import Inputs
from pytest_opprof.capture.native import ffi, lib
from pytest_opprof.capture.native_calls import check, name_text, names_of, numbered_texts, value_of
from pytest_opprof.kinds import EventKind
from pytest_opprof.units import MOST_IN_JSON

_CODES: Final = {"uint8_t": "B", "uint32_t": "I", "int32_t": "i", "uint64_t": "Q", "int64_t": "q"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpGroup:
    """One row of the key averages."""

    name: str  # the op's name; all ``ProfilerStep#k`` are ``ProfilerStep*``
    kind: EventKind
    scope: int
    is_user_annotation: bool
    background: bool  # run during steps, by threads that are not part of them
    is_async: bool  # the earliest event ended out of order or on another thread
    count: int
    total_ns: int  # sum of durations, including nested events of the same name
    self_ns: int  # the same without the time of events inside
    min_ns: int
    max_ns: int
    first_event: int  # index of the earliest event
    # the collector's columns, each summed over all events; of `MEASURES`, what is outside of steps
    sums: Mapping[str, int]
    steps: Mapping[str, tuple[int, ...]]  # the same for each step of the recording
    # torch's number of the events' device type; 0 for the host. Events of a device have only device time, and
    # `total_ns` 0.
    device_type: int = 0
    device_total_ns: int = 0  # time of the kernels, copies and fills launched in the events
    self_device_ns: int = 0  # the same without those launched by an op or range inside
    args_event: int = 0  # index of an event with this row's inputs
    cpu_memory: int = 0  # host bytes taken less given back, including events inside
    self_cpu_memory: int = 0  # the same without events inside
    device_memory: int = 0  # `cpu_memory` of all devices
    self_device_memory: int = 0  # `self_cpu_memory` of all devices
    flops: int = 0  # FLOPs, including events inside; 0 until `Recording.count_flops`
    # the part of `flops` that is not in an enclosing event; these parts add up to the total
    counted_flops: int = 0
    views: int = 0  # how many of `count` returned an input by torch's schema, and ran no op but views


def read_groups(result: Any, by: int, *, steps: int, stack_depth: int = 0) -> list[OpGroup]:
    """The events of a native result, summed up by bits of ``OP_GROUP_BY_`` and by so many innermost callers.

    No other thread may query the result meanwhile.
    """
    rows_at, count_at, samples = ffi.new("op_group **"), ffi.new("uint64_t *"), ffi.new("int64_t **")
    check(lib.op_result_groups(result, by, stack_depth, rows_at, count_at, samples))
    rows, count = rows_at[0], count_at[0]
    names, row = _layout()
    columns = _columns()
    cells = count * steps
    flat = ffi.unpack(samples[0], len(columns) * cells) if cells else []
    of_steps = (
        zip(*[iter(flat[at * cells : (at + 1) * cells])] * steps, strict=True) if steps else [()] * count
        for at in range(len(columns))
    )
    of_rows = row.iter_unpack(ffi.buffer(rows, count * row.size)) if count else ()
    return [
        _group(dict(zip(names, numbers, strict=True)), dict(zip(columns, each, strict=True)))
        for numbers, each in zip(of_rows, zip(*of_steps, strict=True), strict=True)
    ]


@functools.cache
def _columns() -> tuple[str, ...]:
    """The columns that the collector sums up for each step."""
    return numbered_texts(lib.op_group_column)


@functools.cache
def _layout() -> tuple[tuple[str, ...], struct.Struct]:
    """A row's members and layout: reading whole rows is much faster than asking cffi for each number."""
    members = ffi.typeof("op_group").fields
    codes = (_CODES[member.type.cname] for _, member in members)
    return tuple(name for name, _ in members), struct.Struct("@" + "".join(codes))


def _group(told: dict[str, Any], steps: dict[str, tuple[int, ...]]) -> OpGroup:
    return OpGroup(
        **{name: told[name] for name in names_of(OpGroup) if name in told}
        | {
            "name": name_text(told["name"]),
            "kind": EventKind(told["kind"]),
            "is_user_annotation": bool(told["is_user_annotation"]),
            "background": bool(told["background"]),
            "is_async": bool(told["is_async"]),
        },
        sums={column: told[column] for column in steps},
        steps=steps,
    )


def flops_by(
    formula: Callable[[Inputs], int | None] | None, row: OpGroup, inputs_of: Callable[[int], Inputs | None]
) -> int:
    """The FLOPs of an event of a row by inputs, by a formula or else the collector's own; -1 if unknown."""
    if formula is None:
        return int(lib.OP_FLOPS_BY_FORMULA)
    inputs = inputs_of(row.args_event)
    flops = None if inputs is None else formula(inputs)
    return -1 if flops is None or flops > MOST_IN_JSON else flops


DIRECTIONS: Final = ("htod", "dtoh", "dtod", "ptop", "htoh")
# In the collector's order. Measures that are metrics have the metric's name.
MEASURES: Final = (
    "kernels",
    "launches",
    "memsets",
    "syncs",
    "copies",
    *(f"copies_{direction}" for direction in DIRECTIONS),
    "copied_bytes",
    *(f"copied_bytes_{direction}" for direction in DIRECTIONS),
    "device_busy_time",
    "idle_ns",
    "span_ns",
    "depth",
    "depths",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceUse:
    """What devices did, by the names of `MEASURES`, and what is unknown about it.

    ``device_busy_time`` is the union of the work's intervals on each device. ``span_ns`` is the time on the
    host, of a row or of all, and ``idle_ns`` the part of it in which a device ran nothing; both are summed
    over the devices in use. ``depth`` adds up the kernels that were launched but had not begun, at each
    launch (for a row: at each of its events); ``depths`` is the number of these moments.
    """

    steps: Mapping[str, tuple[int, ...]]  # one value per step; measures that are 0 in all steps are left out
    outside: Mapping[str, int]  # what belongs to no step: everything if there are no steps
    launchers: Mapping[int, int]  # for rows that are device work: the row that launched most of it
    unmatched_launches: int  # launches whose kernel is not on record
    unmatched_kernels: int  # kernels, copies and fills since the first step whose launch is not on record
    untimed: int  # work without a time
    unsized: int  # copies of unknown size
    undirected: int  # copies of unknown direction


def add_device_work(result: Any, groups: list[OpGroup], *, steps: int) -> DeviceUse | None:
    """Add to each of the groups just read its device work as further columns, and give the whole.

    None if no device was used. No other thread may query the result meanwhile.
    """
    use = ffi.new("op_device_use *")
    check(lib.op_result_device_use(result, use))
    if not use.count:
        return None
    places = ffi.unpack(use.of_group, len(groups)) if groups else []
    launchers = ffi.unpack(use.launcher, len(groups)) if groups else []
    for row, place in enumerate(places):
        if place:
            group = groups[row]
            of_steps, outside = _work(use.values, place, steps=steps)
            groups[row] = replace(group, steps={**group.steps, **of_steps}, sums={**group.sums, **outside})
    of_steps, outside = _work(use.values, 0, steps=steps)
    return value_of(
        DeviceUse,
        use,
        steps=of_steps,
        outside=outside,
        launchers={row: launcher - 1 for row, launcher in enumerate(launchers) if launcher},
    )


def _work(values: Any, place: int, *, steps: int) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    assert len(MEASURES) == lib.OP_USE_MEASURES, "the collector has other measures"
    cells = len(MEASURES) * (steps + 1)
    flat = ffi.unpack(values + place * cells, cells)
    rows = {name: flat[at * (steps + 1) : (at + 1) * (steps + 1)] for at, name in enumerate(MEASURES)}
    return (
        {name: tuple(row[:steps]) for name, row in rows.items() if any(row[:steps])},
        {name: row[steps] for name, row in rows.items() if row[steps]},
    )
