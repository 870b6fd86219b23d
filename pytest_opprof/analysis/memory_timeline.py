"""Memory over time by category, written to files in torch.profiler's formats."""

from __future__ import annotations

import enum
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Final

from pytest_opprof.analysis.data_flow import DataFlow, Version
from pytest_opprof.analysis.memory_categories import Categories, Category
from pytest_opprof.capture.recording import Recording
from pytest_opprof.capture.tensor_roles import DEVICES, TensorRoles
from pytest_opprof.capture.trace_file import write_text
from pytest_opprof.errors import UsageError
from pytest_opprof.units import format_memory

_COLORS: Final = (
    "darkgreen",
    "goldenrod",
    "black",
    "mediumpurple",
    "red",
    "mediumblue",
    "royalblue",
    "grey",
)
_WIDTH, _HEIGHT, _MARGIN = 1200, 600, 40


class Action(enum.IntEnum):
    """What happened to a storage, with torch's numbers."""

    PREEXISTING = 1
    CREATE = 2
    INCREMENT_VERSION = 3
    DESTROY = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One entry of the timeline."""

    time_ns: int  # since the epoch; -1 for before the window
    action: Action
    version: Version  # the storage and version that it happened to
    nbytes: int


class MemoryTimeline:
    """The storages of a recording over time; needs shapes and memory in it."""

    def __init__(self, recording: Recording, roles: TensorRoles | None = None) -> None:
        self.flow = DataFlow(recording)
        self.categories = Categories(self.flow, roles or TensorRoles())
        self._start_ns = recording.trace_start_ns

    def moments(self, device: str) -> list[Moment]:
        """The timeline of one device, such as ``cpu`` or ``cuda:0``, in order."""
        kind, _, index = device.partition(":")
        if kind not in DEVICES or (index and not index.isdecimal()):
            raise UsageError(f"unknown device {device!r}: give one such as 'cpu' or 'cuda:0'")
        place = DEVICES[kind], -1 if kind == "cpu" else int(index or 0)
        places = [block.place[:2] for block in self.flow.storages]
        found = [moment for moment in self._moments() if places[moment.version[0]] == place]
        return sorted(found, key=lambda moment: (moment.time_ns, moment.action))

    def _moments(self) -> Iterator[Moment]:
        last: dict[int, int] = {}
        for node in self.flow.nodes:
            for storage, version in node.outputs | node.inputs:
                last[storage] = max(last.get(storage, 0), version)
        for storage, block in enumerate(self.flow.storages):
            if block.taken_ns is None:
                yield self._moment(None, Action.PREEXISTING, (storage, 0))
            else:
                yield self._moment(block.taken_ns, Action.CREATE, (storage, 0))
            if block.given_back_ns is not None:
                yield self._moment(block.given_back_ns, Action.DESTROY, (storage, last.get(storage, 0)))
        for node in self.flow.nodes:
            for storage in node.writes:
                before = (storage, node.reads[storage])
                yield self._moment(node.start_ns, Action.INCREMENT_VERSION, before)

    def _moment(self, at_ns: int | None, action: Action, version: Version) -> Moment:
        return Moment(
            time_ns=-1 if at_ns is None else self._start_ns + at_ns,
            action=action,
            version=version,
            nbytes=self.flow.storages[version[0]].nbytes,
        )

    def changes(self, device: str) -> Iterator[tuple[int, Action, int, Category]]:
        """Each change: time (nanoseconds since the epoch, -1 for before), action, bytes added, category."""
        for moment in self.moments(device):
            storage, version = moment.version
            category = self.categories.of(moment.version)
            if moment.action is Action.INCREMENT_VERSION:
                later = self.categories.of((storage, version + 1))
                yield moment.time_ns, moment.action, -moment.nbytes, category
                yield moment.time_ns, moment.action, moment.nbytes, later
            else:
                sign = -1 if moment.action is Action.DESTROY else 1
                yield moment.time_ns, moment.action, sign * moment.nbytes, category

    def coalesced(self, device: str) -> tuple[list[int], list[list[int]]]:
        """Times in microseconds since the epoch, and for each a 0 and the bytes of each category."""
        times: list[int] = []
        sizes: list[list[int]] = []
        for time_ns, _, delta, category in self.changes(device):
            time_us = -1 if time_ns < 0 else time_ns // 1000
            if not times or times[-1] != time_us:
                times.append(time_us)
                sizes.append(list(sizes[-1]) if sizes else [0] * (1 + len(Category)))
            sizes[-1][1 + category] += delta
        first = min((time for time in times if time >= 0), default=-1)
        return [first if time < 0 else time for time in times], sizes


def export_memory_timeline(timeline: MemoryTimeline, path: str | os.PathLike[str], device: str) -> None:
    """Write a timeline of a device, such as ``cuda:0``, in the format that the path's ending selects.

    ``.raw.json.gz``: a list of ``[time in ns, action, bytes, category]``; ``.html``: a self-contained page
    with a plot; else JSON, ``[times in us, [[0, bytes of each category], ...]]``, compressed if ``.gz``.
    """
    name = os.fspath(path)
    if name.endswith("raw.json.gz"):
        write_text(path, [json.dumps(list(timeline.changes(device)))])
    elif name.endswith(".html"):
        write_text(path, _page(*timeline.coalesced(device), device=device))
    else:
        write_text(path, [json.dumps(timeline.coalesced(device))])


def _page(times: list[int], sizes: list[list[int]], *, device: str) -> Iterator[str]:
    """A self-contained page: stacked areas, and a legend."""
    peak = max((sum(row) for row in sizes), default=0)
    yield (
        '<!doctype html>\n<html><head><meta charset="utf-8"><title>Memory timeline</title></head>\n'
        f"<body><h1>Memory of {escape(device)}</h1>\n<p>Most at once: {format_memory(peak)}, over "
        f"{(times[-1] - times[0]) / 1000 if times else 0:.3f} ms</p>\n"
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="memory by category over time">\n'
    )
    for category in Category:
        points = _area(times, sizes, category, peak=peak)
        yield f'<polygon points="{points}" fill="{_COLORS[category]}" fill-opacity="0.7"/>\n'
    yield "</svg>\n<ul>\n"
    for category in Category:
        words = category.name.capitalize().replace("_", " ")
        yield f'<li><span style="color:{_COLORS[category]}">&#9632;</span> {words}</li>\n'
    yield "</ul></body></html>\n"


def _area(times: list[int], sizes: list[list[int]], category: Category, *, peak: int) -> str:
    """Points left to right along the sum up to this category, then back along the sum below it, in steps."""
    if not times:
        return ""
    across = (_WIDTH - 2 * _MARGIN) / max(times[-1] - times[0], 1)
    up = (_HEIGHT - 2 * _MARGIN) / max(peak, 1)

    def edge(columns: int) -> list[str]:
        points = []
        before = 0
        for time, row in zip(times, sizes, strict=True):
            x = _MARGIN + (time - times[0]) * across
            now = sum(row[:columns])
            points += [f"{x:.1f},{_HEIGHT - _MARGIN - value * up:.1f}" for value in (before, now)]
            before = now
        return points

    return " ".join(edge(2 + category) + edge(1 + category)[::-1])
